//! How good the answers were.

use std::fmt;
use std::time::Duration;

use dpsw::{DpswSketch, Estimate};
use dpsw_frontend::quantity::{grouped, size};
use serde::Serialize;

/// The measures that are taken on the way.
#[derive(Debug, Default)]
pub(crate) struct Measures {
    /// Time spent on counting, noise and sealing.
    pub(crate) ingest: Duration,
    compared: usize,
    held: usize,
    tuned: f64,
    paper: f64,
}

impl Measures {
    /// Takes one true count with both estimates of it.
    pub(crate) fn take(&mut self, truth: f64, tuned: &Estimate, paper: &Estimate) {
        self.compared += 1;
        self.held += usize::from((tuned.value - truth).abs() <= tuned.error_bound);
        self.tuned += (tuned.value - truth).abs() / truth;
        self.paper += (paper.value - truth).abs() / truth;
    }

    /// The mean relative errors of both methods, once there are some.
    pub(crate) fn error(&self) -> Option<(f64, f64)> {
        let count = self.compared as f64;
        (0 < self.compared).then(|| (self.tuned / count, self.paper / count))
    }

    pub(crate) fn summary(&self, tuned: &DpswSketch, paper: &DpswSketch) -> Summary {
        let (error, paper_error) = self.error().unzip();
        Summary {
            items: tuned.position(),
            items_per_second: tuned.position() as f64 / self.ingest.as_secs_f64(),
            error,
            paper_error,
            intervals: self.compared,
            intervals_held: self.held,
            bytes: tuned.plan().sketch_bytes(),
            paper_bytes: paper.plan().sketch_bytes(),
            claim: tuned.plan().claim().to_string(),
            paper_claim: paper.plan().claim().to_string(),
        }
    }
}

/// The end of the demo.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    items: u64,
    items_per_second: f64,
    /// Mean relative error of the true top 50; `null` before the window is full.
    error: Option<f64>,
    paper_error: Option<f64>,
    intervals: usize,
    intervals_held: usize,
    bytes: u64,
    paper_bytes: u64,
    claim: String,
    paper_claim: String,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.items_per_second / 1e6;
        writeln!(
            f,
            "speed      {} items at {rate:.0} million per second, noise and sealing included",
            grouped(self.items as f64)
        )?;
        let (Some(error), Some(paper)) = (self.error, self.paper_error) else {
            return write!(f, "demo: left before the window was full; {}", self.claim);
        };
        let error = 100.0 * error;
        let paper = 100.0 * paper;
        writeln!(f, "error      the true top 50 are off by {error:.1} % on average")?;
        writeln!(
            f,
            "           {paper:.1} % by the paper's method on the same stream: {:.0} times as much, in {} against {}",
            paper / error,
            size(self.paper_bytes),
            size(self.bytes)
        )?;
        let held = 100.0 * self.intervals_held as f64 / self.intervals as f64;
        writeln!(
            f,
            "intervals  {held:.1} % of {} held the truth; 95 % is promised",
            grouped(self.intervals as f64)
        )?;
        writeln!(
            f,
            "promise    all that is ever shown, taken together, for one event replaced by another: {}",
            self.claim
        )?;
        writeln!(f, "           (the paper's method: {})", self.paper_claim)?;
        writeln!(f, "next       dpsw top --help, dpsw plan --help\n")?;
        write!(
            f,
            "demo: {} items at {rate:.0} million per second, mean error of the top 50 {error:.1} %, {}",
            self.items, self.claim
        )
    }
}
