//! A ledger for files: what was spent on each data set, in a file of its own, charged before any item is counted.

mod accounts;
mod amount;
mod entry;
mod file;
mod show;
mod source;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use dpsw::{Claim, Plan};

use crate::arguments::Account;
use crate::fault::Fault;
use crate::input::file::is_missing;
use crate::input::time;
use crate::remark;
use crate::structure::millis;
use accounts::Accounts;
use amount::Amount;
use entry::{Charge, Entry, Protected, WindowLen};
use file::LedgerFile;

pub(crate) use file::is_ledger;
pub(crate) use show::run;

/// What a run has charged. If this goes before the run showed or saved anything, the charge is given back; a run that is
/// killed, or that panics, has spent it.
pub(crate) struct Spending<'a> {
    /// The ledger and the number of the run, if there is a ledger.
    charged: Option<(&'a Path, u64)>,
    is_answered: Cell<bool>,
}

const UNREAD: &str = "no item was counted, and nothing is spent";

/// Charges a run before it counts any item, or refuses it.
pub(crate) fn charge<'a>(account: &'a Account, plan: &Plan, paths: &[PathBuf]) -> Result<Spending<'a>> {
    let charged = match &account.ledger {
        Some(path) => Some((path.as_path(), append_charge(path, account, plan, paths)?)),
        None => None,
    };
    Ok(Spending { charged, is_answered: Cell::new(false) })
}

fn append_charge(ledger: &Path, account: &Account, plan: &Plan, paths: &[PathBuf]) -> Result<u64> {
    if is_missing(ledger) {
        // A run that is refused leaves no file behind.
        fitting(&Accounts::default(), ledger, account, plan, paths)?;
    }
    let (file, mut accounts) = LedgerFile::open(ledger).context(UNREAD)?;
    let entries = fitting(&accounts, ledger, account, plan, paths)?;
    file.append(&entries).context(UNREAD)?;
    let run = accounts.next_run();
    entries.into_iter().try_for_each(|entry| accounts.take(entry)).map_err(Fault::usage)?;
    for line in balance(&accounts, ledger) {
        remark::note(line);
    }
    Ok(run)
}

/// What a run would leave, in words; nothing is charged.
pub(crate) fn preview(account: &Account, plan: &Plan, paths: &[PathBuf]) -> Result<Vec<String>> {
    let Some(ledger) = &account.ledger else { return Ok(Vec::new()) };
    let mut accounts = if is_missing(ledger) { Accounts::default() } else { file::read(ledger)? };
    let entries = fitting(&accounts, ledger, account, plan, paths)?;
    entries.into_iter().try_for_each(|entry| accounts.take(entry)).map_err(Fault::usage)?;
    Ok(balance(&accounts, ledger))
}

/// The lines that a run adds to a ledger, if it may.
fn fitting(
    accounts: &Accounts,
    ledger: &Path,
    account: &Account,
    plan: &Plan,
    paths: &[PathBuf],
) -> Result<Vec<Entry>> {
    let budget = account.budget.map(Amount::new).transpose().context("--budget")?;
    let (epsilon, delta) = cost(plan)?;
    let charge = Charge {
        time: now(),
        run: accounts.next_run(),
        unit: Protected::of(plan),
        epsilon: epsilon.get(),
        delta,
        window: WindowLen::of(plan),
        data_sets: source::data_sets(account.data_set.as_deref(), paths, accounts)?,
    };
    accounts.check(&charge, budget, &ledger.display().to_string())?;
    let mut entries = Vec::new();
    if let Some(budget) = budget {
        let fresh = charge.data_sets.iter().filter(|set| accounts.budget(&set.name).is_none());
        entries.extend(fresh.map(|set| set_budget(&set.name, budget)));
    }
    entries.push(Entry::Charge(charge));
    Ok(entries)
}

fn set_budget(data_set: &str, budget: Amount) -> Entry {
    Entry::Budget { time: now(), data_set: data_set.to_owned(), epsilon: budget.get() }
}

fn cost(plan: &Plan) -> Result<(Amount, f64)> {
    match plan.claim() {
        Claim::Pure(epsilon) => Ok((epsilon.into(), 0.0)),
        Claim::Approximate(epsilon, delta) => Ok((epsilon.into(), delta.get())),
        claim => Err(Fault::usage(format!("what promises nothing cannot be charged: {claim}"))),
    }
}

/// What is spent and left of the data sets of the newest run.
fn balance(accounts: &Accounts, ledger: &Path) -> Vec<String> {
    let sets = accounts.runs().last().map_or(&[][..], |run| &run.charge.data_sets);
    let line = |name: &str| {
        let (ledger, spent) = (ledger.display(), accounts.spent(name));
        match (accounts.budget(name), accounts.left(name)) {
            (Some(budget), Some(left)) => {
                format!(
                    "{ledger}: epsilon = {spent} of {budget} is spent on {name} with this run, {left} is left"
                )
            }
            _ => format!(
                "{ledger}: epsilon = {spent} is spent on {name} with this run; --budget EPSILON sets a limit"
            ),
        }
    };
    sets.iter().map(|set| line(&set.name)).collect()
}

fn now() -> String {
    time::format(millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()))
}

impl Spending<'_> {
    /// Something is about to be shown or saved: what was charged is spent.
    pub(crate) fn answer(&self) {
        self.is_answered.set(true);
    }
}

impl Drop for Spending<'_> {
    fn drop(&mut self) {
        let Some((ledger, run)) =
            self.charged.filter(|_| !self.is_answered.get() && !std::thread::panicking())
        else {
            return;
        };
        match give_back(ledger, run) {
            Ok(()) => {
                remark::note(format!(
                    "nothing was answered, so run {run} is given back in {}",
                    ledger.display()
                ));
            }
            Err(error) => remark::note(format!("run {run} stays charged: {error:#}")),
        }
    }
}

fn give_back(ledger: &Path, run: u64) -> Result<()> {
    let (file, _) = LedgerFile::open(ledger)?;
    file.append(&[Entry::GivenBack { time: now(), run }])
}
