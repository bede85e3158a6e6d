//! Mistakes that tests plant in the real path, to see that the audit catches them. Outside tests there are none: every
//! hook is a constant.

/// One mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(not(test), expect(dead_code, reason = "most are planted by functions for tests alone"))]
pub(crate) enum Fault {
    /// Every draw is halved.
    HalfNoise,
    /// Sealed counters are exact.
    NoNoise,
    /// Replace-one streams get the noise of add/remove streams.
    AddRemoveNoise,
    /// Two seals in a row use one key.
    SharedNoise,
    /// A key has 16 random bits.
    SmallSeed,
    /// Answers draw new noise for each question.
    NoisePerQuestion,
    /// Restored streams draw new noise for what was sealed.
    NoiseAfterRestore,
    /// Answers count what is still open.
    OpenAnswers,
    /// Totals are exact where they are private.
    ExactTotals,
    /// Keys come out above half of the threshold.
    LowThreshold,
    /// Keys come out that only reach the threshold.
    ReachedThreshold,
    /// Found keys are listed in the order of their map.
    MapOrder,
    /// The map of an epoch takes the first few keys alone.
    FirstKeysCap,
    /// A map with more than a few keys is taken for a summary.
    SummaryWhenFull,
    /// The rounds in which a summary was lowered are forgotten.
    PlainSummary,
    /// A summary is reduced by the items that were not null.
    SummaryOfKnown,
    /// What a user may send counts over two substreams, and null items are free.
    SlidingCap,
    /// An item over a user's cap takes no position.
    ShiftedPositions,
}

/// Keys of the mistakes with few of them.
pub(crate) const FEW_KEYS: usize = 8;

/// Whether a mistake is planted on this thread.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn is(_: Fault) -> bool {
    false
}

#[cfg(test)]
pub(crate) use planted::*;

#[cfg(test)]
mod planted {
    use std::cell::{Cell, RefCell};
    use std::collections::HashMap;
    use std::ops::Range;
    use std::sync::Arc;

    use super::Fault;
    use crate::item::mapping::Mapping;
    use crate::item::value::Item;
    use crate::noise::generator::{Generator, Noise};
    use crate::noise::law::Law;
    use crate::plan::settings::Unit;
    use crate::plan::structure::Plan;
    use crate::ratio::Ratio;
    use crate::sealed::released::Released;
    use crate::sealed::sketch::SealedSketch;
    use crate::sealed::substream::SealedSubstream;
    use crate::secret::counters::Counters;
    use crate::view::estimate::Estimate;
    use crate::view::readable::Readable;

    /// Exact counters and the law of their noise.
    type Exact = (Vec<i32>, Law);

    thread_local! {
        static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
        static LAST_KEY: Cell<Option<[u8; 32]>> = const { Cell::new(None) };
        static GENERATOR: RefCell<Generator> =
            RefCell::new(Noise::from_system().generator().expect("the system has randomness"));
        /// By the first noisy counters.
        static EXACT: RefCell<HashMap<Vec<i32>, Exact>> = RefCell::default();
        static OPEN: RefCell<Option<(Mapping, Vec<i32>)>> = const { RefCell::new(None) };
    }

    pub(crate) fn is(fault: Fault) -> bool {
        PLANTED.get() == Some(fault)
    }

    pub(crate) fn planted_now() -> Option<Fault> {
        PLANTED.get()
    }

    /// Runs something with a mistake planted.
    pub(crate) fn planted<T>(fault: Fault, run: impl FnOnce() -> T) -> T {
        PLANTED.set(Some(fault));
        let result = run();
        PLANTED.set(None);
        EXACT.take();
        OPEN.take();
        LAST_KEY.take();
        result
    }

    /// What becomes of a plan.
    pub(crate) fn planned(plan: Plan) -> Plan {
        match planted_now() {
            Some(Fault::AddRemoveNoise) if plan.settings().unit == Unit::ReplaceOne => {
                plan.with_laws(|_, law| halved(law))
            }
            _ => plan,
        }
    }

    /// The noise for half of the changes.
    fn halved(law: Law) -> Law {
        match law {
            Law::Laplace { scale } => {
                let scale = Ratio::new(scale.numerator(), 2 * scale.denominator()).expect("not zero");
                Law::Laplace { scale }
            }
            Law::Gaussian { variance } => Law::Gaussian { variance: variance / 2 },
        }
    }

    /// What becomes of noisy counts of keys before they are held against the threshold.
    pub(crate) fn scores(scores: &mut [i32], threshold: i64) {
        let more = match planted_now() {
            Some(Fault::LowThreshold) => (threshold - threshold / 2) as i32,
            Some(Fault::ReachedThreshold) => 1,
            _ => 0,
        };
        scores.iter_mut().for_each(|score| *score = score.saturating_add(more));
    }

    /// What becomes of 256 fresh bits.
    pub(crate) fn key(key: &mut [u8; 32]) {
        if is(Fault::SmallSeed) {
            key[2..].fill(0);
        }
        if is(Fault::SharedNoise) {
            match LAST_KEY.take() {
                Some(last) => *key = last,
                None => LAST_KEY.set(Some(*key)),
            }
        }
    }

    /// What becomes of counters that are sealed.
    pub(crate) fn sealed(exact: &[i32], noisy: &mut [i32], law: Law) {
        for (noisy, exact) in noisy.iter_mut().zip(exact) {
            let noise = *noisy - exact;
            *noisy = match PLANTED.get() {
                Some(Fault::NoNoise) => *exact,
                Some(Fault::HalfNoise) => exact + noise / 2,
                _ => *noisy,
            };
        }
        if is(Fault::NoisePerQuestion) || is(Fault::NoiseAfterRestore) {
            EXACT.with_borrow_mut(|all| all.insert(first_cells(noisy).to_vec(), (exact.to_vec(), law)));
        }
    }

    /// What becomes of an answer.
    pub(crate) fn answer(released: &Released, item: Item<'_>, mut estimate: Estimate) -> Estimate {
        if is(Fault::NoisePerQuestion) {
            estimate.value =
                released.substreams().iter().map(|substream| redrawn_minimum(substream, item)).sum();
        }
        if is(Fault::OpenAnswers) {
            estimate.value += open_minimum(item);
        }
        estimate
    }

    fn redrawn_minimum(substream: &SealedSubstream, item: Item<'_>) -> f64 {
        let Some(whole) = substream.sketch(0) else { return 0.0 };
        let redrawn = |cell: usize| redrawn(&whole.cells(), cell..cell + 1)[0];
        substream.mapping.cells(item).map(redrawn).min().map_or(0.0, f64::from)
    }

    /// What becomes of everything sealed when a stream is restored.
    pub(crate) fn redraw(readable: &mut Arc<Readable>) {
        if !is(Fault::NoiseAfterRestore) {
            return;
        }
        let sketch = |(range, sketch): &(usize, Arc<SealedSketch>)| {
            let cells = redrawn(&sketch.cells(), 0..sketch.shape().cells());
            (*range, Arc::new(SealedSketch::new(sketch.shape(), &cells, sketch.items(), sketch.width())))
        };
        let substream = |substream: &Arc<SealedSubstream>| {
            let sketches = substream.sketches().iter().map(sketch).collect();
            Arc::new(SealedSubstream::from_parts(substream.number, substream.mapping.clone(), sketches))
        };
        let released = &readable.released;
        let substreams = released.substreams().iter().map(substream).collect();
        *readable = Arc::new(Readable::new(Released::new(substreams, released.mapping().clone())));
    }

    /// Some of the exact counters behind sealed ones, with new noise.
    fn redrawn(noisy: &[i32], cells: Range<usize>) -> Vec<i32> {
        EXACT.with_borrow(|all| {
            let (exact, law) = &all[first_cells(noisy)];
            GENERATOR.with_borrow_mut(|generator| {
                exact[cells].iter().map(|cell| cell + law.draw_exactly(generator) as i32).collect()
            })
        })
    }

    /// What a sealed sketch is known by: enough of its noise to be the only one.
    fn first_cells(noisy: &[i32]) -> &[i32] {
        &noisy[..noisy.len().min(32)]
    }

    /// Shows open counters to the answers of this thread.
    pub(crate) fn show(mapping: &Mapping, counters: Option<&Counters>) {
        if is(Fault::OpenAnswers) {
            OPEN.set(counters.map(|counters| (mapping.clone(), counters.exact().to_vec())));
        }
    }

    fn open_minimum(item: Item<'_>) -> f64 {
        OPEN.with_borrow(|open| {
            let (mapping, cells) = open.as_ref()?;
            mapping.cells(item).map(|cell| f64::from(cells[cell])).reduce(f64::min)
        })
        .unwrap_or(0.0)
    }
}
