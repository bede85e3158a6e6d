//! Which columns a source has, for people who have to name one: what they are called, and the shape of their first value.
//! Never a value.

use anyhow::Error;
use serde_json::Value;

use crate::fault::Fault;
use crate::read::delimited::{Delimited, another};
use crate::read::{BOM, time};

/// The most columns that are listed.
const LISTED: usize = 20;

/// A column: what to call it, and the shape of what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) shape: String,
}

/// Asks for the column of the items, and lists the columns that there are.
pub(crate) fn ask_item(how: &str, columns: &[Described]) -> Error {
    ask(&format!("which column is the item? Name it with --column, {how}"), columns)
}

/// The same for the times of the events.
pub(crate) fn ask_time(how: &str, columns: &[Described]) -> Error {
    let question = "which column is the time? A window of time needs it: name it with --time-column";
    ask(&format!("{question}, {how}, or let events happen when they arrive with --arrival-time"), columns)
}

fn ask(question: &str, columns: &[Described]) -> Error {
    if columns.is_empty() {
        return Fault::usage(question);
    }
    let listed = &columns[..columns.len().min(LISTED)];
    let width = listed.iter().map(|column| column.name.chars().count()).max().unwrap_or(0);
    let mut lines: Vec<String> =
        listed.iter().map(|column| format!("  {:width$}  {}", column.name, column.shape)).collect();
    if listed.len() < columns.len() {
        lines.push(format!("  and {} more", columns.len() - listed.len()));
    }
    Fault::usage(format!("{question}:\n{}", lines.join("\n")))
}

/// Asks what lines are, of which columns with these names are wanted.
pub(crate) fn ask_format(names: &[&str], start: &[u8]) -> Error {
    let text = start.strip_prefix(BOM).unwrap_or(start);
    let header = String::from_utf8_lossy(text.split(|byte| *byte == b'\n').next().unwrap_or_default());
    let delimiters =
        [(',', "--format csv"), ('\t', "--format tsv"), (';', "--delimiter ';'"), ('|', "--delimiter '|'")];
    match delimiters.iter().find(|(delimiter, _)| is_header(&header, *delimiter, names)) {
        Some((_, option)) => {
            Fault::usage(format!("lines have no columns, but the first one names some: say {option}"))
        }
        None => Fault::usage(
            "lines have no columns; give the --format (csv, tsv, ndjson, access-log) or the --delimiter",
        ),
    }
}

/// Whether a line that is split at a delimiter has all these names.
fn is_header(line: &str, delimiter: char, names: &[&str]) -> bool {
    let fields: Vec<&str> = line.split(delimiter).map(|name| name.trim().trim_matches('"')).collect();
    1 < fields.len() && names.iter().all(|name| fields.contains(name))
}

/// The columns of a table, by their numbers and, if the first record has them, names.
pub(crate) fn of_table(table: &Delimited, start: &[u8]) -> Vec<Described> {
    let (names, values) = table.first(start.strip_prefix(BOM).unwrap_or(start));
    let count = names.as_ref().map_or(values.len(), Vec::len);
    let hint = names.as_deref().map(another).unwrap_or_default();
    let mut columns = Vec::with_capacity(count);
    for index in 0..count {
        let name = match &names {
            Some(names) => format!("{}  {:?}", index + 1, names[index]),
            None => (index + 1).to_string(),
        };
        let shape = values.get(index).map_or_else(String::new, |value| shape(value)) + &hint;
        columns.push(Described { name, shape });
    }
    columns
}

/// The pointers to the texts and numbers of the first document.
pub(crate) fn of_documents(start: &[u8]) -> Vec<Described> {
    let text = start.strip_prefix(BOM).unwrap_or(start);
    let lines = text.split(|byte| *byte == b'\n');
    let first = lines.filter_map(|line| serde_json::from_slice(line).ok()).next();
    let mut columns = Vec::new();
    if let Some(document) = first {
        descend(&document, String::new(), &mut columns);
    }
    columns
}

fn descend(value: &Value, pointer: String, columns: &mut Vec<Described>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let step = name.replace('~', "~0").replace('/', "~1");
                descend(value, format!("{pointer}/{step}"), columns);
            }
        }
        // The others are like the first.
        Value::Array(values) => {
            if let Some(first) = values.first() {
                descend(first, format!("{pointer}/0"), columns);
            }
        }
        Value::Null => columns.push(Described { name: pointer, shape: "null".to_owned() }),
        Value::String(text) => columns.push(Described { name: pointer, shape: shape(text.as_bytes()) }),
        other => columns.push(Described { name: pointer, shape: shape(other.to_string().as_bytes()) }),
    }
}

/// What kind of value it is, and how long.
fn shape(value: &[u8]) -> String {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    let is_whole = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(value);
    match text {
        Ok("") => "empty".to_owned(),
        Ok(_) if is_whole => format!("whole number of {}", many(digits.len(), "digit")),
        Ok(text) if text.parse::<f64>().is_ok() => "number with a fraction".to_owned(),
        Ok("true" | "false") => "true or false".to_owned(),
        Ok(_) if time::parse(value, None).is_ok() => "time".to_owned(),
        Ok(text) => format!("text of {}", many(text.chars().count(), "character")),
        Err(_) => many(value.len(), "byte"),
    }
}

fn many(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_tell_the_kind_and_the_length_and_no_value() {
        for (value, wanted) in [
            (&b"secret"[..], "text of 6 characters"),
            ("é".as_bytes(), "text of 1 character"),
            (b"-417", "whole number of 3 digits"),
            (b"1700000000", "whole number of 10 digits"),
            (b"1.5", "number with a fraction"),
            (b"2026-01-31T12:00:00Z", "time"),
            (b"31/Jan/2026:12:00:00 +0000", "time"),
            (b"2026-01-31", "time"),
            (b"true", "true or false"),
            (b"", "empty"),
            (b"\xff\xfe", "2 bytes"),
        ] {
            assert_eq!(shape(value), wanted, "{value:?}");
        }
    }

    #[test]
    fn pointers_lead_to_everything_that_can_be_an_item() {
        let start = br#"
            {"b": {"c/d": ["x", "y"], "e~": null}, "a": 12, "o": {}, "t": "2026-01-31"}"#;
        let columns = of_documents(start);
        let listed: Vec<(&str, &str)> =
            columns.iter().map(|column| (&column.name[..], &column.shape[..])).collect();
        let wanted = [
            ("/a", "whole number of 2 digits"),
            ("/b/c~1d/0", "text of 1 character"),
            ("/b/e~0", "null"),
            ("/t", "time"),
        ];
        assert_eq!(listed, wanted);
        assert!(of_documents(b"{\n[\n").is_empty());
    }
}
