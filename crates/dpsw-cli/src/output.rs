//! Answers as a table for people, as CSV, or as JSON.

use std::fmt::Write as _;
use std::fs;
use std::io::{Write, stdout};
use std::path::Path;

use anyhow::Result;

use crate::answer::{Answer, Row};
use crate::arguments::Layout;
use crate::csv_rows;
use crate::fault::{Fault, Kind, Unwritten};
use crate::quantity;
use crate::remark::{self, Style, is_coloured, paint};
use crate::why::Why;
use crate::words::{WIDTH, count, wrapped};

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
            Self::Table => table(answer, is_coloured(&stdout())),
            Self::Json => serde_json::to_string_pretty(answer)? + "\n",
            Self::NdJson => serde_json::to_string(answer)? + "\n",
            Self::Csv { has_header } => csv_rows::text(answer, std::mem::replace(has_header, true))?,
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
    print(&(serde_json::to_string_pretty(document)? + "\n"))
}

/// The longest item that is shown in full in the table, in characters.
const ITEM_LEN_MAX: usize = 48;

fn table(answer: &Answer, coloured: bool) -> String {
    let mut text: String = answer.headline.iter().map(|line| wrapped(line, WIDTH) + "\n").collect();
    if let Some(Why { message, advice, .. }) = &answer.why {
        let lines = [format!("nothing to show: {message}"), format!("what helps: {advice}")];
        return text + "\n" + &lines.map(|line| wrapped(&line, WIDTH)).join("\n") + "\n\n";
    }
    let names: Vec<String> = answer.items.iter().map(|row| shown(&row.item)).collect();
    let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(4);
    let title = format!(
        "{:>4}  {:<widest$}  {:>11}  {:>23}  {:>8}  trend",
        "#", "item", "estimate", "95 % interval", "share"
    );
    let _ = writeln!(text, "\n{}", paint(Style::Bold, &title, coloured));
    for (row, name) in answer.items.iter().zip(&names) {
        let line = line(row, name, widest);
        let style = if row.unsure { Some(Style::Dim) } else { trend_style(row) };
        let line = style.map_or_else(|| line.clone(), |style| paint(style, &line, coloured));
        let _ = writeln!(text, "{line}");
    }
    if answer.items.iter().any(|row| row.unsure) {
        text += "  ~ the true count may be less than a quarter of what is shown\n";
    }
    text + &hidden(answer) + &more(answer) + "\n"
}

/// Rows that may be noise alone.
fn hidden(answer: &Answer) -> String {
    match answer.hidden {
        0 => String::new(),
        1 => "  1 more row may be noise alone; --all shows it\n".to_owned(),
        rows => format!("  {rows} more rows may be noise alone; --all shows them\n"),
    }
}

/// Rows beyond those that were asked for.
fn more(answer: &Answer) -> String {
    match answer.more {
        0 => String::new(),
        rows => format!("  {} more of at least this share; --top shows more\n", count(rows as u64, "row")),
    }
}

fn trend_style(row: &Row) -> Option<Style> {
    match row.trend {
        Some("rising") => Some(Style::Green),
        Some("falling") => Some(Style::Yellow),
        _ => None,
    }
}

fn line(row: &Row, name: &str, widest: usize) -> String {
    let interval =
        format!("{} – {}", quantity::grouped(row.lower.max(0.0)), quantity::grouped(row.upper.max(0.0)));
    let share = row.share.map_or_else(String::new, |share| format!("{:.2} %", 100.0 * share.max(0.0)));
    let trend = match row.trend {
        Some("rising") => "↑ rising",
        Some("falling") => "↓ falling",
        Some(_) => "steady",
        None => "",
    };
    let mark = if row.unsure { "~" } else { " " };
    let estimate = quantity::grouped(row.estimate.max(0.0));
    let line =
        format!("{:>4} {mark}{name:<widest$}  {estimate:>11}  {interval:>23}  {share:>8}  {trend}", row.rank);
    line.trim_end().to_owned()
}

/// An item on one line, short enough for a table, without control characters.
pub(crate) fn shown(item: &str) -> String {
    let mut text = String::new();
    for (index, character) in item.chars().enumerate() {
        if index == ITEM_LEN_MAX {
            text.push('…');
            break;
        }
        if character.is_control() { text.extend(character.escape_default()) } else { text.push(character) }
    }
    if text.is_empty() { "(empty)".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_cannot_steer_the_terminal() {
        assert_eq!(shown("a\u{1b}[31m\n"), "a\\u{1b}[31m\\n");
        assert_eq!(shown(""), "(empty)");
        assert_eq!(shown(&"x".repeat(100)).chars().count(), ITEM_LEN_MAX + 1);
    }
}
