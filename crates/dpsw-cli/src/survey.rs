//! How many records files have, before any of them is counted. That is public wherever arrivals are.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use memchr::memchr_iter;

use crate::arguments::Format;
use crate::input::parser::{Parser, Wanted};
use crate::input::reader::{Files, Message, Reader};
use crate::input::start::Start;
use crate::input::{Record, Sink};
use crate::interrupt;

/// Files that are longer together are not read twice.
const LEN_MAX: u64 = 1 << 30;
/// How often an interrupt is looked for.
const PATIENCE: Duration = Duration::from_millis(50);

/// The records of all files. `None` of what can be read once, goes on, is very long or cannot be read: reading it says why.
pub(crate) fn records(files: &Files, wanted: &Wanted) -> Option<u64> {
    if files.follow || !is_short(&files.paths) {
        return None;
    }
    count(Reader::start(files.clone()), wanted).ok().flatten()
}

/// Whether these are files, and not too long together.
fn is_short(paths: &[PathBuf]) -> bool {
    let len = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
        metadata.map_or(u64::MAX, |metadata| metadata.len())
    };
    paths.iter().map(len).fold(0, u64::saturating_add) <= LEN_MAX
}

/// `None` if it was interrupted.
fn count(reader: Reader, wanted: &Wanted) -> Result<Option<u64>> {
    let mut tally = Tally { records: 0 };
    let mut part = Part::Rows;
    while !interrupt::is_requested() {
        match reader.next(PATIENCE)? {
            Message::Idle => {}
            Message::Done => return Ok(Some(tally.records)),
            Message::Start(_, start) => part = Part::new(&start, wanted)?,
            Message::Bytes(_, block) => {
                part.push(&block, &mut tally)?;
                reader.give_back(block);
            }
            Message::Rows(_, rows) => tally.records += rows.len() as u64,
            Message::End(_) => part.finish(&mut tally)?,
        }
    }
    Ok(None)
}

/// A file whose records are counted.
enum Part {
    /// Line by line, which needs no parser; and whether the last one has not ended.
    Lines(bool),
    Parsed(Box<Parser>),
    Rows,
}

impl Part {
    fn new(start: &Start, wanted: &Wanted) -> Result<Self> {
        Ok(match start.format {
            Format::Lines => Self::Lines(false),
            Format::Arrow | Format::Parquet => Self::Rows,
            format => Self::Parsed(Box::new(Parser::new(format, wanted, &start.bytes)?)),
        })
    }

    fn push(&mut self, block: &[u8], tally: &mut Tally) -> Result<()> {
        match self {
            Self::Lines(is_open) => {
                tally.records += memchr_iter(b'\n', block).count() as u64;
                *is_open = block.last().is_some_and(|last| *last != b'\n');
                Ok(())
            }
            Self::Parsed(parser) => parser.push(block, tally),
            Self::Rows => Ok(()),
        }
    }

    fn finish(&mut self, tally: &mut Tally) -> Result<()> {
        match self {
            Self::Lines(is_open) => {
                tally.records += u64::from(std::mem::take(is_open));
                Ok(())
            }
            Self::Parsed(parser) => parser.finish(tally),
            Self::Rows => Ok(()),
        }
    }
}

/// Counts records, whatever is in them.
struct Tally {
    records: u64,
}

impl Sink for Tally {
    fn items(&mut self, items: &[&[u8]]) -> Result<()> {
        self.records += items.len() as u64;
        Ok(())
    }

    fn record(&mut self, _: u64, _: Record<'_>) -> Result<()> {
        self.records += 1;
        Ok(())
    }
}
