//! The manual: a page for the program and one for each command, made of its help and of the schema of answers.

use anyhow::Result;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use serde_json::Value;

use crate::args::{Arguments, EXIT_CODES};

/// The documents and their schemas; answers come first.
pub(crate) const SCHEMAS: [(&str, &str); 7] = [
    ("answer", include_str!("../../schema/answer.json")),
    ("plan", include_str!("../../schema/plan.json")),
    ("inspect", include_str!("../../schema/inspect.json")),
    ("dry-run", include_str!("../../schema/dry-run.json")),
    ("ledger", include_str!("../../schema/ledger.json")),
    ("audit", include_str!("../../schema/audit.json")),
    ("demo", include_str!("../../schema/demo.json")),
];

/// The pages by their names, that of the program first.
pub(crate) fn pages() -> Result<Vec<(String, Vec<u8>)>> {
    let mut program = Arguments::command().disable_help_subcommand(true);
    program.build();
    let mut pages = vec![page(&program)?];
    for command in program.get_subcommands() {
        pages.push(page(command)?);
    }
    Ok(pages)
}

/// All pages as one: what is below the first stands under the name of its command.
pub(crate) fn one_page() -> Result<Vec<u8>> {
    let mut all = Vec::new();
    for (name, bytes) in pages()? {
        let text = String::from_utf8(bytes)?;
        let title = format!(".SH {}\n", name.trim_end_matches(".1").replace('-', " ").to_uppercase());
        let parts = text.split_once(".SH SYNOPSIS\n").map_or(text.as_str(), |(_, rest)| rest);
        // Sections of a command become parts of its section.
        let below = format!("{title}.SS SYNOPSIS\n{}", parts.replace("\n.SH ", "\n.SS "));
        all.extend(if all.is_empty() { text.bytes() } else { below.bytes() });
    }
    Ok(all)
}

fn page(command: &Command) -> Result<(String, Vec<u8>)> {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let command = command.clone().override_usage(usage);
    let man = Man::new(command.clone()).title(name.to_uppercase()).manual("dpsw manual");
    let mut bytes = Vec::new();
    man.render_title(&mut bytes)?;
    man.render_name_section(&mut bytes)?;
    man.render_synopsis_section(&mut bytes)?;
    man.render_description_section(&mut bytes)?;
    man.render_options_section(&mut bytes)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut bytes)?;
    }
    let help = [command.get_before_help(), command.get_after_help()].into_iter().flatten();
    for text in help {
        bytes.extend(sections(&text.to_string()).bytes());
    }
    if matches!(command.get_name(), "top" | "count") {
        bytes.extend(document("answer")?.bytes());
    }
    if command.get_name() != "dpsw" {
        bytes.extend(sections(EXIT_CODES).bytes());
    }
    bytes.extend(sections(SEE_ALSO).bytes());
    Ok((format!("{name}.1"), bytes))
}

const SEE_ALSO: &str = "See also:
  dpsw(1), dpsw-top(1), dpsw-count(1), dpsw-plan(1), dpsw-audit(1),
  dpsw-inspect(1), dpsw-ledger(1), dpsw-demo(1), dpsw-serve(1),
  dpsw-completions(1)";

/// The parts of a help text, each below a title that ends with a colon, as sections that keep their lines.
fn sections(help: &str) -> String {
    let mut text = String::new();
    for line in help.lines() {
        match line.strip_suffix(':').filter(|title| !title.starts_with(' ') && !title.is_empty()) {
            Some(title) => text += &format!("{}.SH {}\n.nf\n", close(&text), escaped(&title.to_uppercase())),
            None => text += &format!("{}\n", escaped(line.strip_prefix("  ").unwrap_or(line))),
        }
    }
    let end = close(&text);
    text + end
}

/// Ends the section before.
fn close(text: &str) -> &'static str {
    if text.is_empty() { "" } else { ".fi\n" }
}

/// The fields of a document, as its schema describes them.
fn document(kind: &str) -> Result<String> {
    let schema = SCHEMAS.iter().find(|(name, _)| *name == kind).map_or("{}", |(_, schema)| schema);
    let schema: Value = serde_json::from_str(schema)?;
    let mut text = ".SH JSON\n".to_owned();
    text += "What \\-\\-json prints has these fields; \\-\\-ndjson prints one such document per line, and \\-\\-csv has them as \
             columns, joined by _.\n.B dpsw completions schema\nprints the JSON Schema.\n";
    fields(&mut text, "", &schema, &schema);
    Ok(text)
}

fn fields(text: &mut String, path: &str, of: &Value, schema: &Value) {
    let Some(properties) = of["properties"].as_object() else { return };
    for (name, field) in properties {
        let target = field["$ref"].as_str().and_then(|target| schema.pointer(target.trim_start_matches('#')));
        let description =
            field["description"].as_str().or(target.and_then(|target| target["description"].as_str()));
        let path = format!("{path}{name}");
        let words = description.map(escaped).unwrap_or_default();
        *text += &format!(".TP\n.B {}\n{}{words}\n", escaped(&path), values(field));
        let nested = [field, &field["oneOf"][1]].into_iter().chain(target).filter(|part| part.is_object());
        for part in nested {
            fields(text, &format!("{path}."), part, schema);
        }
        let rows = field["items"]["$ref"].as_str();
        if let Some(row) = rows.and_then(|target| schema.pointer(target.trim_start_matches('#'))) {
            fields(text, &format!("{path}[]."), row, schema);
        }
    }
}

/// The values that a field may have, if they are few.
fn values(field: &Value) -> String {
    let Some(values) = field["enum"].as_array() else { return String::new() };
    let values: Vec<String> = values.iter().map(|value| escaped(&value.to_string())).collect();
    format!("{}. ", values.join(", "))
}

/// Text that the typesetter takes as it is.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_that_says_what_it_is() -> Result<()> {
        let pages = pages()?;
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.contains(&"dpsw.1") && names.contains(&"dpsw-top.1") && 8 <= names.len(), "{names:?}");
        for (name, bytes) in &pages {
            let text = std::str::from_utf8(bytes)?;
            assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{name}: {text}");
        }
        Ok(())
    }

    #[test]
    fn lines_that_the_typesetter_would_obey_are_escaped() {
        assert_eq!(escaped(".SH a-b\\"), "\\&.SH a\\-b\\e");
    }
}
