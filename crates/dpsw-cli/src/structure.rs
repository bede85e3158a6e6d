//! From options to a plan.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use dpsw::error::{ParameterError, PlanError, Quantity};
use dpsw::{
    Clock, CounterLayout, Delta, Domain, Expectation, Grid, Keys, PaperMethod, Plan, Planned, Prediction,
    Ratio, Request, Settings, Shares, SubstreamLen, TimeWindow, Unit, Window,
};

use crate::arguments::{Means, MethodName, Paper, Past, Protects, UnitName};
use crate::domain;
use crate::fault::Fault;
use crate::memory::{self, MEMORY};
use crate::quantity::{Span, grouped, time};

/// The delta if a plan needs one and none is given.
pub(crate) const DELTA: f64 = 1e-10;
/// The items of a time window, if nobody says how many there are.
pub(crate) const EXPECTED_ITEMS: u64 = 1_000_000;

/// What a plan is wanted for, whatever command asks.
pub(crate) struct Wish<'a> {
    pub(crate) window: Window,
    pub(crate) unit: Unit,
    pub(crate) epsilon: f64,
    pub(crate) means: Means,
    pub(crate) domain: Domain,
    pub(crate) domain_file: Option<&'a Path>,
    pub(crate) retention: u32,
    /// The public guess of how counts are spread.
    pub(crate) expectation: Expectation,
    pub(crate) paper: &'a Paper,
    pub(crate) asked: Asked,
    /// The steps in which times go, in milliseconds.
    pub(crate) step: u64,
}

/// Which windows of a stream are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// At any time.
    Any,
    /// The last one of a stream whose length is known.
    Last,
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

impl<'a> Wish<'a> {
    /// The same with another epsilon.
    pub(crate) fn at(&self, epsilon: f64) -> Wish<'a> {
        Wish { epsilon, domain: self.domain.clone(), expectation: self.expectation.clone(), ..*self }
    }

    /// The plan of the chosen method.
    pub(crate) fn plan(self) -> Result<Chosen> {
        let (window, file) = (self.window, self.domain_file);
        let chosen = match self.means.method {
            MethodName::Tuned if self.paper.is_given() => {
                return Err(Fault::usage("the parameters of the paper need --method paper"));
            }
            MethodName::Tuned if self.means.memory.is_none() => {
                memory::plan(self.request()?).map(|(planned, request)| Chosen::new(planned, request))
            }
            MethodName::Tuned => {
                let request = self.request()?;
                request.plan().map(|planned| Chosen::new(planned, request))
            }
            MethodName::Paper => {
                self.paper_plan().map(|plan| Chosen { plan, prediction: None, request: None })
            }
        };
        chosen.map_err(|error| explained(error, window, file))
    }

    /// What the planner is asked. A large domain is moved, not copied.
    pub(crate) fn request(self) -> Result<Request> {
        let delta = self.delta_needed().map(Delta::new).transpose()?;
        let settings = Settings {
            unit: self.unit,
            delta,
            domain: self.domain,
            retention: self.retention,
            ..Settings::new(self.window, self.epsilon)?
        };
        let request = Request::new(settings).with_expectation(self.expectation).with_step(self.step);
        let request = if self.asked == Asked::Last { request.for_last_window() } else { request };
        Ok(match self.means.memory {
            Some(bytes) => request.with_bytes(bytes),
            None => request,
        })
    }

    /// The delta that was given, or the default where finding keys needs one.
    fn delta_needed(&self) -> Option<f64> {
        self.means.delta.or(self.domain.discovery().map(|_| self.delta_default()))
    }

    /// Windows that are longer than any of today need a smaller one.
    fn delta_default(&self) -> f64 {
        DELTA.min(1.0 / (self.window.expected_items().max(1) as f64 * f64::from(self.retention)))
    }

    /// Columns that are not given are as many as the memory allows.
    fn paper_plan(&self) -> Result<Plan, PlanError> {
        let first = Plan::new(self.paper_settings(COLUMNS_FIRST)?)?;
        if self.paper.columns.is_some() || self.paper.zeta.is_some() {
            return Ok(first);
        }
        let memory = self.means.memory.unwrap_or(MEMORY);
        let columns = u64::from(COLUMNS_FIRST) * memory / first.sketch_bytes().max(1);
        match u32::try_from(columns) {
            Ok(columns) if COLUMNS_MIN <= columns => Plan::new(self.paper_settings(columns)?),
            _ => Err(PlanError::TooSmall { bytes: memory }),
        }
    }

    fn paper_settings(&self, columns: u32) -> Result<Settings, ParameterError> {
        Ok(Settings {
            unit: self.unit,
            delta: Some(Delta::new(self.means.delta.unwrap_or(self.delta_default()))?),
            domain: self.domain.clone(),
            method: Some(paper_method(self.paper, columns)?.into()),
            retention: self.retention,
            ..Settings::new(self.window, self.epsilon)?
        })
    }
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

/// The window in the library's words; a tick is a millisecond.
pub(crate) fn window(span: Span, past: Past, clock: Clock) -> Window {
    match span {
        Span::Items(len) => Window::Items(len),
        Span::Time(len) => Window::Time(TimeWindow {
            len: millis(len),
            lateness: millis(past.lateness),
            clock,
            expected_items: past.expected_items.unwrap_or(EXPECTED_ITEMS),
        }),
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn unit(Protects { unit, per_user }: Protects) -> Result<Unit> {
    match (unit, per_user) {
        (UnitName::Users, per_user) => Ok(Unit::Users { per_substream: per_user.unwrap_or(1) }),
        (_, Some(_)) => Err(Fault::usage("--per-user needs --unit users")),
        (UnitName::ReplaceOne, None) => Ok(Unit::ReplaceOne),
        (UnitName::AddRemove, None) => Ok(Unit::AddRemove),
    }
}

/// What to expect of a number of keys when nothing better is known.
pub(crate) fn expectation(domain: &Domain) -> Expectation {
    Expectation::zipf(domain.keys().map_or(100_000, Keys::len).max(1))
}
