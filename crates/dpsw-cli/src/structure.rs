//! From options to a plan.

use std::path::Path;

use anyhow::Result;
use dpsw::error::{PlanError, Quantity};
use dpsw::{Plan, Planned, Prediction, Request, Unit, Window};
use dpsw_faces::paper;
use dpsw_faces::quantity::{grouped, time};
use dpsw_faces::wish::Wish;

use crate::arguments::{MethodName, Paper, Protects, UnitName};
use crate::domain;
use crate::fault::Fault;

/// By which method a plan is made, and where its keys are from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How<'a> {
    pub(crate) method: MethodName,
    pub(crate) paper: &'a Paper,
    pub(crate) domain_file: Option<&'a Path>,
}

/// A plan, and the error that it will probably have; the paper's method has bounds instead.
pub(crate) struct Chosen {
    pub(crate) plan: Plan,
    pub(crate) prediction: Option<Prediction>,
    /// What the planner was asked.
    pub(crate) request: Option<Request>,
}

impl Chosen {
    pub(crate) fn new(Planned { plan, prediction, .. }: Planned, request: Request) -> Self {
        Self { plan, prediction: Some(prediction), request: Some(request) }
    }
}

/// The plan of the chosen method.
pub(crate) fn plan(wish: Wish, how: How<'_>) -> Result<Chosen> {
    let window = wish.window;
    let paper = paper::Paper::from(how.paper);
    let chosen = match how.method {
        MethodName::Tuned if paper != paper::Paper::default() => {
            return Err(Fault::usage("the parameters of the paper need --method paper"));
        }
        MethodName::Tuned => wish.plan().map(|(planned, request)| Chosen::new(planned, request)),
        MethodName::Paper => {
            paper::plan(&wish, &paper).map(|plan| Chosen { plan, prediction: None, request: None })
        }
    };
    chosen.map_err(|error| explained(error, window, how.domain_file))
}

/// A plan that was refused, in the words of the command line.
pub(crate) fn explained(error: PlanError, window: Window, file: Option<&Path>) -> anyhow::Error {
    let PlanError::OutOfRange { name, value, high, .. } = error else { return domain::explain(error, file) };
    match (name, window.time()) {
        (Quantity::WindowLen, Some(_)) => {
            Fault::usage(format!("a window of time has at most {}, got {}", time(high), time(value)))
        }
        (Quantity::SearchItems | Quantity::SearchBytes, of_time) => {
            let items = window.expected_items();
            let most = u128::from(items) * u128::from(high) / u128::from(value.max(1));
            // Substreams are rounded up.
            let most = most - most % 1000;
            let counted = if of_time.is_some() { " (--expected-items)" } else { "" };
            Fault::usage(format!(
                "keys are found in windows of up to {} items, got {}{counted}; use a shorter --window, or list the keys \
                with --domain",
                grouped(most as f64),
                grouped(items as f64)
            ))
        }
        _ => error.into(),
    }
}

pub(crate) fn unit(Protects { unit, per_user }: Protects) -> Result<Unit> {
    match (unit, per_user) {
        (UnitName::Users, per_user) => Ok(Unit::Users { per_substream: per_user.unwrap_or(1) }),
        (_, Some(_)) => Err(Fault::usage("--per-user needs --unit users")),
        (UnitName::ReplaceOne, None) => Ok(Unit::ReplaceOne),
        (UnitName::AddRemove, None) => Ok(Unit::AddRemove),
    }
}
