//! `dpsw ledger`, and the ledger of a run, in the words of the command line.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Error, Result};
use dpsw::Plan;
use dpsw_frontend::ledger::{
    self, Amount, Balance, Document, Failure, LedgerError, Remark, RunDocument, Spending, WindowLen,
};
use dpsw_frontend::quantity::{grouped, time};

use crate::args::{Account, LedgerCommand};
use crate::fault::{self, Fault};
use crate::read::file::{check_is_file, is_missing, name};
use crate::show::{output, remark};

const UNREAD: &str = "no item was counted, and nothing is spent";

/// Charges a run before it counts any item, or refuses it. Without a ledger there is nothing to charge.
pub(crate) fn charge(account: &Account, plan: &Plan, paths: &[PathBuf]) -> Result<Option<Spending>> {
    let Some(account) = account.to_charge() else { return Ok(None) };
    let spending =
        ledger::charge(&account, plan, paths, note).map_err(|error| unread(error, &account.ledger))?;
    for line in balance_lines(&account.ledger, spending.balances()) {
        remark::note(line);
    }
    Ok(Some(spending))
}

/// What a run would leave, in words; nothing is charged.
pub(crate) fn preview(account: &Account, plan: &Plan, paths: &[PathBuf]) -> Result<Vec<String>> {
    let Some(account) = account.to_charge() else { return Ok(Vec::new()) };
    let ledger = &account.ledger;
    if !is_missing(ledger) {
        check_is_file(ledger)?;
    }
    let balances = ledger::preview(&account, plan, paths, &note);
    let balances = balances.map_err(|error| worded(error, ledger))?;
    Ok(balance_lines(ledger, &balances))
}

/// A ledger that cannot be used stops a run before it reads anything.
fn unread(error: LedgerError, ledger: &Path) -> Error {
    let is_of_file = matches!(error.kind(), Failure::Corrupt | Failure::Unwritten);
    let error = worded(error, ledger);
    if is_of_file { error.context(UNREAD) } else { error }
}

fn note(remark: &Remark) {
    remark::note(remark_line(remark));
}

impl Account {
    /// What is charged, if there is a ledger.
    fn to_charge(&self) -> Option<ledger::Account> {
        let ledger = self.ledger.clone()?;
        Some(ledger::Account { ledger, budget: self.budget, data_set: self.data_set.clone() })
    }
}

/// Runs `dpsw ledger`.
pub(crate) fn run(command: &LedgerCommand) -> Result<()> {
    let failure = |error: LedgerError| worded(error, &command.ledger);
    if let (Some(name), Some(budget)) = (&command.data_set, command.budget) {
        ledger::set_budget(&command.ledger, name, budget, &note).map_err(failure)?;
    }
    check_is_file(&command.ledger)?;
    let document = ledger::read(&command.ledger, &note).map_err(failure)?;
    if command.json { output::print_json(&document) } else { output::print(&page(&document)) }
}

fn page(document: &Document) -> String {
    let mut text =
        format!("{:>9} {:>9} {:>9} {:>9} {:>5}  data set\n", "epsilon", "delta", "budget", "left", "runs");
    for set in &document.data_sets {
        let Balance { epsilon, runs, name, .. } = set;
        let [budget, left] = [set.budget, set.left].map(amount);
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
        let delta = delta(run.delta);
        let window = length(run.window);
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

fn amount(amount: Option<Amount>) -> String {
    amount.map_or_else(|| "-".to_owned(), |amount| amount.to_string())
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

/// What is spent and left of each data set.
fn balance_lines(ledger: &Path, balances: &[Balance]) -> Vec<String> {
    let mut lines = Vec::new();
    for balance in balances {
        let limit = if balance.budget.is_none() { "; --budget EPSILON sets a limit" } else { "" };
        lines.push(format!("{}: {balance}{limit}", ledger.display()));
    }
    lines
}

fn remark_line(remark: &Remark) -> String {
    match remark {
        Remark::Elsewhere { data_set, .. } => format!("{remark}: --data-set {data_set:?}"),
        _ => remark.to_string(),
    }
}

/// A failure, and what to do about it.
fn worded(error: LedgerError, ledger: &Path) -> Error {
    let ledger = ledger.display();
    let text = match &error {
        LedgerError::Budget(error) => return Error::from(error.clone()).context("--budget"),
        LedgerError::Nameless => "--data-set needs a name".to_owned(),
        LedgerError::NoPath(path) => format!(
            "--ledger needs --data-set NAME here: {} has no path by which it is known again",
            name(path)
        ),
        LedgerError::Several { .. } => format!("{error}; say which with --data-set"),
        LedgerError::OtherUnit { .. } => {
            format!("{error}; protect the same, or keep an account of its own with another --data-set")
        }
        LedgerError::OtherBudget { data_set, budget, asked } => format!(
            "{data_set} has a budget of epsilon = {budget}, and --budget asks for {asked}; leave --budget out, or change it \
            with: dpsw ledger {ledger} --data-set {data_set:?} --budget {asked}"
        ),
        LedgerError::OverBudget { data_set, budget, spent, .. } => format!(
            "{error}; {}answer from a saved view (--view), or change the budget with: dpsw ledger {ledger} --data-set \
            {data_set:?} --budget EPSILON",
            less(budget.without(*spent))
        ),
        _ => return error.into(),
    };
    Fault::of(fault::of_ledger(&error), text)
}

fn less(left: Amount) -> String {
    if left == Amount::default() { String::new() } else { format!("ask for --epsilon {left} at most, ") }
}
