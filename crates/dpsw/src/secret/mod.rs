//! What is exact and never read: counters, caps and key counts of what is still open. Wiped when dropped.

pub(crate) mod caps;
pub(crate) mod counters;
pub(crate) mod key_counts;
pub(crate) mod partial;
pub(crate) mod substream;
pub(crate) mod key_search;
