//! How a batch is counted by the sketch of one stream.

use std::cell::Cell;
use std::ops::Range;

use dpsw::error::IngestError as CountError;
use dpsw::{Batch, DpswSketch, Kind, Unit};

use crate::column::{Integers, Strings};
use crate::events::{Column as Items, Events, MISSING_TIME};
use crate::store::journal;
use crate::store::records::Nulls;

/// Longer items, in bytes, are null items.
pub const ITEM_LEN_MAX: usize = 1 << 16;
/// The service's clock stops here: later times could not be kept.
const TIME_MAX: u64 = 1 << 60;
/// How many items are handed over at a time.
const HANDED_OVER: usize = 4096;

/// The decision whether to try again when the system gives no randomness for a seal.
pub(crate) type Patience<'a> = &'a mut dyn FnMut(&CountError) -> bool;

/// A place to note which event counting has come to.
pub(crate) type Probe<'a> = Option<&'a Cell<Option<usize>>>;

/// The care with which a batch is counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Care<'a> {
    /// Events that are null items, whatever they hold.
    pub(crate) nulls: Option<&'a Nulls>,
    /// Counts event by event, and notes here which one it has come to.
    pub(crate) probe: Probe<'a>,
}

impl Care<'_> {
    /// Whether the item of an event may be looked at.
    fn allows(self, index: usize) -> bool {
        if let Some(probe) = self.probe {
            probe.set(Some(index));
        }
        !self.nulls.is_some_and(|nulls| nulls.has(index))
    }

    /// How many events are handed over at a time.
    fn handed_over(self) -> usize {
        if self.probe.is_some() { 1 } else { HANDED_OVER }
    }
}

/// The system gives no randomness, and patience is over. The batch is counted in part.
#[derive(Debug)]
pub(crate) struct GivenUp;

/// The part of a batch that a stream takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column<'a> {
    /// The column of its items.
    pub(crate) item: &'a str,
    /// Whether events bring their time. Without one they have that of the stream's clock.
    pub(crate) has_times: bool,
}

/// Moves a stream that follows the service's clock; others stay as they are.
pub(crate) fn advance(sketch: &mut DpswSketch, now_ms: u64, patience: Patience<'_>) -> Result<(), GivenUp> {
    let Some(watermark) = watermark(sketch, now_ms) else { return Ok(()) };
    while let Err(error) = sketch.advance(watermark) {
        if !patience(&error) {
            return Err(GivenUp);
        }
    }
    Ok(())
}

/// Moves a stream that follows the service's clock towards this time, without sealing anything. Where a stream stands after
/// a start then follows from what was sealed and from the clock: a state that was saved between two seals says no more.
pub(crate) fn approach(sketch: &mut DpswSketch, now_ms: u64) {
    let Some(watermark) = watermark(sketch, now_ms) else { return };
    let reach = watermark.min(sketch.next_boundary() - 1);
    sketch.advance(reach).expect("before the next boundary nothing is sealed");
}

/// How far a stream is ahead of where the service's clock can have brought it.
pub(crate) fn ahead(sketch: &DpswSketch, now_ms: u64) -> u64 {
    let Some(window) = sketch.plan().settings().window.time() else { return 0 };
    let most = match window.clock {
        clock if clock.is_callers() => now_ms.saturating_sub(window.lateness),
        // Events may be a window ahead.
        _ => now_ms.saturating_add(window.len),
    };
    sketch.position().saturating_sub(most)
}

/// Up to where the service's clock seals a stream that follows it.
fn watermark(sketch: &DpswSketch, now_ms: u64) -> Option<u64> {
    let window = sketch.plan().settings().window.time()?;
    window.clock.is_callers().then(|| now_ms.min(TIME_MAX).saturating_sub(window.lateness))
}

/// Counts one column of a batch, which moves no clock but that of its own times. An item that is missing, too long or of another
/// kind is a null item in its place.
pub(crate) fn count(
    sketch: &mut DpswSketch,
    column: Column<'_>,
    batch: &journal::Batch,
    care: Care<'_>,
    patience: Patience<'_>,
) -> Result<(), GivenUp> {
    let events = &*batch.events;
    let times = times(sketch, column, batch);
    let users = users(sketch, events);
    let mut feed = Feed { sketch, times, users, care, patience };
    let kind = feed.sketch.plan().settings().domain.kind();
    if care.nulls == Some(&Nulls::All) {
        return feed.nulls(0..events.len());
    }
    match (events.column(column.item), kind) {
        (Some(Items::Strings(strings)), Kind::Bytes) => feed.strings(strings, events.users()),
        (Some(Items::Integers(integers)), Kind::Integers) => feed.integers(integers, events.users()),
        _ => feed.nulls(0..events.len()),
    }
}

/// The time of each event, where the stream goes by time. Events that bring none are neither late nor early: they have the time
/// at which the stream stands. One that is more than a window ahead of the service's clock has no time: it would move the
/// stream's clock past all others.
fn times(sketch: &DpswSketch, column: Column<'_>, batch: &journal::Batch) -> Option<Vec<u64>> {
    let window = sketch.plan().settings().window.time()?;
    let len = batch.events.len();
    if !column.has_times {
        return Some(vec![sketch.position(); len]);
    }
    // A clock that went back leaves the stream where it is.
    let last = batch.arrival_ms.max(sketch.position()).saturating_add(window.len);
    let in_reach = |&time: &u64| if time <= last { time } else { MISSING_TIME };
    let times = batch.events.times();
    Some(times.map_or_else(|| vec![MISSING_TIME; len], |times| times.iter().map(in_reach).collect()))
}

/// A number for the user of each event, where users are protected.
fn users(sketch: &DpswSketch, events: &Events) -> Option<Vec<u64>> {
    let Unit::Users { .. } = sketch.plan().settings().unit else { return None };
    let name = |index| events.users().and_then(|users| users.get(index)).unwrap_or_default();
    Some((0..events.len()).map(|index| sketch.user(name(index))).collect())
}

struct Feed<'a> {
    sketch: &'a mut DpswSketch,
    times: Option<Vec<u64>>,
    users: Option<Vec<u64>>,
    care: Care<'a>,
    patience: Patience<'a>,
}

impl Feed<'_> {
    fn strings(&mut self, strings: &Strings, users: Option<&Strings>) -> Result<(), GivenUp> {
        let has_user = self.has_user(users);
        let care = self.care;
        let is_item = |index: usize| {
            care.allows(index)
                && strings.get(index).is_some_and(|item| {
                    #[cfg(feature = "planted")]
                    crate::engine::planted::panic_at(item);
                    item.len() <= ITEM_LEN_MAX
                })
                && has_user(index)
        };
        let mut slices = Vec::with_capacity(care.handed_over().min(strings.len()));
        for (range, is_there) in runs(strings.len(), care.handed_over(), is_item) {
            if !is_there {
                self.nulls(range)?;
                continue;
            }
            slices.clear();
            slices.extend(range.clone().map(|index| strings.slice(index)));
            self.hand_over(range, |done| Batch::bytes(&slices[done..]))?;
        }
        Ok(())
    }

    fn integers(&mut self, integers: &Integers, users: Option<&Strings>) -> Result<(), GivenUp> {
        let has_user = self.has_user(users);
        let (values, present) = integers.parts();
        let care = self.care;
        let is_item = |index: usize| care.allows(index) && present.has(index) && has_user(index);
        for (range, is_there) in runs(values.len(), care.handed_over(), is_item) {
            if is_there {
                self.hand_over(range.clone(), |done| Batch::integers(&values[range.clone()][done..]))?;
            } else {
                self.nulls(range)?;
            }
        }
        Ok(())
    }

    /// Whether an event has a user, where that matters.
    fn has_user<'u>(&self, users: Option<&'u Strings>) -> impl Fn(usize) -> bool + use<'u> {
        let are_protected = self.users.is_some();
        move |index| !are_protected || users.is_some_and(|users| users.get(index).is_some())
    }

    fn nulls(&mut self, range: Range<usize>) -> Result<(), GivenUp> {
        let len = range.len();
        self.hand_over(range, |done| Batch::nulls(len - done))
    }

    /// Hands over the events of a range; `items` makes the batch of those from an offset in it on.
    fn hand_over<'i>(
        &mut self,
        range: Range<usize>,
        items: impl Fn(usize) -> Batch<'i>,
    ) -> Result<(), GivenUp> {
        let mut done = 0;
        while done < range.len() {
            let here = range.start + done..range.end;
            let mut batch = items(done);
            if let Some(times) = &self.times {
                batch = batch.at(&times[here.clone()]);
            }
            if let Some(users) = &self.users {
                batch = batch.by(&users[here]);
            }
            match self.sketch.extend(batch) {
                Ok(_) => return Ok(()),
                Err(CountError::Entropy { accepted, source }) => {
                    done += accepted;
                    if !(self.patience)(&CountError::Entropy { accepted, source }) {
                        return Err(GivenUp);
                    }
                }
                Err(error) => unreachable!("a batch is made to fit its stream: {error}"),
            }
        }
        Ok(())
    }
}

/// The events of a batch in runs that are items, or are not, of at most so many.
fn runs(
    len: usize,
    most: usize,
    is_item: impl Fn(usize) -> bool,
) -> impl Iterator<Item = (Range<usize>, bool)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let end = len.min(start + most);
        let first = (start < end).then(|| is_item(start))?;
        let changes = (start + 1..end).find(|&index| is_item(index) != first);
        let range = start..changes.unwrap_or(end);
        start = range.end;
        Some((range, first))
    })
}
