//! From options to a plan, and from records to what its sketch counts.

pub(crate) mod feed;
pub(crate) mod plan;
pub(crate) mod run;
