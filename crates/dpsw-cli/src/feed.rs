//! Records into the sketch: times, places of skipped records, and when to answer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use dpsw::{Clock, DpswSketch, Noise, Plan, Taken};

use crate::arguments::OnError;
use crate::fault::Fault;
use crate::input::{BATCH, Item, Problem, Sink, Time};
use crate::quantity::Span;
use crate::structure::millis;

/// Takes what is shown whenever an answer is due.
pub(crate) type Due<'a> = Box<dyn FnMut(&DpswSketch) -> Result<()> + 'a>;

/// The way of records into the sketch.
pub(crate) struct Feed<'a> {
    pub(crate) sketch: DpswSketch,
    timing: Timing,
    on_error: OnError,
    /// Where the records come from, for errors.
    pub(crate) source: String,
    pending: Pending,
    /// The newest time that was read.
    newest: Option<u64>,
    /// Skipped records before the first time.
    untimed: usize,
    pub(crate) counts: Counts,
    every: Option<Span>,
    next_answer: Option<u64>,
    due: Due<'a>,
}

/// What is said in the end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) records: u64,
    pub(crate) skipped: u64,
    pub(crate) late: u64,
    pub(crate) early: u64,
}

/// When events happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timing {
    /// Positions count.
    None,
    /// Events carry their times.
    Events,
    /// When they arrive, in milliseconds.
    Arrival(u64),
}

/// Records that are not in the sketch yet.
#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    times: Vec<u64>,
}

impl Counts {
    fn add(&mut self, taken: Taken) {
        self.late += taken.late as u64;
        self.early += taken.early as u64;
    }
}

impl<'a> Feed<'a> {
    pub(crate) fn new(plan: Plan, on_error: OnError, every: Option<Span>, due: Due<'a>) -> Result<Self> {
        let timing = match plan.settings().window.time().map(|time| time.clock) {
            None => Timing::None,
            Some(Clock::Caller) => Timing::Arrival(0),
            Some(_) => Timing::Events,
        };
        let mut feed = Self {
            sketch: DpswSketch::new(plan, Noise::from_system())?,
            timing,
            on_error,
            source: String::new(),
            pending: Pending::default(),
            newest: None,
            untimed: 0,
            counts: Counts::default(),
            every,
            next_answer: None,
            due,
        };
        if let Some(Span::Items(items)) = every {
            feed.next_answer = Some(items);
        }
        feed.arrive()?;
        Ok(feed)
    }

    /// Time goes on, for streams whose events happen when they arrive.
    pub(crate) fn arrive(&mut self) -> Result<()> {
        if let Timing::Arrival(_) = self.timing {
            let now = millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
            self.sketch.advance(now)?;
            // The clock of the sketch never goes back.
            self.timing = Timing::Arrival(self.sketch.position());
            self.answer_if_due()?;
        }
        Ok(())
    }

    /// The period by the clock on the wall, where that decides when to answer.
    pub(crate) fn wall_period(&self) -> Option<Duration> {
        match (self.every, self.timing) {
            (Some(Span::Time(period)), Timing::None) => Some(period),
            _ => None,
        }
    }

    /// Answers now.
    pub(crate) fn answer(&mut self) -> Result<()> {
        (self.due)(&self.sketch)
    }

    /// Hands over what is pending.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let Pending { bytes, ends, times } = std::mem::take(&mut self.pending);
        let mut start = 0;
        let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
        for (item, &end) in batch.iter_mut().zip(&ends) {
            *item = &bytes[start..end];
            start = end;
        }
        self.take(&batch[..ends.len()], &times)?;
        self.pending = Pending { bytes, ends, times };
        self.pending.clear();
        Ok(())
    }

    /// Counts at most a batch of items, with their times where events have them.
    fn take(&mut self, items: &[&[u8]], times: &[u64]) -> Result<()> {
        let mut done = 0;
        while done < items.len() {
            let len = self.room().min(items.len() - done);
            let now = &items[done..done + len];
            match self.timing {
                Timing::None => self.sketch.extend_bytes(now)?,
                Timing::Events => self.take_at(&times[done..done + len], now)?,
                Timing::Arrival(time) => self.take_at(&[time; BATCH][..len], now)?,
            }
            done += len;
            self.counts.records += len as u64;
            self.answer_if_due()?;
        }
        Ok(())
    }

    fn take_at(&mut self, times: &[u64], items: &[&[u8]]) -> Result<()> {
        let taken = self.sketch.extend_bytes_at(times, items)?;
        self.counts.add(taken);
        Ok(())
    }

    /// A record that cannot be read takes its place and counts nowhere.
    fn take_null(&mut self, time: Option<u64>) -> Result<()> {
        self.flush()?;
        match (self.timing, time) {
            (Timing::Events, Some(time)) | (Timing::Arrival(time), _) => {
                self.counts.add(self.sketch.extend_nulls_at(&[time])?);
            }
            _ => self.sketch.extend_nulls(1)?,
        }
        self.counts.records += 1;
        self.answer_if_due()
    }

    /// How many items can be counted before an answer is due.
    fn room(&self) -> usize {
        match (self.every, self.next_answer) {
            (Some(Span::Items(_)), Some(next)) => {
                usize::try_from(next - self.counts.records).unwrap_or(usize::MAX)
            }
            _ => usize::MAX,
        }
    }

    /// What periods are measured by: records or ticks. `None` if the clock on the wall decides, or nothing does.
    fn progress(&self) -> Option<(u64, u64)> {
        match (self.every?, self.timing) {
            (Span::Items(items), _) => Some((self.counts.records, items)),
            (Span::Time(_), Timing::None) => None,
            (Span::Time(period), _) => Some((self.sketch.position(), millis(period))),
        }
    }

    fn answer_if_due(&mut self) -> Result<()> {
        let Some((progress, period)) = self.progress() else { return Ok(()) };
        match self.next_answer {
            Some(next) if progress < next => return Ok(()),
            Some(_) => self.answer()?,
            // The first event starts the clock.
            None => {}
        }
        self.next_answer = Some(progress + period);
        Ok(())
    }

    /// Passes over a record that cannot be read, if that is wanted.
    fn skip(&mut self, line: u64, problem: &Problem) -> Result<()> {
        if self.on_error == OnError::Stop {
            return Err(unreadable(&self.source, line, problem));
        }
        self.counts.skipped += 1;
        Ok(())
    }

    fn push(&mut self, item: Option<&[u8]>, time: Option<u64>) -> Result<()> {
        let Some(item) = item else { return self.take_null(time) };
        self.pending.bytes.extend(item);
        self.pending.ends.push(self.pending.bytes.len());
        self.pending.times.extend(time);
        if self.pending.ends.len() == BATCH { self.flush() } else { Ok(()) }
    }

    /// The time of a record; one without takes that of the newest before it.
    fn place(&mut self, time: Option<u64>) -> Result<Option<u64>> {
        if let (Some(time), None) = (time, self.newest) {
            for _ in 0..std::mem::take(&mut self.untimed) {
                self.push(None, Some(time))?;
            }
        }
        self.newest = self.newest.max(time);
        Ok(time.or(self.newest))
    }
}

impl Sink for Feed<'_> {
    fn items(&mut self, items: &[&[u8]]) -> Result<()> {
        if !self.pending.ends.is_empty() {
            self.flush()?;
        }
        self.take(items, &[])
    }

    fn record(&mut self, line: u64, item: Item<'_>, time: Time) -> Result<()> {
        let first_problem = item.as_ref().err().or(time.as_ref().and_then(|time| time.as_ref().err()));
        if let Some(problem) = first_problem {
            self.skip(line, problem)?;
        }
        let is_readable = first_problem.is_none();
        let item = item.ok().filter(|_| is_readable);
        if self.timing != Timing::Events {
            return self.push(item, None);
        }
        match self.place(time.and_then(Result::ok))? {
            Some(time) => self.push(item, Some(time)),
            None => {
                self.untimed += 1;
                Ok(())
            }
        }
    }
}

impl Pending {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.times.clear();
    }
}

fn unreadable(source: &str, line: u64, problem: &Problem) -> anyhow::Error {
    let Problem { column, reason } = problem;
    let column = column.map(|column| format!(":{column}")).unwrap_or_default();
    Fault::data(format!(
        "{source}:{line}{column}: {reason}; correct it, or pass over such records with --on-error skip"
    ))
}
