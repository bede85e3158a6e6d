//! What answers. Results are tuples; `dpsw._results` makes objects of them.

use std::ops::Range;

use dpsw::{
    Certainty, Claim, Direction, Estimate, Item, List, ListRequest, Ranked, Threshold, Unit, WindowView,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::fault::Fault;
use crate::plan::{Plan, unit};
use crate::reading::Reading;

/// The rows that are shown, those that may be noise alone, and how many events the caps of users left out.
type Rows = (Vec<Row>, Vec<Row>, Option<u64>);
/// An item of a list: item, estimate, lower, upper, any_order, marked, trend.
type Row = (Py<PyAny>, f64, f64, f64, (f64, f64), bool, Option<&'static str>);
/// Value, lower, upper, any_order, (noise, collisions, misfit), window, covered.
type Count = (f64, f64, f64, (f64, f64), Option<(f64, f64, f64)>, (u64, u64), (u64, u64));

#[pyclass(frozen, module = "dpsw._dpsw")]
pub(crate) struct View {
    pub(crate) view: WindowView,
    /// Whether items come back as bytes; else as text, where they are.
    is_bytes: bool,
}

impl View {
    pub(crate) fn new(view: WindowView, is_bytes: bool) -> Self {
        Self { view, is_bytes }
    }

    fn is_time(&self) -> bool {
        self.view.plan().settings().window.time().is_some()
    }

    /// Items are counted from the first one of the stream.
    fn origin(&self) -> u64 {
        if self.is_time() { 0 } else { self.view.began() }
    }

    fn positions(&self, range: &Range<u64>) -> (u64, u64) {
        let origin = self.origin();
        (range.start.saturating_sub(origin), range.end.saturating_sub(origin))
    }

    fn same(&self, view: WindowView) -> Self {
        Self::new(view, self.is_bytes)
    }

    fn name(&self, py: Python<'_>, item: Item<'_>) -> PyResult<Py<PyAny>> {
        let text = if let Item::Bytes(bytes) = item { std::str::from_utf8(bytes).ok() } else { None };
        Ok(match (item, text) {
            (Item::Integer(value), _) => value.into_pyobject(py)?.into_any().unbind(),
            (_, Some(text)) if !self.is_bytes => PyString::new(py, text).into_any().unbind(),
            (Item::Bytes(bytes), _) => PyBytes::new(py, bytes).into_any().unbind(),
        })
    }

    fn row(&self, py: Python<'_>, ranked: &Ranked<'_>, has_trend: bool) -> PyResult<Row> {
        let (shown, any_order) = (&ranked.shown, &ranked.estimate.any_order);
        let trend = if has_trend { self.direction(ranked.item) } else { None };
        Ok((
            self.name(py, ranked.item)?,
            shown.value,
            shown.lower,
            shown.upper,
            (any_order.start, any_order.end),
            shown.marked,
            trend,
        ))
    }

    fn rows(&self, py: Python<'_>, list: &List<'_>, has_trend: bool) -> PyResult<Rows> {
        let rows = |rows: &[Ranked<'_>]| {
            rows.iter().map(|ranked| self.row(py, ranked, has_trend)).collect::<PyResult<Vec<_>>>()
        };
        let capped = list.all().next().and_then(|ranked| ranked.estimate.capped);
        Ok((rows(&list.rows)?, rows(&list.hidden)?, capped))
    }

    fn count(&self, estimate: &Estimate, confidence: f64) -> Result<Count, Fault> {
        let interval = estimate.interval(confidence)?;
        let parts = estimate.deviations.map(|parts| (parts.noise, parts.collisions, parts.misfit));
        Ok((
            estimate.value,
            interval.start,
            interval.end,
            (estimate.any_order.start, estimate.any_order.end),
            parts,
            self.positions(&estimate.window),
            self.positions(&estimate.covered),
        ))
    }

    fn direction(&self, item: Item<'_>) -> Option<&'static str> {
        let trend = self.view.trend(item).ok()?;
        // Before half a window is sealed there is nothing to compare.
        let is_known = !trend.before.covered.is_empty() && !trend.now.covered.is_empty();
        is_known.then_some(match trend.direction {
            Direction::Rising => "rising",
            Direction::Steady => "steady",
            Direction::Falling => "falling",
        })
    }
}

#[pymethods]
impl View {
    #[staticmethod]
    fn from_bytes(bytes: &[u8], is_bytes: bool) -> Result<Self, Fault> {
        Ok(Self::new(WindowView::from_bytes(bytes)?, is_bytes))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.view.to_bytes())
    }

    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "what is extracted is owned")]
    fn merge(views: Vec<PyRef<'_, Self>>) -> Result<Self, Fault> {
        let is_bytes = views.first().is_some_and(|view| view.is_bytes);
        let views: Vec<WindowView> = views.iter().map(|view| view.view.clone()).collect();
        Ok(Self::new(WindowView::merge(&views)?, is_bytes))
    }

    #[getter]
    fn is_bytes(&self) -> bool {
        self.is_bytes
    }

    fn plan(&self) -> Plan {
        Plan::bare(self.view.plan().clone())
    }

    /// Epsilon and delta, if anything is promised.
    #[getter]
    fn promise(&self) -> Option<(f64, f64)> {
        match self.view.claim() {
            Claim::Pure(epsilon) => Some((epsilon.get(), 0.0)),
            Claim::Approximate(epsilon, delta) => Some((epsilon.get(), delta.get())),
            _ => None,
        }
    }

    #[getter]
    fn unit(&self) -> &'static str {
        unit(self.view.plan().settings().unit)
    }

    #[getter(is_time)]
    fn has_time(&self) -> bool {
        self.is_time()
    }

    #[getter]
    fn window(&self) -> (u64, u64) {
        self.positions(&self.view.window())
    }

    #[getter]
    fn covered(&self) -> (u64, u64) {
        self.positions(&self.view.covered())
    }

    #[getter]
    fn retained(&self) -> (u64, u64) {
        self.positions(&self.view.retained())
    }

    #[getter]
    fn finished(&self) -> Option<u64> {
        self.view.finished().map(|end| end - self.origin())
    }

    #[getter]
    fn substream(&self) -> u64 {
        self.view.plan().substream_len()
    }

    #[getter]
    fn sites(&self) -> Vec<u64> {
        self.view.sites().to_vec()
    }

    /// How many items of the window count; `None` where that is private, nothing or noise.
    #[getter]
    fn total(&self) -> Option<u64> {
        self.view.counted().filter(|_| self.view.plan().settings().unit != Unit::AddRemove)
    }

    /// What shares are shares of, which may be noisy.
    #[getter]
    fn whole(&self) -> Option<u64> {
        self.view.counted()
    }

    /// What was released, as it is: for each substream and range, how many items it holds where that is public, and its counters.
    fn sealed(&self) -> Vec<(u64, usize, Option<u64>, Vec<i32>)> {
        let one = |sealed: dpsw::sealed::Sealed<'_>| {
            let sketch = sealed.sketch();
            (sealed.substream(), sealed.range(), sketch.items(), sketch.cells())
        };
        self.view.sealed().map(one).collect()
    }

    fn keys(&self, py: Python<'_>) -> Result<Vec<Py<PyAny>>, Fault> {
        let keys = self.view.keys()?;
        Ok(keys.iter().map(|item| self.name(py, item)).collect::<PyResult<_>>()?)
    }

    fn last(&self, len: u64) -> Result<Self, Fault> {
        Ok(self.same(self.view.last(len)?))
    }

    fn as_of(&self, position: u64) -> Result<Self, Fault> {
        Ok(self.same(self.view.as_of(position.saturating_add(self.origin()))?))
    }

    fn frequency(&self, item: &Bound<'_, PyAny>, confidence: f64) -> Result<Count, Fault> {
        self.count(&self.view.frequency(Asked::new(item)?.item())?, confidence)
    }

    fn frequencies(
        &self,
        py: Python<'_>,
        items: &Bound<'_, PyList>,
        has_trend: bool,
    ) -> Result<Vec<Row>, Fault> {
        let asked = items.iter().map(|item| Asked::new(&item)).collect::<Result<Vec<_>, _>>()?;
        let asked: Vec<Item<'_>> = asked.iter().map(Asked::item).collect();
        let rows = self.view.frequencies(&asked)?;
        let row = |ranked: &Ranked<'_>| {
            let (item, .., any_order, marked, trend) = self.row(py, ranked, has_trend)?;
            let Estimate { value, error_bound, .. } = ranked.estimate;
            Ok((item, value, value - error_bound, value + error_bound, any_order, marked, trend))
        };
        Ok(rows.iter().map(row).collect::<PyResult<_>>()?)
    }

    fn top(
        &self,
        py: Python<'_>,
        count: usize,
        is_strict: bool,
        has_noise: bool,
        has_trend: bool,
    ) -> Result<Rows, Fault> {
        // Before anything is sealed there is nothing to list.
        if self.view.covered().is_empty() {
            self.view.keys()?;
            return Ok(Default::default());
        }
        let request = ListRequest::top(count).with_noise(has_noise).strict(is_strict);
        let list = py.detach(|| self.view.list(request))?;
        Ok(self.rows(py, &list, has_trend)?)
    }

    #[expect(clippy::too_many_arguments, reason = "Python hands them over one by one")]
    fn heavy_hitters(
        &self,
        py: Python<'_>,
        threshold: f64,
        certainty: &str,
        among: Option<&Bound<'_, PyList>>,
        is_strict: bool,
        has_noise: bool,
        has_trend: bool,
    ) -> Result<Rows, Fault> {
        let threshold = Threshold::new(threshold)?;
        if self.view.covered().is_empty() {
            among.map_or_else(|| self.view.keys().map(drop), |_| Ok(()))?;
            return Ok(Default::default());
        }
        let certainty = match certainty {
            "plain" => Certainty::Plain,
            "sure" => Certainty::Sure,
            "possible" => Certainty::Possible,
            other => {
                return Err(Fault::parameter(format!(
                    "certainty must be \"plain\", \"sure\" or \"possible\", got {other:?}"
                )));
            }
        };
        let request = ListRequest::heavy_hitters(threshold).with_certainty(certainty);
        let request = request.with_noise(has_noise).strict(is_strict);
        match among {
            None => {
                let list = py.detach(|| self.view.list(request))?;
                Ok(self.rows(py, &list, has_trend)?)
            }
            Some(items) => {
                let asked = items.iter().map(|item| Asked::new(&item)).collect::<Result<Vec<_>, _>>()?;
                let asked: Vec<Item<'_>> = asked.iter().map(Asked::item).collect();
                let list = self.view.list_among(&asked, request)?;
                Ok(self.rows(py, &list, has_trend)?)
            }
        }
    }

    fn history(&self, item: &Bound<'_, PyAny>, confidence: f64) -> Result<Vec<Count>, Fault> {
        let spells = self.view.history(Asked::new(item)?.item())?;
        spells.iter().map(|estimate| self.count(estimate, confidence)).collect()
    }

    /// Direction, now and before.
    fn trend(&self, item: &Bound<'_, PyAny>) -> Result<(Option<&'static str>, Count, Count), Fault> {
        let asked = Asked::new(item)?;
        let trend = self.view.trend(asked.item())?;
        let count = |estimate: &Estimate| self.count(estimate, dpsw::CONFIDENCE);
        Ok((self.direction(asked.item()), count(&trend.now)?, count(&trend.before)?))
    }
}

/// An item that somebody asks for.
enum Asked {
    Integer(u64),
    Bytes(Vec<u8>),
}

impl Asked {
    fn new(item: &Bound<'_, PyAny>) -> Result<Self, Fault> {
        let list = PyList::new(item.py(), [item])?;
        if item.is_none() {
            return Err(Fault::input("an item is an integer, text or bytes, got None"));
        }
        let column = Reading { what: Some("asked item"), ..Reading::default() }.list(&list)?;
        Ok(match column.keys()?.get(0) {
            Item::Integer(value) => Self::Integer(value),
            Item::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
        })
    }

    fn item(&self) -> Item<'_> {
        match self {
            Self::Integer(value) => Item::Integer(*value),
            Self::Bytes(bytes) => Item::Bytes(bytes),
        }
    }
}
