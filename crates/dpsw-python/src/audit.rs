//! The audit of a plan.

use dpsw::audit::{Claimed, Effort};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::fault::Fault;
use crate::plan::Plan;

/// Attacks a plan; what was claimed and what was observed.
#[pyfunction]
pub(crate) fn audit<'py>(
    py: Python<'py>,
    plan: &Plan,
    runs: usize,
    seals: usize,
    false_alarm: f64,
) -> Result<Bound<'py, PyDict>, Fault> {
    let settings = plan.plan.settings();
    let report = py.detach(|| dpsw::audit::run(settings, Effort { runs, seals, false_alarm }))?;
    let (measure, claimed) = match report.claimed {
        Claimed::Mu(value) => ("mu", value),
        Claimed::Epsilon(value) => ("epsilon", value),
        _ => ("unknown", f64::NAN),
    };
    let said = PyDict::new(py);
    said.set_item("holds", report.holds())?;
    said.set_item("measure", measure)?;
    said.set_item("claimed", claimed)?;
    said.set_item("observed", report.observed)?;
    said.set_item("text", report.to_string())?;
    Ok(said)
}
