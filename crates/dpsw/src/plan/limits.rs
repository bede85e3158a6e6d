//! The largest and smallest numbers of a plan, and the checks that hold them.

use crate::error::{Fraction, ParameterError, PlanError, Quantity};
use crate::noise::law::Law;
use crate::plan::settings::{Clock, Settings, Unit};

/// The longest window, in items or ticks: with ticks of a millisecond 34 years.
pub(crate) const WINDOW_LEN_MAX: u64 = 1 << 40;
/// The most items of a substream: its counts and noise fit in 32 bits.
pub(crate) const SUBSTREAM_ITEMS_MAX: u64 = 1 << 30;
/// The most substreams kept at a time.
pub(crate) const SUBSTREAMS_MAX: u64 = 10_000;
/// The most checkpoints of a substream.
pub(crate) const CHECKPOINTS_MAX: usize = 200;
/// The most numbers of slices that a key may have in a substream.
pub(crate) const LEVELS_MAX: u32 = 8;
/// The most pinned keys.
pub(crate) const PINNED_MAX: u32 = (1 << 16) - 1;
/// A key is pinned that stands out in a window by so many deviations of an absent one.
pub(crate) const PINNED_DEVIATIONS: f64 = 3.0;
/// Keys that were pinned lately are remembered up to this part of those that are, beside them.
pub(crate) const LEFT_SHARE: u32 = 4;
/// Bytes of a key that is or was pinned.
pub(crate) const PIN_LEN: u64 = 16;
/// The most rows of a sketch.
pub(crate) const ROWS_MAX: u32 = 16;
/// The most counters of a sketch.
pub(crate) const CELLS_MAX: u64 = 1 << 28;
/// The most keys of a public domain.
pub(crate) const KEYS_MAX: u64 = 1 << 24;
/// The longest retention, in windows.
pub(crate) const RETENTION_MAX: u32 = 1000;
/// The largest variance parameter of Gaussian noise; the samplers' arithmetic is exact up to here.
pub(crate) const VARIANCE_MAX: u64 = (1 << 32) - 1;
/// Candidates of a fit are at most this share of the counters; beyond it they cannot be told apart.
pub(crate) const CANDIDATE_SHARE: f64 = 0.15;
/// A candidate of a fit stands out by this many deviations of the bulk of all keys.
pub(crate) const CANDIDATE_DEVIATIONS: f64 = 4.0;
/// The numbers of slices that the newest part of a window may be predicted from, and the longest, as a part of the window.
pub(crate) const SPANS: [u32; 6] = [1, 2, 4, 8, 16, 32];
pub(crate) const LONGEST_SPAN: f64 = 0.8;
/// Beyond this many substreams that left since the last fit, the next one adds up the totals of the keys anew.
pub(crate) const LEFT_MAX: usize = 2;
/// Bytes that a view caches for each key of an interpolated plan.
pub(crate) const KEY_SUMS_LEN: usize = 48;
/// Bytes of a candidate in the map of a fit, at its usual load.
pub(crate) const CANDIDATE_LEN: u64 = 28;
/// The most substreams of a search for keys, and the longest keys that can be found.
pub(crate) const SEARCH_LEN_MAX: u64 = 1 << 20;
pub(crate) const KEY_LEN_MAX: u64 = 1 << 16;
/// The most items of a search: their counts and noise fit in 32 bits.
pub(crate) const SEARCH_ITEMS_MAX: u64 = 1 << 30;
/// A search whose length is left open has about this many items, at most this many windows, and takes at most so many bytes.
pub(crate) const SEARCH_ITEMS: u64 = 1 << 20;
pub(crate) const SEARCH_WINDOWS: u64 = 8;
pub(crate) const SEARCH_BYTES: u64 = 64 << 20;
/// Time windows leave room for this many times the expected items of a search or substream.
pub(crate) const ROOM: u64 = 2;
/// Bytes of a key in the map of a search, without those of a byte string.
pub(crate) const SEARCHED_LEN: usize = 24;
/// Bytes of a search beside its map and its keys: far more than there are, but how long searches are depends on it, and with that
/// which saved states can go on.
pub(crate) const SEARCH_ROOM: usize = 1 << 16;
/// The most found keys that are listed, and the most bytes of their names together, unless one name is longer.
pub(crate) const LIST_KEYS: usize = 1024;
pub(crate) const LIST_BYTES: usize = 32 * LIST_KEYS;
/// Bytes of a user whose items are counted.
pub(crate) const USER_LEN: usize = 16;
/// Bytes of a sealed counter that does not fit in 16 bits.
pub(crate) const OVERFLOW_LEN: u64 = 8;
/// More items than any substream gets; saved counters with more are refused.
pub(crate) const ITEMS_MAX: u64 = 1 << 48;
/// The most sites whose views can be merged.
pub(crate) const SITES_MAX: usize = 1000;
/// How many sets of domain estimates a view's cache holds.
pub(crate) const CACHED_COVERS_MAX: usize = 2;

/// The width of a stored sealed counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// 32 bits.
    Wide,
    /// 16 bits, and a short list of the few counters that do not fit.
    Narrow,
}

pub(crate) fn check_range(name: Quantity, value: u64, low: u64, high: u64) -> Result<(), PlanError> {
    if (low..=high).contains(&value) { Ok(()) } else { Err(PlanError::OutOfRange { name, value, low, high }) }
}

pub(crate) fn check_fraction(name: Fraction, value: f64) -> Result<(), ParameterError> {
    if 0.0 < value && value < 1.0 { Ok(()) } else { Err(ParameterError::Fraction { name, value }) }
}

fn check_time(settings: &Settings) -> Result<(), PlanError> {
    if let Some(time) = settings.window.time() {
        check_range(Quantity::Lateness, time.lateness, 0, time.len)?;
        check_range(Quantity::ExpectedItems, time.expected_items, 1, WINDOW_LEN_MAX)?;
    }
    match (settings.unit, settings.window.time().map(|time| time.clock)) {
        // A cap admits whoever comes first (PRIVACY.md: rule 14).
        (Unit::Users { .. }, Some(Clock::CallerByItem)) => Err(PlanError::UsersByItem),
        // One event more or less must move neither positions nor the clock (PRIVACY.md: rule 19).
        (Unit::AddRemove, None) => Err(PlanError::AddRemoveItems),
        (Unit::AddRemove, Some(Clock::Events)) => Err(PlanError::AddRemoveEvents),
        (Unit::ReplaceOne | Unit::Users { .. }, _) | (Unit::AddRemove, Some(_)) => Ok(()),
    }
}

/// What can be told before anything is derived.
pub(crate) fn check_settings(settings: &Settings) -> Result<(), PlanError> {
    check_range(Quantity::WindowLen, settings.window.len(), 1, WINDOW_LEN_MAX)?;
    check_time(settings)?;
    check_range(Quantity::Retention, settings.retention.into(), 1, RETENTION_MAX.into())?;
    check_delta(settings)?;
    if let Some(keys) = settings.domain.keys() {
        check_range(Quantity::Keys, keys.len() as u64, 1, KEYS_MAX)?;
    }
    check_unit(settings.unit)
}

fn check_unit(unit: Unit) -> Result<(), PlanError> {
    match unit {
        Unit::ReplaceOne | Unit::AddRemove => Ok(()),
        Unit::Users { per_substream } => check_range(Quantity::UserItems, per_substream.into(), 1, 1 << 20),
    }
}

fn check_delta(settings: &Settings) -> Result<(), PlanError> {
    let Some(delta) = settings.delta else { return Ok(()) };
    // A larger δ would allow it to show one of the items that are kept as it is.
    let limit = 1.0 / (settings.window.expected_items().max(1) as f64 * f64::from(settings.retention));
    if delta.get() <= limit { Ok(()) } else { Err(PlanError::DeltaTooLarge { delta: delta.get(), limit }) }
}

/// # Errors
/// The samplers cannot draw noise of this variance.
pub(crate) fn gaussian_law(variance: u64) -> Result<Law, PlanError> {
    check_range(Quantity::Variance, variance, 1, VARIANCE_MAX)?;
    Ok(Law::Gaussian { variance })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::parameters::Delta;

    #[test]
    fn fractions_lie_strictly_between_zero_and_one() {
        assert!(check_fraction(Fraction::Alpha, 0.5).is_ok());
        for value in [0.0, 1.0, -0.1, 1.1, f64::NAN] {
            assert!(check_fraction(Fraction::Alpha, value).is_err(), "{value}");
        }
    }

    #[test]
    fn variances_stop_where_the_samplers_do() {
        for (variance, is_right) in [(0, false), (1, true), ((1 << 32) - 1, true), (1 << 32, false)] {
            let law = gaussian_law(variance);
            assert_eq!(law.is_ok(), is_right, "{variance}");
            assert!(law.map_or(true, Law::is_drawable));
        }
    }

    #[test]
    fn delta_is_at_most_one_in_all_items_that_are_kept() {
        let settings = |delta| Settings {
            delta: Delta::new(delta).ok(),
            retention: 4,
            ..Settings::last_items(1000, 1.0).expect("in range")
        };
        assert!(check_settings(&settings(1.0 / 4000.0)).is_ok());
        let error = check_settings(&settings(1.0 / 3999.0)).expect_err("too large");
        assert_eq!(error, PlanError::DeltaTooLarge { delta: 1.0 / 3999.0, limit: 1.0 / 4000.0 });
    }
}
