//! From files, pipes and growing files to items and times.
//!
//! A thread reads and unpacks blocks of bytes. The first block tells the format, and a parser of the format takes complete
//! records out of all. The main thread counts them meanwhile; it is never stuck in a read and can be interrupted.

pub(crate) mod access_log;
pub(crate) mod check;
pub(crate) mod columnar;
mod columns;
mod content;
pub(crate) mod delimited;
pub(crate) mod file;
mod follow;
pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod packing;
pub(crate) mod parsed;
pub(crate) mod parser;
pub(crate) mod reader;
pub(crate) mod start;
pub(crate) mod survey;
pub(crate) mod time;
pub(crate) mod view_file;

/// The longest record, in bytes; what is longer is refused like any other record that cannot be read.
pub(crate) const RECORD_LEN_MAX: usize = 1 << 20;

/// May stand before text.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// A reason why a record, or a part of it, cannot be read. The offending text is for the curator's terminal only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The byte in its line, from 1, where that is known.
    pub(crate) column: Option<usize>,
    pub(crate) reason: String,
}

impl Problem {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { column: None, reason: reason.into() }
    }

    pub(crate) fn at(column: usize, reason: impl Into<String>) -> Self {
        Self { column: Some(column), ..Self::new(reason) }
    }
}

/// The item of a record.
pub(crate) type Item<'a> = Result<&'a [u8], Problem>;
/// The time of a record in milliseconds, where times are asked for.
pub(crate) type Time = Option<Result<u64, Problem>>;
/// Who sent a record, where users are asked for.
pub(crate) type User<'a> = Option<Result<&'a [u8], Problem>>;

/// A record, as far as it can be read.
pub(crate) struct Record<'a> {
    pub(crate) item: Item<'a>,
    pub(crate) time: Time,
    pub(crate) user: User<'a>,
}

impl Record<'_> {
    /// One of which nothing can be read.
    pub(crate) fn unreadable(problem: Problem) -> Self {
        Self { item: Err(problem), time: None, user: None }
    }
}

/// Takes what a parser finds, in order.
pub(crate) trait Sink {
    /// Items of records without users, with their times where those are asked for: the fast path.
    fn items(&mut self, items: &[&[u8]], times: &[u64]) -> anyhow::Result<()>;
    /// One record, which starts at this line or row from 1.
    fn record(&mut self, line: u64, record: Record<'_>) -> anyhow::Result<()>;
    /// How many records, from the next one on, nobody will ask about: they need not be taken one by one.
    fn unasked(&self) -> u64 {
        0
    }
    /// Passes over some of these. They take their places and count for no item.
    fn pass(&mut self, _records: u64) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Items handed over at a time.
pub(crate) const BATCH: usize = 1024;

/// Hands items over in batches, with their times if there are some.
#[inline]
pub(crate) fn feed_batches<'i>(
    mut items: impl ExactSizeIterator<Item = &'i [u8]>,
    mut times: &[u64],
    sink: &mut impl Sink,
) -> anyhow::Result<()> {
    let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
    while 0 < items.len() {
        let count = BATCH.min(items.len());
        for (slot, item) in batch.iter_mut().zip(&mut items) {
            *slot = item;
        }
        let (now, later) = times.split_at(count.min(times.len()));
        sink.items(&batch[..count], now)?;
        times = later;
    }
    Ok(())
}

/// A short piece of text for an error on the curator's terminal.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    const LEN_MAX: usize = 40;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * LEN_MAX)]);
    let short: String = text.chars().take(LEN_MAX).collect();
    let more = if short.len() < bytes.len() { "..." } else { "" };
    format!("{short:?}{more}")
}
