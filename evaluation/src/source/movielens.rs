//! MovieLens: each rating is an item, its movie.
//!
//! The first line shows the layout: `ratings.csv` (20M and later, latest, latest-small), `ratings.dat` (1M,
//! 10M) or `u.data` (100K). The paper calls the file sorted by time; it is sorted by user, so it is sorted here,
//! and ratings of one second keep their order. The domain is every movie of the list beside the ratings
//! (`movies.csv`, `movies.dat` or `u.item`), as in the paper's count, or every rated movie without that list.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::input::{Lines, likeness, open, shown, without_mark};
use super::numbering::{Event, Loaded, Numbering};
use super::registry::Files;
use super::report::{FileReport, Kind, Report};
use super::time::digits;

const KIND: Kind = Kind { name: "a ratings file of MovieLens", unit: "line" };
const HEADER: &[u8] = b"userId,movieId,rating,timestamp";

/// Reads the ratings; `limit` takes the first items alone.
///
/// Holds up to 16 bytes per rating.
pub fn load(files: &Files, limit: Option<usize>) -> Result<Loaded> {
    let mut report = Report::default();
    let mut ratings = Ratings { movies: Numbering::new(), events: Vec::new() };
    for path in &files.logs {
        ratings.read(path, &mut report)?;
    }
    let Ratings { mut movies, events } = ratings;
    ensure!(!events.is_empty(), "the MovieLens files hold no ratings; {report}");
    let titles = files.companion.as_deref().map(read_titles).transpose()?.unwrap_or_default();
    for (movie, _) in &titles {
        movies.number(movie)?;
    }
    let titles: HashMap<u32, String> = titles.into_iter().collect();
    let name = |movie: u32| titles.get(&movie).cloned().unwrap_or_else(|| format!("movie {movie}"));
    let names = movies.into_keys().into_iter().map(name).collect();
    Ok(Loaded::from_events("movielens", events, names, limit, report))
}

struct Ratings {
    movies: Numbering<u32>,
    events: Vec<Event>,
}

impl Ratings {
    fn read(&mut self, path: &Path, report: &mut Report) -> Result<()> {
        let mut lines = Lines::open(path)?;
        let mut file = FileReport::new(report, path, &KIND);
        let Some(first) = lines.next()? else { return Ok(()) };
        let layout = Layout::of(path, first)?;
        if layout != Layout::Csv {
            self.add(layout.parse(first), 1, &mut file)?;
        }
        while let Some(line) = lines.next()? {
            let rating = layout.parse(line);
            self.add(rating, lines.number(), &mut file)?;
        }
        file.finish()
    }

    fn add(&mut self, rating: Parsed, number: u64, file: &mut FileReport<'_>) -> Result<()> {
        file.record();
        match rating {
            Ok((time, movie)) => self.events.push(Event { time, item: self.movies.number(&movie)? }),
            Err(reason) => file.bad(number, reason)?,
        }
        Ok(())
    }
}

/// The time and the movie of a rating, or what is wrong with the line.
type Parsed = Result<(u32, u32), String>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// `ratings.csv`, with a header.
    Csv,
    /// `ratings.dat`.
    Dat,
    /// `u.data`.
    Tab,
}

impl Layout {
    fn of(path: &Path, first: &[u8]) -> Result<Self> {
        if without_mark(first) == HEADER {
            return Ok(Self::Csv);
        }
        let fits = |layout: &Self| layout.columns(first).len() == 4;
        if let Some(layout) = [Self::Dat, Self::Tab].into_iter().find(fits) {
            return Ok(layout);
        }
        let likeness = likeness(first).unwrap_or("put ratings.csv, ratings.dat or u.data of MovieLens there");
        bail!(
            "{}: line 1 is {}; ratings of MovieLens begin with {} or have four columns between :: or tabs; {likeness}",
            path.display(),
            shown(first),
            shown(HEADER)
        )
    }

    fn columns(self, line: &[u8]) -> Vec<&[u8]> {
        match self {
            Self::Csv => line.split(|&byte| byte == b',').collect(),
            Self::Tab => line.split(|&byte| byte == b'\t').collect(),
            Self::Dat => split_colons(line),
        }
    }

    fn parse(self, line: &[u8]) -> Parsed {
        let columns = self.columns(line);
        let [user, movie, rating, time] = columns[..] else {
            return Err(format!("it has {} columns, not 4", columns.len()));
        };
        let number = |name: &str, column: &[u8]| {
            digits(column).ok_or_else(|| format!("the {name} is {}, not a number", shown(column)))
        };
        number("user", user)?;
        let movie = number("movie", movie)?;
        if !is_rating(rating) {
            return Err(format!("the rating is {}, not 0.5 to 5 in halves", shown(rating)));
        }
        Ok((number("timestamp", time)?, movie))
    }
}

fn split_colons(line: &[u8]) -> Vec<&[u8]> {
    let mut columns = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"::") {
        columns.push(&rest[..at]);
        rest = &rest[at + 2..];
    }
    columns.push(rest);
    columns
}

fn is_rating(text: &[u8]) -> bool {
    match text {
        [whole] | [whole, b'.', b'0'] => (b'1'..=b'5').contains(whole),
        [whole, b'.', b'5'] => (b'0'..=b'4').contains(whole),
        _ => false,
    }
}

/// The number and the title of each movie, from a list whose name gives its layout.
fn read_titles(path: &Path) -> Result<Vec<(u32, String)>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("movies.csv") {
        return read_csv_titles(path);
    }
    let mut lines = Lines::open(path)?;
    let mut titles = Vec::new();
    while let Some(line) = lines.next()? {
        let columns = if name.starts_with("u.item") {
            line.split(|&byte| byte == b'|').collect()
        } else {
            split_colons(line)
        };
        let title = match columns[..] {
            [movie, title, ..] => digits(movie).map(|movie| (movie, latin(title))),
            _ => None,
        };
        let shown = shown(line);
        titles.push(title.with_context(|| no_movie(path, lines.number(), &shown))?);
    }
    Ok(titles)
}

fn read_csv_titles(path: &Path) -> Result<Vec<(u32, String)>> {
    let mut titles = Vec::new();
    for record in csv::ReaderBuilder::new().flexible(true).from_reader(open(path)?).into_byte_records() {
        let record = record.with_context(|| path.display().to_string())?;
        let line = record.position().map_or(0, csv::Position::line);
        let columns = record.get(0).and_then(digits).zip(record.get(1));
        let (movie, title) = columns.with_context(|| no_movie(path, line, &shown(record.as_slice())))?;
        titles.push((movie, latin(title)));
    }
    Ok(titles)
}

fn no_movie(path: &Path, line: u64, shown: &str) -> String {
    format!("{}: line {line} is {shown}, not a movie; get the list again or remove it", path.display())
}

/// UTF-8, or the Latin-1 of the older sets.
fn latin(text: &[u8]) -> String {
    match str::from_utf8(text) {
        Ok(text) => text.to_owned(),
        Err(_) => text.iter().copied().map(char::from).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layout_gives_the_time_and_the_movie() {
        for (layout, line) in [
            (Layout::Csv, "1,296,5.0,1147880000"),
            (Layout::Dat, "1::296::5::1147880000"),
            (Layout::Dat, "1::296::3.5::1147880000"),
            (Layout::Tab, "1\t296\t3\t1147880000"),
        ] {
            assert_eq!(layout.parse(line.as_bytes()), Ok((1_147_880_000, 296)), "{line}");
        }
    }

    #[test]
    fn a_bad_line_says_what_is_wrong() {
        for (line, reason) in [
            ("1,2,3.0", "it has 3 columns, not 4"),
            ("u,2,3.0,4", "the user is \"u\", not a number"),
            ("1,-2,3.0,4", "the movie is \"-2\", not a number"),
            ("1,2,5.5,4", "the rating is \"5.5\", not 0.5 to 5 in halves"),
            ("1,2,0.0,4", "the rating is \"0.0\", not 0.5 to 5 in halves"),
            ("1,2,3.0,", "the timestamp is \"\", not a number"),
        ] {
            assert_eq!(Layout::Csv.parse(line.as_bytes()), Err(reason.to_owned()), "{line}");
        }
    }

    #[test]
    fn old_titles_are_latin() {
        assert_eq!(latin(b"Caf\xe9"), "Caf\u{e9}");
        assert_eq!(latin("Caf\u{e9}".as_bytes()), "Caf\u{e9}");
    }
}
