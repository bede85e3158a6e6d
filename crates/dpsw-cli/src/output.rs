//! Where results go: a table for people, CSV, or JSON, on standard output.

use std::fs;
use std::io::{IsTerminal, Write, stdout};
use std::path::Path;

use anyhow::Result;

use crate::answer::Answer;
use crate::arguments::Layout;
use crate::csv_rows;
use crate::fault::{Fault, Kind, Unwritten};
use crate::harmless;
use crate::remark::{self, is_coloured};
use crate::table;
use crate::why::Why;

/// How answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    Table,
    Json,
    NdJson,
    Csv { has_header: bool },
}

impl Writer {
    pub(crate) fn new(layout: Layout) -> Self {
        match layout {
            Layout { json: true, .. } => Self::Json,
            Layout { ndjson: true, .. } => Self::NdJson,
            Layout { csv: true, .. } => Self::Csv { has_header: false },
            _ => Self::Table,
        }
    }

    /// Writes one answer on stdout.
    pub(crate) fn write(&mut self, answer: &Answer) -> Result<()> {
        if let (Self::Csv { .. }, Some(Why { message, advice, .. })) = (&self, &answer.why) {
            remark::note(format!("nothing to show: {message}; what helps: {advice}"));
        }
        let text = match self {
            Self::Table => table::text(answer, screen(), is_coloured(&stdout())),
            Self::Json => harmless::json(&serde_json::to_string_pretty(answer)?) + "\n",
            Self::NdJson => harmless::json(&serde_json::to_string(answer)?) + "\n",
            Self::Csv { has_header } => {
                let rows = csv_rows::text(answer, std::mem::replace(has_header, true))?;
                // Programs get items as they are.
                if stdout().is_terminal() { harmless::lines(&rows) } else { rows }
            }
        };
        print(&text)
    }
}

/// Writes a text on stdout.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut output = stdout().lock();
    let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    written.map_err(|error| Unwritten(error).into())
}

/// Refuses to spend anything on an answer that nobody can get. A standard output that was closed when the program began has
/// been opened on `/dev/null` by then, for reading and writing; a shell opens that for writing alone.
pub(crate) fn check_open() -> Result<()> {
    let is_null = fs::read_link("/proc/self/fd/1").is_ok_and(|path| path == Path::new("/dev/null"));
    let about =
        if is_null { fs::read_to_string("/proc/self/fdinfo/1").unwrap_or_default() } else { String::new() };
    let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
    let is_for_both = flags.is_some_and(|flags| flags.ends_with('2'));
    if is_for_both {
        return Err(Fault::of(
            Kind::Failure,
            "standard output is closed, so the answer would be lost: nothing was read and spent; open it, or keep the \
            answer with --save",
        ));
    }
    Ok(())
}

/// Writes a document on stdout.
pub(crate) fn print_json(document: &impl serde::Serialize) -> Result<()> {
    print(&(harmless::json(&serde_json::to_string_pretty(document)?) + "\n"))
}

/// The columns of the screen that answers go to.
fn screen() -> Option<usize> {
    let size = stdout().is_terminal().then(crossterm::terminal::size)?;
    size.ok().map(|(columns, _)| columns.into()).filter(|columns| 0 < *columns)
}
