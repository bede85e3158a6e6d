//! The AOL query log of 2006: each keyword of a query is an item.
//!
//! The paper removes duplicate and incomplete records, sorts by time, takes the keywords "after stopword removal
//! and lemmatization" and filters out "typos and meaningless keywords", without saying how. Here:
//!
//! - A record is incomplete without a query (`-`), or without a click, which leaves two of the five fields empty.
//! - A record is a duplicate when user, query and time were there before, as in the second click of a query.
//!   By the log's own counts at most 11,951,424 records remain.
//! - Stop words are NLTK's English ones. Words with fewer than three letters or with anything but letters, and
//!   parts of web addresses, have no meaning.
//! - Lemmas are singulars of nouns, by the endings of WordNet's rules, with the log as the dictionary: a plural
//!   becomes a singular that occurs in the log. Verbs stay as they are.
//! - Typos are the words that are missing from `words.txt` beside the log, one word per line. Without that file the
//!   38,411 most frequent keywords are kept, the number the paper ends with, since a typo is rare.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use anyhow::{Result, bail, ensure};

use super::input::{Lines, likeness, shown, without_mark};
use super::numbering::{Event, Loaded, Numbering};
use super::registry::Files;
use super::report::{FileReport, Kind, Report};
use super::time::{digits, seconds};
use super::words::{Keywords, singular};

const KIND: Kind = Kind { name: "an AOL query log", unit: "line" };
const HEADER: &[u8] = b"AnonID\tQuery\tQueryTime\tItemRank\tClickURL";
/// The keywords of the paper's stream.
const KEYWORDS_MAX: usize = 38_411;

/// Reads the logs; `limit` takes the first items alone.
///
/// Holds up to 16 bytes per item, about 16 per record, and the words.
pub fn load(files: &Files, limit: Option<usize>) -> Result<Loaded> {
    let mut log = Log::new();
    for path in &files.logs {
        log.read(path)?;
    }
    let dictionary = files.companion.as_deref().map(read_dictionary).transpose()?;
    let Log { mut events, words, report, .. } = log;
    let (keywords, names) = Vocabulary::new(words, &events).keep(dictionary.as_ref());
    events.retain_mut(|event| match keywords[event.item as usize] {
        Some(keyword) => {
            event.item = keyword;
            true
        }
        None => false,
    });
    ensure!(!events.is_empty(), "the AOL logs hold no keywords; {report}");
    Ok(Loaded::from_events("aol", events, names, limit, report))
}

struct Log {
    events: Vec<Event>,
    words: Numbering<String>,
    keywords: Keywords,
    /// Hashes of user, query and time; among 12 million, two records have the same with probability 4e-6.
    seen: HashSet<u64>,
    hasher: RandomState,
    report: Report,
}

struct Record<'a> {
    user: &'a [u8],
    query: &'a [u8],
    time: u32,
    is_click: bool,
}

impl Log {
    fn new() -> Self {
        Self {
            events: Vec::new(),
            words: Numbering::new(),
            keywords: Keywords::new(),
            seen: HashSet::new(),
            hasher: RandomState::new(),
            report: Report::default(),
        }
    }

    fn read(&mut self, path: &Path) -> Result<()> {
        let mut lines = Lines::open(path)?;
        check_header(path, lines.next()?)?;
        let mut total = std::mem::take(&mut self.report);
        let mut file = FileReport::new(&mut total, path, &KIND);
        while let Some(line) = lines.next()? {
            if line == HEADER {
                continue;
            }
            file.record();
            match parse(line) {
                Ok(record) => self.add(&record, &mut file)?,
                Err(reason) => file.bad(lines.number(), reason)?,
            }
        }
        file.finish()?;
        self.report = total;
        Ok(())
    }

    fn add(&mut self, record: &Record<'_>, file: &mut FileReport<'_>) -> Result<()> {
        if !record.is_click || matches!(record.query, b"" | b"-") {
            file.incomplete();
            return Ok(());
        }
        if !self.seen.insert(self.hasher.hash_one((record.user, record.query, record.time))) {
            file.duplicate();
            return Ok(());
        }
        for word in self.keywords.of(record.query) {
            self.events.push(Event { time: record.time, item: self.words.number(word.as_str())? });
        }
        Ok(())
    }
}

fn check_header(path: &Path, line: Option<&[u8]>) -> Result<()> {
    let line = line.unwrap_or_default();
    if without_mark(line) == HEADER {
        return Ok(());
    }
    let likeness = likeness(line).unwrap_or("put user-ct-test-collection-01.txt.gz and the others there");
    bail!(
        "{}: line 1 is {}, and an AOL query log begins with {}; {likeness}",
        path.display(),
        shown(line),
        shown(HEADER)
    )
}

/// Three columns, or five, of which the last two may be empty.
fn parse(line: &[u8]) -> Result<Record<'_>, String> {
    let columns: Vec<&[u8]> = line.split(|&byte| byte == b'\t').collect();
    let (user, query, time, click) = match columns[..] {
        [user, query, time] => (user, query, time, [&b""[..]; 2]),
        [user, query, time, rank, url] => (user, query, time, [rank, url]),
        _ => return Err(format!("it has {} columns, not 3 or 5", columns.len())),
    };
    if digits(user).is_none() {
        return Err(format!("AnonID is {}, not a number", shown(user)));
    }
    if !click[0].is_empty() && digits(click[0]).is_none() {
        return Err(format!("ItemRank is {}, not a number", shown(click[0])));
    }
    let Some(time) = seconds(time) else {
        return Err(format!("QueryTime is {}, not YYYY-MM-DD HH:MM:SS", shown(time)));
    };
    Ok(Record { user, query, time, is_click: click.iter().all(|field| !field.is_empty()) })
}

fn read_dictionary(path: &Path) -> Result<HashSet<String>> {
    let mut lines = Lines::open(path)?;
    let mut words = HashSet::new();
    while let Some(line) = lines.next()? {
        words.insert(String::from_utf8_lossy(line).trim().to_lowercase());
    }
    Ok(words)
}

/// The words of the log and the lemma of each.
struct Vocabulary {
    words: Vec<String>,
    /// By word, the number of the word that is its lemma.
    lemmas: Vec<u32>,
    /// By word, how often it occurs as a lemma.
    counts: Vec<u64>,
}

impl Vocabulary {
    fn new(numbering: Numbering<String>, events: &[Event]) -> Self {
        let mut word_counts = vec![0; numbering.len()];
        events.iter().for_each(|event| word_counts[event.item as usize] += 1);
        let count = |word: &str| numbering.get(word).map_or(0, |number| word_counts[number as usize]);
        let lemma = |word: &str| singular(word, count).and_then(|lemma| numbering.get(lemma.as_str()));
        let lemma_of: HashMap<u32, u32> =
            numbering.iter().filter_map(|(word, number)| Some((number, lemma(word)?))).collect();
        let lemmas: Vec<u32> =
            (0..).take(numbering.len()).map(|word| lemma_of.get(&word).copied().unwrap_or(word)).collect();
        let mut counts = vec![0; lemmas.len()];
        lemmas.iter().zip(&word_counts).for_each(|(&lemma, count)| counts[lemma as usize] += count);
        Self { words: numbering.into_keys(), lemmas, counts }
    }

    /// The keyword of each word, if it is one, and the names of the keywords.
    fn keep(self, dictionary: Option<&HashSet<String>>) -> (Vec<Option<u32>>, Vec<String>) {
        let mut lemmas: Vec<usize> = (0..self.words.len()).filter(|&word| self.counts[word] != 0).collect();
        match dictionary {
            Some(known) => lemmas.retain(|&lemma| known.contains(&self.words[lemma])),
            None => {
                lemmas.sort_by_key(|&lemma| std::cmp::Reverse(self.counts[lemma]));
                lemmas.truncate(KEYWORDS_MAX);
            }
        }
        let keywords: HashMap<usize, u32> = lemmas.iter().copied().zip(0..).collect();
        let of_word = self.lemmas.iter().map(|&lemma| keywords.get(&(lemma as usize)).copied()).collect();
        (of_word, lemmas.iter().map(|&lemma| self.words[lemma].clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_line_says_what_is_wrong() {
        for (line, reason) in [
            ("1\tcat", "it has 2 columns, not 3 or 5"),
            ("1\tcat\t2006-03-01 00:00:00\t1", "it has 4 columns, not 3 or 5"),
            ("x1\tcat\t2006-03-01 00:00:00", "AnonID is \"x1\", not a number"),
            ("1\tcat\t2006-03-01\t\t", "QueryTime is \"2006-03-01\", not YYYY-MM-DD HH:MM:SS"),
            ("1\tcat\t2006-03-01 00:00:00\tfirst\tu", "ItemRank is \"first\", not a number"),
        ] {
            assert_eq!(parse(line.as_bytes()).err().as_deref(), Some(reason), "{line}");
        }
    }

    #[test]
    fn a_click_fills_all_five_columns() {
        for (line, is_click) in [
            ("1\tcat\t2006-03-01 00:00:00", false),
            ("1\tcat\t2006-03-01 00:00:00\t\t", false),
            ("1\tcat\t2006-03-01 00:00:00\t2\t", false),
            ("1\tcat\t2006-03-01 00:00:00\t2\thttp://www.example.com", true),
        ] {
            assert_eq!(parse(line.as_bytes()).expect("right").is_click, is_click, "{line}");
        }
    }
}
