//! From options to a plan, and the keys that may be listed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use dpsw::error::{PlanError, Quantity};
use dpsw::plan::{Planned, Prediction, Request};
use dpsw::{Domain, Keys, Kind, Plan, SearchSettings, Strings, Unit, Window};
use dpsw_frontend::paper;
use dpsw_frontend::plan_request::PlanRequest;
use dpsw_frontend::quantity::{grouped, time};
use memchr::memchr_iter;

use crate::args::{MethodName, Paper, Protects, UnitName};
use crate::fault::Fault;
use crate::read::file::read_all;
use crate::read::lines::without_return;

/// The method of a plan, and the file of its keys.
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
pub(crate) fn choose(request: PlanRequest, how: How<'_>) -> Result<Chosen> {
    let window = request.window;
    let paper = paper::Paper::from(how.paper);
    let chosen = match how.method {
        MethodName::Tuned if paper != paper::Paper::default() => {
            return Err(Fault::usage("the parameters of the paper need --method paper"));
        }
        MethodName::Tuned => request.plan().map(|(planned, request)| Chosen::new(planned, request)),
        MethodName::Paper => {
            paper::plan(&request, &paper).map(|plan| Chosen { plan, prediction: None, request: None })
        }
    };
    chosen.map_err(|error| explained(error, window, how.domain_file))
}

/// A plan that was refused, in the words of the command line.
pub(crate) fn explained(error: PlanError, window: Window, file: Option<&Path>) -> anyhow::Error {
    let PlanError::OutOfRange { name, value, high, .. } = error else { return name_lines(error, file) };
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

/// The domain of a stream whose keys are to be listed: a public list, or keys that a private search finds.
pub(crate) fn domain(file: Option<&Path>) -> Result<Domain> {
    match file {
        Some(path) => Ok(Domain::Public(Keys::Bytes(Arc::new(read_keys(path)?)))),
        None => Ok(Domain::Found(SearchSettings::new(Kind::Bytes))),
    }
}

/// The keys that were asked for, each once.
pub(crate) fn asked_keys(items: &[String]) -> Domain {
    let mut keys: Vec<&String> = Vec::new();
    for item in items {
        if !keys.contains(&item) {
            keys.push(item);
        }
    }
    Domain::Public(Keys::text(keys))
}

/// One key per line; empty lines are skipped.
fn read_keys(path: &Path) -> Result<Strings> {
    let bytes = read_all(path).context("the domain cannot be read")?;
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let lines = memchr_iter(b'\n', text).count() + 1;
    let mut keys = Strings::with_capacity(lines, text.len());
    let mut start = 0;
    for end in memchr_iter(b'\n', text).chain([text.len()]) {
        let key = without_return(&text[start.min(end)..end]);
        if !key.is_empty() {
            keys.push(key);
        }
        start = end + 1;
    }
    if keys.is_empty() {
        return Err(Fault::data(format!("the domain {} has no keys; list one per line", path.display())));
    }
    Ok(keys)
}

/// A plan that was refused, with the lines of the domain instead of the library's indices.
fn name_lines(error: PlanError, file: Option<&Path>) -> anyhow::Error {
    let (PlanError::DuplicateKey { .. }, Some(path)) = (&error, file) else { return error.into() };
    let Ok(bytes) = read_all(path) else { return error.into() };
    let mut seen = HashMap::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').map(without_return).enumerate() {
        let first = if line.is_empty() { None } else { seen.insert(line, index + 1) };
        if let Some(first) = first {
            return Fault::data(format!(
                "{}:{}: this key is in line {first} already; list each key once",
                path.display(),
                index + 1
            ));
        }
    }
    error.into()
}
