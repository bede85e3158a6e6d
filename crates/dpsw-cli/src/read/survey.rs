//! What is known of files before any item is counted: how many records they have and how their times go. That is public
//! wherever arrivals are.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use dpsw_frontend::times::{Seen, Times};
use memchr::{memchr, memchr_iter};

use crate::interrupt;
use crate::read::packing::Packing;
use crate::read::parser::{Lines, Parser};
use crate::read::reader::{Counted, Files, read_block};
use crate::read::start::Start;
use crate::read::{Record, Sink, columnar, file};

/// Files that are longer together are not read twice.
const LEN_MAX: u64 = 1 << 30;
/// Times are looked at in so many records.
const TIMES_MAX: u64 = 1 << 18;

/// A file is read in at most so many parts at a time, none of which is shorter than this.
const PARTS_MAX: u64 = 4;
const PART_LEN_MIN: u64 = 4 << 20;

/// The knowledge of files before they are read.
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
pub(crate) fn records(files: &Files) -> Known {
    let len = len(files).filter(|len| *len <= LEN_MAX);
    let survey = len.and_then(|_| Survey::of(files, None));
    match survey.map(|survey| survey.seen.records()) {
        Some(records @ 1..) => Known::Records(records),
        _ => Known::Nothing,
    }
}

/// How the times of the first records go, and so those of a window of so many milliseconds.
pub(crate) fn times(files: &Files, window: u64) -> Known {
    let survey = len(files).and_then(|len| Some((len, Survey::of(files, Some(TIMES_MAX))?)));
    survey.and_then(|(len, survey)| survey.times(len, window)).map_or(Known::Nothing, Known::Times)
}

/// How long files are together; `None` if not all of them are files that are over.
fn len(files: &Files) -> Option<u64> {
    let mut len = 0;
    for path in &files.paths {
        let metadata = std::fs::metadata(path).ok().filter(|file| file.is_file() && !files.follow)?;
        len += metadata.len();
    }
    Some(len)
}

/// The records of files, or the first ones: their number, whatever is in them, and how their times go.
struct Survey {
    seen: Seen,
    /// How many records are enough to tell; `None` if only their number is asked for.
    looked_at: Option<u64>,
    /// How many bytes were read.
    read: Arc<AtomicU64>,
}

impl Survey {
    /// Looks at the times of about so many records, or counts all of them. `None` if they cannot be read, or it was
    /// interrupted.
    fn of(files: &Files, looked_at: Option<u64>) -> Option<Self> {
        let mut survey = Self { seen: Seen::default(), looked_at, read: Arc::default() };
        for path in &files.paths {
            survey.read(path, files).ok()?;
        }
        (!interrupt::is_requested()).then_some(survey)
    }

    /// How times go in a window of so many milliseconds, if files of so many bytes are all like this.
    fn times(&self, len: u64, window: u64) -> Option<Times> {
        let records = self.seen.records().into();
        let all = match self.read.load(Ordering::Relaxed) {
            _ if self.goes_on() => records,
            0 => u128::MAX,
            read => records * u128::from(len) / u128::from(read),
        };
        self.seen.times(all, window)
    }

    fn goes_on(&self) -> bool {
        self.looked_at.is_none_or(|most| self.seen.records() < most) && !interrupt::is_requested()
    }

    fn read(&mut self, path: &Path, files: &Files) -> Result<()> {
        let read = Arc::clone(&self.read);
        let file = Counted { file: file::open(path)?, progress: Arc::clone(&read) };
        let (start, mut source) = Start::read(path, file, files.told)?;
        if start.is_columnar() {
            let rows = |rows: columnar::Rows| rows.feed(1, self).is_ok() && self.goes_on();
            return columnar::read(path, &start, source, &files.wanted.selection, &read, rows);
        }
        let mut parser = Parser::new(start.format, &files.wanted, &start.bytes)?;
        let lines = parser.lines().filter(|_| start.packing == Packing::Plain && self.looked_at.is_none());
        if let Some(records) = lines.map(|lines| line_records(path, lines)).transpose()?.flatten() {
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

impl Sink for Survey {
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

/// How many records the lines of a file are. `None` if there are quotes, which may hold line ends, or if it was interrupted.
fn line_records(path: &Path, lines: Lines) -> io::Result<Option<u64>> {
    let len = std::fs::metadata(path)?.len();
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    in_parts(path, lines, len, len.div_ceil(cores.min(PARTS_MAX)).max(PART_LEN_MIN))
}

fn in_parts(path: &Path, lines: Lines, len: u64, part_len: u64) -> io::Result<Option<u64>> {
    let parts: io::Result<Option<Vec<Part>>> = std::thread::scope(|scope| {
        let part = |start| scope.spawn(move || Part::read(path, start, part_len, lines));
        let parts: Vec<_> = (0..len).step_by(part_len as usize).map(part).collect();
        parts.into_iter().map(|part| part.join().expect("counting does not panic")).collect()
    });
    Ok(parts?.map(|parts| {
        let ends: u64 = parts.iter().map(|part| part.ends).sum();
        let is_open = parts.last().is_some_and(|part| part.is_open);
        (ends + u64::from(is_open)).saturating_sub(u64::from(lines.has_header))
    }))
}

/// The lines of a part of a file.
struct Part {
    ends: u64,
    /// Whether its last line has no end.
    is_open: bool,
}

impl Part {
    fn read(path: &Path, start: u64, len: u64, lines: Lines) -> io::Result<Option<Self>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(start))?;
        let mut file = file.take(len);
        let mut block = Vec::new();
        let mut part = Self { ends: 0, is_open: false };
        while 0 < read_block(&mut file, &mut block)? {
            if interrupt::is_requested() || lines.may_quote && memchr(b'"', &block).is_some() {
                return Ok(None);
            }
            part.ends += memchr_iter(b'\n', &block).count() as u64;
            part.is_open = !block.ends_with(b"\n");
        }
        Ok(Some(part))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Counted in parts of every length.
    #[track_caller]
    fn check(text: &[u8], lines: Lines, records: Option<u64>) {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(text).expect("written");
        for part_len in 1..=text.len().max(1) {
            let counted = in_parts(file.path(), lines, text.len() as u64, part_len as u64).expect("counted");
            assert_eq!(counted, records, "{text:?} in parts of {part_len}");
        }
    }

    #[test]
    fn each_line_is_a_record_but_the_header_and_the_last_may_have_no_end() {
        for (text, records) in
            [(&b""[..], 0), (b"a", 1), (b"a\n", 1), (b"\n\n", 2), (b"a\r\n\r\nb", 3), (b"\"a\nb\"\n", 2)]
        {
            check(text, Lines { has_header: false, may_quote: false }, Some(records));
            check(text, Lines { has_header: true, may_quote: false }, Some(records.saturating_sub(1)));
        }
    }

    #[test]
    fn quotes_may_hold_line_ends() {
        check(b"a\nb\n", Lines { has_header: true, may_quote: true }, Some(1));
        check(b"a\nb\n\"c\nd\"\n", Lines { has_header: true, may_quote: true }, None);
    }
}
