//! Counting on several machines: workers make partial counters of their share of the events, and one sketch absorbs them.

pub use crate::secret::partial::{PartialCounters, PartialId};
pub use crate::stream::absorb::Absorbed;
pub use crate::stream::worker::{Counted, Counting, Outside, Worker};
