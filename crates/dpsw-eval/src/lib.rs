//! Measures dpsw against the methods of its paper: streams, exact windows, methods at equal size, and results.

pub mod baseline;
pub mod compare;
mod cores;
pub mod dataset;
pub mod measure;
pub mod method;
pub mod running;
pub mod source;
pub mod truth;
