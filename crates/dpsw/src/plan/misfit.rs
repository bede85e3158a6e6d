//! What the edges of a window add to the variance of an estimate, in the estimates themselves and in their prediction.

/// The shares of substreams by which whole ones miss a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Edges {
    /// Of a substream, predicted at the window's end.
    pub(crate) ahead: f64,
    /// Of the oldest substream, outside the window.
    pub(crate) expired: f64,
    /// Of the newest substream, outside a window that ended before it.
    pub(crate) later: f64,
}

impl Edges {
    /// The variance by chance of an item that occurs once per substream. Of a substream of which the share y is cut off,
    /// the estimate takes y off as well: y (1 - y) is left. What is predicted varies by itself (x) and by the
    /// substream that it is predicted from (x²).
    pub(crate) fn sampling(self) -> f64 {
        let Self { ahead: x, expired: y, later: z } = self;
        let cut = y * (1.0 - y) + z * (1.0 - z);
        cut + x + x * x
    }

    /// The variance of an item whose count walks from substream to substream with variance 1. See docs/estimation.md.
    pub(crate) fn walk(self) -> f64 {
        let Self { ahead: x, expired: y, later: z } = self;
        (x.powi(2) + x.powi(3) + (y * (1.0 - y)).powi(2) + (z * (1.0 - z)).powi(2)) / 3.0
    }
}
