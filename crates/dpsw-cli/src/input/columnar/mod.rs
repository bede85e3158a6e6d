//! Parquet and Arrow files: up to three columns of them, in batches of rows.

mod arrow;
mod array;
mod caught;
mod parquet;
mod rows;
#[cfg(test)]
mod tests;
mod value;

use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::atomic::AtomicU64;

use anyhow::Result;

use crate::arguments::{Format, TimeUnit};
use crate::fault::Fault;
use crate::input::columns::{self, Described};
use crate::input::content::Content;
use crate::input::delimited::{Column, no_column};
use crate::input::file;
use crate::input::start::Start;
use rows::Chosen;
pub(crate) use rows::Rows;

const ROWS_AT_ONCE: usize = 8192;
/// How a column is named.
pub(crate) const HOW: &str = "by its name or number";

/// Which columns were asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub(crate) item: Option<String>,
    pub(crate) time: Option<String>,
    /// Whether the times of the events are wanted.
    pub(crate) times: bool,
    /// Of times that are numbers without one; by default their size tells it.
    pub(crate) time_unit: Option<TimeUnit>,
    pub(crate) user: Option<String>,
}

impl Selection {
    /// Where they are among these columns.
    fn find(&self, columns: &[Described]) -> Result<Chosen<usize>> {
        let names: &[String] = &columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
        let index = |text: &String| match Column::new(text)? {
            Column::Index(index) if index < names.len() => Ok(index),
            Column::Index(_) => Err(no_column(text, names)),
            Column::Name(name) => {
                names.iter().position(|known| *known == name).ok_or_else(|| no_column(text, names))
            }
        };
        let item = match &self.item {
            Some(item) => index(item)?,
            None if names.len() == 1 => 0,
            None => return Err(columns::ask_item(HOW, columns)),
        };
        if self.times && self.time.is_none() {
            return Err(columns::ask_time(HOW, columns));
        }
        let [time, user] = [&self.time, &self.user].map(|column| column.as_ref().map(index).transpose());
        Ok(Chosen { item, time: time?, time_unit: self.time_unit, user: user? })
    }
}

/// Reads a source; `rows` says whether anyone still listens.
pub(crate) fn read(
    path: &Path,
    start: &Start,
    source: impl Read,
    selection: &Selection,
    progress: &AtomicU64,
    rows: impl FnMut(Rows) -> bool,
) -> Result<()> {
    match (start.format, start.content) {
        (Format::Arrow, Content::ArrowFile) => {
            check_is_file(path, start, "an Arrow file")?;
            arrow::read_file(BufReader::new(file::open(path)?), selection, rows)
        }
        (Format::Arrow, _) => arrow::read_stream(BufReader::new(source), selection, rows),
        _ => {
            check_is_file(path, start, "Parquet")?;
            parquet::read(file::open(path)?, selection, progress, rows)
        }
    }
}

/// Refuses what cannot be read from its end.
fn check_is_file(path: &Path, start: &Start, what: &str) -> Result<()> {
    if let Some(packing) = start.packing.name() {
        return Err(Fault::data(format!("{what} cannot be read inside {packing}; unpack it first")));
    }
    if file::is_pipe(path) {
        return Err(Fault::usage(format!(
            "{what} is read from its end and cannot come from a pipe; name the file"
        )));
    }
    Ok(())
}

fn damaged(error: impl std::fmt::Display) -> anyhow::Error {
    Fault::data(format!("it is damaged or not of this format: {error}"))
}

/// A column whose values are no items.
fn unsuited(name: &str) -> anyhow::Error {
    Fault::data(format!("column {name:?} does not hold plain values: texts, bytes, numbers or times"))
}
