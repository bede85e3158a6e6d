//! What may be shown: noisy, frozen sketches and the keys that were found.

pub(crate) mod absent;
pub(crate) mod found;
pub(crate) mod horizon;
pub(crate) mod pins;
pub(crate) mod released;
pub(crate) mod levels;
pub(crate) mod sketch;
pub(crate) mod slices;
pub(crate) mod substream;

pub use crate::item::mapping::Shape;
pub use crate::plan::limits::Width;
pub use crate::view::window_view::Sealed;
pub use sketch::SealedSketch;
