//! Answers as CSV: a row for each item, with what the whole answer says repeated in each.

use anyhow::Result;
use serde_json::Value;

use crate::answer::Answer;

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
pub(crate) fn text(answer: &Answer, has_header: bool) -> Result<String> {
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
