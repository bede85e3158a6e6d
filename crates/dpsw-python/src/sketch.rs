//! What counts.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::DataType;
use dpsw::error::{IngestError, StoreError};
use dpsw::store::FileStore;
use dpsw::{DpswSketch, FinishError, FreshnessStore, Kind, Noise, StateId, StateKey, StreamKey, Taken, Unit};
use dpsw_frontend::ledger::Spending;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use pyo3_arrow::input::AnyArray;

use crate::column::{Beside, Column};
use crate::fault::Fault;
use crate::plan::Plan;
use crate::reading::{Reading, arrays};
use crate::spending;
use crate::times;
use crate::view::View;
use crate::worker::Partial;

/// Counted, capped, late and early events; how many there were is not said where that is private.
type Told = Option<(usize, usize, usize, usize)>;

/// The unit of times that are numbers, the number of the first row, and whether what is no item is skipped.
pub(crate) type How<'a> = (Option<&'a str>, usize, bool);

#[pyclass(frozen, module = "dpsw._dpsw")]
pub(crate) struct Sketch {
    state: Mutex<State>,
    owner: u32,
    kind: Kind,
    is_bytes: bool,
    /// What was charged to a ledger; given back if nothing is ever asked.
    spending: Option<Spending>,
}

enum State {
    Running(Box<DpswSketch>),
    /// Why nothing can be counted any more.
    Over(&'static str),
}

const FINISHED: &str = "the stream was finished: start a new Sketch, which spends again";
const SAVED: &str = "the stream was saved and goes on only where it is restored";
const BROKEN: &str =
    "an earlier call failed in the middle of counting: start a new Sketch, which spends again";

impl Sketch {
    fn new(sketch: DpswSketch, is_bytes: bool) -> Self {
        let kind = sketch.plan().settings().domain.kind();
        let state = Mutex::new(State::Running(Box::new(sketch)));
        Self { state, kind, owner: std::process::id(), is_bytes, spending: None }
    }

    fn reading(&self, first: usize, skips: bool) -> Reading {
        Reading { kind: Some(self.kind), first, skips, what: None }
    }

    /// Something is about to be seen or saved.
    fn answer(&self) {
        if let Some(spending) = &self.spending {
            spending.answer();
        }
    }

    /// The state, unless it belongs to another process or thread.
    fn lock(&self) -> Result<MutexGuard<'_, State>, Fault> {
        if std::process::id() != self.owner {
            return Err(IngestError::Forked { owner: self.owner }.into());
        }
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::WouldBlock) => Err(Fault::ingest(
                "another thread is using this sketch: hold a lock around it, or feed it from one thread; nothing was taken",
            )),
            Err(TryLockError::Poisoned(_)) => Err(Fault::ingest(BROKEN)),
        }
    }

    fn run<T>(&self, act: impl FnOnce(&mut DpswSketch) -> Result<T, Fault>) -> Result<T, Fault> {
        match &mut *self.lock()? {
            State::Running(sketch) => act(sketch),
            State::Over(why) => Err(Fault::ingest(*why)),
        }
    }

    /// Takes the sketch away for good.
    fn end(&self, why: &'static str) -> Result<Box<DpswSketch>, Fault> {
        let mut state = self.lock()?;
        match std::mem::replace(&mut *state, State::Over(why)) {
            State::Running(sketch) => Ok(sketch),
            State::Over(before) => {
                *state = State::Over(before);
                Err(Fault::ingest(before))
            }
        }
    }
}

#[pymethods]
impl Sketch {
    /// A sketch of a plan; with a length, of a stream that will have so many items.
    #[new]
    #[pyo3(signature = (plan, is_bytes, length, site, key, account, seed = None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "the constructor of a class with named parameters, in Python"
    )]
    fn start(
        py: Python<'_>,
        plan: &Plan,
        is_bytes: bool,
        length: Option<u64>,
        site: u64,
        key: Option<[u8; 32]>,
        account: Option<(PathBuf, String, Option<f64>)>,
        seed: Option<u64>,
    ) -> Result<Self, Fault> {
        let (plan, noise) = (plan.plan.clone(), noise(seed)?);
        let spending = account.map(|account| py.detach(|| spending::charge(account, &plan))).transpose()?;
        let sketch = match (length, key) {
            (Some(items), None) => DpswSketch::ending_after(plan, items)?,
            (None, None) => DpswSketch::new(plan)?,
            (None, Some(key)) => DpswSketch::with_key(plan, StreamKey::from_bytes(key), noise),
            (Some(_), Some(_)) => return Err(Fault::parameter("give length= or stream_key=, not both")),
        };
        Ok(Self { spending, ..Self::new(sketch.at_site(site), is_bytes) })
    }

    /// What the ledger says of this stream, for people.
    #[getter]
    fn balance(&self) -> Vec<String> {
        self.spending.as_ref().map_or_else(Vec::new, spending::balance)
    }

    /// Takes items: a list, or anything that Arrow or the buffer protocol can hand over.
    fn extend(
        &self,
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        times: Option<&Bound<'_, PyAny>>,
        users: Option<&Bound<'_, PyAny>>,
        how: How<'_>,
    ) -> Result<Told, Fault> {
        let (unit, first, skips) = how;
        let items = self.reading(first, skips).columns(items)?;
        let times = times.map(|times| self::times(times, unit, first)).transpose()?;
        let users = users.map(|users| self::users(users, first)).transpose()?;
        py.detach(|| {
            self.run(|sketch| {
                let users = users.map(|users| named(sketch, &users)).transpose()?;
                take(sketch, &items, times.as_deref(), users.as_deref())
            })
        })
    }

    /// The same for rows that are all there, which are counted in the order of their times.
    fn extend_sorted(
        &self,
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        times: &Bound<'_, PyAny>,
        users: Option<&Bound<'_, PyAny>>,
        how: How<'_>,
    ) -> Result<Told, Fault> {
        let (unit, first, skips) = how;
        let items = self.reading(first, skips).column(items)?;
        let times = self::times(times, unit, first)?;
        let users = users.map(|users| self::users(users, first)).transpose()?;
        py.detach(|| {
            self.run(|sketch| {
                let users = users.map(|users| named(sketch, &users)).transpose()?;
                take_sorted(sketch, items, &times, users.as_deref())
            })
        })
    }

    /// Takes the rows of a table, batch by batch.
    fn extend_table(
        &self,
        py: Python<'_>,
        table: AnyArray,
        names: (Option<&str>, Option<&str>, Option<&str>),
        how: How<'_>,
    ) -> Result<Told, Fault> {
        let ((column, time, user), (unit, _, skips)) = (names, how);
        let names = Names { column, time, user, unit };
        let (mut sum, mut rows) = (Taken::default(), 0);
        let mut is_told = true;
        for batch in table.into_reader()? {
            let batch = batch.map_err(|error| Fault::input(error.to_string()))?;
            let reading = self.reading(rows, skips);
            let events = Events::of(&batch, names, reading)?;
            rows += batch.len();
            let told = py.detach(|| self.run(|sketch| events.feed(sketch)))?;
            is_told &= told.is_some();
            let (counted, capped, late, early) = told.unwrap_or_default();
            sum.counted += counted;
            sum.capped += capped;
            sum.late += late;
            sum.early += early;
        }
        Ok(is_told.then_some((sum.counted, sum.capped, sum.late, sum.early)))
    }

    fn advance(&self, time: u64) -> Result<(), Fault> {
        self.run(|sketch| Ok(sketch.advance(time)?))
    }

    fn absorb(&self, partial: &Partial) -> Result<(usize, usize), Fault> {
        self.run(|sketch| partial.give_to(sketch))
    }

    fn view(&self) -> Result<View, Fault> {
        self.run(|sketch| {
            self.answer();
            Ok(View::new(sketch.view(), self.is_bytes))
        })
    }

    fn finish(&self, py: Python<'_>) -> Result<View, Fault> {
        let sketch = self.end(FINISHED)?;
        self.answer();
        match py.detach(|| sketch.finish()) {
            Ok(view) => Ok(View::new(view, self.is_bytes)),
            Err(FinishError { sketch, source, .. }) => {
                *self.lock()? = State::Running(sketch);
                Err(source.into())
            }
        }
    }

    /// The state as bytes; the sketch is over.
    fn save<'py>(
        &self,
        py: Python<'py>,
        key: [u8; 32],
        store: &Bound<'_, PyAny>,
    ) -> Result<Bound<'py, PyBytes>, Fault> {
        let mut store = Store::new(store)?;
        let sketch = self.end(SAVED)?;
        self.answer();
        let saved = sketch.save(&StateKey::from_bytes(key), &mut store);
        Ok(PyBytes::new(py, &store.result(saved)?.bytes))
    }

    #[staticmethod]
    fn restore(bytes: &[u8], key: [u8; 32], store: &Bound<'_, PyAny>, is_bytes: bool) -> Result<Self, Fault> {
        let mut store = Store::new(store)?;
        let sketch = DpswSketch::restore(bytes, &StateKey::from_bytes(key), Noise::from_system(), &mut store);
        Ok(Self::new(store.result(sketch)?, is_bytes))
    }

    #[staticmethod]
    fn resume(bytes: &[u8], key: [u8; 32], position: u64, is_bytes: bool) -> Result<Self, Fault> {
        let sketch = DpswSketch::resume(bytes, &StateKey::from_bytes(key), Noise::from_system(), position)?;
        Ok(Self::new(sketch, is_bytes))
    }

    fn plan(&self) -> Result<Plan, Fault> {
        self.run(|sketch| Ok(Plan::bare(sketch.plan().clone())))
    }

    #[getter]
    fn is_bytes(&self) -> bool {
        self.is_bytes
    }
}

/// Noise of the system; with a seed, which only the wheel for tests takes, the same noise for the same seed.
pub(crate) fn noise(seed: Option<u64>) -> Result<Noise, Fault> {
    match seed {
        None => Ok(Noise::from_system()),
        #[cfg(feature = "reproducible")]
        Some(seed) => Ok(Noise::seeded(seed)),
        #[cfg(not(feature = "reproducible"))]
        Some(_) => Err(Fault::parameter("noise has no seed")),
    }
}

fn users(users: &Bound<'_, PyAny>, first: usize) -> Result<Vec<Column>, Fault> {
    if users.is_instance_of::<PyList>() || users.is_instance_of::<PyTuple>() {
        return Reading { first, what: Some("user"), ..Reading::default() }.columns(users);
    }
    let said = |fault: Fault| fault.about("users");
    arrays(users)?.iter().map(|users| Column::new(users).map_err(said)).collect()
}

pub(crate) fn times(times: &Bound<'_, PyAny>, unit: Option<&str>, first: usize) -> Result<Vec<u64>, Fault> {
    let mut all = Vec::new();
    for array in arrays(times)? {
        all.extend(times::times(&array, unit, first + all.len())?);
    }
    Ok(all)
}

fn named(sketch: &DpswSketch, users: &[Column]) -> Result<Vec<u64>, Fault> {
    let parts = users.iter().map(|users| users.users(|name| sketch.user(name)));
    Ok(parts.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Checks all that is given, then counts it.
fn take(
    sketch: &mut DpswSketch,
    items: &[Column],
    times: Option<&[u64]>,
    users: Option<&[u64]>,
) -> Result<Told, Fault> {
    let len: usize = items.iter().map(Column::len).sum();
    let wanted = sketch.plan().settings().domain.kind();
    if let Some(got) = items.iter().filter_map(Column::kind).find(|got| *got != wanted) {
        return Err(IngestError::Kind { wanted, got }.into());
    }
    if let Some(times) = times.map(<[u64]>::len).filter(|times| *times != len) {
        return Err(IngestError::TimeCount { times, items: len }.into());
    }
    if let Some(users) = users.map(<[u64]>::len).filter(|users| *users != len) {
        return Err(IngestError::UserCount { users, items: len }.into());
    }
    let (mut sum, mut done) = (Taken::default(), 0);
    for column in items {
        let rows = done..done + column.len();
        done = rows.end;
        let beside =
            Beside { times: times.map(|times| &times[rows.clone()]), users: users.map(|users| &users[rows]) };
        column.feed(beside, &mut |batch| {
            let taken = sketch.extend(batch)?;
            sum.counted += taken.counted;
            sum.capped += taken.capped;
            sum.late += taken.late;
            sum.early += taken.early;
            Ok(())
        })?;
    }
    let is_public = sketch.plan().settings().unit != Unit::AddRemove;
    Ok(is_public.then_some((sum.counted, sum.capped, sum.late, sum.early)))
}

fn take_sorted(
    sketch: &mut DpswSketch,
    items: Column,
    times: &[u64],
    users: Option<&[u64]>,
) -> Result<Told, Fault> {
    let is_whole = items.len() == times.len() && users.is_none_or(|users| users.len() == times.len());
    if !is_whole || times.is_sorted() {
        return take(sketch, &[items], Some(times), users);
    }
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|row| times[*row]);
    let gather = |values: &[u64]| order.iter().map(|row| values[*row]).collect::<Vec<u64>>();
    let users = users.map(gather);
    take(sketch, &[items.ordered(&order)], Some(&gather(times)), users.as_deref())
}

/// Which columns of a table are which.
#[derive(Clone, Copy)]
struct Names<'a> {
    column: Option<&'a str>,
    time: Option<&'a str>,
    user: Option<&'a str>,
    /// Of times that are numbers.
    unit: Option<&'a str>,
}

/// The rows of one batch of a table.
struct Events {
    items: Column,
    times: Option<Vec<u64>>,
    users: Option<Column>,
}

impl Events {
    fn of(batch: &ArrayRef, names: Names<'_>, reading: Reading) -> Result<Self, Fault> {
        let DataType::Struct(fields) = batch.data_type() else {
            return Err(Fault::input(format!("a table is wanted, got an array of {}", batch.data_type())));
        };
        let table = batch.as_struct();
        let items = match (names.column, fields.len()) {
            (Some(name), _) => named_column(table, name)?,
            (None, 1) => table.column(0),
            (None, _) => {
                let all: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
                return Err(Fault::input(format!(
                    "the table has the columns {}: name the one with the items, column=...",
                    all.join(", ")
                )));
            }
        };
        let times = names
            .time
            .map(|name| times::times(named_column(table, name)?, names.unit, reading.first))
            .transpose()?;
        let users = names.user.map(|name| Column::new(named_column(table, name)?)).transpose()?;
        Ok(Self { items: reading.array(items)?, times, users })
    }

    fn feed(self, sketch: &mut DpswSketch) -> Result<Told, Fault> {
        let users = self.users.map(|users| named(sketch, &[users])).transpose()?;
        take(sketch, &[self.items], self.times.as_deref(), users.as_deref())
    }
}

fn named_column<'t>(table: &'t StructArray, name: &str) -> Result<&'t ArrayRef, Fault> {
    table.column_by_name(name).ok_or_else(|| {
        Fault::input(format!(
            "there is no column {name:?}; the table has {}",
            table.column_names().join(", ")
        ))
    })
}

/// Which saved states are fresh: a folder, or an object of the caller.
enum Store<'py> {
    Folder(FileStore),
    Object { store: Bound<'py, PyAny>, raised: Option<PyErr> },
}

impl<'py> Store<'py> {
    fn new(store: &Bound<'py, PyAny>) -> Result<Self, Fault> {
        match store.extract::<PathBuf>() {
            Ok(folder) => Ok(Self::Folder(FileStore::new(folder)?)),
            Err(_) => Ok(Self::Object { store: store.clone(), raised: None }),
        }
    }

    /// A result, or what the caller's object raised.
    fn result<T>(self, result: Result<T, dpsw::error::StateError>) -> Result<T, Fault> {
        match self {
            Self::Object { raised: Some(error), .. } => Err(error.into()),
            _ => Ok(result?),
        }
    }
}

impl FreshnessStore for Store<'_> {
    fn note(&mut self, id: StateId) -> Result<(), StoreError> {
        match self {
            Self::Folder(folder) => folder.note(id),
            Self::Object { store, raised } => {
                noted(raised, store.call_method1("note", (PyBytes::new(store.py(), &id.0),)).map(drop))
            }
        }
    }

    fn consume(&mut self, id: StateId) -> Result<bool, StoreError> {
        match self {
            Self::Folder(folder) => folder.consume(id),
            Self::Object { store, raised } => {
                let told = store.call_method1("consume", (PyBytes::new(store.py(), &id.0),));
                noted(raised, told.and_then(|told| told.extract::<bool>()))
            }
        }
    }
}

/// What the caller's object raised is kept, to be raised again.
fn noted<T>(raised: &mut Option<PyErr>, result: PyResult<T>) -> Result<T, StoreError> {
    result.map_err(|error| {
        let reason = error.to_string();
        *raised = Some(error);
        StoreError::new(reason)
    })
}
