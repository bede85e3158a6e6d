//! Workers of a trusted cluster, and what they count.

use std::ops::Range;
use std::sync::Mutex;

use dpsw::error::IngestError;
use dpsw::{DpswSketch, Kind, PartialCounters, PartialId, StreamKey};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::column::{Beside, Column};
use crate::fault::Fault;
use crate::plan::Plan;
use crate::reading::Reading;
use crate::sketch::{How, times};

#[pyclass(frozen, module = "dpsw._dpsw")]
pub(crate) struct Worker {
    worker: dpsw::Worker,
    kind: Kind,
}

#[pymethods]
impl Worker {
    #[new]
    fn new(plan: &Plan, key: [u8; 32]) -> Result<Self, Fault> {
        let kind = plan.plan.settings().domain.kind();
        Ok(Self { worker: dpsw::Worker::new(plan.plan.clone(), StreamKey::from_bytes(key))?, kind })
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
    worker: &dpsw::Worker,
    id: PartialId,
    range: Range<u64>,
    items: &[Column],
    times: &[u64],
) -> Result<Vec<Partial>, Fault> {
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
    let counted = worker.count_all(id, range, &batches)?;
    Ok(counted.partials.into_iter().map(Partial::new).collect())
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
