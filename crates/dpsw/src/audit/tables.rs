//! Plans of several rungs: which keys of a substream are cut finely must follow from what was sealed before, and which nodes
//! are sealed from that and the clock. Both are made again here from views.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::plan::checkpoint::Role;
use crate::plan::range::WHOLE;
use crate::plan::structure::Plan;
use crate::sealed::rungs::{Counted, Rungs};
use crate::sealed::substream::SealedSubstream;
use crate::view::window_view::WindowView;

/// What views have shown of a stream, by substream; nothing of plans with one rung.
#[derive(Default)]
pub(super) struct Tables {
    plan: Option<Arc<Plan>>,
    substreams: BTreeMap<u64, Arc<SealedSubstream>>,
}

impl Tables {
    /// Counts the substreams of a view that have other rungs or other nodes than they must have.
    pub(super) fn look(&mut self, view: &WindowView) -> u64 {
        if view.plan().rungs().count() == 1 {
            return 0;
        }
        self.plan.get_or_insert_with(|| Arc::clone(&view.plan));
        let mut wrong = 0;
        for substream in view.readable.released.substreams() {
            if self.knows(substream) {
                continue;
            }
            let has_table = **substream.rungs() == self.table(view.plan(), substream.number);
            wrong += u64::from(!has_table || !has_nodes(view, substream));
            self.substreams.insert(substream.number, Arc::clone(substream));
        }
        wrong + u64::from(self.lacks_running(view))
    }

    /// Whether a substream was seen complete, as it is.
    fn knows(&self, substream: &SealedSubstream) -> bool {
        let is_it = |known: &Arc<SealedSubstream>| {
            known.rungs() == substream.rungs() && known.sketches().len() == substream.sketches().len()
        };
        substream.sketch(WHOLE).is_some() && self.substreams.get(&substream.number).is_some_and(is_it)
    }

    /// Forgets what the stream has given up, so that it starts anew.
    pub(super) fn clear(&mut self) {
        self.substreams.clear();
    }

    /// The rungs of a substream: a function of those that are sealed without a gap before it.
    fn table(&self, plan: &Plan, number: u64) -> Rungs {
        let sealed = (0..number).rev().map_while(|before| self.substreams.get(&before));
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
    /// far as both are sealed.
    pub(super) fn distances(&self, other: &Self) -> Vec<u64> {
        let both = |(number, one): (&u64, &Arc<SealedSubstream>)| {
            Some(distance(one, other.substreams.get(number)?, self.plan.as_ref()?))
        };
        self.substreams.iter().filter_map(both).collect()
    }

    /// How many counters hold something of a key that counts elsewhere, where there is no noise.
    pub(super) fn strays(&self) -> u64 {
        let Some(plan) = &self.plan else { return 0 };
        self.substreams.values().map(|substream| strays(substream, plan)).sum()
    }
}

fn keys(substream: &SealedSubstream) -> std::ops::Range<u32> {
    0..substream.mapping.shape.columns
}

fn distance(one: &SealedSubstream, other: &SealedSubstream, plan: &Plan) -> u64 {
    let of_key = |place: u32| -> u64 {
        let rung = one.rungs().rung(place).min(other.rungs().rung(place));
        let held = |substream, node| held(substream, place, node, plan);
        let nodes = plan.rungs().ranges_of(rung);
        let pairs = nodes.filter_map(|node| held(one, node).zip(held(other, node)));
        pairs.map(|(one, other)| one.abs_diff(other)).sum()
    };
    keys(one).map(of_key).sum()
}

/// What a substream holds of a key in a node that is at least as long as those of the key; `None` if some of that is open.
fn held(substream: &SealedSubstream, place: u32, node: usize, plan: &Plan) -> Option<i64> {
    let (rungs, own) = (plan.rungs(), substream.rungs().rung(place));
    let rung = rungs.rung_of(node);
    let part = node - rungs.ranges_of(rung).start;
    let first = rungs.ranges_of(own).start + (part << (own - rung));
    (first..first + (1 << (own - rung))).map(|range| substream.node(place, range, plan)).sum()
}

fn strays(substream: &SealedSubstream, plan: &Plan) -> u64 {
    let ranges = substream.sketches().iter().map(|(range, _)| *range);
    let of_range = |range: usize| {
        let others = keys(substream)
            .filter(move |&place| substream.rungs().rung(place) != plan.rungs().rung_of(range));
        others.filter(move |&place| substream.node(place, range, plan).is_some_and(|held| held != 0))
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
