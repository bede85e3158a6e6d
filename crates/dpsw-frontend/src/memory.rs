//! How much memory sketches take where nobody says: as much as lowers the error, within bounds.

use dpsw::error::PlanError;
use dpsw::plan::{Planned, Prediction, Request};

/// The bytes of sketches in which keys share counters, where more would not help.
pub const MEMORY: u64 = 400_000;
/// They may take so many times as much.
const TIMES: [u64; 3] = [1, 4, 16];
/// And at most this: about 64 MB with all that is computed from it.
const MOST: u64 = 32 * MEMORY;
/// An error that is larger by less than this factor is as good.
const AS_GOOD: f64 = 1.05;

/// The plan with the least of these sizes that is as good as the largest, and the request that it fulfils. Where keys have
/// counters of their own, the library knows how much to take.
///
/// # Errors
/// There is no plan with the most bytes that are taken.
pub fn plan(request: Request) -> Result<(Planned, Request), PlanError> {
    if MEMORY < request.bytes {
        return Ok((request.plan()?, request));
    }
    let request = with_most(request);
    let best = request.plan()?;
    let good = AS_GOOD * score(&best.prediction);
    for bytes in TIMES.map(|times| times * MEMORY) {
        let request = request.clone().with_bytes(bytes);
        match request.plan() {
            Ok(planned) if score(&planned.prediction) <= good => return Ok((planned, request)),
            _ => {}
        }
    }
    Ok((best, request))
}

/// The request with the most bytes that are taken where nobody says.
pub fn with_most(request: Request) -> Request {
    let bytes = if request.bytes <= MEMORY { MOST } else { request.bytes };
    request.with_bytes(bytes)
}

/// By what factor errors are larger with a tenth of the bytes; `None` if no plan is so small.
pub fn tenth(request: &Request, planned: &Prediction, bytes: u64) -> Option<f64> {
    let less = request.clone().with_bytes(bytes / 10).plan().ok()?;
    Some((score(&less.prediction) / score(planned)).max(1.0))
}

/// What the planner keeps small.
fn score(prediction: &Prediction) -> f64 {
    prediction.frequent() + prediction.rare()
}
