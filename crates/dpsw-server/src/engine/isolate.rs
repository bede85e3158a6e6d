//! Items whose counting panics: they are found at the start, and are null items in their places from then on.
//!
//! A panic ends the process, and the journal brings the batch back at the next start. There it panics again, is caught, and the
//! stream is restored once more: the batch is counted event by event, which shows the event. If it does not, all events of the
//! batch are null items. What was found is committed before the stream counts on, so that no later start, of any version, counts
//! it. The log says where it happened, and nothing else does.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::engine::count::Counting;
use crate::engine::recover::{commit, damaged, unsealed};
use crate::engine::registry::Shared;
use crate::error::OpenError;
use crate::store::Store;
use crate::store::changes::Changes;
use crate::store::records::{Nulls, SourceId};

/// A batch with more such events is null as a whole: each costs a reading of the journal.
const ITEMS_MAX: usize = 8;

/// What a call gives, or `None` if it panics. What it has changed by then must not be used.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(call)).ok()
}

/// Counts the journal in a stream, without the events that make that panic.
///
/// # Errors
/// It panics even if nothing of the batch is looked at.
pub(crate) fn count_without_what_panics(
    store: &mut Store,
    shared: &Shared,
    source: SourceId,
    restored: impl Fn(&Store) -> Result<Counting, OpenError>,
) -> Result<Counting, OpenError> {
    loop {
        let mut counting = restored(store)?;
        let Some(panicked) = count(&mut counting, store, shared, source, None)? else { return Ok(counting) };
        let mut probed = restored(store)?;
        let found = count(&mut probed, store, shared, source, Some(panicked.batch))?;
        let event = found.filter(|found| found.batch == panicked.batch).and_then(|found| found.event);
        let nulls =
            more_nulls(counting.nulls.get(&panicked.batch), event).ok_or_else(|| unsound(&counting))?;
        let stream = &counting.stream.config.name;
        let batch = panicked.batch;
        tracing::error!(
            stream,
            batch,
            event,
            "counting this panicked; it counts nowhere and keeps its place"
        );
        let nulls = vec![(counting.stream.id, batch, &nulls)];
        commit(store, &Changes { nulls, ..Changes::default() })?;
    }
}

/// What has to be null beside what is, if anything is left that is not. Without an event it is the whole batch.
fn more_nulls(before: Option<&Nulls>, event: Option<usize>) -> Option<Nulls> {
    let mut places = match before {
        None => BTreeSet::new(),
        Some(Nulls::Items(places)) => places.clone(),
        Some(Nulls::All) => return None,
    };
    let is_new = event.is_some_and(|event| places.insert(event));
    Some(if is_new && places.len() <= ITEMS_MAX { Nulls::Items(places) } else { Nulls::All })
}

/// The place at which counting panicked.
struct Panicked {
    batch: u64,
    event: Option<usize>,
}

/// Counts the journal until it panics, one batch of it event by event.
fn count(
    counting: &mut Counting,
    store: &Store,
    shared: &Shared,
    source: SourceId,
    probed: Option<u64>,
) -> Result<Option<Panicked>, OpenError> {
    let mut panicked = None;
    let mut is_over = false;
    let read = store.journal(source, counting.counted, |batches| {
        for batch in &batches {
            if panicked.is_some() || is_over {
                return;
            }
            let event = Cell::new(None);
            let probe = (probed == Some(batch.sequence)).then_some(&event);
            match caught(|| counting.count_again(batch, shared, probe)) {
                Some(counted) => is_over = counted.is_err(),
                None => panicked = Some(Panicked { batch: batch.sequence, event: event.get() }),
            }
        }
    });
    read.map_err(|error| damaged(store, error))?;
    if is_over { Err(unsealed()) } else { Ok(panicked) }
}

fn unsound(counting: &Counting) -> OpenError {
    OpenError::Damaged {
        what: format!("stream {:?}", counting.stream.config.name),
        reason: "counting panics, whatever the events hold; the log says where".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_null_one_by_one_and_then_all_of_them() {
        let mut nulls = more_nulls(None, Some(7)).expect("something is left");
        assert!(nulls.has(7) && !nulls.has(6));
        for event in 0..ITEMS_MAX - 1 {
            nulls = more_nulls(Some(&nulls), Some(event)).expect("something is left");
            assert_ne!(nulls, Nulls::All);
        }
        assert_eq!(more_nulls(Some(&nulls), Some(100)), Some(Nulls::All), "too many");
        assert_eq!(more_nulls(Some(&nulls), Some(7)), Some(Nulls::All), "it was null before");
        assert_eq!(more_nulls(None, None), Some(Nulls::All), "nobody can tell which");
        assert_eq!(more_nulls(Some(&Nulls::All), Some(1)), None);
    }
}
