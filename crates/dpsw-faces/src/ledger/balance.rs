//! What a run leaves.

use std::fmt;

use crate::ledger::accounts::Accounts;
use crate::ledger::amount::Amount;

/// What is spent on a data set with a run, and what may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Balance {
    /// Its name.
    pub data_set: String,
    /// By all runs so far, and this one.
    pub spent: Amount,
    /// What may be spent in all, if there is a limit.
    pub budget: Option<Amount>,
}

impl Balance {
    /// Of each data set of the newest run.
    pub(crate) fn of(accounts: &Accounts) -> Vec<Self> {
        let sets = accounts.runs().last().map_or(&[][..], |run| &run.charge.data_sets);
        let of_set = |name: &str| Self {
            data_set: name.to_owned(),
            spent: accounts.spent(name),
            budget: accounts.budget(name),
        };
        sets.iter().map(|set| of_set(&set.name)).collect()
    }

    /// What is left of the budget.
    pub fn left(&self) -> Option<Amount> {
        self.budget.map(|budget| budget.without(self.spent))
    }
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { data_set, spent, .. } = self;
        match (self.budget, self.left()) {
            (Some(budget), Some(left)) => write!(
                f,
                "epsilon = {spent} of {budget} is spent on {data_set} with this run, {left} is left"
            ),
            _ => write!(f, "epsilon = {spent} is spent on {data_set} with this run"),
        }
    }
}
