//! Plans with slices: which keys of a substream are cut finely or pinned must follow from what was sealed before, and which
//! slices are sealed from that and the clock. Both are made again here from views.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::audit::replay::Replay;
use crate::decide::levels::LevelChooser;
use crate::plan::paper::checkpoint::Role;
use crate::plan::range::WHOLE;
use crate::plan::structure::Plan;
use crate::sealed::levels::{CountedKeys, Levels};
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;
use crate::view::window_view::WindowView;

/// Everything that views have shown of a stream, by substream; nothing of plans without slices.
#[derive(Default)]
pub(super) struct Tables {
    plan: Option<Arc<Plan>>,
    substreams: BTreeMap<u64, ShownSubstream>,
    /// Where keys are pinned.
    replay: Option<Replay>,
}

/// A substream, and which keys are pinned in it.
struct ShownSubstream {
    substream: Arc<SealedSubstream>,
    /// Fingerprints and slots.
    pinned: BTreeMap<u64, u32>,
}

impl Tables {
    /// Counts the substreams of a view that have other tables or other slices than they must have.
    pub(super) fn check_view(&mut self, view: &WindowView) -> u64 {
        let plan = view.plan();
        if !plan.has_slices() {
            return 0;
        }
        self.plan.get_or_insert_with(|| Arc::clone(&view.plan));
        let mut wrong = self.replay_pins(view);
        for substream in view.cached.released.substreams() {
            if self.knows(substream) {
                continue;
            }
            // Where keys are pinned the replay has judged the levels (PRIVACY.md: rule 33).
            let has_table =
                0 < plan.pinned() || **substream.levels() == self.expected_levels(plan, substream.number);
            wrong += u64::from(!has_table || !has_slices(view, substream));
            self.note_substream(view, substream);
        }
        wrong + u64::from(self.lacks_running(view))
    }

    fn replay_pins(&mut self, view: &WindowView) -> u64 {
        match view.plan().pinned() {
            0 => 0,
            _ => self.replay.get_or_insert_with(|| Replay::new(view.plan(), 0)).check_view(view),
        }
    }

    fn note_substream(&mut self, view: &WindowView, substream: &Arc<SealedSubstream>) {
        let pinned = view.cached.released.pins().keys_at(substream.number).collect();
        self.substreams.insert(substream.number, ShownSubstream { substream: Arc::clone(substream), pinned });
    }

    /// Whether a substream was seen complete, as it is.
    fn knows(&self, substream: &SealedSubstream) -> bool {
        let Some(ShownSubstream { substream: known, .. }) = self.substreams.get(&substream.number) else {
            return false;
        };
        // A running substream still gets slices, so it is judged again in every view.
        substream.sketch(WHOLE).is_some()
            && known.levels() == substream.levels()
            && known.sketches().len() == substream.sketches().len()
    }

    /// The stream was resumed with this substream: it has given up everything, also who is pinned there.
    pub(super) fn resume_at(&mut self, number: u64) {
        self.substreams.clear();
        self.replay =
            self.plan.as_ref().filter(|plan| 0 < plan.pinned()).map(|plan| Replay::new(plan, number));
    }

    /// The levels of a substream: a function of those that are sealed without a gap before it.
    fn expected_levels(&self, plan: &Plan, number: u64) -> Levels {
        if let Some(replay) = &self.replay {
            return replay.levels().clone();
        }
        // A clock that jumps leaves a gap; what was sealed before it decides nothing any more.
        let sealed = (0..number).rev().map_while(|before| self.substreams.get(&before));
        let sealed = sealed.map(|shown| &shown.substream);
        let complete = sealed.take_while(|substream| substream.sketch(WHOLE).is_some());
        let mut before: Vec<_> = complete.cloned().collect();
        before.reverse();
        LevelChooser::default().choose_levels(plan, &before)
    }

    /// Whether slices of the running substream should be there and it is not.
    fn lacks_running(&self, view: &WindowView) -> bool {
        let number = view.stream.end / view.plan().substream_len();
        let is_there = view.cached.released.substream(number).is_some();
        !is_there && !due_ranges(view, number, &self.expected_levels(view.plan(), number)).is_empty()
    }

    /// By how many units what two neighbours counted differs, by substream: of each key in the coarser of its two levels, as
    /// far as both are sealed, and in the rows where one of them does not pin it. A counter of its own weighs as much as
    /// one in each row.
    pub(super) fn substream_distances(&self, other: &Self) -> Vec<u64> {
        let Some(plan) = &self.plan else { return Vec::new() };
        let pairs =
            self.substreams.iter().filter_map(|(number, one)| Some((one, other.substreams.get(number)?)));
        pairs.map(|(one, other)| substream_distance(one, other, plan)).collect()
    }

    /// How many counters hold something of a key that counts elsewhere, where there is no noise.
    pub(super) fn count_strays(&self) -> u64 {
        let Some(plan) = &self.plan else { return 0 };
        self.substreams.values().map(|shown| count_strays(shown, plan)).sum()
    }
}

impl ShownSubstream {
    /// The rows, with the keys that only this neighbour pins.
    fn comparable_rows(&self, other: &Self, plan: &Plan) -> Option<Vec<i64>> {
        let whole = self.substream.sketch(WHOLE).map(SealedSketch::cells)?;
        let mut rows: Vec<i64> = whole.into_iter().map(i64::from).collect();
        for (fingerprint, &slot) in &self.pinned {
            if !other.pinned.contains_key(fingerprint) {
                let held = self.substream.count_key(slot, self.substream.levels().level_of(slot), plan);
                for cell in self.substream.mapping.hashed_cells(*fingerprint) {
                    rows[cell] += held;
                }
            }
        }
        Some(rows)
    }

    /// Whether a place has a key.
    fn has_key(&self, place: u32, plan: &Plan) -> bool {
        plan.pinned() == 0 || self.pinned.values().any(|&slot| slot == place)
    }
}

fn substream_distance(one: &ShownSubstream, other: &ShownSubstream, plan: &Plan) -> u64 {
    let between = |[place, of_other]: [u32; 2]| {
        distance_of_key((&one.substream, place), (&other.substream, of_other), plan)
    };
    if plan.pinned() == 0 {
        return (0..plan.own_len()).map(|place| between([place; 2])).sum();
    }
    let slots = one.pinned.iter().filter_map(|(key, slot)| Some([*slot, *other.pinned.get(key)?]));
    let own: u64 = slots.map(between).sum();
    let rows = one.comparable_rows(other, plan).zip(other.comparable_rows(one, plan));
    let rows = rows.map_or(0, |(one, other)| one.iter().zip(other).map(|(a, b)| a.abs_diff(b)).sum::<u64>());
    own * u64::from(plan.shape().rows) + rows
}

/// Of a key at these places.
fn distance_of_key(one: (&SealedSubstream, u32), other: (&SealedSubstream, u32), plan: &Plan) -> u64 {
    let level = one.0.levels().level_of(one.1).min(other.0.levels().level_of(other.1));
    let slices = plan.levels().ranges_of(level);
    let pairs =
        slices.filter_map(|slice| held_in_slice(one, slice, plan).zip(held_in_slice(other, slice, plan)));
    pairs.map(|(one, other)| one.abs_diff(other)).sum()
}

/// What a substream holds of a key in a slice that is at least as long as those of the key; `None` if some of that is open.
fn held_in_slice((substream, place): (&SealedSubstream, u32), slice: usize, plan: &Plan) -> Option<i64> {
    let (levels, own) = (plan.levels(), substream.levels().level_of(place));
    let level = levels.level_of(slice);
    let part = slice - levels.ranges_of(level).start;
    let first = levels.ranges_of(own).start + (part << (own - level));
    (first..first + (1 << (own - level))).map(|range| substream.count_in_slice(place, range, plan)).sum()
}

fn count_strays(shown: &ShownSubstream, plan: &Plan) -> u64 {
    let own = plan.levels().ranges_of(0).start;
    let ranges = shown.substream.sketches().iter().map(|(range, _)| *range).filter(|range| own <= *range);
    let mut strays = 0;
    for range in ranges {
        for place in 0..plan.own_len() {
            let level = shown.substream.levels().level_of(place);
            let counts = shown.has_key(place, plan) && level == plan.levels().level_of(range);
            let held = shown.substream.count_in_slice(place, range, plan).unwrap_or(0);
            strays += u64::from(!counts && held != 0);
        }
    }
    strays
}

/// Whether a substream has exactly the slices that its levels and the clock ask for.
fn has_slices(view: &WindowView, substream: &SealedSubstream) -> bool {
    let mut ranges: Vec<usize> = substream.sketches().iter().map(|(range, _)| *range).collect();
    ranges.sort_unstable();
    ranges == due_ranges(view, substream.number, substream.levels())
}

/// The ranges of a substream that are sealed by the time of a view: those that count some key and have ended; if the stream
/// is over, those that have begun.
fn due_ranges(view: &WindowView, number: u64, levels: &Levels) -> Vec<usize> {
    let plan = view.plan();
    let now = view.stream.end.saturating_sub(number * plan.substream_len());
    let is_due = |range: &usize| {
        let offsets = plan.ranges()[*range].offsets();
        let counts = plan.ranges()[*range].role() != Role::Slice
            || levels.counted_keys(*range, plan) != CountedKeys::Places(&[]);
        counts && (offsets.end <= now || (view.finished().is_some() && offsets.start < now))
    };
    (0..plan.ranges().len()).filter(is_due).collect()
}
