//! Records into the sketch: times, places of skipped records, and when to answer.

use std::borrow::Cow;
use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use dpsw::{Clock, DpswSketch, Plan, Taken, Unit, WindowView};
use dpsw_frontend::quantity::{Span, millis};
use serde::Serialize;

use crate::args::OnError;
use crate::fault::Fault;
use crate::read::{BATCH, Problem, Record, Sink};

/// Called with a view of the stream, and what was read of it, whenever an answer is due.
pub(crate) type Due<'a> = Box<dyn FnMut(&WindowView, Counts) -> Result<()> + 'a>;

/// The pace at which answers are due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) every: Option<Span>,
    /// Whether an interval is of real time even where events have times: a growing file is watched, and much of it may be
    /// old.
    pub(crate) is_live: bool,
    /// An answer that is due waits for the next item: if there is none, the answer of the finished stream takes its place.
    pub(crate) waits: bool,
}

/// The way of records into the sketch.
pub(crate) struct Feed<'a> {
    pub(crate) sketch: DpswSketch,
    timing: Timing,
    /// Whether whole users are protected.
    has_users: bool,
    on_error: OnError,
    /// Where the records come from, for errors.
    pub(crate) source: String,
    pending: Pending,
    /// The steps in which times go, in milliseconds. The first record happens at the start of its step and the others at the end,
    /// so that the stream, and a window that ends with its newest event, hold whole steps.
    pub(crate) step: u64,
    /// The newest time that was read.
    newest: Option<u64>,
    /// Skipped records before the first time.
    untimed: usize,
    pub(crate) counts: Counts,
    pub(crate) long: Long,
    pace: Pace,
    next_answer: Option<u64>,
    /// What the last answer was about: its window, and how much of it was sealed.
    answered: Option<[Range<u64>; 2]>,
    due: Due<'a>,
}

/// Counts of what became of the records. That is public where arrivals are, and is never said where presence is private.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Counts {
    pub(crate) records: u64,
    pub(crate) skipped: u64,
    pub(crate) late: u64,
    pub(crate) early: u64,
    pub(crate) capped: u64,
}

/// Items that are too long to be found. How many there are depends on the items: it is for the curator's terminal alone.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Long {
    /// The longest items that can be found, in bytes, if keys are searched for.
    pub(crate) limit: Option<usize>,
    pub(crate) records: u64,
}

impl Long {
    fn of(plan: &Plan) -> Self {
        let found = plan.settings().domain.search();
        Self { limit: found.map(|found| found.key_len_max as usize), records: 0 }
    }

    fn see(&mut self, items: &[&[u8]]) {
        if let Some(limit) = self.limit {
            self.records += items.iter().filter(|item| limit < item.len()).count() as u64;
        }
    }
}

/// The clock by which events happen.
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
    users: Vec<u64>,
}

/// Items that are taken together, with their times and users where there are any.
struct Batch<'b> {
    items: &'b [&'b [u8]],
    times: &'b [u64],
    users: &'b [u64],
}

impl Batch<'_> {
    fn part(&self, range: Range<usize>) -> Self {
        Self {
            items: &self.items[range.clone()],
            times: self.times.get(range.clone()).unwrap_or_default(),
            users: self.users.get(range).unwrap_or_default(),
        }
    }
}

impl Counts {
    fn add(&mut self, taken: Taken) {
        self.late += taken.late as u64;
        self.early += taken.early as u64;
        self.capped += taken.capped as u64;
    }
}

impl<'a> Feed<'a> {
    pub(crate) fn new(sketch: DpswSketch, on_error: OnError, pace: Pace, due: Due<'a>) -> Result<Self> {
        let timing = match sketch.plan().settings().window.time().map(|time| time.clock) {
            None => Timing::None,
            Some(Clock::Caller) => Timing::Arrival(0),
            Some(_) => Timing::Events,
        };
        let mut feed = Self {
            has_users: matches!(sketch.plan().settings().unit, Unit::Users { .. }),
            long: Long::of(sketch.plan()),
            sketch,
            timing,
            on_error,
            source: String::new(),
            pending: Pending::default(),
            step: 1,
            newest: None,
            untimed: 0,
            counts: Counts::default(),
            pace,
            next_answer: None,
            answered: None,
            due,
        };
        if let Some(Span::Items(items)) = pace.every {
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
            self.answer_if_due(true)?;
        }
        Ok(())
    }

    /// The period between answers, if real time decides when they are due.
    pub(crate) fn wall_period(&self) -> Option<Duration> {
        match (self.pace.every, self.timing) {
            (Some(Span::Time(period)), Timing::None) => Some(period),
            (Some(Span::Time(period)), Timing::Events) if self.pace.is_live => Some(period),
            _ => None,
        }
    }

    /// Answers now.
    pub(crate) fn answer(&mut self) -> Result<()> {
        let view = self.sketch.view();
        self.answered = Some(place(&view));
        (self.due)(&view, self.counts)
    }

    /// Answers now, unless the last answer was about the same. The view of the stream is kept first: an answer that cannot be
    /// written must not be lost.
    pub(crate) fn answer_at_last(self, keep: impl FnOnce(&WindowView) -> Result<()>) -> Result<()> {
        let view = self.sketch.view();
        Self::answer_anew(self.answered.as_ref(), self.due, &view, self.counts, keep)
    }

    /// The same of a stream that is over: what is open is sealed first, and nothing is predicted.
    pub(crate) fn finish(mut self, keep: impl FnOnce(&WindowView) -> Result<()>) -> Result<()> {
        // The clock names the end, and not the last event.
        self.arrive()?;
        if let Timing::Arrival(now) = self.timing {
            self.sketch.advance(now + 1)?;
        }
        let view = self.sketch.finish()?;
        Self::answer_anew(self.answered.as_ref(), self.due, &view, self.counts, keep)
    }

    fn answer_anew(
        answered: Option<&[Range<u64>; 2]>,
        mut due: Due<'a>,
        view: &WindowView,
        counts: Counts,
        keep: impl FnOnce(&WindowView) -> Result<()>,
    ) -> Result<()> {
        keep(view)?;
        if answered == Some(&place(view)) { Ok(()) } else { due(view, counts) }
    }

    /// Hands over what is pending.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let Pending { bytes, ends, times, users } = std::mem::take(&mut self.pending);
        let mut start = 0;
        let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
        for (item, &end) in batch.iter_mut().zip(&ends) {
            *item = &bytes[start..end];
            start = end;
        }
        self.take(&Batch { items: &batch[..ends.len()], times: &times, users: &users })?;
        self.pending = Pending { bytes, ends, times, users };
        self.pending.clear();
        Ok(())
    }

    /// Counts at most a batch of items.
    fn take(&mut self, batch: &Batch<'_>) -> Result<()> {
        let mut done = 0;
        while done < batch.items.len() {
            self.answer_if_due(self.pace.waits)?;
            let left = batch.part(done..batch.items.len());
            let len = self.room(left.times).min(left.items.len());
            self.take_now(&left.part(0..len))?;
            done += len;
            self.counts.records += len as u64;
            self.answer_if_due(!self.pace.waits)?;
        }
        Ok(())
    }

    fn take_now(&mut self, batch: &Batch<'_>) -> Result<()> {
        let Batch { items, times, users } = *batch;
        self.long.see(items);
        let arrival;
        let counted = dpsw::Batch::bytes(items);
        let counted = match self.timing {
            Timing::None => counted,
            Timing::Events => counted.at(times),
            Timing::Arrival(time) => {
                arrival = [time; BATCH];
                counted.at(&arrival[..items.len()])
            }
        };
        self.count(if self.has_users { counted.by(users) } else { counted })
    }

    fn count(&mut self, batch: dpsw::Batch<'_>) -> Result<()> {
        self.counts.add(self.sketch.extend(batch)?);
        Ok(())
    }

    /// A record that cannot be read keeps its position and counts for no item.
    fn take_null(&mut self, time: Option<u64>, user: Option<u64>) -> Result<()> {
        self.flush()?;
        self.answer_if_due(self.pace.waits)?;
        let time = if let Timing::Arrival(now) = self.timing { Some(now) } else { time };
        let mut null = dpsw::Batch::nulls(1);
        if time.is_some() {
            null = null.at(time.as_slice());
        }
        if user.is_some() {
            null = null.by(user.as_slice());
        }
        self.count(null)?;
        self.counts.records += 1;
        self.answer_if_due(!self.pace.waits)
    }

    /// How many items can be counted before an answer is due; those with these times come next.
    fn room(&self, times: &[u64]) -> usize {
        match (self.pace.every, self.next_answer, self.timing) {
            (Some(Span::Time(_)), _, Timing::Events) if self.pace.is_live => usize::MAX,
            (Some(Span::Items(_)), Some(next), _) => {
                usize::try_from(next - self.counts.records).unwrap_or(usize::MAX)
            }
            (Some(Span::Time(_)), None, Timing::Events) => 1,
            (Some(Span::Time(_)), Some(next), Timing::Events) => {
                let lateness = self.sketch.plan().settings().window.time().map_or(0, |time| time.lateness);
                let reaches = |time: &u64| next.saturating_add(lateness) <= *time;
                times.iter().position(reaches).map_or(usize::MAX, |before| before + 1)
            }
            _ => usize::MAX,
        }
    }

    /// How far the stream is and how long a period is, in records or ticks. `None` if real time decides, or nothing does.
    fn progress(&self) -> Option<(u64, u64)> {
        match (self.pace.every?, self.timing) {
            (Span::Items(items), _) => Some((self.counts.records, items)),
            (Span::Time(_), _) if self.wall_period().is_some() => None,
            (Span::Time(period), _) => Some((self.sketch.position(), millis(period))),
        }
    }

    fn answer_if_due(&mut self, is_time: bool) -> Result<()> {
        let Some((progress, period)) = self.progress().filter(|_| is_time) else { return Ok(()) };
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

    fn push(&mut self, item: Option<&[u8]>, time: Option<u64>, user: Option<u64>) -> Result<()> {
        let Some(item) = item else { return self.take_null(time, user) };
        self.pending.bytes.extend(item);
        self.pending.ends.push(self.pending.bytes.len());
        self.pending.times.extend(time);
        self.pending.users.extend(user);
        if self.pending.ends.len() == BATCH { self.flush() } else { Ok(()) }
    }

    /// The times of records that all have one.
    fn places<'t>(&mut self, times: &'t [u64]) -> Result<Cow<'t, [u64]>> {
        let Some((&first, rest)) = times.split_first() else { return Ok(Cow::Borrowed(times)) };
        if self.step == 1 {
            self.place(Some(first))?;
            self.newest = self.newest.max(rest.iter().copied().max());
            return Ok(Cow::Borrowed(times));
        }
        let placed: Result<Vec<_>> = times.iter().map(|time| self.place(Some(*time))).collect();
        Ok(Cow::Owned(placed?.into_iter().flatten().collect()))
    }

    /// The time of a record; a record without one takes the newest time before it.
    fn place(&mut self, time: Option<u64>) -> Result<Option<u64>> {
        let later = if self.newest.is_none() { 0 } else { self.step - 1 };
        let time = time.map(|time| time - time % self.step + later);
        if let (Some(time), None) = (time, self.newest) {
            let nobody = self.user(None);
            for _ in 0..std::mem::take(&mut self.untimed) {
                self.push(None, Some(time), nobody)?;
            }
        }
        self.newest = self.newest.max(time);
        Ok(time.or(self.newest))
    }

    /// The number of a user, if users are protected. A record without a user belongs to nobody and does not count.
    fn user(&self, name: Option<&[u8]>) -> Option<u64> {
        self.has_users.then(|| self.sketch.user(name.unwrap_or_default()))
    }
}

impl Sink for Feed<'_> {
    fn items(&mut self, items: &[&[u8]], times: &[u64]) -> Result<()> {
        let times = self.places(times)?;
        if !self.pending.ends.is_empty() {
            self.flush()?;
        }
        self.take(&Batch { items, times: &times, users: &[] })
    }

    fn pass(&mut self, records: u64) -> Result<()> {
        self.flush()?;
        self.count(dpsw::Batch::nulls(records as usize))?;
        self.counts.records += records;
        Ok(())
    }

    fn record(&mut self, line: u64, record: Record<'_>) -> Result<()> {
        let Record { item, time, user } = record;
        let user = user.map(named);
        let of_time = time.as_ref().and_then(|time| time.as_ref().err());
        let of_user = user.as_ref().and_then(|user| user.as_ref().err());
        let first_problem = item.as_ref().err().or(of_time).or(of_user);
        if let Some(problem) = first_problem {
            self.skip(line, problem)?;
        }
        let is_readable = first_problem.is_none();
        let item = item.ok().filter(|_| is_readable);
        let user = self.user(user.and_then(Result::ok));
        if self.timing != Timing::Events {
            return self.push(item, None, user);
        }
        match self.place(time.and_then(Result::ok))? {
            Some(time) => self.push(item, Some(time), user),
            None => {
                self.untimed += 1;
                Ok(())
            }
        }
    }
}

fn place(view: &WindowView) -> [Range<u64>; 2] {
    [view.window(), view.covered()]
}

/// A user has a name: the empty name is for records without a user.
fn named(user: Result<&[u8], Problem>) -> Result<&[u8], Problem> {
    user.and_then(|name| if name.is_empty() { Err(Problem::new("the user is empty")) } else { Ok(name) })
}

impl Pending {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.times.clear();
        self.users.clear();
    }
}

fn unreadable(source: &str, line: u64, problem: &Problem) -> anyhow::Error {
    let Problem { column, reason } = problem;
    let column = column.map(|column| format!(":{column}")).unwrap_or_default();
    Fault::data(format!(
        "{source}:{line}{column}: {reason}; correct it, or pass over such records with --on-error skip"
    ))
}
