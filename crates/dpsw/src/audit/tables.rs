//! Plans with nodes: which keys of a substream are cut finely or tracked must follow from what was sealed before, and which
//! nodes are sealed from that and the clock. Both are made again here from views.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::audit::replay::Replay;
use crate::plan::checkpoint::Role;
use crate::plan::range::WHOLE;
use crate::plan::structure::Plan;
use crate::sealed::rungs::{Counted, Rungs};
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;
use crate::view::window_view::WindowView;

/// What views have shown of a stream, by substream; nothing of plans without nodes.
#[derive(Default)]
pub(super) struct Tables {
    plan: Option<Arc<Plan>>,
    substreams: BTreeMap<u64, Shown>,
    /// Where keys are tracked.
    replay: Option<Replay>,
}

/// A substream, and which keys are tracked in it.
struct Shown {
    substream: Arc<SealedSubstream>,
    /// Fingerprints and slots.
    tracked: BTreeMap<u64, u32>,
}

impl Tables {
    /// Counts the substreams of a view that have other tables or other nodes than they must have.
    pub(super) fn look(&mut self, view: &WindowView) -> u64 {
        let plan = view.plan();
        if !plan.has_nodes() {
            return 0;
        }
        self.plan.get_or_insert_with(|| Arc::clone(&view.plan));
        let mut wrong = self.replay(view);
        for substream in view.readable.released.substreams() {
            if self.knows(substream) {
                continue;
            }
            let has_table = 0 < plan.tracked() || **substream.rungs() == self.table(plan, substream.number);
            wrong += u64::from(!has_table || !has_nodes(view, substream));
            self.note(view, substream);
        }
        wrong + u64::from(self.lacks_running(view))
    }

    fn replay(&mut self, view: &WindowView) -> u64 {
        match view.plan().tracked() {
            0 => 0,
            _ => self.replay.get_or_insert_with(|| Replay::new(view.plan(), 0)).look(view),
        }
    }

    fn note(&mut self, view: &WindowView, substream: &Arc<SealedSubstream>) {
        let tracked = view.readable.released.leases().at(substream.number).collect();
        self.substreams.insert(substream.number, Shown { substream: Arc::clone(substream), tracked });
    }

    /// Whether a substream was seen complete, as it is.
    fn knows(&self, substream: &SealedSubstream) -> bool {
        let is_it = |Shown { substream: known, .. }: &Shown| {
            known.rungs() == substream.rungs() && known.sketches().len() == substream.sketches().len()
        };
        substream.sketch(WHOLE).is_some() && self.substreams.get(&substream.number).is_some_and(is_it)
    }

    /// The stream was resumed with this substream: it has given up everything, also who is tracked there.
    pub(super) fn resume(&mut self, number: u64) {
        self.substreams.clear();
        self.replay =
            self.plan.as_ref().filter(|plan| 0 < plan.tracked()).map(|plan| Replay::new(plan, number));
    }

    /// The rungs of a substream: a function of those that are sealed without a gap before it.
    fn table(&self, plan: &Plan, number: u64) -> Rungs {
        if let Some(replay) = &self.replay {
            return replay.rungs().clone();
        }
        let sealed = (0..number).rev().map_while(|before| self.substreams.get(&before));
        let sealed = sealed.map(|shown| &shown.substream);
        let complete = sealed.take_while(|substream| substream.sketch(WHOLE).is_some());
        let mut before: Vec<_> = complete.cloned().collect();
        before.reverse();
        Rungs::next(plan, &before)
    }

    /// Whether nodes of the running substream should be there and it is not.
    fn lacks_running(&self, view: &WindowView) -> bool {
        let number = view.stream.end / view.plan().substream_len();
        let is_there = view.readable.released.substream(number).is_some();
        !is_there && !due(view, number, &self.table(view.plan(), number)).is_empty()
    }

    /// By how many units what two neighbours counted differs, by substream: of each key in the coarser of its two rungs, as
    /// far as both are sealed, and in the rows where one of them does not track it. A counter of its own weighs as much as
    /// one in each row.
    pub(super) fn distances(&self, other: &Self) -> Vec<u64> {
        let both = |(number, one): (&u64, &Shown)| {
            Some(distance(one, other.substreams.get(number)?, self.plan.as_ref()?))
        };
        self.substreams.iter().filter_map(both).collect()
    }

    /// How many counters hold something of a key that counts elsewhere, where there is no noise.
    pub(super) fn strays(&self) -> u64 {
        let Some(plan) = &self.plan else { return 0 };
        self.substreams.values().map(|shown| strays(shown, plan)).sum()
    }
}

impl Shown {
    /// The rows, with the keys that only this neighbour tracks.
    fn rows(&self, other: &Self, plan: &Plan) -> Option<Vec<i64>> {
        let whole = self.substream.sketch(WHOLE).map(SealedSketch::cells)?;
        let mut rows: Vec<i64> = whole.into_iter().map(i64::from).collect();
        for (fingerprint, &slot) in &self.tracked {
            if !other.tracked.contains_key(fingerprint) {
                let held = self.substream.count(slot, self.substream.rungs().rung(slot), plan);
                self.substream.mapping.hashed_cells(*fingerprint).for_each(|cell| rows[cell] += held);
            }
        }
        Some(rows)
    }

    /// Whether a place has a key.
    fn has_key(&self, place: u32, plan: &Plan) -> bool {
        plan.tracked() == 0 || self.tracked.values().any(|&slot| slot == place)
    }
}

fn distance(one: &Shown, other: &Shown, plan: &Plan) -> u64 {
    let between = |[place, of_other]: [u32; 2]| {
        distance_of_key((&one.substream, place), (&other.substream, of_other), plan)
    };
    if plan.tracked() == 0 {
        return (0..plan.own_len()).map(|place| between([place; 2])).sum();
    }
    let slots = one.tracked.iter().filter_map(|(key, slot)| Some([*slot, *other.tracked.get(key)?]));
    let own: u64 = slots.map(between).sum();
    let rows = one.rows(other, plan).zip(other.rows(one, plan));
    let rows = rows.map_or(0, |(one, other)| one.iter().zip(other).map(|(a, b)| a.abs_diff(b)).sum::<u64>());
    own * u64::from(plan.shape().rows) + rows
}

/// Of a key at these places.
fn distance_of_key(one: (&SealedSubstream, u32), other: (&SealedSubstream, u32), plan: &Plan) -> u64 {
    let rung = one.0.rungs().rung(one.1).min(other.0.rungs().rung(other.1));
    let nodes = plan.rungs().ranges_of(rung);
    let pairs = nodes.filter_map(|node| held(one, node, plan).zip(held(other, node, plan)));
    pairs.map(|(one, other)| one.abs_diff(other)).sum()
}

/// What a substream holds of a key in a node that is at least as long as those of the key; `None` if some of that is open.
fn held((substream, place): (&SealedSubstream, u32), node: usize, plan: &Plan) -> Option<i64> {
    let (rungs, own) = (plan.rungs(), substream.rungs().rung(place));
    let rung = rungs.rung_of(node);
    let part = node - rungs.ranges_of(rung).start;
    let first = rungs.ranges_of(own).start + (part << (own - rung));
    (first..first + (1 << (own - rung))).map(|range| substream.node(place, range, plan)).sum()
}

fn strays(shown: &Shown, plan: &Plan) -> u64 {
    let own = plan.rungs().ranges_of(0).start;
    let ranges = shown.substream.sketches().iter().map(|(range, _)| *range).filter(|range| own <= *range);
    let of_range = |range: usize| {
        let counts = move |place: u32| {
            shown.has_key(place, plan) && shown.substream.rungs().rung(place) == plan.rungs().rung_of(range)
        };
        let others = (0..plan.own_len()).filter(move |&place| !counts(place));
        others.filter(move |&place| shown.substream.node(place, range, plan).is_some_and(|held| held != 0))
    };
    ranges.flat_map(of_range).count() as u64
}

/// Whether a substream has exactly the nodes that its rungs and the clock ask for.
fn has_nodes(view: &WindowView, substream: &SealedSubstream) -> bool {
    let mut ranges: Vec<usize> = substream.sketches().iter().map(|(range, _)| *range).collect();
    ranges.sort_unstable();
    ranges == due(view, substream.number, substream.rungs())
}

/// The ranges of a substream that are sealed by the time of a view: those that count some key and have ended; if the stream
/// is over, those that have begun.
fn due(view: &WindowView, number: u64, rungs: &Rungs) -> Vec<usize> {
    let plan = view.plan();
    let now = view.stream.end.saturating_sub(number * plan.substream_len());
    let is_due = |range: &usize| {
        let offsets = plan.ranges()[*range].offsets();
        let counts =
            plan.ranges()[*range].role() != Role::Node || rungs.counted(*range, plan) != Counted::Places(&[]);
        counts && (offsets.end <= now || (view.finished().is_some() && offsets.start < now))
    };
    (0..plan.ranges().len()).filter(is_due).collect()
}
