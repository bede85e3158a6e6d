//! `dpsw ledger`: what was spent on what, when, and how much is left.

use std::fmt::Write as _;

use anyhow::Result;
use dpsw_faces::ledger::{Document, LedgerError, RunDocument, SetDocument, WindowLen, read, set_budget};
use dpsw_faces::quantity::{grouped, time};

use crate::arguments::LedgerCommand;
use crate::input::file::check_is_file;
use crate::ledger::{note, worded};
use crate::output;

/// Runs `dpsw ledger`.
pub(crate) fn run(command: &LedgerCommand) -> Result<()> {
    let failure = |error: LedgerError| worded::error(error, &command.ledger);
    if let (Some(name), Some(budget)) = (&command.data_set, command.budget) {
        set_budget(&command.ledger, name, budget, &note).map_err(failure)?;
    }
    check_is_file(&command.ledger)?;
    let document = read(&command.ledger, &note).map_err(failure)?;
    if command.json { output::print_json(&document) } else { output::print(&page(&document)) }
}

fn page(document: &Document) -> String {
    let mut text =
        format!("{:>9} {:>9} {:>9} {:>9} {:>5}  data set\n", "epsilon", "delta", "budget", "left", "runs");
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    for set in &document.data_sets {
        let SetDocument { epsilon, runs, name, .. } = set;
        let (budget, left) = (number(set.budget), number(set.left));
        let unit = set.unit.map_or_else(|| "nothing yet".to_owned(), |unit| format!("for {}", unit.name()));
        let delta = delta(set.delta);
        let _ = writeln!(
            text,
            "{epsilon:>9} {delta:>9} {budget:>9} {left:>9} {runs:>5}  {} ({unit})",
            shown(name)
        );
    }
    let _ = writeln!(
        text,
        "\n{:>5}  {:<24} {:>9} {:>9}  {:<14} data sets",
        "run", "time", "epsilon", "delta", "window"
    );
    for run in &document.runs {
        let RunDocument { run: number, time, epsilon, .. } = run;
        let (delta, window) = (delta(run.delta), length(run.window));
        let names: Vec<String> = run.data_sets.iter().map(|name| shown(name)).collect();
        let given = if run.given_back { " (given back: it failed before it answered)" } else { "" };
        let _ = writeln!(
            text,
            "{number:>5}  {time:<24} {epsilon:>9} {delta:>9}  {window:<14} {}{given}",
            names.join(", ")
        );
    }
    text
}

fn delta(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { format!("{value:.2e}") }
}

fn length(window: WindowLen) -> String {
    match window {
        WindowLen::Items(items) => format!("{} items", grouped(items as f64)),
        WindowLen::Milliseconds(millis) => time(millis),
    }
}

/// A name on one line, without control characters.
fn shown(name: &str) -> String {
    name.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}
