//! How long substreams are, how many there are at a time, and the shape of their sketches.

use crate::error::{Fraction, PlanError, Quantity};
use crate::item::mapping::Shape;
use crate::plan::levels::cut_len;
use crate::plan::limits::{
    CELLS_MAX, ROWS_MAX, SUBSTREAM_ITEMS_MAX, WINDOW_LEN_MAX, check_fraction, check_range,
};
use crate::plan::settings::{CounterLayout, Method, Settings, SubstreamLen, TunedMethod, Window};

/// About how many items a substream of this length holds.
pub(crate) fn substream_items(window: Window, substream_len: u64) -> u64 {
    match window {
        Window::Items(_) => substream_len,
        Window::Time(time) => time.expected_items.div_ceil(time.len.div_ceil(substream_len)),
    }
}

/// How many substreams a window touches at most.
pub(crate) fn count_touched(window_len: u64, substream_len: u64) -> u64 {
    // A window rarely begins with a substream, so that it cuts one more; a user counts in that one as well
    // (PRIVACY.md: rule 14).
    window_len.div_ceil(substream_len) + 1
}

/// The most sealed substreams of this length that are kept at a time, for windows of this length.
pub(crate) fn count_kept(window_len: u64, retention: u32, substream_len: u64) -> u64 {
    (window_len * u64::from(retention)).div_ceil(substream_len)
}

/// The most substreams that are open at a time: one, or in a time window two more than the lateness reaches over.
pub(crate) fn open_max(window: Window, substream_len: u64) -> u64 {
    window.time().map_or(1, |time| time.lateness.div_ceil(substream_len) + 2)
}

/// Substreams hold a limited number of items: that of their positions, or in a time window about as many as expected.
pub(crate) fn substream_len(choice: SubstreamLen, window: Window) -> Result<u64, PlanError> {
    let window_len = window.len();
    let len = match choice {
        SubstreamLen::Items(items) => items,
        SubstreamLen::PerWindow(count) => {
            check_range(Quantity::Substreams, count, 1, window_len)?;
            window_len.div_ceil(count)
        }
        SubstreamLen::Exponent(beta) => {
            check_fraction(Fraction::Beta, beta)?;
            // An exact power must not be rounded up past itself.
            ((window_len as f64).powf(beta) * (1.0 - 1e-12)).ceil() as u64
        }
    };
    check_range(Quantity::SubstreamLen, len, 1, WINDOW_LEN_MAX)?;
    check_range(Quantity::SubstreamItems, substream_items(window, len), 0, SUBSTREAM_ITEMS_MAX)?;
    Ok(len)
}

impl TunedMethod {
    pub(crate) fn substream_len(&self, window: Window) -> Result<u64, PlanError> {
        cut_len(substream_len(SubstreamLen::PerWindow(self.substreams), window)?, self)
    }
}

impl Method {
    /// The length of a substream of this window.
    pub(crate) fn substream_len(&self, window: Window) -> Result<u64, PlanError> {
        let choice = match self {
            Self::Paper(method) => method.substream,
            Self::Tuned(method) => return method.substream_len(window),
        };
        substream_len(choice, window)
    }
}

pub(crate) fn derive_shape(layout: CounterLayout, settings: &Settings) -> Result<Shape, PlanError> {
    let (rows, columns) = match layout {
        CounterLayout::Hashed { rows, columns } => (rows, columns),
        CounterLayout::Accuracy { relative_error, failure_probability } => {
            check_fraction(Fraction::Zeta, relative_error)?;
            check_fraction(Fraction::Eta, failure_probability)?;
            let columns = (std::f64::consts::E / relative_error).ceil();
            ((-failure_probability.ln()).ceil() as u32, columns.min(f64::from(u32::MAX)) as u32)
        }
        CounterLayout::Identity => {
            let keys = settings.domain.keys().ok_or(PlanError::IdentityNeedsDomain)?;
            return Ok(Shape { rows: 1, columns: keys.len() as u32 });
        }
    };
    check_range(Quantity::Rows, rows.into(), 1, ROWS_MAX.into())?;
    check_range(Quantity::Columns, columns.into(), 2, CELLS_MAX)?;
    check_range(Quantity::Counters, u64::from(rows) * u64::from(columns), 2, CELLS_MAX)?;
    Ok(Shape { rows, columns })
}
