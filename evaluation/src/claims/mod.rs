//! What the paper's text says about its experiments, and what this project says of its own method, held against what was
//! measured.

mod frequency;
mod heavy;
mod judge;
mod ours;
mod parameters;
mod rows;
mod space;
mod supplement;
mod tally;
#[cfg(test)]
mod tests;
mod window;

pub use judge::{Finding, Judged, Verdict, judge, judge_ours};
