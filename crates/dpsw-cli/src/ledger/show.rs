//! `dpsw ledger`: what was spent on what, when, and how much is left.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::arguments::LedgerCommand;
use crate::ledger::accounts::{Accounts, Run};
use crate::ledger::amount::Amount;
use crate::ledger::entry::{Protected, VERSION, WindowLen};
use crate::ledger::file::{self, LedgerFile};
use crate::ledger::{set_budget, source};
use crate::output;
use crate::quantity::{grouped, time};
use crate::remark;

/// Runs `dpsw ledger`.
pub(crate) fn run(command: &LedgerCommand) -> Result<()> {
    if let (Some(name), Some(budget)) = (&command.data_set, command.budget) {
        change_budget(&command.ledger, name, Amount::new(budget).context("--budget")?)?;
    }
    let accounts = file::read(&command.ledger)?;
    let document = Document::new(&accounts, &command.ledger);
    if command.json { output::print_json(&document) } else { output::print(&page(&document)) }
}

fn change_budget(ledger: &Path, name: &str, budget: Amount) -> Result<()> {
    let (file, accounts) = LedgerFile::open(ledger)?;
    let name = known_name(name, &accounts);
    if accounts.spent(&name) == Amount::default() {
        remark::note(format!("nothing was spent on {name} so far"));
    }
    file.append(&[set_budget(&name, budget)])
}

/// A data set may also be named by one of its files.
fn known_name(name: &str, accounts: &Accounts) -> String {
    let is_known = accounts.names().contains(&name);
    let file = source::mark(Path::new(name)).filter(|_| !is_known);
    let sets = file.map(|file| accounts.sets_of(&file).into_iter().map(str::to_owned).collect::<Vec<_>>());
    match sets.as_deref() {
        Some([only]) => only.clone(),
        _ => name.to_owned(),
    }
}

/// A ledger in the words of the outside.
#[derive(Debug, Serialize)]
struct Document {
    file: String,
    version: u32,
    data_sets: Vec<SetDocument>,
    runs: Vec<RunDocument>,
}

#[derive(Debug, Serialize)]
struct SetDocument {
    name: String,
    unit: Option<Protected>,
    epsilon: f64,
    delta: f64,
    budget: Option<f64>,
    left: Option<f64>,
    /// Runs that were not given back.
    runs: usize,
    last: Option<String>,
}

#[derive(Debug, Serialize)]
struct RunDocument {
    run: u64,
    time: String,
    unit: Protected,
    epsilon: f64,
    delta: f64,
    window: WindowLen,
    data_sets: Vec<String>,
    given_back: bool,
}

impl Document {
    fn new(accounts: &Accounts, path: &Path) -> Self {
        Self {
            file: path.display().to_string(),
            version: VERSION,
            data_sets: accounts.names().into_iter().map(|name| SetDocument::new(accounts, name)).collect(),
            runs: accounts.runs().iter().map(RunDocument::new).collect(),
        }
    }
}

impl SetDocument {
    fn new(accounts: &Accounts, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            unit: accounts.unit(name),
            epsilon: accounts.spent(name).get(),
            delta: accounts.delta(name),
            budget: accounts.budget(name).map(Amount::get),
            left: accounts.left(name).map(Amount::get),
            runs: accounts.kept(name).count(),
            last: accounts.kept(name).last().map(|run| run.charge.time.clone()),
        }
    }
}

impl RunDocument {
    fn new(Run { charge, is_given_back, .. }: &Run) -> Self {
        Self {
            run: charge.run,
            time: charge.time.clone(),
            unit: charge.unit,
            epsilon: charge.epsilon,
            delta: charge.delta,
            window: charge.window,
            data_sets: charge.data_sets.iter().map(|set| set.name.clone()).collect(),
            given_back: *is_given_back,
        }
    }
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
