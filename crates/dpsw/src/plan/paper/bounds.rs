//! What the paper proves about a plan.

use crate::plan::paper::checkpoint::Role;
use crate::plan::paper::ranges::spent_rho;
use crate::plan::paper::theorems::{
    Asymptotic, PaperStructure, frequency_error, frequency_parts, main_error, sketch_error,
};
use crate::plan::settings::{Method, Window};
use crate::plan::structure::Plan;
use crate::privacy::parameters::Delta;

/// The bounds that the paper proves about a plan, in items. The bounds are far above typical errors.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct PaperBounds {
    /// Theorem on the private count-min sketch, for the sketch of a whole substream.
    pub sketch: f64,
    /// The probability with which it may fail.
    pub sketch_failure: f64,
    /// Lemma on frequency, for the worst phase of the window.
    pub frequency: f64,
    /// The probability with which it may fail.
    pub frequency_failure: f64,
    /// Main theorem, up to its open constant; needs a public domain.
    pub main: Option<f64>,
}

impl Plan {
    /// The paper's bounds for this plan: with ζ = e/columns and η = 2 e^-rows, what each sketch, a frequency and
    /// the main theorem allow. `None` for other methods, for time
    /// windows, whose number of items is not known, and for identity counters.
    #[must_use]
    pub fn paper_bounds(&self) -> Option<PaperBounds> {
        let Method::Paper(method) = self.method() else { return None };
        let Window::Items(window_len) = self.settings().window else { return None };
        let shifts = self.settings().unit.shifts_per_row() * u64::from(self.shape().rows);
        let columns = self.collision_columns()?;
        let (zeta, eta) =
            (std::f64::consts::E / f64::from(columns), 2.0 * (-f64::from(self.shape().rows)).exp());
        let whole_or_prefix = self.ranges().iter().filter(|range| range.role() != Role::Suffix);
        let checkpoints: Vec<(u64, f64)> = whole_or_prefix
            .map(|range| (range.offsets().end, spent_rho(shifts, range.law().variance())))
            .collect();
        let structure = PaperStructure {
            window_len,
            alpha: method.alpha.to_f64(),
            relative_error: zeta,
            failure_probability: eta,
            checkpoints: &checkpoints,
        };
        let theorem = |domain_len: usize| {
            main_error(Asymptotic {
                window_len: window_len as f64,
                domain_len: domain_len as f64,
                relative_error: zeta,
                failure_probability: eta,
                epsilon: self.settings().epsilon.get(),
                delta: self.settings().delta.map_or(1.0, Delta::get),
            })
        };
        Some(PaperBounds {
            sketch: sketch_error(self.substream_len() as f64, zeta, eta, checkpoints[0].1),
            sketch_failure: eta.min(1.0),
            frequency: frequency_error(&structure),
            frequency_failure: (frequency_parts(&structure) * eta).min(1.0),
            main: self.settings().domain.keys().map(|keys| theorem(keys.len())),
        })
    }
}
