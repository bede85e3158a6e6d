//! The sealer of a cluster whose workers count.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use dpsw::DpswSketch;
use dpsw::error::IngestError;
use dpsw_durable::disk::{Folders, Memory};
use dpsw_durable::{Beginning, SealerError, SealerKeys, Step, Taken};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::fault::Fault;
use crate::plan::Plan;
use crate::sketch::noise;
use crate::view::View;

#[pyclass(frozen, module = "dpsw._dpsw")]
pub(crate) struct Sealer {
    /// Until it is closed.
    sealer: Mutex<Option<dpsw_durable::Sealer>>,
    owner: u32,
    is_bytes: bool,
    /// What whoever runs it should know.
    #[pyo3(get)]
    warning: Option<String>,
}

impl Sealer {
    fn lock(&self) -> Result<MutexGuard<'_, Option<dpsw_durable::Sealer>>, Fault> {
        if std::process::id() != self.owner {
            return Err(IngestError::Forked { owner: self.owner }.into());
        }
        let broken = |_| Fault::of("StateError", "an earlier call failed; open the state again");
        self.sealer.lock().map_err(broken)
    }

    fn run<T>(
        &self,
        act: impl FnOnce(&mut dpsw_durable::Sealer) -> Result<T, SealerError>,
    ) -> Result<T, Fault> {
        match &mut *self.lock()? {
            Some(sealer) => Ok(act(sealer)?),
            None => Err(Fault::of("StateError", "the stream was stopped here; private_top goes on with it")),
        }
    }
}

fn told(taken: Taken) -> &'static str {
    match taken {
        Taken::Before => "before",
        Taken::Counted => "counted",
        Taken::Sealed => "sealed",
    }
}

#[pymethods]
impl Sealer {
    /// Goes on with the stream in the folders of state and marker, or begins it with the plan that is made then. Without folders
    /// it is kept in memory.
    #[new]
    #[pyo3(signature = (places, said, plan, is_bytes, seed = None))]
    fn open(
        py: Python<'_>,
        places: Option<(PathBuf, PathBuf, PathBuf)>,
        said: BTreeMap<String, String>,
        plan: &Bound<'_, PyAny>,
        is_bytes: bool,
        seed: Option<u64>,
    ) -> Result<Self, Fault> {
        let mut raised = None;
        let plan = plan.clone().unbind();
        let mut make = || {
            let made = Python::attach(|py| {
                let made = plan.call0(py)?;
                PyResult::Ok(made.extract::<PyRef<'_, Plan>>(py).map_err(PyErr::from)?.plan.clone())
            });
            made.map_err(|error| {
                raised = Some(error);
                "there is no plan".into()
            })
        };
        let noise = noise(seed)?;
        let opened = py.detach(|| {
            let beginning = Beginning { said, plan: &mut make, noise };
            match places {
                None => {
                    let keys = SealerKeys::draw().map_err(SealerError::from)?;
                    dpsw_durable::Sealer::open(Memory::default(), keys, beginning)
                }
                Some((state, marker, key)) => {
                    let folders = Folders::open(&state, &marker)?;
                    let keys = SealerKeys::open(&key, folders.has_database()?)?;
                    dpsw_durable::Sealer::open(folders, keys, beginning)
                }
            }
        });
        if let Some(error) = raised {
            return Err(error.into());
        }
        let (sealer, warning) = opened?;
        Ok(Self { sealer: Mutex::new(Some(sealer)), owner: std::process::id(), is_bytes, warning })
    }

    fn plan(&self) -> Result<Plan, Fault> {
        self.run(|sealer| Ok(Plan::bare(sealer.plan().clone())))
    }

    /// What a worker needs: a view without any counter, which says the plan, and the stream key.
    fn task<'py>(&self, py: Python<'py>) -> Result<(Bound<'py, PyBytes>, Bound<'py, PyBytes>), Fault> {
        self.run(|sealer| {
            let keys = sealer.keys();
            let noise = dpsw::Noise::from_system();
            let empty = DpswSketch::with_key(sealer.plan().clone(), keys.stream(), noise).view().to_bytes();
            Ok((PyBytes::new(py, &empty), PyBytes::new(py, &*keys.stream_bytes())))
        })
    }

    fn view(&self) -> Result<View, Fault> {
        self.run(|sealer| Ok(View::new(sealer.view(), self.is_bytes)))
    }

    fn last_step(&self) -> Result<Option<u64>, Fault> {
        self.run(|sealer| Ok(sealer.last_step()))
    }

    fn sealed_until(&self) -> Result<u64, Fault> {
        self.run(|sealer| sealer.sealed_until())
    }

    fn left_out(&self) -> Result<Option<(u64, u64)>, Fault> {
        self.run(|sealer| Ok(sealer.left_out()))
    }

    fn is_finished(&self) -> Result<bool, Fault> {
        self.run(|sealer| Ok(sealer.is_finished()))
    }

    /// Whether steps of this engine go with the state.
    fn check_engine(&self, engine: &str) -> Result<(), Fault> {
        self.run(|sealer| sealer.check_engine(engine))
    }

    /// Takes a step of an engine, once. `clock` is where the stream begins, and up to where it may be sealed.
    fn take(
        &self,
        py: Python<'_>,
        engine: &str,
        number: u64,
        partials: Vec<(u64, Vec<u8>)>,
        clock: (u64, u64),
        left_out: (u64, u64),
    ) -> Result<&'static str, Fault> {
        let (start, watermark) = clock;
        let (late, early) = left_out;
        let step = Step { partials, start, watermark, late, early };
        py.detach(|| self.run(|sealer| sealer.take(engine, number, &step).map(told)))
    }

    /// Seals what the driver's clock has passed, as of the instants of a grid.
    fn follow(&self, py: Python<'_>, watermark: u64, grid: u64) -> Result<&'static str, Fault> {
        py.detach(|| self.run(|sealer| sealer.follow(watermark, grid).map(told)))
    }

    fn finish(&self, py: Python<'_>, watermark: u64) -> Result<(), Fault> {
        py.detach(|| self.run(|sealer| sealer.finish(watermark)))
    }

    /// Lets go of the state, so that another process can go on with it.
    fn close(&self, py: Python<'_>) -> Result<(), Fault> {
        py.detach(|| self.lock().map(|mut sealer| drop(sealer.take())))
    }
}
