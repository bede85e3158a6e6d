//! What was spent on each data set, and whether more may be.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::ledger::amount::Amount;
use crate::ledger::entry::{Charge, DataSet, Entry, FileMark, Protected, VERSION, WindowLen};
use crate::ledger::error::LedgerError;

/// The sums of a ledger.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    budgets: Vec<(String, Amount)>,
    runs: Vec<Run>,
}

/// A run that was charged.
#[derive(Debug)]
struct Run {
    charge: Charge,
    epsilon: Amount,
    is_given_back: bool,
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
    fn kept<'a>(&'a self, data_set: &'a str) -> impl Iterator<Item = &'a Run> {
        self.runs.iter().filter(move |run| !run.is_given_back && run.is_on(data_set))
    }

    pub(crate) fn spent(&self, data_set: &str) -> Amount {
        self.kept(data_set).map(|run| run.epsilon).sum()
    }

    fn delta(&self, data_set: &str) -> f64 {
        // The sum of no floating-point numbers is -0.
        self.kept(data_set).fold(0.0, |sum, run| sum + run.charge.delta)
    }

    /// The unit of a data set stays what its first charge said.
    fn unit(&self, data_set: &str) -> Option<Protected> {
        self.kept(data_set).next().map(|run| run.charge.unit)
    }

    /// The budget that was set last.
    pub(crate) fn budget(&self, data_set: &str) -> Option<Amount> {
        let mut budgets = self.budgets.iter().rev();
        budgets.find(|(name, _)| name == data_set).map(|(_, budget)| *budget)
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
            let data_set = name.clone();
            match self.unit(name) {
                Some(charged) if charged != charge.unit => {
                    return Err(LedgerError::OtherUnit { data_set, charged, asked: charge.unit });
                }
                _ => {}
            }
            let spent = self.spent(name);
            match (self.budget(name), budget) {
                (Some(budget), Some(asked)) if budget != asked => {
                    return Err(LedgerError::OtherBudget { data_set, budget, asked });
                }
                (Some(budget), _) | (None, Some(budget)) if budget < spent.plus(asked) => {
                    return Err(LedgerError::OverBudget { data_set, budget, spent, asked });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The sums of a data set.
    fn balance(&self, name: &str) -> Balance {
        let budget = self.budget(name);
        let epsilon = self.spent(name);
        Balance {
            name: name.to_owned(),
            unit: self.unit(name),
            epsilon,
            delta: self.delta(name),
            budget,
            left: budget.map(|budget| budget.without(epsilon)),
            runs: self.kept(name).count(),
            last: self.kept(name).last().map(|run| run.charge.time.clone()),
        }
    }

    /// The sums of each data set of the newest run.
    pub(crate) fn newest_balances(&self) -> Vec<Balance> {
        let sets = self.runs.last().map_or(&[][..], |run| &run.charge.data_sets);
        sets.iter().map(|set| self.balance(&set.name)).collect()
    }

    /// The sums of the ledger with this path, for the outside.
    pub(crate) fn document(&self, ledger: &Path) -> Document {
        Document {
            file: ledger.display().to_string(),
            version: VERSION,
            data_sets: self.names().into_iter().map(|name| self.balance(name)).collect(),
            runs: self.runs.iter().map(RunDocument::new).collect(),
        }
    }
}

/// All that a ledger says.
#[derive(Debug, Serialize)]
pub struct Document {
    /// Its path.
    pub file: String,
    /// Of its format.
    pub version: u32,
    /// In the order in which they appeared.
    pub data_sets: Vec<Balance>,
    /// In the order in which they were charged.
    pub runs: Vec<RunDocument>,
}

/// The balance of a data set: what was spent on it, and what may be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Balance {
    /// As its owner calls it, or the path of its file.
    pub name: String,
    /// What all its charges are about; nothing before the first one.
    pub unit: Option<Protected>,
    /// The sum of its runs.
    pub epsilon: Amount,
    /// The sum of its runs.
    pub delta: f64,
    /// What may be spent in all, if there is a limit.
    pub budget: Option<Amount>,
    /// What is left of it.
    pub left: Option<Amount>,
    /// Runs that were not given back.
    pub runs: usize,
    /// When the last of them was charged.
    pub last: Option<String>,
}

/// A run in the words of the outside.
#[derive(Debug, Serialize)]
pub struct RunDocument {
    /// Its number, from 1.
    pub run: u64,
    /// When it was charged.
    pub time: String,
    /// What its charge is about.
    pub unit: Protected,
    /// What it spends on each data set.
    pub epsilon: f64,
    /// What it spends on each data set.
    pub delta: f64,
    /// Of its plan.
    pub window: WindowLen,
    /// By name.
    pub data_sets: Vec<String>,
    /// Whether it ended before it answered.
    pub given_back: bool,
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

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, epsilon, .. } = self;
        match (self.budget, self.left) {
            (Some(budget), Some(left)) => {
                write!(f, "epsilon = {epsilon} of {budget} is spent on {name} with this run, {left} is left")
            }
            _ => write!(f, "epsilon = {epsilon} is spent on {name} with this run"),
        }
    }
}
