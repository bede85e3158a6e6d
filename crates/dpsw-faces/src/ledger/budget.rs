//! Budgets are changed in the ledger alone, by its owner.

use std::path::Path;

use crate::ledger::accounts::Accounts;
use crate::ledger::amount::Amount;
use crate::ledger::charge::budget_entry;
use crate::ledger::error::LedgerError;
use crate::ledger::file::LedgerFile;
use crate::ledger::remark::Remark;
use crate::ledger::source;

/// Sets what may be spent on a data set in all. One of its files names it too.
///
/// # Errors
/// The budget is no epsilon, or the ledger cannot be read and written.
pub fn set_budget(
    ledger: &Path,
    data_set: &str,
    budget: f64,
    say: &dyn Fn(&Remark),
) -> Result<(), LedgerError> {
    let budget = Amount::new(budget).map_err(LedgerError::Budget)?;
    let (file, accounts) = LedgerFile::open(ledger, say)?;
    let name = known_name(data_set, &accounts);
    if accounts.spent(&name) == Amount::default() {
        say(&Remark::Unspent { data_set: name.clone() });
    }
    file.append(&[budget_entry(&name, budget)])
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
