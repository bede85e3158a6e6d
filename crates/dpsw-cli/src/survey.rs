//! What is known of files before any item is counted: how many records they have and how their times go. That is public
//! wherever arrivals are.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;

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
    let survey = len.and_then(|_| Survey::of(files, wanted, None));
    match survey.map(|survey| survey.tally.records) {
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
        let mut tally = Tally { are_whole: [true; STEPS.len()], looked_at, ..Tally::default() };
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

/// Counts records, whatever is in them, and looks at their times.
#[derive(Default)]
struct Tally {
    records: u64,
    /// The first and the last time.
    span: Option<(u64, u64)>,
    /// Which of the steps all times go in.
    are_whole: [bool; STEPS.len()],
    /// How many records are enough to tell; `None` if only their number is asked for.
    looked_at: Option<u64>,
}

impl Tally {
    fn goes_on(&self) -> bool {
        self.looked_at.is_none_or(|most| self.records < most) && !interrupt::is_requested()
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
            self.records += records;
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

    fn look(&mut self, time: u64) {
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
        for (is_whole, step) in self.are_whole.iter_mut().zip(STEPS) {
            *is_whole &= time.is_multiple_of(step);
        }
    }
}

impl Sink for Tally {
    fn items(&mut self, items: &[&[u8]], times: &[u64]) -> Result<()> {
        self.records += items.len() as u64;
        times.iter().for_each(|time| self.look(*time));
        Ok(())
    }

    fn record(&mut self, _: u64, record: Record<'_>) -> Result<()> {
        self.records += 1;
        if let Some(Ok(time)) = record.time {
            self.look(time);
        }
        Ok(())
    }

    /// Where times are not looked at, records need not be taken one by one.
    fn unasked(&self) -> u64 {
        if self.looked_at.is_none() { u64::MAX } else { 0 }
    }

    fn pass(&mut self, records: u64) -> Result<()> {
        self.records += records;
        Ok(())
    }
}
