//! The paper's sketches: whole, prefixes and suffixes of each substream.

use dashu_int::UBig;

use crate::error::{DeltaUse, Fraction, ParameterError, PlanError, Quantity};
use crate::noise::law::Law;
use crate::plan::budget::Budget;
use crate::plan::checkpoint::{Span, checkpoints, spans};
use crate::plan::layout::{shape, substream_len};
use crate::plan::limits::{CHECKPOINTS_MAX, check, check_fraction, gaussian_law};
use crate::plan::range::{PlannedRange, Sketches};
use crate::plan::settings::{Grid, PaperMethod, Settings, Shares};
use crate::privacy::accounting::{heaviest, paper_rho};
use crate::privacy::ledger::{Cost, Ledger};
use crate::privacy::parameters::Rho;
use crate::ratio::Ratio;

pub(crate) fn sketches(
    settings: &Settings,
    method: &PaperMethod,
    budget: Budget,
) -> Result<Sketches, PlanError> {
    if settings.unit.per_substream().is_some() {
        return Err(PlanError::PaperUsers);
    }
    let delta = budget.delta.ok_or(PlanError::DeltaNeeded(DeltaUse::Paper))?;
    check_fraction(Fraction::Alpha, method.alpha.to_f64())?;
    let substream_len = substream_len(method.substream, settings.window.len())?;
    let lengths = checkpoint_lengths(method, substream_len)?;
    let shape = shape(method.counters, settings)?;
    let shares = shares(&method.shares, method.alpha, lengths.len())?;
    let spans = spans(&lengths);
    check_share_sum(&spans, &shares)?;
    let rho = paper_rho(budget.epsilon, delta);
    let shifts = settings.unit.shifts() * u64::from(shape.rows);
    let laws = shares.iter().map(|&share| shared_law(shifts, rho, share)).collect::<Result<Vec<_>, _>>()?;
    let law = |span: &Span| laws[span.checkpoint];
    let costs: Vec<_> =
        spans.iter().map(|span| (span.offsets.clone(), spent_rho(shifts, law(span).variance()))).collect();
    let mut ledger = Ledger::new(settings.epsilon, settings.delta);
    ledger.charge("the sketches over one position", Cost::Zcdp(heaviest(&costs)))?;
    let ranges = PlannedRange::all(spans.into_iter().map(|span| (span.clone(), law(&span))));
    Ok(Sketches { substream_len, shape, ranges, ledger })
}

fn checkpoint_lengths(method: &PaperMethod, substream_len: u64) -> Result<Vec<u64>, PlanError> {
    let units = match method.grid {
        Grid::Items => substream_len,
        Grid::Units(units) => units,
    };
    check(Quantity::GridUnits, units, 1, substream_len)?;
    let in_items = |length: u64| {
        let product = u128::from(length) * u128::from(substream_len);
        product.div_ceil(u128::from(units)) as u64
    };
    let lengths: Vec<u64> = checkpoints(units, method.alpha).take(CHECKPOINTS_MAX + 1).collect();
    check(Quantity::Checkpoints, lengths.len() as u64, 1, CHECKPOINTS_MAX as u64)?;
    Ok(lengths.into_iter().map(in_items).collect())
}

/// The share of the whole, then of each further checkpoint, rounded down.
fn shares(shares: &Shares, alpha: Ratio, checkpoints: usize) -> Result<Vec<Ratio>, PlanError> {
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
    let floor = u64::try_from(numerator * UBig::from(unit) / denominator).expect("a share is below 1");
    Ratio::new(floor, unit).expect("the unit is not zero")
}

/// The shares of the sketches over any one offset must add up to at most 1, exactly.
fn check_share_sum(spans: &[Span], shares: &[Ratio]) -> Result<(), PlanError> {
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
    let variance = (shifts as f64 / (2.0 * rho.get() * share.to_f64()) * (1.0 + 1e-12)).ceil();
    gaussian_law(variance as u64)
}

/// The ρ of a sketch with Gaussian noise of this variance when an event moves this many counters by one.
pub(crate) fn spent_rho(shifts: u64, variance: f64) -> f64 {
    shifts as f64 / (2.0 * variance)
}
