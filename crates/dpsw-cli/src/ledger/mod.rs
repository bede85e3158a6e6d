//! The ledger in the words of the command line.

mod show;
mod worded;

use std::path::{Path, PathBuf};

use anyhow::Result;
use dpsw::Plan;
use dpsw_faces::ledger::{self, Failure, LedgerError, Remark, Spending};

use crate::arguments::Account;
use crate::input::file::{check_is_file, is_missing};
use crate::remark;

pub(crate) use dpsw_faces::ledger::is_ledger;
pub(crate) use show::run;

const UNREAD: &str = "no item was counted, and nothing is spent";

/// Charges a run before it counts any item, or refuses it. Without a ledger there is nothing to charge.
pub(crate) fn charge(account: &Account, plan: &Plan, paths: &[PathBuf]) -> Result<Option<Spending>> {
    let Some(account) = account.to_charge() else { return Ok(None) };
    let spending =
        ledger::charge(&account, plan, paths, note).map_err(|error| unread(error, &account.ledger))?;
    for line in worded::balances(&account.ledger, spending.balances()) {
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
    let balances = balances.map_err(|error| worded::error(error, ledger))?;
    Ok(worded::balances(ledger, &balances))
}

/// A ledger that cannot be used stops a run before it reads anything.
fn unread(error: LedgerError, ledger: &Path) -> anyhow::Error {
    let is_of_file = matches!(error.kind(), Failure::Corrupt | Failure::Unwritten);
    let error = worded::error(error, ledger);
    if is_of_file { error.context(UNREAD) } else { error }
}

fn note(remark: &Remark) {
    remark::note(worded::remark(remark));
}

impl Account {
    /// What is charged, if there is a ledger.
    fn to_charge(&self) -> Option<ledger::Account> {
        let (budget, data_set) = (self.budget, self.data_set.clone());
        self.ledger.clone().map(|ledger| ledger::Account { ledger, budget, data_set })
    }
}
