//! A ledger in the words of the outside: what was spent on what, when, and how much is left.

use std::path::Path;

use serde::Serialize;

use crate::ledger::accounts::{Accounts, Run};
use crate::ledger::amount::Amount;
use crate::ledger::entry::{Protected, VERSION, WindowLen};
use crate::ledger::error::LedgerError;
use crate::ledger::file;
use crate::ledger::remark::Remark;

/// All that a ledger says.
#[derive(Debug, Serialize)]
pub struct Document {
    /// Its path.
    pub file: String,
    /// Of its format.
    pub version: u32,
    /// In the order in which they appeared.
    pub data_sets: Vec<SetDocument>,
    /// In the order in which they were charged.
    pub runs: Vec<RunDocument>,
}

/// What was spent on a data set.
#[derive(Debug, Serialize)]
pub struct SetDocument {
    /// As its owner calls it, or the path of its file.
    pub name: String,
    /// What all its charges are about; nothing before the first one.
    pub unit: Option<Protected>,
    /// The sum of its runs.
    pub epsilon: f64,
    /// The sum of its runs.
    pub delta: f64,
    /// What may be spent in all.
    pub budget: Option<f64>,
    /// What is left of it.
    pub left: Option<f64>,
    /// Runs that were not given back.
    pub runs: usize,
    /// When the last of them was charged.
    pub last: Option<String>,
}

/// One run.
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

/// What a ledger says now; nothing is changed.
///
/// # Errors
/// The file cannot be read, or is no ledger, or is damaged.
pub fn read(ledger: &Path, say: &dyn Fn(&Remark)) -> Result<Document, LedgerError> {
    let accounts = file::read(ledger, say)?;
    Ok(Document {
        file: ledger.display().to_string(),
        version: VERSION,
        data_sets: accounts.names().into_iter().map(|name| SetDocument::new(&accounts, name)).collect(),
        runs: accounts.runs().iter().map(RunDocument::new).collect(),
    })
}

impl SetDocument {
    fn new(accounts: &Accounts, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            unit: accounts.unit(name),
            epsilon: accounts.spent(name).get(),
            delta: accounts.delta(name),
            budget: accounts.budget(name).map(Amount::get),
            left: accounts.left(name).map(Amount::get),
            runs: accounts.kept(name).count(),
            last: accounts.kept(name).last().map(|run| run.charge.time.clone()),
        }
    }
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
