//! Plans: from keywords to the library's, and back as a dictionary.

use std::time::Duration;

use dpsw::noise::Law;
use dpsw::plan::{Expectation, Group, Method, Prediction, Prior, Target};
use dpsw::plan::{PlannedRange, SearchPlan};
use dpsw::{Clock, Domain, Keys, Kind, Ratio, SearchSettings, Unit, Window};
use dpsw_frontend::paper::{self, Paper};
use dpsw_frontend::plan_request::{self, Asked, PlanRequest};
use dpsw_frontend::quantity::{self, Span};
use dpsw_frontend::times::Seen;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::column::Column;
use crate::fault::Fault;
use crate::reading::Reading;
use crate::sketch::times;

#[pyclass(frozen, module = "dpsw._dpsw")]
pub(crate) struct Plan {
    pub(crate) plan: dpsw::Plan,
    /// Where it comes from the planner.
    prediction: Option<Prediction>,
}

impl Plan {
    /// The plan of a stream or view, with the errors that a typical stream would have.
    pub(crate) fn bare(plan: dpsw::Plan) -> Self {
        let prediction = plan.predict(&plan_request::expectation(&plan.settings().domain)).ok().flatten();
        Self { plan, prediction }
    }
}

/// What a caller says of a plan; `dpsw._plan` has the defaults and the words.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Said<'py> {
    window: Bound<'py, PyAny>,
    epsilon: Option<f64>,
    delta: Option<f64>,
    keys: Bound<'py, PyAny>,
    kind: String,
    unit: String,
    per_user: u32,
    clock: String,
    lateness: u64,
    expected_items: Option<u64>,
    expect: Option<Vec<f64>>,
    retention: u32,
    memory: Option<u64>,
    target_error: Option<f64>,
    target_share: Option<f64>,
    paper: Option<Bound<'py, PyDict>>,
    step: u64,
    is_last: bool,
    for_workers: bool,
}

impl Said<'_> {
    fn request(&self) -> Result<PlanRequest, Fault> {
        let domain = self.domain()?;
        let expectation = match &self.expect {
            Some(counts) => Expectation {
                prior: Prior::Shares(counts.clone()),
                drift: plan_request::expectation(&domain).drift,
            },
            None => plan_request::expectation(&domain),
        };
        Ok(PlanRequest {
            delta: self.delta,
            retention: self.retention,
            memory: self.memory,
            expectation,
            step: self.step,
            asked: if self.is_last { Asked::Last } else { Asked::Any },
            ..PlanRequest::new(self.window()?, self.unit()?, self.epsilon.unwrap_or(1.0), domain)
        })
    }

    fn window(&self) -> Result<Window, Fault> {
        let clock = match self.clock.as_str() {
            "events" => Clock::Events,
            "caller" => Clock::Caller,
            other => {
                return Err(Fault::parameter(format!(
                    "clock must be \"events\" or \"caller\", got {other:?}"
                )));
            }
        };
        let lateness = Duration::from_millis(self.lateness);
        Ok(plan_request::window(span(&self.window)?, lateness, clock, self.expected_items))
    }

    fn unit(&self) -> Result<Unit, Fault> {
        match self.unit.as_str() {
            "replace-one" => Ok(Unit::ReplaceOne),
            "add-remove" => Ok(Unit::AddRemove),
            "users" => Ok(Unit::Users { per_substream: self.per_user }),
            other => Err(Fault::parameter(format!(
                "unit must be \"replace-one\", \"add-remove\" or \"users\", got {other:?}"
            ))),
        }
    }

    fn domain(&self) -> Result<Domain, Fault> {
        let kind = if self.kind == "integers" { Kind::Integers } else { Kind::Bytes };
        if let Ok(word) = self.keys.extract::<&str>() {
            return match word {
                "found" => Ok(Domain::Found(SearchSettings::new(kind))),
                "asked" => Ok(Domain::Asked(kind)),
                other => Err(Fault::parameter(format!(
                    "keys must be a list, \"found\" or \"asked\", got the text {other:?}; a list of one key is [{other:?}]"
                ))),
            };
        }
        if let Ok(end) = self.keys.extract::<u64>() {
            return Ok(Domain::Public(Keys::Range(end)));
        }
        let columns = Reading { what: Some("key"), ..Reading::default() }.columns(&self.keys)?;
        let [column] = &columns[..] else {
            return Err(Fault::parameter("a list of keys has one piece; combine its chunks first"));
        };
        Ok(Domain::Public(column.keys()?))
    }

    fn target(&self) -> Result<Option<Target>, Fault> {
        if let Some(bad) = [self.target_error, self.target_share]
            .into_iter()
            .flatten()
            .find(|target| *target <= 0.0 || target.is_nan())
        {
            return Err(Fault::parameter(format!("a target is a number above 0, got {bad}")));
        }
        Ok(match (self.target_error, self.target_share) {
            (Some(_), Some(_)) => {
                return Err(Fault::parameter("give target_error= or target_share=, not both"));
            }
            (Some(error), None) => Some(Target::Absolute(Group::Frequent, error)),
            (None, Some(share)) => Some(Target::Relative(Group::Frequent, share)),
            (None, None) => None,
        })
    }

    fn plan(&self) -> Result<Plan, Fault> {
        let request = self.request()?;
        if let Some(paper) = &self.paper {
            return Ok(Plan { plan: paper::plan(&request, &described(paper)?)?, prediction: None });
        }
        let planned = match (self.epsilon, self.target()?) {
            (Some(_), None) if self.for_workers => request.plan_for_workers()?,
            (Some(_), None) => request.plan()?.0,
            (Some(_), Some(target)) => request.for_planner()?.smallest_bytes(target)?,
            (None, Some(target)) => {
                dpsw_frontend::memory::with_most(request.for_planner()?).smallest_epsilon(target)?
            }
            (None, None) => {
                return Err(Fault::parameter(
                    "epsilon is needed, or a target_error or target_share to reach",
                ));
            }
        };
        Ok(Plan { plan: planned.plan, prediction: Some(planned.prediction) })
    }
}

fn described(paper: &Bound<'_, PyDict>) -> PyResult<Paper> {
    let of = |name: &str| paper.get_item(name).map(|value| value.filter(|value| !value.is_none()));
    let float = |name: &str| of(name)?.map(|value| value.extract::<f64>()).transpose();
    let whole = |name: &str| of(name)?.map(|value| value.extract::<u64>()).transpose();
    let small = |name: &str| of(name)?.map(|value| value.extract::<u32>()).transpose();
    Ok(Paper {
        substreams: whole("substreams")?,
        beta: float("beta")?,
        alpha: float("alpha")?,
        grid: whole("grid")?,
        rows: small("rows")?,
        columns: small("columns")?,
        zeta: float("zeta")?,
        eta: float("eta")?,
        shares: of("shares")?.map(|shares| shares.extract()).transpose()?.unwrap_or_default(),
    })
}

/// A number of items, a text such as "15m", or milliseconds in a tuple.
fn span(window: &Bound<'_, PyAny>) -> Result<Span, Fault> {
    if let Ok(text) = window.extract::<&str>() {
        return quantity::span(text).map_err(Fault::parameter);
    }
    if let Ok((millis,)) = window.extract::<(u64,)>() {
        return Ok(Span::Time(Duration::from_millis(millis)));
    }
    Ok(Span::Items(window.extract()?))
}

/// How many items there are, and whether they are integers; `None` where none is there.
#[pyfunction]
pub(crate) fn look(items: &Bound<'_, PyAny>) -> Result<(usize, Option<bool>), Fault> {
    let columns = Reading { skips: true, ..Reading::default() }.columns(items)?;
    let kind = columns.iter().find_map(Column::kind);
    Ok((columns.iter().map(Column::len).sum(), kind.map(|kind| kind == Kind::Integers)))
}

/// How many items to expect in a window of so many milliseconds, and in which steps times go.
#[pyfunction]
pub(crate) fn survey(
    times: &Bound<'_, PyAny>,
    unit: Option<&str>,
    window: u64,
) -> Result<Option<(u64, u64)>, Fault> {
    let times = self::times(times, unit, 0)?;
    let mut seen = Seen::default();
    seen.look_all(&times);
    Ok(seen.times(times.len() as u128, window).map(|times| (times.expected_items, times.step)))
}

/// Milliseconds of a text such as "15m".
#[pyfunction]
pub(crate) fn millis(text: &str) -> Result<u64, Fault> {
    quantity::duration(text).map(quantity::millis).map_err(Fault::parameter)
}

/// Items, or milliseconds if the flag is set, of a text such as "100k" or "15m".
#[pyfunction]
pub(crate) fn length(text: &str) -> Result<(u64, bool), Fault> {
    Ok(match quantity::span(text).map_err(Fault::parameter)? {
        Span::Items(items) => (items, false),
        Span::Time(time) => (quantity::millis(time), true),
    })
}

/// Bytes of a text such as "400KB".
#[pyfunction]
pub(crate) fn size(text: &str) -> Result<u64, Fault> {
    quantity::bytes(text).map_err(Fault::parameter)
}

#[pyfunction]
pub(crate) fn plan(said: &Bound<'_, PyDict>) -> Result<Plan, Fault> {
    said.extract::<Said<'_>>()?.plan()
}

#[pymethods]
impl Plan {
    /// What the plan does, takes and promises, line by line.
    fn text(&self) -> String {
        self.plan.in_words(quantity::time)
    }

    /// Everything that the dataclass holds.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (plan, settings) = (&self.plan, self.plan.settings());
        let (epsilon, delta) = plan.ledger().spent();
        let found = plan.search_plan().map(|found| {
            let items = settings.window.expected_items();
            found.share_listed(items, 0.9)
        });
        let said = PyDict::new(py);
        said.set_item("method", plan.method().name())?;
        said.set_item("unit", unit(settings.unit))?;
        said.set_item("epsilon", epsilon)?;
        said.set_item("delta", delta)?;
        said.set_item("is_time", settings.window.time().is_some())?;
        said.set_item("window", settings.window.len())?;
        said.set_item("expected_items", settings.window.expected_items())?;
        said.set_item("retention", settings.retention)?;
        said.set_item("substream", plan.substream_len())?;
        said.set_item("substreams_kept", plan.substreams_kept())?;
        said.set_item("rows", plan.shape().rows)?;
        said.set_item("columns", plan.shape().columns)?;
        said.set_item("is_identity", plan.is_identity())?;
        said.set_item("keys", settings.domain.keys().map(Keys::len))?;
        said.set_item("is_integers", settings.domain.kind() == Kind::Integers)?;
        said.set_item("bytes", plan.sketch_bytes())?;
        said.set_item("resident_bytes", plan.resident_bytes())?;
        said.set_item("contract", plan.contract())?;
        said.set_item("found_share", found)?;
        said.set_item("per_user", per_user(settings.unit))?;
        said.set_item("noise", self.noise(py)?)?;
        said.set_item("search", plan.search_plan().map(|found| search(py, found)).transpose()?)?;
        let errors = self.prediction.as_ref();
        said.set_item("frequent_error", errors.map(Prediction::frequent))?;
        said.set_item("rare_error", errors.map(Prediction::rare))?;
        said.set_item("detectable_share", errors.map(Prediction::detectable_share))?;
        Ok(said)
    }
}

impl Plan {
    /// Of each range of a substream.
    fn noise<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let pinned = if let Method::Tuned(method) = self.plan.method() { method.pinned } else { 0 };
        let noise = |(index, range): (usize, &PlannedRange)| {
            // Beside hashed counters, a pinned key has one of its own.
            let rows = if 0 < pinned && 0 < index { 1 } else { self.plan.shape().rows };
            let said = PyDict::new(py);
            said.set_item("law", range.law().name())?;
            said.set_item("variance", range.law().variance())?;
            let scale = if let Law::Laplace { scale } = range.law() { Some(ratio(scale)) } else { None };
            said.set_item("scale", scale)?;
            said.set_item("start", range.offsets().start)?;
            said.set_item("end", range.offsets().end)?;
            said.set_item("rows", rows)?;
            Ok(said)
        };
        self.plan.ranges().iter().enumerate().map(noise).collect()
    }
}

fn search<'py>(py: Python<'py>, found: &SearchPlan) -> PyResult<Bound<'py, PyDict>> {
    let said = PyDict::new(py);
    said.set_item("share", ratio(found.share()))?;
    said.set_item("delta", found.delta())?;
    said.set_item("substreams", found.search_len())?;
    said.set_item("checks", found.checks())?;
    said.set_item("threshold", found.threshold())?;
    said.set_item("lasting_scale", ratio(found.lasting_scale()))?;
    said.set_item("fresh_scale", ratio(found.fresh_scale()))?;
    Ok(said)
}

fn ratio(ratio: Ratio) -> (u64, u64) {
    (ratio.numerator(), ratio.denominator())
}

fn per_user(unit: Unit) -> Option<u32> {
    if let Unit::Users { per_substream } = unit { Some(per_substream) } else { None }
}

/// The name of what is protected.
pub(crate) fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::AddRemove => "add-remove",
        Unit::Users { .. } => "users",
        _ => "replace-one",
    }
}
