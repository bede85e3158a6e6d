//! What was spent on each data set, and whether more may be.

use crate::ledger::amount::Amount;
use crate::ledger::entry::{Charge, DataSet, Entry, FileMark, Protected};
use crate::ledger::error::LedgerError;

/// The sum of a ledger.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    budgets: Vec<(String, Amount)>,
    runs: Vec<Run>,
}

/// A run that was charged.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) charge: Charge,
    pub(crate) epsilon: Amount,
    pub(crate) is_given_back: bool,
}

impl Run {
    fn is_on(&self, data_set: &str) -> bool {
        self.charge.data_sets.iter().any(|set| set.name == data_set)
    }
}

impl Accounts {
    /// Takes the next line of the file; an error says what is wrong with it.
    pub(crate) fn take(&mut self, entry: Entry) -> Result<(), String> {
        match entry {
            Entry::Start { .. } => return Err("a ledger starts once".to_owned()),
            Entry::Budget { data_set, epsilon, .. } => {
                let budget = Amount::new(epsilon).map_err(|error| error.to_string())?;
                self.budgets.push((data_set, budget));
            }
            Entry::Charge(charge) => self.take_charge(charge)?,
            Entry::GivenBack { run, .. } => {
                let mut runs = self.runs.iter_mut();
                let found = runs.find(|known| known.charge.run == run && !known.is_given_back);
                found.ok_or_else(|| format!("there is no charge of run {run} to give back"))?.is_given_back =
                    true;
            }
        }
        Ok(())
    }

    fn take_charge(&mut self, charge: Charge) -> Result<(), String> {
        let epsilon = Amount::new(charge.epsilon).map_err(|error| error.to_string())?;
        if !(0.0..1.0).contains(&charge.delta) {
            return Err(format!("delta must lie between 0 and 1, got {}", charge.delta));
        }
        if charge.run < self.next_run() {
            return Err(format!("run {} follows a later one", charge.run));
        }
        self.runs.push(Run { charge, epsilon, is_given_back: false });
        Ok(())
    }

    pub(crate) fn next_run(&self) -> u64 {
        self.runs.last().map_or(1, |run| run.charge.run + 1)
    }

    pub(crate) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The names of all data sets, in the order in which they appeared.
    pub(crate) fn names(&self) -> Vec<&str> {
        let charged = self.runs.iter().flat_map(|run| &run.charge.data_sets).map(|set| set.name.as_str());
        let mut names: Vec<&str> = Vec::new();
        for name in charged.chain(self.budgets.iter().map(|(name, _)| name.as_str())) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The runs that count for a data set.
    pub(crate) fn kept<'a>(&'a self, data_set: &'a str) -> impl Iterator<Item = &'a Run> {
        self.runs.iter().filter(move |run| !run.is_given_back && run.is_on(data_set))
    }

    pub(crate) fn spent(&self, data_set: &str) -> Amount {
        self.kept(data_set).map(|run| run.epsilon).sum()
    }

    pub(crate) fn delta(&self, data_set: &str) -> f64 {
        // The sum of no floating-point numbers is -0.
        self.kept(data_set).fold(0.0, |sum, run| sum + run.charge.delta)
    }

    /// The unit of a data set stays what its first charge said.
    pub(crate) fn unit(&self, data_set: &str) -> Option<Protected> {
        self.kept(data_set).next().map(|run| run.charge.unit)
    }

    /// The budget that was set last.
    pub(crate) fn budget(&self, data_set: &str) -> Option<Amount> {
        let mut budgets = self.budgets.iter().rev();
        budgets.find(|(name, _)| name == data_set).map(|(_, budget)| *budget)
    }

    pub(crate) fn left(&self, data_set: &str) -> Option<Amount> {
        self.budget(data_set).map(|budget| budget.without(self.spent(data_set)))
    }

    /// The data sets to which a file was charged, each once.
    pub(crate) fn sets_of(&self, file: &FileMark) -> Vec<&str> {
        let holds = |set: &&DataSet| set.files.iter().any(|known| known.is(file));
        let runs = self.runs.iter().filter(|run| !run.is_given_back);
        let mut names: Vec<&str> =
            runs.flat_map(|run| &run.charge.data_sets).filter(holds).map(|set| set.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Refuses a charge of so much that does not fit one of its data sets.
    pub(crate) fn check(
        &self,
        charge: &Charge,
        asked: Amount,
        budget: Option<Amount>,
    ) -> Result<(), LedgerError> {
        for DataSet { name, .. } in &charge.data_sets {
            self.check_unit(name, charge.unit)?;
            let budget = self.check_same_budget(name, budget)?;
            self.check_fits(name, asked, budget)?;
        }
        Ok(())
    }

    fn check_unit(&self, name: &str, asked: Protected) -> Result<(), LedgerError> {
        match self.unit(name) {
            Some(charged) if charged != asked => {
                Err(LedgerError::OtherUnit { data_set: name.to_owned(), charged, asked })
            }
            _ => Ok(()),
        }
    }

    fn check_same_budget(&self, name: &str, asked: Option<Amount>) -> Result<Option<Amount>, LedgerError> {
        match (self.budget(name), asked) {
            (Some(budget), Some(asked)) if budget != asked => {
                Err(LedgerError::OtherBudget { data_set: name.to_owned(), budget, asked })
            }
            (budget, asked) => Ok(budget.or(asked)),
        }
    }

    fn check_fits(&self, name: &str, asked: Amount, budget: Option<Amount>) -> Result<(), LedgerError> {
        let spent = self.spent(name);
        match budget {
            Some(budget) if budget < spent.plus(asked) => {
                Err(LedgerError::OverBudget { data_set: name.to_owned(), budget, spent, asked })
            }
            _ => Ok(()),
        }
    }
}
