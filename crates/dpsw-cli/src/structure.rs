//! From options to a plan.

use std::path::Path;

use anyhow::Result;
use dpsw::error::{ParameterError, PlanError, Quantity};
use dpsw::{
    CounterLayout, Delta, Grid, PaperMethod, Plan, Planned, Prediction, Ratio, Request, Settings, Shares,
    SubstreamLen, Unit, Window,
};
use dpsw_faces::memory::MEMORY;
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
    let chosen = match how.method {
        MethodName::Tuned if how.paper.is_given() => {
            return Err(Fault::usage("the parameters of the paper need --method paper"));
        }
        MethodName::Tuned => wish.plan().map(|(planned, request)| Chosen::new(planned, request)),
        MethodName::Paper => {
            paper_plan(&wish, how.paper).map(|plan| Chosen { plan, prediction: None, request: None })
        }
    };
    chosen.map_err(|error| explained(error, window, how.domain_file))
}

/// Columns that are not given are as many as the memory allows.
fn paper_plan(wish: &Wish, paper: &Paper) -> Result<Plan, PlanError> {
    let first = Plan::new(paper_settings(wish, paper, COLUMNS_FIRST)?)?;
    if paper.columns.is_some() || paper.zeta.is_some() {
        return Ok(first);
    }
    let memory = wish.memory.unwrap_or(MEMORY);
    let columns = u64::from(COLUMNS_FIRST) * memory / first.sketch_bytes().max(1);
    match u32::try_from(columns) {
        Ok(columns) if COLUMNS_MIN <= columns => Plan::new(paper_settings(wish, paper, columns)?),
        _ => Err(PlanError::TooSmall { bytes: memory }),
    }
}

fn paper_settings(wish: &Wish, paper: &Paper, columns: u32) -> Result<Settings, ParameterError> {
    Ok(Settings {
        unit: wish.unit,
        delta: Some(Delta::new(wish.delta.unwrap_or(wish.delta_default()))?),
        domain: wish.domain.clone(),
        method: Some(paper_method(paper, columns)?.into()),
        retention: wish.retention,
        ..Settings::new(wish.window, wish.epsilon)?
    })
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

fn paper_method(paper: &Paper, columns: u32) -> Result<PaperMethod, ParameterError> {
    let default = PaperMethod::default();
    let substream = match (paper.substreams, paper.beta) {
        (Some(count), _) => SubstreamLen::PerWindow(count),
        (None, Some(beta)) => SubstreamLen::Exponent(beta),
        (None, None) => default.substream,
    };
    let counters = match (paper.zeta, paper.eta) {
        (Some(relative_error), Some(failure_probability)) => {
            CounterLayout::Accuracy { relative_error, failure_probability }
        }
        _ => CounterLayout::Hashed {
            rows: paper.rows.unwrap_or(PAPER_ROWS),
            columns: paper.columns.unwrap_or(columns),
        },
    };
    let shares = match &paper.shares[..] {
        [] => Shares::Printed,
        shares => Shares::Explicit(
            shares.iter().map(|&share| Ratio::from_decimal(share)).collect::<Result<_, _>>()?,
        ),
    };
    Ok(PaperMethod {
        substream,
        alpha: paper.alpha.map(Ratio::from_decimal).transpose()?.unwrap_or(default.alpha),
        grid: paper
            .grid
            .map_or(default.grid, |units| if units == 0 { Grid::Items } else { Grid::Units(units) }),
        counters,
        shares,
    })
}

const PAPER_ROWS: u32 = 4;
/// Columns of the plan whose bytes are measured; bytes grow in proportion to columns.
const COLUMNS_FIRST: u32 = 1024;
/// Narrower sketches are not worth having.
const COLUMNS_MIN: u32 = 16;

pub(crate) fn unit(Protects { unit, per_user }: Protects) -> Result<Unit> {
    match (unit, per_user) {
        (UnitName::Users, per_user) => Ok(Unit::Users { per_substream: per_user.unwrap_or(1) }),
        (_, Some(_)) => Err(Fault::usage("--per-user needs --unit users")),
        (UnitName::ReplaceOne, None) => Ok(Unit::ReplaceOne),
        (UnitName::AddRemove, None) => Ok(Unit::AddRemove),
    }
}
