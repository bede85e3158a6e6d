//! Measures dpsw against the methods of its paper: streams, exact windows, methods at equal size, and results.

pub mod baseline;
pub mod compare;
pub mod dataset;
pub mod method;
pub mod source;
pub mod truth;
