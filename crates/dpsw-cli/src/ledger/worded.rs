//! What a ledger says, with the options that help.

use std::path::Path;

use anyhow::Error;
use dpsw_faces::ledger::{Amount, Balance, LedgerError, Remark};

use crate::fault::{self, Fault};
use crate::input::file::name;

/// What is spent and left of each data set.
pub(crate) fn balances(ledger: &Path, balances: &[Balance]) -> Vec<String> {
    let line = |balance: &Balance| {
        let limit = if balance.budget.is_none() { "; --budget EPSILON sets a limit" } else { "" };
        format!("{}: {balance}{limit}", ledger.display())
    };
    balances.iter().map(line).collect()
}

pub(crate) fn remark(remark: &Remark) -> String {
    match remark {
        Remark::Elsewhere { data_set, .. } => format!("{remark}: --data-set {data_set:?}"),
        _ => remark.to_string(),
    }
}

/// A failure, and what to do about it.
pub(crate) fn error(error: LedgerError, ledger: &Path) -> Error {
    let ledger = ledger.display();
    let text = match &error {
        LedgerError::Budget(error) => return Error::from(error.clone()).context("--budget"),
        LedgerError::Nameless => "--data-set needs a name".to_owned(),
        LedgerError::NoPath { path } => format!(
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
