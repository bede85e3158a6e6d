//! A run is charged before it counts any item, or refused.

use std::path::{Path, PathBuf};

use dpsw::{Claim, Plan};
use jiff::Timestamp;

use crate::ledger::accounts::Accounts;
use crate::ledger::amount::Amount;
use crate::ledger::balance::Balance;
use crate::ledger::entry::{Charge, Entry, Protected, WindowLen};
use crate::ledger::error::LedgerError;
use crate::ledger::file::{self, LedgerFile};
use crate::ledger::remark::Remark;
use crate::ledger::source;
use crate::ledger::spending::Spending;

/// To what a run is charged.
#[derive(Debug, Clone)]
pub struct Account {
    /// The file, which is made if it is not there.
    pub ledger: PathBuf,
    /// No more than this may be spent on the data set, ever; needed once, and then kept in the ledger.
    pub budget: Option<f64>,
    /// The name of the data set; without one each file is one, by its path.
    pub data_set: Option<String>,
}

/// Charges a run of this plan over these files, where `-` is standard input. When this returns, the charge is on the disk.
/// It waits while another run holds the ledger.
///
/// # Errors
/// The run does not fit its data sets, they have no name, or the ledger cannot be read and written; then nothing is charged.
pub fn charge(
    account: &Account,
    plan: &Plan,
    paths: &[PathBuf],
    say: impl Fn(&Remark) + Send + Sync + 'static,
) -> Result<Spending, LedgerError> {
    let ledger = &account.ledger;
    if is_missing(ledger) {
        // A run that is refused leaves no file behind.
        entries(&Accounts::default(), account, plan, paths, &say)?;
    }
    let (file, mut accounts) = LedgerFile::open(ledger, &say)?;
    let entries = entries(&accounts, account, plan, paths, &say)?;
    file.append(&entries)?;
    let run = accounts.next_run();
    take(&mut accounts, entries);
    Ok(Spending::new(ledger.clone(), run, Balance::of(&accounts), Box::new(say)))
}

/// What a run would leave; nothing is charged.
///
/// # Errors
/// Those of [`charge`], as far as they show without writing.
pub fn preview(
    account: &Account,
    plan: &Plan,
    paths: &[PathBuf],
    say: &dyn Fn(&Remark),
) -> Result<Vec<Balance>, LedgerError> {
    let ledger = &account.ledger;
    let mut accounts = if is_missing(ledger) { Accounts::default() } else { file::read(ledger, say)? };
    let entries = entries(&accounts, account, plan, paths, say)?;
    take(&mut accounts, entries);
    Ok(Balance::of(&accounts))
}

fn is_missing(ledger: &Path) -> bool {
    matches!(ledger.try_exists(), Ok(false))
}

/// The lines that a run adds to a ledger, if it may.
fn entries(
    accounts: &Accounts,
    account: &Account,
    plan: &Plan,
    paths: &[PathBuf],
    say: &dyn Fn(&Remark),
) -> Result<Vec<Entry>, LedgerError> {
    let budget = account.budget.map(Amount::new).transpose().map_err(LedgerError::Budget)?;
    let (epsilon, delta) = cost(plan)?;
    let charge = Charge {
        time: now(),
        run: accounts.next_run(),
        unit: Protected::of(plan),
        epsilon: epsilon.get(),
        delta,
        window: WindowLen::of(plan),
        data_sets: source::data_sets(account.data_set.as_deref(), paths, accounts, say)?,
    };
    accounts.check(&charge, epsilon, budget)?;
    let fresh = charge.data_sets.iter().filter(|set| accounts.budget(&set.name).is_none());
    let budgets = fresh.filter_map(|set| budget.map(|budget| budget_entry(&set.name, budget)));
    let mut entries: Vec<Entry> = budgets.collect();
    entries.push(Entry::Charge(charge));
    Ok(entries)
}

fn cost(plan: &Plan) -> Result<(Amount, f64), LedgerError> {
    match plan.claim() {
        Claim::Pure(epsilon) => Ok((epsilon.into(), 0.0)),
        Claim::Approximate(epsilon, delta) => Ok((epsilon.into(), delta.get())),
        claim => Err(LedgerError::Unpromised(claim)),
    }
}

fn take(accounts: &mut Accounts, entries: Vec<Entry>) {
    let taken = entries.into_iter().try_for_each(|entry| accounts.take(entry));
    taken.expect("epsilons and deltas of a plan are in range, and a run has the next number");
}

pub(crate) fn budget_entry(data_set: &str, budget: Amount) -> Entry {
    Entry::Budget { time: now(), data_set: data_set.to_owned(), epsilon: budget.get() }
}

/// `2026-01-31T12:00:00.123Z`.
pub(crate) fn now() -> String {
    let now = Timestamp::now();
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now).to_string()
}
