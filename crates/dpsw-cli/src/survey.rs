//! What is known of files before any item is counted: how many records they have and how their times go. That is public
//! wherever arrivals are.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use dpsw_faces::times::{Seen, Times};

use crate::input::packing::Packing;
use crate::input::parser::{Parser, Wanted};
use crate::input::reader::{Counted, Files, read_block};
use crate::input::start::Start;
use crate::input::{Record, Sink, columnar, file};
use crate::{interrupt, line_count};

/// Files that are longer together are not read twice.
const LEN_MAX: u64 = 1 << 30;
/// Times are looked at in so many records.
const TIMES_MAX: u64 = 1 << 18;

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

/// The records of all files, if there are any.
pub(crate) fn records(files: &Files, wanted: &Wanted) -> Known {
    let len = len(files).filter(|len| *len <= LEN_MAX);
    let survey = len.and_then(|_| Survey::of(files, wanted, None));
    match survey.map(|survey| survey.tally.seen.records()) {
        Some(records @ 1..) => Known::Records(records),
        _ => Known::Nothing,
    }
}

/// How the times of the first records go, and so those of a window of so many milliseconds.
pub(crate) fn times(files: &Files, wanted: &Wanted, window: u64) -> Known {
    let survey = len(files).and_then(|len| Some((len, Survey::of(files, wanted, Some(TIMES_MAX))?)));
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
    /// Looks at the times of about so many records, or counts all of them. `None` if they cannot be read, or it was
    /// interrupted.
    fn of(files: &Files, wanted: &Wanted, looked_at: Option<u64>) -> Option<Self> {
        let mut tally = Tally { looked_at, seen: Seen::default() };
        let read = Arc::new(AtomicU64::new(0));
        for path in &files.paths {
            tally.read(path, files, wanted, &read).ok()?;
        }
        let is_over = tally.goes_on();
        let survey = Self { tally, read: (!is_over).then(|| read.load(Ordering::Relaxed)) };
        (!interrupt::is_requested()).then_some(survey)
    }
}

impl Survey {
    /// How times go in a window of so many milliseconds, if files of so many bytes are all like this.
    fn times(&self, len: u64, window: u64) -> Option<Times> {
        let Self { tally, read } = self;
        let records = tally.seen.records().into();
        let all = match read {
            None => records,
            Some(0) => u128::MAX,
            Some(read) => records * u128::from(len) / u128::from(*read),
        };
        tally.seen.times(all, window)
    }
}

/// Counts records, whatever is in them, and looks at their times.
struct Tally {
    seen: Seen,
    /// How many records are enough to tell; `None` if only their number is asked for.
    looked_at: Option<u64>,
}

impl Tally {
    fn goes_on(&self) -> bool {
        self.looked_at.is_none_or(|most| self.seen.records() < most) && !interrupt::is_requested()
    }

    fn read(&mut self, path: &Path, files: &Files, wanted: &Wanted, read: &Arc<AtomicU64>) -> Result<()> {
        let file = Counted { file: file::open(path)?, progress: Arc::clone(read) };
        let (start, mut source) = Start::read(path, file, files.told)?;
        if start.is_columnar() {
            let rows = |rows: columnar::Rows| rows.feed(1, self).is_ok() && self.goes_on();
            return columnar::read(path, &start, source, &files.selection, read, rows);
        }
        let mut parser = Parser::new(start.format, wanted, &start.bytes)?;
        let lines = parser.lines().filter(|_| start.packing == Packing::Plain && self.looked_at.is_none());
        if let Some(records) = lines.map(|lines| line_count::records(path, lines)).transpose()?.flatten() {
            self.seen.pass(records);
            return Ok(());
        }
        let mut block = Vec::new();
        while self.goes_on() {
            if read_block(&mut source, &mut block)? == 0 {
                return parser.finish(self);
            }
            parser.push(&block, self)?;
        }
        Ok(())
    }
}

impl Sink for Tally {
    fn items(&mut self, items: &[&[u8]], times: &[u64]) -> Result<()> {
        self.seen.look_all(times);
        self.seen.pass((items.len() - times.len()) as u64);
        Ok(())
    }

    fn record(&mut self, _: u64, record: Record<'_>) -> Result<()> {
        match record.time {
            Some(Ok(time)) => self.seen.look(time),
            _ => self.seen.pass(1),
        }
        Ok(())
    }

    /// Where times are not looked at, records need not be taken one by one.
    fn unasked(&self) -> u64 {
        if self.looked_at.is_none() { u64::MAX } else { 0 }
    }

    fn pass(&mut self, records: u64) -> Result<()> {
        self.seen.pass(records);
        Ok(())
    }
}
