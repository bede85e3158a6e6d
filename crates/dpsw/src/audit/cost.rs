//! What the noise of the real plan lets an adversary learn, by the definition of neighbours: no runs, and no other
//! plan than the one that is asked about.

use crate::audit::report::Claimed;
use crate::noise::law::Law;
use crate::plan::range::WHOLE;
use crate::plan::release::Release;
use crate::plan::settings::Unit;
use crate::plan::structure::Plan;

/// Rounding of ε, and by how much a Gaussian on integers may differ from one on the line.
const EPSILON_MARGIN: f64 = 1e-9;
const MU_MARGIN: f64 = 0.02;

/// The most that neighbours of a unit can change.
struct PathReach {
    /// Counters of a row that one changed event moves by one.
    shifts: f64,
    /// Events that change in one substream.
    of_substream: f64,
    /// Events that change in all substreams that a window touches.
    of_window: f64,
}

impl PathReach {
    fn of(plan: &Plan) -> Self {
        // A window that begins inside a substream touches one more than it is long.
        let touched = plan.settings().window.len().div_ceil(plan.substream_len()) + 1;
        let (shifts, each) = match plan.settings().unit {
            Unit::ReplaceOne => (2.0, None),
            Unit::AddRemove => (1.0, None),
            Unit::Users { per_substream } => (2.0, Some(f64::from(per_substream))),
        };
        let of_window = each.map_or(1.0, |each| each * touched as f64);
        Self { shifts, of_substream: each.unwrap_or(1.0), of_window }
    }
}

/// How many of the plan's promises its noise does not keep: that of the counters, and that of counters and found keys
/// together.
pub(super) fn count_overspent(plan: &Plan, claimed: Claimed) -> u64 {
    let (counters, margin) = match claimed {
        Claimed::Epsilon(_) => (counters_epsilon(plan), EPSILON_MARGIN),
        Claimed::Mu(_) => (counters_mu(plan), MU_MARGIN),
    };
    let is_over = claimed.value() * (1.0 + margin) < counters;
    // Gaussian counters have no epsilon to add; their mu was compared above.
    let added = if let Claimed::Epsilon(_) = claimed { counters } else { 0.0 };
    let is_split_over = plan.settings().epsilon.get() * (1.0 + EPSILON_MARGIN) < keys_epsilon(plan) + added;
    u64::from(is_over) + u64::from(is_split_over)
}

/// ε of the counters: the sum of all changes over the scale. Of a key that is cut into slices an event counts in one of them,
/// and of a pinned key in none of the rows. An event that leaves one kind of counters for another costs half of either.
fn counters_epsilon(plan: &Plan) -> f64 {
    let reach = PathReach::of(plan);
    let ranges = plan.ranges().iter().enumerate();
    let costs = ranges.map(|(index, range)| {
        epsilon_of(range.law(), reach.shifts * rows_of_range(plan, index) * reach.of_window)
    });
    if plan.has_slices() { costs.fold(0.0, f64::max) } else { costs.sum() }
}

/// The rows of a range; those of keys with counters of their own have one.
fn rows_of_range(plan: &Plan, range: usize) -> f64 {
    if range == WHOLE || plan.pinned() == 0 { f64::from(plan.shape().rows) } else { 1.0 }
}

/// μ of the counters: all items of a user in a substream can fall on the same ones.
fn counters_mu(plan: &Plan) -> f64 {
    let reach = PathReach::of(plan);
    let squares = reach.shifts * rows_of_range(plan, WHOLE) * reach.of_window * reach.of_substream;
    let over = |offset: u64| -> f64 {
        let covering = plan.ranges().iter().filter(|range| range.offsets().contains(&offset));
        covering.map(|range| squares / range.law().variance()).sum()
    };
    // The ranges over an offset change at boundaries alone, so one offset of each segment stands for all of it.
    let last_offsets = plan.boundaries().iter().map(|end| end - 1);
    last_offsets.map(over).fold(0.0, f64::max).sqrt()
}

/// ε of the keys: each changed event raises the count of one, which the fresh noise covers, and lowers that of another, which
/// the lasting noise does.
fn keys_epsilon(plan: &Plan) -> f64 {
    let events = PathReach::of(plan).of_window;
    plan.search_plan().map_or(0.0, |search_plan| {
        let Release { lasting, fresh, .. } = search_plan.release();
        events / lasting.to_f64() + events / fresh.to_f64()
    })
}

fn epsilon_of(law: Law, changes: f64) -> f64 {
    match law {
        Law::Laplace { scale } => changes / scale.to_f64(),
        // Without a delta, Gaussian noise keeps no epsilon (PRIVACY.md: rule 4).
        Law::Gaussian { .. } => f64::INFINITY,
    }
}
