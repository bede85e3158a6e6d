//! One sketch per substream with the whole budget.

use crate::error::{DeltaUse, ParameterError, PlanError, Quantity};
use crate::noise::law::Law;
use crate::plan::budget::Budget;
use crate::plan::layout::{count_touched, derive_shape};
use crate::plan::levels::cut_slices;
use crate::plan::limits::{PINNED_MAX, check_range, gaussian_law};
use crate::plan::paper::checkpoint::{Role, Span};
use crate::plan::range::{PlannedRange, Sketches};
use crate::plan::reach::Reach;
use crate::plan::settings::{CounterLayout, NoiseChoice, Settings, TunedMethod, Unit};
use crate::privacy::accounting::{gaussian_variance, laplace_scale, zcdp_rho, zcdp_variance};
use crate::privacy::ledger::{Cost, Ledger};
use crate::privacy::parameters::{Delta, Epsilon};

pub(crate) fn plan_sketches(
    settings: &Settings,
    method: &TunedMethod,
    budget: Budget,
) -> Result<Sketches, PlanError> {
    let substream_len = method.substream_len(settings.window)?;
    let shape = derive_shape(method.counters, settings)?;
    let reach = Reach::new(settings.unit, shape.rows, count_touched(settings.window.len(), substream_len));
    let (law, cost) = calibrate_noise(method.noise, budget, reach)?;
    // A δ that nothing needs must not weaken the claim.
    let delta = settings.delta.filter(|_| budget.delta.is_some() || budget.keys.is_some());
    let mut ledger = Ledger::new(settings.epsilon, delta);
    let what = match settings.unit {
        Unit::Users { .. } => "the sketches that a user reaches in a window",
        Unit::ReplaceOne | Unit::AddRemove => "the sketch over one position",
    };
    ledger.charge(what, cost)?;
    let slices = cut_slices(substream_len, method.levels).into_iter();
    if method.pinned == 0 {
        let ranges = PlannedRange::from_spans(slices.map(|span| (span, law)));
        return Ok(Sketches { substream_len, shape, ranges, ledger });
    }
    check_pinned(settings, method)?;
    // An event counts in the rows or in one counter of its own, and costs the same in either.
    let one = Reach::new(settings.unit, 1, count_touched(settings.window.len(), substream_len));
    let (own, own_cost) = calibrate_noise(method.noise, budget, one)?;
    debug_assert_eq!(own_cost, cost, "the scale is exact");
    let whole = Span { role: Role::Whole, offsets: 0..substream_len, checkpoint: 0 };
    let slices = slices.map(|span| (Span { role: Role::Slice, ..span }, own));
    let ranges = PlannedRange::from_spans([(whole, law)].into_iter().chain(slices));
    Ok(Sketches { substream_len, shape, ranges, ledger })
}

fn check_pinned(settings: &Settings, method: &TunedMethod) -> Result<(), PlanError> {
    check_range(Quantity::Pinned, method.pinned.into(), 0, PINNED_MAX.into())?;
    let is_hashed = method.counters != CounterLayout::Identity;
    let has_list = settings.domain.keys().is_some() || settings.domain.search().is_some();
    match is_hashed && has_list && method.noise == NoiseChoice::Laplace {
        true => Ok(()),
        false => Err(PlanError::PinnedNeedList),
    }
}

/// The least noise that covers this reach, and what it costs.
pub(crate) fn calibrate_noise(
    noise: NoiseChoice,
    budget: Budget,
    reach: Reach,
) -> Result<(Law, Cost), PlanError> {
    match noise {
        NoiseChoice::Laplace => calibrate_laplace(budget.epsilon, reach),
        NoiseChoice::Gaussian => calibrate_gaussian(budget, reach),
    }
}

fn calibrate_laplace(epsilon: Epsilon, reach: Reach) -> Result<(Law, Cost), PlanError> {
    let scale = laplace_scale(epsilon, reach.sum).ok_or(ParameterError::Epsilon(epsilon.get()))?;
    // What this scale costs is charged, not what was asked for.
    let cost = scale.checked_divide(reach.sum).ok_or(ParameterError::Epsilon(epsilon.get()))?;
    Ok((Law::Laplace { scale }, Cost::Pure(cost)))
}

fn calibrate_gaussian(budget: Budget, reach: Reach) -> Result<(Law, Cost), PlanError> {
    let delta = budget.delta.ok_or(PlanError::DeltaNeeded(DeltaUse::Gaussian))?;
    let law = gaussian_law(reach_variance(budget.epsilon, delta, reach))?;
    Ok((law, Cost::Approximate(budget.epsilon.ratio(), delta.get())))
}

/// The smallest variance that covers this reach: by the exact lattice sum where counters move by one, else by zCDP, which
/// holds for any integers.
fn reach_variance(epsilon: Epsilon, delta: Delta, reach: Reach) -> u64 {
    if reach.is_by_ones() {
        return gaussian_variance(epsilon, delta, reach.sum);
    }
    zcdp_variance(reach.squares, zcdp_rho(epsilon, delta).get()).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_move_by_more_than_one_get_the_smallest_noise_that_zcdp_allows() {
        let delta = Delta::new(1e-9).expect("in range");
        for value in [0.1, 1.0, 3.0] {
            let epsilon = Epsilon::new(value).expect("in range");
            let rho = zcdp_rho(epsilon, delta).get();
            let variance = reach_variance(epsilon, delta, Reach { sum: 30, squares: 90 }) as f64;
            assert!(
                90.0 / (2.0 * variance) <= rho && rho < 90.0 / (2.0 * (variance - 1.0)),
                "epsilon {value}"
            );
            let by_ones = reach_variance(epsilon, delta, Reach { sum: 30, squares: 30 });
            assert_eq!(by_ones, gaussian_variance(epsilon, delta, 30));
        }
        let huge = Epsilon::new(1e6).expect("in range");
        assert_eq!(reach_variance(huge, delta, Reach { sum: 30, squares: 90 }), 2);
    }
}
