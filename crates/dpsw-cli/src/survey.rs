//! What is known of files before any item is counted: how many records they have and how their times go. That is public
//! wherever arrivals are.

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
/// Times are looked at in so many records.
const TIMES_MAX: u64 = 1 << 18;
/// How often an interrupt is looked for.
const PATIENCE: Duration = Duration::from_millis(50);
/// The steps in which times may go, in milliseconds: days, hours, minutes. Shorter ones are no matter in most windows.
const STEPS: [u64; 3] = [86_400_000, 3_600_000, 60_000];
/// More than this many times the usual number of records are rarely in a window.
const BUSY: u64 = 2;

/// What is known of files before they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// Of what can be read once, goes on, is very long or cannot be read: reading it says why.
    Nothing,
    /// How many records there are.
    Records(u64),
    Times(Times),
}

impl Known {
    /// The steps in which times go, in milliseconds.
    pub(crate) fn step(self) -> u64 {
        if let Self::Times(times) = self { times.step } else { 1 }
    }

    pub(crate) fn records(self) -> Option<u64> {
        if let Self::Records(records) = self { Some(records) } else { None }
    }
}

/// How times go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    /// About how many records a busy window holds.
    pub(crate) expected_items: u64,
    /// All times are whole numbers of so many milliseconds.
    pub(crate) step: u64,
}

/// The records of all files, if there are any.
pub(crate) fn records(files: &Files, wanted: &Wanted) -> Known {
    let len = len(files).filter(|len| *len <= LEN_MAX);
    let survey = len.and_then(|_| Survey::of(files, wanted, u64::MAX));
    match survey.map(|survey| survey.tally.records) {
        Some(records @ 1..) => Known::Records(records),
        _ => Known::Nothing,
    }
}

/// How the times of the first records go, and so those of a window of so many milliseconds.
pub(crate) fn times(files: &Files, wanted: &Wanted, window: u64) -> Known {
    let survey = len(files).and_then(|len| Some((len, Survey::of(files, wanted, TIMES_MAX)?)));
    survey.and_then(|(len, survey)| survey.times(len, window)).map_or(Known::Nothing, Known::Times)
}

/// How long files are together; `None` if not all of them are files that are over.
fn len(files: &Files) -> Option<u64> {
    let len = |path: &PathBuf| {
        std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|file| file.len())
    };
    if files.follow { None } else { files.paths.iter().map(len).sum() }
}

/// The records of files, or the first ones.
struct Survey {
    tally: Tally,
    /// How many bytes were read, if that was not all.
    read: Option<u64>,
}

impl Survey {
    /// `None` if they cannot be read, or it was interrupted.
    fn of(files: &Files, wanted: &Wanted, records_max: u64) -> Option<Self> {
        let reader = Reader::start(files.clone());
        let mut tally = Tally { are_whole: [true; STEPS.len()], ..Tally::default() };
        let mut part = Part::Rows;
        while !interrupt::is_requested() {
            match reader.next(PATIENCE).ok()? {
                Message::Idle => {}
                Message::Done => return Some(Self { tally, read: None }),
                Message::Start(_, start) => part = Part::new(&start, wanted).ok()?,
                Message::Bytes(_, block) => {
                    part.push(&block, &mut tally).ok()?;
                    reader.give_back(block);
                }
                Message::Rows(_, rows) => rows.feed(1, &mut tally).ok()?,
                Message::End(_) => part.finish(&mut tally).ok()?,
            }
            if records_max <= tally.records {
                return Some(Self { tally, read: Some(reader.bytes_read()) });
            }
        }
        None
    }
}

impl Survey {
    /// How times go in a window of so many milliseconds, if files of so many bytes are all like this.
    fn times(&self, len: u64, window: u64) -> Option<Times> {
        let Self { tally, read } = self;
        let (first, last) = tally.span?;
        let step = STEPS
            .into_iter()
            .zip(tally.are_whole)
            .find(|(_, is_whole)| *is_whole)
            .map_or(1, |(step, _)| step);
        let all = match read {
            None => tally.records.into(),
            Some(0) => u128::MAX,
            Some(read) => u128::from(tally.records) * u128::from(len) / u128::from(*read),
        };
        let usual = u128::from(tally.records) * u128::from(window) / u128::from(last - first + step);
        let expected_items = u64::try_from(all.min(usual * u128::from(BUSY)).max(1)).unwrap_or(u64::MAX);
        Some(Times { expected_items, step })
    }
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

/// Counts records, whatever is in them, and looks at their times.
#[derive(Default)]
struct Tally {
    records: u64,
    /// The first and the last time.
    span: Option<(u64, u64)>,
    /// Which of the steps all times go in.
    are_whole: [bool; STEPS.len()],
}

impl Tally {
    fn look(&mut self, time: u64) {
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
        for (is_whole, step) in self.are_whole.iter_mut().zip(STEPS) {
            *is_whole &= time.is_multiple_of(step);
        }
    }
}

impl Sink for Tally {
    fn items(&mut self, items: &[&[u8]]) -> Result<()> {
        self.records += items.len() as u64;
        Ok(())
    }

    fn record(&mut self, _: u64, record: Record<'_>) -> Result<()> {
        self.records += 1;
        if let Some(Ok(time)) = record.time {
            self.look(time);
        }
        Ok(())
    }
}
