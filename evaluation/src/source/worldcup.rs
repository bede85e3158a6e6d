//! The access logs of the 1998 World Cup web site: each request is an item, its URL.
//!
//! The files are read in the order of day and part, a block of records at a time, so that counting the whole set
//! takes memory for one block alone. Each block is sorted by time; a record that is earlier than the block before
//! is bad. The paper removes incomplete and duplicate requests without saying what they are. Here a duplicate is
//! equal in all fields to another request of the same second; a record is bad when a field is outside its list of
//! values or the time outside the days of the log. A request whose response has no size is complete.

use std::collections::{HashMap, HashSet};
use std::io::BufRead;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::input::{Lines, likeness, open, shown, unreadable};
use super::numbering::{Loaded, Numbering};
use super::registry::Files;
use super::report::{FileReport, Kind, Report};
use super::statistics::Statistics;
use super::time::digits;

const KIND: Kind = Kind { name: "a WorldCup98 log", unit: "record" };
/// The bytes of a record.
const RECORD_LEN: usize = 20;
/// Records sorted at once; no file of the archive holds more.
const BLOCK_LEN: usize = 7_000_000;
/// The days of the log, with one more on either side: 25 April to 27 July 1998.
const TIMES: std::ops::Range<u32> = 893_462_400..901_584_000;
const METHOD_MAX: u8 = 8;
const STATUS_MAX: u8 = 37;
const TYPE_MAX: u8 = 12;
const REGION_MAX: u8 = 3;

/// The bytes of a record in its file.
type Record = [u8; RECORD_LEN];
/// Records with their numbers in the file.
type Block = Vec<(u64, Record)>;

/// Reads the logs; `limit` takes the first items alone and stops reading there.
///
/// Holds 8 bytes per item, so the whole set needs 10 GB; [`count`] does not.
pub fn load(files: &Files, limit: Option<usize>) -> Result<Loaded> {
    let limit = limit.unwrap_or(usize::MAX);
    let mut items = Vec::new();
    let requests = Requests::visit(files, |item| {
        items.push(u64::from(item));
        items.len() < limit
    })?;
    items.truncate(limit);
    let (names, report) = requests.finish(files)?;
    Ok(Loaded::new("worldcup", items, names, report))
}

/// Counts the requests of each URL without keeping the stream.
pub fn count(files: &Files) -> Result<Statistics> {
    let mut counts: Vec<u64> = Vec::new();
    let requests = Requests::visit(files, |item| {
        let item = item as usize;
        counts.resize(counts.len().max(item + 1), 0);
        counts[item] += 1;
        true
    })?;
    let (names, report) = requests.finish(files)?;
    Ok(Statistics::new(counts, names, report))
}

/// Requests in time order.
struct Requests {
    objects: Numbering<u32>,
    /// The second that was given out last, and its requests.
    time: u32,
    requests: HashSet<Record>,
    report: Report,
}

impl Requests {
    /// Gives each item to `each`, which says whether it wants more.
    fn visit(files: &Files, mut each: impl FnMut(u32) -> bool) -> Result<Self> {
        let mut requests =
            Self { objects: Numbering::new(), time: 0, requests: HashSet::new(), report: Report::default() };
        for path in &files.logs {
            if !requests.read(path, &mut each)? {
                break;
            }
        }
        Ok(requests)
    }

    /// The names of the objects by number.
    fn finish(self, files: &Files) -> Result<(Vec<String>, Report)> {
        ensure!(self.objects.len() != 0, "the WorldCup98 logs hold no requests; {}", self.report);
        let paths = files.companion.as_deref().map(read_paths).transpose()?.unwrap_or_default();
        let name = |object: u32| paths.get(&object).cloned().unwrap_or_else(|| format!("object {object}"));
        Ok((self.objects.into_keys().into_iter().map(name).collect(), self.report))
    }

    fn read(&mut self, path: &Path, each: &mut impl FnMut(u32) -> bool) -> Result<bool> {
        let mut reader = open(path)?;
        let mut total = std::mem::take(&mut self.report);
        let mut file = FileReport::new(&mut total, path, &KIND);
        let mut number = 0;
        let mut wants_more = true;
        while wants_more {
            let block = read_block(path, reader.as_mut(), &mut number, &mut file)?;
            if block.is_empty() {
                break;
            }
            wants_more = self.give(block, &mut file, each)?;
        }
        file.finish()?;
        self.report = total;
        Ok(wants_more)
    }

    fn give(
        &mut self,
        mut block: Block,
        file: &mut FileReport<'_>,
        each: &mut impl FnMut(u32) -> bool,
    ) -> Result<bool> {
        if !block.is_sorted_by_key(|(_, record)| time(record)) {
            block.sort_by_key(|(_, record)| time(record));
        }
        for (number, record) in block {
            let time = time(&record);
            if time < self.time {
                file.bad(number, format!("it is {} s earlier than the records before", self.time - time))?;
                continue;
            }
            if self.time < time {
                self.time = time;
                self.requests.clear();
            }
            if !self.requests.insert(record) {
                file.duplicate();
                continue;
            }
            if !each(self.objects.number(&field(&record, 8))?) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The next good records with their numbers; empty at the end.
fn read_block(
    path: &Path,
    reader: &mut dyn BufRead,
    number: &mut u64,
    file: &mut FileReport<'_>,
) -> Result<Block> {
    let mut block = Vec::new();
    while block.len() < BLOCK_LEN {
        let Some(record) = read_record(path, reader, *number + 1)? else { break };
        *number += 1;
        file.record();
        match check(&record) {
            Ok(()) => block.push((*number, record)),
            Err(reason) => file.bad(*number, reason)?,
        }
    }
    Ok(block)
}

fn read_record(path: &Path, reader: &mut dyn BufRead, number: u64) -> Result<Option<Record>> {
    let mut record = [0; RECORD_LEN];
    let mut len = 0;
    while len < RECORD_LEN {
        let read = reader.read(&mut record[len..]);
        match read.with_context(|| unreadable(path, &format!("record {number}")))? {
            0 => break,
            more => len += more,
        }
    }
    if number == 1
        && let Some(likeness) = likeness(&record[..len])
    {
        bail!("{}: this is not a WorldCup98 log; {likeness}", path.display());
    }
    match len {
        0 => Ok(None),
        RECORD_LEN => Ok(Some(record)),
        _ => bail!("{}: record {number} is cut off after {len} bytes: get the file again", path.display()),
    }
}

/// A number of four bytes, the highest first.
fn field(record: &Record, at: usize) -> u32 {
    u32::from_be_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
}

fn time(record: &Record) -> u32 {
    field(record, 0)
}

fn check(record: &Record) -> Result<(), String> {
    let time = time(record);
    if !TIMES.contains(&time) {
        return Err(format!("the timestamp {time} is not in the days of the log"));
    }
    let [method, status, file_type, server] = [record[16], record[17], record[18], record[19]];
    for (name, value, max) in [
        ("method", method, METHOD_MAX),
        ("status", status & 0x3f, STATUS_MAX),
        ("type", file_type, TYPE_MAX),
        ("region", server >> 5, REGION_MAX),
    ] {
        if max < value {
            return Err(format!("the {name} {value} is more than {max}"));
        }
    }
    Ok(())
}

/// The path of each object.
fn read_paths(path: &Path) -> Result<HashMap<u32, String>> {
    let mut lines = Lines::open(path)?;
    let mut paths = HashMap::new();
    while let Some(line) = lines.next()? {
        let line = line.trim_ascii_start();
        let object = line.iter().position(|&byte| byte == b' ').map(|at| line.split_at(at));
        let object = object.and_then(|(object, name)| Some((digits(object)?, name.trim_ascii())));
        let shown = shown(line);
        let (object, name) =
            object.map(|(object, name)| (object, String::from_utf8_lossy(name).into_owned())).with_context(
                || format!("{}: line {} is {shown}, not an object", path.display(), lines.number()),
            )?;
        paths.insert(object, name);
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The made-up record of the format's description.
    const RECORD: Record = [0x35, 0x48, 0xed, 0x69, 0, 0, 0, 7, 0, 0, 0, 0x2a, 0, 0, 4, 0, 0, 0x42, 1, 0x63];

    #[test]
    fn fields_are_big_endian() {
        assert_eq!((time(&RECORD), field(&RECORD, 4), field(&RECORD, 8)), (893_971_817, 7, 42));
        assert_eq!(check(&RECORD), Ok(()));
    }

    #[test]
    fn a_bad_record_says_what_is_wrong() {
        for (at, value, reason) in [
            (0, 0, "the timestamp 4779369 is not in the days of the log"),
            (16, 9, "the method 9 is more than 8"),
            (17, 0x66, "the status 38 is more than 37"),
            (18, 13, "the type 13 is more than 12"),
            (19, 0x80, "the region 4 is more than 3"),
        ] {
            let mut record = RECORD;
            record[at] = value;
            assert_eq!(check(&record), Err(reason.to_owned()));
        }
    }
}
