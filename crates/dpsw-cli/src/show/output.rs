//! Where results go: a table for people, JSON, or CSV, on standard output. CSV has a row for each item, with what the whole
//! answer says repeated in each.

use std::fs;
use std::io::{IsTerminal, Write, stdout};
use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use crate::args::Layout;
use crate::fault::{Fault, Kind, Unwritten};
use crate::show::answer::Answer;
use crate::show::harmless;
use crate::show::remark::{self, is_coloured};
use crate::show::table;

/// The form in which answers are written.
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
        if let (Self::Csv { .. }, Some(why)) = (&self, &answer.why) {
            remark::note(why.lines().join("; "));
        }
        let text = match self {
            Self::Table => table::text(answer, screen(), is_coloured(&stdout())),
            Self::Json => harmless::json(&serde_json::to_string_pretty(answer)?) + "\n",
            Self::NdJson => harmless::json(&serde_json::to_string(answer)?) + "\n",
            Self::Csv { has_header } => {
                let rows = csv(answer, std::mem::replace(has_header, true))?;
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

/// Columns of an item: their names, and where they stand in its part of the JSON document.
const OF_ROW: [(&str, &str); 11] = [
    ("rank", "/rank"),
    ("item", "/item"),
    ("estimate", "/estimate"),
    ("lower", "/lower"),
    ("upper", "/upper"),
    ("share", "/share"),
    ("trend", "/trend"),
    ("item_base64", "/item_base64"),
    ("unsure", "/unsure"),
    ("any_order_lower", "/any_order/0"),
    ("any_order_upper", "/any_order/1"),
];

/// Columns of the whole answer, and where they stand in the JSON document.
const OF_ANSWER: [(&str, &str); 22] = [
    ("window_start", "/window/start"),
    ("window_end", "/window/end"),
    ("window_unit", "/window/unit"),
    ("covered_start", "/covered/start"),
    ("covered_end", "/covered/end"),
    ("total", "/total"),
    ("unit", "/unit"),
    ("epsilon", "/epsilon"),
    ("delta", "/delta"),
    ("claim", "/claim"),
    ("below_noise", "/below_noise"),
    ("found_from_count", "/found_from/count"),
    ("found_from_share", "/found_from/share"),
    ("read_records", "/read/records"),
    ("read_skipped", "/read/skipped"),
    ("read_late", "/read/late"),
    ("read_early", "/read/early"),
    ("read_capped", "/read/capped"),
    ("hidden", "/hidden"),
    ("more", "/more"),
    ("trend_compares", "/trend_compares"),
    ("capped", "/capped"),
];

/// The position stands first, as answers follow each other.
const FIRST: (&str, &str) = ("position", "/window/end");

/// The rows of an answer, below the names of the columns if those have not been written.
fn csv(answer: &Answer, has_header: bool) -> Result<String> {
    let document = serde_json::to_value(answer)?;
    let names = [FIRST].into_iter().chain(OF_ROW).chain(OF_ANSWER).map(|(name, _)| name.to_owned());
    let mut text = if has_header { String::new() } else { line(names) };
    for row in document["items"].as_array().into_iter().flatten() {
        let first = [field(&document, FIRST)];
        let of_row = OF_ROW.iter().map(|&column| field(row, column));
        text +=
            &line(first.into_iter().chain(of_row).chain(OF_ANSWER.map(|column| field(&document, column))));
    }
    Ok(text)
}

fn line(fields: impl Iterator<Item = String>) -> String {
    fields.collect::<Vec<_>>().join(",") + "\n"
}

/// What is not known is empty.
fn field(of: &Value, (_, pointer): (&str, &str)) -> String {
    match of.pointer(pointer) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => quoted(text),
        Some(value) => {
            let text = value.to_string();
            text.strip_suffix(".0").unwrap_or(&text).to_owned()
        }
    }
}

fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        for (text, wanted) in
            [("a b", "a b"), ("a,b", "\"a,b\""), ("a\"b", "\"a\"\"b\""), ("a\nb", "\"a\nb\"")]
        {
            assert_eq!(quoted(text), wanted);
        }
    }
}
