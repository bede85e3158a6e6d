//! The plan of the paper's method, and what is taken where nobody says.

use dpsw::error::{ParameterError, PlanError};
use dpsw::plan::{CounterLayout, Grid, PaperMethod, Shares, SubstreamLen};
use dpsw::{Delta, Plan, Ratio, Settings};

use crate::memory::MEMORY;
use crate::plan_request::PlanRequest;

const ROWS: u32 = 4;
/// Columns of the plan whose bytes are measured; bytes grow in proportion to columns.
const COLUMNS_FIRST: u32 = 1024;
/// Narrower sketches are not worth having.
const COLUMNS_MIN: u32 = 16;

/// Numbers of the paper's method. Where some exclude each other, it is for a front end to refuse them together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Paper {
    /// Substreams per window.
    pub substreams: Option<u64>,
    /// Substreams of w^beta items, if their number is not given.
    pub beta: Option<f64>,
    /// The smooth factor of checkpoints, between 0 and 1.
    pub alpha: Option<f64>,
    /// Steps of a substream at which checkpoints are considered; 0 for every item.
    pub grid: Option<u64>,
    /// Rows of a sketch.
    pub rows: Option<u32>,
    /// Columns of a sketch; by default as many as the memory of the request allows.
    pub columns: Option<u32>,
    /// The relative error of a sketch. Together with eta, it takes the place of rows and columns; alone, it does nothing.
    pub zeta: Option<f64>,
    /// The failure probability of a sketch; alone, it does nothing.
    pub eta: Option<f64>,
    /// Budget shares: of the whole sketch, then of each further checkpoint; none for those that are printed in the paper.
    pub shares: Vec<f64>,
}

/// The plan of the paper's method.
///
/// # Errors
/// A number is out of range, or no sketch that is worth having fits into the memory.
pub fn plan(request: &PlanRequest, paper: &Paper) -> Result<Plan, PlanError> {
    let first = Plan::new(settings(request, paper, COLUMNS_FIRST)?)?;
    if paper.columns.is_some() || paper.accuracy().is_some() {
        return Ok(first);
    }
    let memory = request.memory.unwrap_or(MEMORY);
    let columns = u128::from(COLUMNS_FIRST) * u128::from(memory) / u128::from(first.sketch_bytes().max(1));
    // More columns than there can be are refused with how many there can.
    match u32::try_from(columns).unwrap_or(u32::MAX) {
        columns @ COLUMNS_MIN.. => Plan::new(settings(request, paper, columns)?),
        _ => Err(PlanError::TooSmall { bytes: memory }),
    }
}

fn settings(request: &PlanRequest, paper: &Paper, columns: u32) -> Result<Settings, ParameterError> {
    Ok(Settings {
        unit: request.unit,
        delta: Some(Delta::new(request.delta.unwrap_or(request.delta_default()))?),
        domain: request.domain.clone(),
        method: Some(paper.method(columns)?.into()),
        retention: request.retention,
        ..Settings::new(request.window, request.epsilon)?
    })
}

impl Paper {
    /// Sketches have so many columns if nothing else is said of them.
    fn method(&self, columns: u32) -> Result<PaperMethod, ParameterError> {
        let default = PaperMethod::default();
        let shares = self.shares()?;
        Ok(PaperMethod {
            substream: self.substream().unwrap_or(default.substream),
            alpha: self.alpha.map(Ratio::from_decimal).transpose()?.unwrap_or(default.alpha),
            grid: self
                .grid
                .map_or(default.grid, |units| if units == 0 { Grid::Items } else { Grid::Units(units) }),
            counters: self.accuracy().unwrap_or(CounterLayout::Hashed {
                rows: self.rows.unwrap_or(ROWS),
                columns: self.columns.unwrap_or(columns),
            }),
            shares,
        })
    }

    fn substream(&self) -> Option<SubstreamLen> {
        self.substreams.map(SubstreamLen::PerWindow).or(self.beta.map(SubstreamLen::Exponent))
    }

    fn accuracy(&self) -> Option<CounterLayout> {
        let (relative_error, failure_probability) = self.zeta.zip(self.eta)?;
        Some(CounterLayout::Accuracy { relative_error, failure_probability })
    }

    fn shares(&self) -> Result<Shares, ParameterError> {
        if self.shares.is_empty() {
            return Ok(Shares::Printed);
        }
        let shares = self.shares.iter().map(|&share| Ratio::from_decimal(share));
        Ok(Shares::Explicit(shares.collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use dpsw::plan::Method;
    use dpsw::{Domain, Keys, Unit, Window};

    use super::*;
    use crate::plan_request::DELTA;

    fn request() -> PlanRequest {
        PlanRequest::new(Window::Items(1_000_000), Unit::ReplaceOne, 1.0, Domain::Public(Keys::Range(1_000)))
    }

    fn method(request: &PlanRequest, paper: &Paper) -> PaperMethod {
        match plan(request, paper).expect("a plan").method() {
            Method::Paper(method) => method.clone(),
            other => panic!("not the paper's method: {other:?}"),
        }
    }

    #[test]
    fn columns_fill_the_memory_unless_they_are_given() {
        for memory in [None, Some(1_000_000)] {
            let plan = plan(&PlanRequest { memory, ..request() }, &Paper::default()).expect("a plan");
            let most = memory.unwrap_or(MEMORY);
            assert!((most * 9 / 10..=most).contains(&plan.sketch_bytes()), "{}", plan.sketch_bytes());
            assert_eq!(plan.settings().delta.map(Delta::get), Some(DELTA));
        }
        let given = Paper { rows: Some(3), columns: Some(500), ..Paper::default() };
        assert_eq!(method(&request(), &given).counters, CounterLayout::Hashed { rows: 3, columns: 500 });
        let accurate = Paper { zeta: Some(0.01), eta: Some(0.05), ..Paper::default() };
        let wanted = CounterLayout::Accuracy { relative_error: 0.01, failure_probability: 0.05 };
        assert_eq!(method(&request(), &accurate).counters, wanted);
    }

    #[test]
    fn more_memory_than_columns_can_take_is_refused_with_the_range() {
        for memory in [u64::MAX, 10_u64.pow(16)] {
            let refused = plan(&PlanRequest { memory: Some(memory), ..request() }, &Paper::default());
            let words = refused.expect_err("too much").to_string();
            assert!(words.contains("must lie between"), "{words}");
        }
    }

    #[test]
    fn numbers_that_are_given_are_taken_and_the_others_are_of_the_library() {
        let default = PaperMethod::default();
        let PaperMethod { substream, alpha, grid, shares, .. } = method(&request(), &Paper::default());
        assert_eq!((substream, alpha, grid), (default.substream, default.alpha, default.grid));
        assert_eq!(shares, Shares::Printed);
        let given = Paper {
            substreams: Some(5),
            alpha: Some(0.6),
            grid: Some(20),
            shares: vec![0.5, 0.05, 0.04, 0.03, 0.02],
            ..Paper::default()
        };
        let PaperMethod { substream, alpha, grid, shares, .. } = method(&request(), &given);
        let ratio = |value| Ratio::from_decimal(value).expect("in range");
        assert_eq!((substream, alpha), (SubstreamLen::PerWindow(5), ratio(0.6)));
        let wanted = [0.5, 0.05, 0.04, 0.03, 0.02].map(ratio);
        assert_eq!((grid, shares), (Grid::Units(20), Shares::Explicit(wanted.into())));
        let given = Paper { beta: Some(0.8), ..Paper::default() };
        assert_eq!(method(&request(), &given).substream, SubstreamLen::Exponent(0.8));
        let every = PlanRequest { window: Window::Items(1_000), ..request() };
        assert_eq!(method(&every, &Paper { grid: Some(0), ..Paper::default() }).grid, Grid::Items);
    }

    #[test]
    fn what_does_not_fit_or_is_out_of_range_is_refused() {
        let small = PlanRequest { memory: Some(1_000), ..request() };
        assert_eq!(plan(&small, &Paper::default()).err(), Some(PlanError::TooSmall { bytes: 1_000 }));
        let wrong = PlanRequest { epsilon: -1.0, ..request() };
        let refused = Some(PlanError::Parameter(ParameterError::Epsilon(-1.0)));
        assert_eq!(plan(&wrong, &Paper::default()).err(), refused);
    }
}
