//! What a stream charges to a ledger, the same file that the command line has.

use std::path::PathBuf;

use dpsw_frontend::ledger::{self, Account, LedgerError, Remark, Spending};
use pyo3::prelude::*;

use crate::fault::Fault;
use crate::plan::Plan;

/// Charges a stream before it counts any item, or refuses it.
pub(crate) fn charge(account: (PathBuf, String, Option<f64>), plan: &dpsw::Plan) -> Result<Spending, Fault> {
    let (ledger, data_set, budget) = account;
    let account = Account { ledger, budget, data_set: Some(data_set) };
    Ok(ledger::charge(&account, plan, &[], say)?)
}

/// Charges a stream for good, and says what is left.
#[pyfunction]
pub(crate) fn spend(
    py: Python<'_>,
    plan: &Plan,
    account: (PathBuf, String, Option<f64>),
) -> Result<Vec<String>, Fault> {
    let spending = py.detach(|| charge(account, &plan.plan))?;
    spending.answer();
    Ok(balance(&spending))
}

/// What is spent and left, a line for each data set.
pub(crate) fn balance(spending: &Spending) -> Vec<String> {
    let ledger = spending.ledger().display();
    spending.balances().iter().map(|balance| format!("{ledger}: {balance}")).collect()
}

fn say(remark: &Remark) {
    eprintln!("{remark}");
}

impl From<LedgerError> for Fault {
    fn from(error: LedgerError) -> Self {
        let advice = match &error {
            LedgerError::OverBudget { .. } => {
                "; ask a View that you have, or change the budget with `dpsw ledger`"
            }
            LedgerError::OtherBudget { .. } => "; leave budget= out, or change it with `dpsw ledger`",
            LedgerError::OtherUnit { .. } => {
                "; protect the same unit, or give these events another data_set="
            }
            _ => "",
        };
        Self::of("LedgerError", format!("{error}{advice}; no item was counted, and nothing is spent"))
    }
}
