//! Measures dpsw against the methods of its paper: streams, exact windows, methods at equal size, and results.

#![expect(
    missing_docs,
    clippy::missing_errors_doc,
    reason = "its own program, tests and examples alone use it; it is never published"
)]

pub mod against;
pub mod baseline;
pub mod catalog;
pub mod chart;
pub mod claims;
pub mod compare;
pub mod cores;
pub mod coverage;
pub mod dataset;
pub mod discovery;
pub mod draw;
pub mod evaluate;
pub mod figure;
pub mod manifest;
pub mod measure;
pub mod metric;
pub mod method;
pub mod slices;
pub mod preset;
pub mod report;
pub mod results;
pub mod row;
pub mod running;
mod seeds;
pub mod source;
pub mod store;
pub mod stream;
pub mod sweep;
pub mod truth;
