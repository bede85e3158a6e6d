//! Settings → plan: structure, noise, cost, bytes and predicted error.

pub mod bound;
pub(crate) mod budget;
pub mod checkpoint;
pub(crate) mod counts;
pub(crate) mod discovery;
pub(crate) mod false_rows;
pub(crate) mod layout;
pub(crate) mod limits;
pub(crate) mod mapper;
pub(crate) mod memory;
pub(crate) mod misfit;
pub(crate) mod paper;
pub(crate) mod paper_bounds;
pub(crate) mod planner;
pub(crate) mod predict;
pub(crate) mod range;
pub(crate) mod reach;
pub(crate) mod release;
pub(crate) mod rungs;
pub(crate) mod settings;
pub(crate) mod structure;
pub(crate) mod text;
pub(crate) mod tuned;

pub use discovery::PlannedDiscovery;
pub use paper_bounds::PaperBounds;
pub use range::PlannedRange;
