//! Workers of a trusted cluster, and what they count.

use std::ops::Range;
use std::sync::Mutex;

use dpsw::error::IngestError;
use dpsw::worker::{PartialCounters, PartialId};
use dpsw::{Batch, DpswSketch, Kind, StreamKey, WindowView};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::column::{Beside, Column};
use crate::fault::Fault;
use crate::plan::Plan;
use crate::reading::{Reading, arrays};
use crate::sketch::{How, times};
use crate::times::any_times;

#[pyclass(frozen, module = "dpsw._dpsw")]
pub(crate) struct Worker {
    worker: dpsw::worker::Worker,
    kind: Kind,
}

#[pymethods]
impl Worker {
    #[new]
    fn new(plan: &Plan, key: [u8; 32]) -> Result<Self, Fault> {
        let kind = plan.plan.settings().domain.kind();
        Ok(Self { worker: dpsw::worker::Worker::new(plan.plan.clone(), StreamKey::from_bytes(key))?, kind })
    }

    /// A worker for the stream of a view.
    #[staticmethod]
    fn of_view(view: &[u8], key: [u8; 32]) -> Result<Self, Fault> {
        let view = WindowView::from_bytes(view)?;
        let kind = view.plan().settings().domain.kind();
        Ok(Self { worker: dpsw::worker::Worker::new(view.plan().clone(), StreamKey::from_bytes(key))?, kind })
    }

    /// Starts to count events that come in several calls: with partial counters for each substream of a range of times, or for
    /// those that have events.
    fn start(&self, id: (u64, u64, u64), range: (u64, u64), follows: bool) -> Result<Counting, Fault> {
        let (source, batch, partition) = id;
        let (id, range) = (PartialId { source, batch, partition }, range.0..range.1);
        let counting = if follows { self.worker.follow(id, range) } else { self.worker.start(id, range) }?;
        Ok(Counting(Mutex::new(Some(counting))))
    }

    /// Adds events. One that is none is a null item, one without a time is too early: nothing that one event brings refuses
    /// others.
    fn add(
        &self,
        py: Python<'_>,
        counting: &Counting,
        items: &Bound<'_, PyAny>,
        times: &Bound<'_, PyAny>,
    ) -> Result<(), Fault> {
        let items = Reading { kind: Some(self.kind), skips: true, ..Reading::default() }.columns(items)?;
        let mut all = Vec::new();
        for array in arrays(times)? {
            all.extend(any_times(&array)?);
        }
        py.detach(|| {
            let mut counting = counting.0.lock().map_err(|_| gone())?;
            let counting = counting.as_mut().ok_or_else(gone)?;
            in_batches(&items, &all, |batches| Ok(self.worker.add(counting, batches)?))
        })
    }

    /// The bytes of partial counters with their substreams, how many events lie before and after the range, and the first
    /// and last time.
    fn finish<'py>(&self, py: Python<'py>, counting: &Counting) -> Result<Sent<'py>, Fault> {
        let counted = counting.0.lock().map_err(|_| gone())?.take().ok_or_else(gone)?;
        let counted = py.detach(|| self.worker.finish(counted));
        let sent = |partial: &PartialCounters| (partial.substream(), PyBytes::new(py, &partial.to_bytes()));
        let partials = counted.partials.iter().map(sent).collect();
        Ok((partials, counted.outside.before, counted.outside.after, counted.times))
    }

    /// Partial counters of each substream that the range of times touches.
    fn count(
        &self,
        py: Python<'_>,
        id: (u64, u64, u64),
        range: (u64, u64),
        items: &Bound<'_, PyAny>,
        times: &Bound<'_, PyAny>,
        how: How<'_>,
    ) -> Result<Vec<Partial>, Fault> {
        let (unit, first, skips) = how;
        let items = Reading { kind: Some(self.kind), first, skips, what: None }.columns(items)?;
        let times = self::times(times, unit, first)?;
        let (source, batch, partition) = id;
        let id = PartialId { source, batch, partition };
        py.detach(|| count(&self.worker, id, range.0..range.1, &items, &times))
    }
}

fn count(
    worker: &dpsw::worker::Worker,
    id: PartialId,
    range: Range<u64>,
    items: &[Column],
    times: &[u64],
) -> Result<Vec<Partial>, Fault> {
    let counted = in_batches(items, times, |batches| Ok(worker.count_all(id, range.clone(), batches)?))?;
    Ok(counted.partials.into_iter().map(Partial::new).collect())
}

/// Hands all rows over as batches.
fn in_batches<T>(
    items: &[Column],
    times: &[u64],
    take: impl FnOnce(&[Batch<'_>]) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let len: usize = items.iter().map(Column::len).sum();
    if len != times.len() {
        return Err(IngestError::TimeCount { times: times.len(), items: len }.into());
    }
    let found: Vec<Vec<&[u8]>> = items.iter().map(Column::slices).collect();
    let (mut batches, mut done) = (Vec::new(), 0);
    for (column, slices) in items.iter().zip(&found) {
        let rows = done..done + column.len();
        done = rows.end;
        column.batches(slices, Beside { times: Some(&times[rows]), users: None }, &mut batches);
    }
    take(&batches)
}

/// Bytes of partial counters, events before and after the range, and the first and last time.
type Sent<'py> = (Vec<(u64, Bound<'py, PyBytes>)>, usize, usize, Option<(u64, u64)>);

/// Exact counts of some substreams, still growing: secret.
#[pyclass(frozen, module = "dpsw._dpsw")]
pub(crate) struct Counting(Mutex<Option<dpsw::worker::Counting>>);

#[pymethods]
impl Counting {
    /// How many arrays of counters there are.
    #[getter]
    fn arrays(&self) -> usize {
        let counting = self.0.lock().ok();
        counting.as_deref().and_then(Option::as_ref).map_or(0, dpsw::worker::Counting::arrays)
    }
}

fn gone() -> Fault {
    Fault::of("PartialError", "these events were handed out as partial counters before")
}

/// Exact counts of one substream: secret.
#[pyclass(frozen, module = "dpsw._dpsw")]
pub(crate) struct Partial {
    substream: u64,
    /// Until they are absorbed.
    counters: Mutex<Option<PartialCounters>>,
}

impl Partial {
    fn new(counters: PartialCounters) -> Self {
        Self { substream: counters.substream(), counters: Mutex::new(Some(counters)) }
    }

    fn take(&self) -> Result<PartialCounters, Fault> {
        let counters = self.counters.lock().ok().and_then(|mut counters| counters.take());
        counters
            .ok_or_else(|| Fault::of("PartialError", "these partial counters were absorbed or merged before"))
    }

    /// How many ids are new, and how many were absorbed before.
    pub(crate) fn give_to(&self, sketch: &mut DpswSketch) -> Result<(usize, usize), Fault> {
        let absorbed = sketch.absorb(self.take()?)?;
        Ok((absorbed.new, absorbed.repeated))
    }
}

#[pymethods]
impl Partial {
    #[getter]
    fn substream(&self) -> u64 {
        self.substream
    }

    fn merge(&self, other: &Self) -> Result<(), Fault> {
        if std::ptr::eq(self, other) {
            return Err(Fault::of("PartialError", "partial counters cannot be merged with themselves"));
        }
        let mut counters = self.take()?;
        let merged = other.take().and_then(|other| Ok(counters.merge(other)?));
        *self.counters.lock().map_err(|_| Fault::of("PartialError", "an earlier call failed"))? =
            Some(counters);
        merged
    }

    /// The counts as secret bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Fault> {
        let counters =
            self.counters.lock().map_err(|_| Fault::of("PartialError", "an earlier call failed"))?;
        let counters = counters.as_ref().ok_or_else(|| {
            Fault::of("PartialError", "these partial counters were absorbed or merged before")
        })?;
        Ok(PyBytes::new(py, &counters.to_bytes()))
    }

    #[staticmethod]
    fn from_bytes(bytes: &[u8], plan: &Plan) -> Result<Self, Fault> {
        Ok(Self::new(PartialCounters::from_bytes(bytes, &plan.plan)?))
    }
}
