//! The paper's sketches: whole, prefixes and suffixes of each substream.

use dashu_int::UBig;

use crate::error::{DeltaUse, Fraction, ParameterError, PlanError, Quantity};
use crate::noise::law::Law;
use crate::plan::budget::Budget;
use crate::plan::layout::{derive_shape, substream_len};
use crate::plan::limits::{CHECKPOINTS_MAX, check_fraction, check_range, gaussian_law};
use crate::plan::paper::checkpoint::{Span, checkpoints, cut_ranges};
use crate::plan::range::{PlannedRange, Sketches};
use crate::plan::settings::{Grid, PaperMethod, Settings, Shares};
use crate::privacy::accounting::{heaviest, paper_rho, zcdp_variance};
use crate::privacy::ledger::{Cost, Ledger};
use crate::privacy::parameters::Rho;
use crate::ratio::Ratio;

pub(crate) fn plan_sketches(
    settings: &Settings,
    method: &PaperMethod,
    budget: Budget,
) -> Result<Sketches, PlanError> {
    if settings.unit.per_substream().is_some() {
        return Err(PlanError::PaperUsers);
    }
    let delta = budget.delta.ok_or(PlanError::DeltaNeeded(DeltaUse::Paper))?;
    check_fraction(Fraction::Alpha, method.alpha.to_f64())?;
    let substream_len = substream_len(method.substream, settings.window)?;
    let lengths = checkpoint_lengths(method, substream_len)?;
    let shape = derive_shape(method.counters, settings)?;
    let shares = choose_shares(&method.shares, method.alpha, lengths.len())?;
    let spans = cut_ranges(&lengths);
    check_share_sum(&spans, &shares)?;
    let rho = paper_rho(budget.epsilon, delta);
    let shifts = settings.unit.shifts_per_row() * u64::from(shape.rows);
    let laws = shares.iter().map(|&share| shared_law(shifts, rho, share)).collect::<Result<Vec<_>, _>>()?;
    let law = |span: &Span| laws[span.checkpoint];
    let costs: Vec<_> =
        spans.iter().map(|span| (span.offsets.clone(), spent_rho(shifts, law(span).variance()))).collect();
    let mut ledger = Ledger::new(settings.epsilon, settings.delta);
    // Charged are the variances as they were rounded, at the offset that costs the most (PRIVACY.md: rule 4).
    ledger.charge("the sketches over one position", Cost::Zcdp(heaviest(&costs)))?;
    let ranges = PlannedRange::from_spans(spans.into_iter().map(|span| (span.clone(), law(&span))));
    Ok(Sketches { substream_len, shape, ranges, ledger })
}

fn checkpoint_lengths(method: &PaperMethod, substream_len: u64) -> Result<Vec<u64>, PlanError> {
    let units = match method.grid {
        Grid::Items => substream_len,
        Grid::Units(units) => units,
    };
    check_range(Quantity::GridUnits, units, 1, substream_len)?;
    let lengths: Vec<u64> = checkpoints(units, method.alpha).take(CHECKPOINTS_MAX + 1).collect();
    check_range(Quantity::Checkpoints, lengths.len() as u64, 1, CHECKPOINTS_MAX as u64)?;
    Ok(lengths.into_iter().map(|length| units_to_items(length, units, substream_len)).collect())
}

/// So many units of a grid in items, rounded up.
fn units_to_items(length: u64, units: u64, substream_len: u64) -> u64 {
    // The product of two lengths can exceed 64 bits.
    let product = u128::from(length) * u128::from(substream_len);
    product.div_ceil(u128::from(units)) as u64
}

/// The share of the whole, then of each further checkpoint, rounded down.
fn choose_shares(shares: &Shares, alpha: Ratio, checkpoints: usize) -> Result<Vec<Ratio>, PlanError> {
    let list = match shares {
        Shares::Printed => (1..=checkpoints).map(|j| printed_share(alpha, j)).collect(),
        Shares::Explicit(list) => list.clone(),
    };
    if list.len() != checkpoints {
        return Err(PlanError::ShareCount { wanted: checkpoints, got: list.len() });
    }
    match list.iter().find(|share| share.numerator() == 0 || Ratio::ONE < **share) {
        Some(share) => Err(ParameterError::Fraction { name: Fraction::Share, value: share.to_f64() }.into()),
        None => Ok(list),
    }
}

/// The printed share of checkpoint j = 1, 2, ..., rounded down to a multiple of 2⁻⁶².
fn printed_share(alpha: Ratio, j: usize) -> Ratio {
    let unit = 1_u64 << 62;
    let (n, d) = (UBig::from(alpha.numerator()), UBig::from(alpha.denominator()));
    let rest = &d - &n;
    let (numerator, denominator) = match j {
        1 => (&n * (&d + &rest), &d * &d),
        _ => (n.pow(j - 2) * rest.pow(3), UBig::from(2_u8) * d.pow(j + 1)),
    };
    // In big integers, because powers soon leave 64 bits; down, because a share that is rounded up would exceed ρ.
    let floor = u64::try_from(numerator * UBig::from(unit) / denominator).expect("a share is below 1");
    Ratio::new(floor, unit).expect("the unit is not zero")
}

/// The shares of the sketches over any one offset must add up to at most 1, exactly.
fn check_share_sum(spans: &[Span], shares: &[Ratio]) -> Result<(), PlanError> {
    // Sums grow only where a range starts. The printed shares may meet 1 exactly, so ratios are added up.
    for at in spans {
        let over = spans.iter().filter(|span| span.offsets.contains(&at.offsets.start));
        let mut over = over.map(|span| shares[span.checkpoint]);
        let sum = over.try_fold(Ratio::new(0, 1)?, Ratio::checked_add);
        if sum.is_none_or(|sum| Ratio::ONE < sum) {
            return Err(PlanError::ShareSum(sum.map_or(f64::INFINITY, Ratio::to_f64)));
        }
    }
    Ok(())
}

/// Discrete Gaussian noise for this share of ρ when an event moves this many counters: variance ⌈shifts / (2 ρ share)⌉,
/// which is ⌈rows / (ρ share)⌉ under replace-one.
fn shared_law(shifts: u64, rho: Rho, share: Ratio) -> Result<Law, PlanError> {
    gaussian_law(zcdp_variance(shifts, rho.get() * share.to_f64()))
}

/// The ρ of a sketch with Gaussian noise of this variance when an event moves this many counters by one.
pub(crate) fn spent_rho(shifts: u64, variance: f64) -> f64 {
    shifts as f64 / (2.0 * variance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::domain::Domain;
    use crate::plan::settings::{CounterLayout, Method, SubstreamLen, Unit, Window};
    use crate::plan::structure::Plan;
    use crate::privacy::parameters::{Delta, Epsilon};

    fn ratio(numerator: u64, denominator: u64) -> Ratio {
        Ratio::new(numerator, denominator).expect("a ratio")
    }

    #[test]
    fn printed_shares_are_the_formulas_rounded_down() {
        // alpha (2 - alpha), then alpha^(j - 2) (1 - alpha)^3 / 2.
        for (j, share) in [(1, 15.0 / 16.0), (2, 1.0 / 128.0), (3, 3.0 / 512.0), (4, 9.0 / 2048.0)] {
            assert_eq!(printed_share(ratio(3, 4), j).to_f64(), share, "checkpoint {j}");
        }
        for (j, numerator, denominator) in [(1, 5, 9), (2, 8, 54), (3, 8, 162)] {
            let share = printed_share(ratio(1, 3), j);
            let scaled = u128::from(share.numerator()) * denominator;
            let exact = u128::from(share.denominator()) * numerator;
            assert!(scaled < exact && exact < scaled + denominator, "checkpoint {j}");
            assert!((share.to_f64() - numerator as f64 / denominator as f64).abs() < 1e-15, "checkpoint {j}");
        }
    }

    #[test]
    fn shares_are_as_many_as_checkpoints_and_lie_above_zero_up_to_one() {
        let explicit = |list: &[Ratio]| choose_shares(&Shares::Explicit(list.to_vec()), ratio(3, 4), 2);
        assert_eq!(explicit(&[ratio(1, 1), ratio(1, 9)]), Ok(vec![ratio(1, 1), ratio(1, 9)]));
        for wrong in [&[ratio(1, 2)][..], &[ratio(1, 2), ratio(0, 1)], &[ratio(1, 2), ratio(11, 10)]] {
            assert!(explicit(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_shares_over_one_offset_are_at_most_the_whole() {
        // The whole, and a prefix and a suffix that do not overlap.
        let spans = cut_ranges(&[10, 3]);
        assert_eq!(check_share_sum(&spans, &[ratio(3, 4), ratio(1, 4)]), Ok(()));
        let error = check_share_sum(&spans, &[ratio(3, 4), ratio(26, 100)]);
        assert_eq!(error, Err(PlanError::ShareSum(1.01)));
    }

    #[test]
    fn a_share_gets_the_smallest_noise_that_it_pays_for() {
        for (shifts, rho, share) in
            [(2, 0.011, ratio(1, 3)), (6, 0.19, ratio(3, 4)), (10, 0.003, ratio(1, 128))]
        {
            let law = shared_law(shifts, Rho::new(rho).expect("in range"), share).expect("a law");
            let paid = rho * share.to_f64();
            let variance = law.variance();
            assert!(
                shifts as f64 / (2.0 * variance) <= paid && paid < shifts as f64 / (2.0 * (variance - 1.0))
            );
            assert_eq!(spent_rho(shifts, variance), shifts as f64 / (2.0 * variance));
        }
    }

    fn method(substream: u64, grid: Grid, alpha: Ratio) -> PaperMethod {
        let counters = CounterLayout::Hashed { rows: 3, columns: 4 };
        PaperMethod {
            substream: SubstreamLen::Items(substream),
            grid,
            alpha,
            counters,
            ..PaperMethod::default()
        }
    }

    #[test]
    fn units_of_the_grid_are_rounded_up_to_items_and_checkpoints_are_limited() {
        let lengths = |len, grid, alpha| checkpoint_lengths(&method(len, grid, alpha), len);
        assert_eq!(lengths(95, Grid::Units(10), ratio(3, 4)), Ok(vec![95, 29, 10]));
        assert!(lengths(1 << 20, Grid::Items, ratio(1, 100)).is_err());
    }

    #[test]
    fn an_event_moves_two_counters_of_each_row() {
        let (epsilon, delta) = (Epsilon::new(1.0).expect("in range"), Delta::new(1e-9).expect("in range"));
        let plan = Plan::new(Settings {
            window: Window::Items(100),
            unit: Unit::ReplaceOne,
            epsilon,
            delta: Some(delta),
            domain: Domain::Public(crate::item::keys::Keys::Range(50)),
            method: Some(Method::Paper(method(10, Grid::Units(10), ratio(3, 4)))),
            retention: 1,
        });
        let whole = shared_law(6, paper_rho(epsilon, delta), ratio(15, 16)).expect("a law");
        assert_eq!(plan.expect("a plan").ranges()[0].law(), whole);
    }
}
