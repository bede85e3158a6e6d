//! Which keys may be listed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use dpsw::error::PlanError;
use dpsw::{Discovery, Domain, Keys, Kind, Strings};
use memchr::memchr_iter;

use crate::fault::Fault;
use crate::input::file::read_all;
use crate::input::lines::without_return;

/// The domain of a stream whose keys are to be listed: a public list, or keys that a private search finds.
pub(crate) fn choose(file: Option<&Path>) -> Result<Domain> {
    match file {
        Some(path) => Ok(Domain::Public(Keys::Bytes(Arc::new(read(path)?)))),
        None => Ok(Domain::Discovered(Discovery::new(Kind::Bytes))),
    }
}

/// The keys that were asked for, each once.
pub(crate) fn asked(items: &[String]) -> Domain {
    let mut keys: Vec<&String> = Vec::new();
    for item in items {
        if !keys.contains(&item) {
            keys.push(item);
        }
    }
    Domain::Public(Keys::text(keys))
}

/// One key per line; empty lines are skipped.
fn read(path: &Path) -> Result<Strings> {
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
pub(crate) fn explain(error: PlanError, file: Option<&Path>) -> anyhow::Error {
    let (PlanError::DuplicateKey { .. }, Some(path)) = (&error, file) else { return error.into() };
    let Ok(bytes) = read_all(path) else { return error.into() };
    let mut seen = HashMap::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').map(without_return).enumerate() {
        let first = if line.is_empty() { None } else { seen.insert(line, index + 1) };
        if let Some(first) = first {
            let (path, second) = (path.display(), index + 1);
            return Fault::data(format!(
                "{path}:{second}: this key is in line {first} already; list each key once"
            ));
        }
    }
    error.into()
}
