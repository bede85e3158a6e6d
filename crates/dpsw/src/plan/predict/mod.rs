//! The error that a plan will have, and the plan with the least.

pub(crate) mod counts;
pub(crate) mod edges;
pub(crate) mod errors;
pub(crate) mod false_rows;
pub(crate) mod planner;
