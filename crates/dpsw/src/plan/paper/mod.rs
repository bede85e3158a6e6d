//! The plan of the paper's method.

pub(crate) mod bounds;
pub mod checkpoint;
pub(crate) mod ranges;
pub mod theorems;
