//! Parquet and Arrow files: up to three columns of them, in batches of rows.

mod arrow;
mod array;
mod parquet;
mod rows;
#[cfg(test)]
mod tests;
mod value;

use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::atomic::AtomicU64;

use anyhow::Result;

use crate::args::{Format, TimeUnit};
use crate::fault::Fault;
use crate::read::columns::{self, Described};
use crate::read::content::Content;
use crate::read::delimited::Column;
use crate::read::file;
use crate::read::start::Start;
use rows::Chosen;
pub(crate) use rows::Rows;

/// How a column is named.
pub(crate) const HOW: &str = "by its name or number";

/// The columns that were asked for.
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
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let item = match &self.item {
            Some(item) => Column::new(item)?.find(&names)?,
            None if names.len() == 1 => 0,
            None => return Err(columns::ask_item(HOW, columns)),
        };
        if self.times && self.time.is_none() {
            return Err(columns::ask_time(HOW, columns));
        }
        let find = |column: &String| Column::new(column)?.find(&names);
        let time = self.time.as_ref().map(find).transpose()?;
        let user = self.user.as_ref().map(find).transpose()?;
        Ok(Chosen { item, time, time_unit: self.time_unit, user })
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
