//! What a run has charged, until it answers.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::ledger::balance::Balance;
use crate::ledger::charge::now;
use crate::ledger::entry::Entry;
use crate::ledger::error::LedgerError;
use crate::ledger::file::LedgerFile;
use crate::ledger::remark::Remark;

/// What a run has charged. If this goes before the run showed or saved anything, the charge is given back; a run that is
/// killed, or that panics, has spent it.
pub struct Spending {
    ledger: PathBuf,
    run: u64,
    balances: Vec<Balance>,
    /// Something was answered, or the charge was given back.
    is_settled: AtomicBool,
    /// The process that was charged: what a fork of it drops may still be answered here.
    process: u32,
    say: Box<dyn Fn(&Remark) + Send + Sync>,
}

impl Spending {
    pub(crate) fn new(
        ledger: PathBuf,
        run: u64,
        balances: Vec<Balance>,
        say: Box<dyn Fn(&Remark) + Send + Sync>,
    ) -> Self {
        let (is_settled, process) = (AtomicBool::new(false), std::process::id());
        Self { ledger, run, balances, is_settled, process, say }
    }

    /// The ledger's file.
    pub fn ledger(&self) -> &Path {
        &self.ledger
    }

    /// The number of the run in the ledger, from 1.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// What is spent and left of each data set with this run.
    pub fn balances(&self) -> &[Balance] {
        &self.balances
    }

    /// Something is about to be shown or saved: what was charged is spent.
    pub fn answer(&self) {
        self.is_settled.store(true, Ordering::SeqCst);
    }

    /// Gives the charge back, and says whether that was done: what was answered stays spent.
    ///
    /// # Errors
    /// The ledger cannot be read and written; the run stays charged.
    pub fn give_back(self) -> Result<bool, LedgerError> {
        self.settle()
    }

    fn settle(&self) -> Result<bool, LedgerError> {
        if self.is_settled.swap(true, Ordering::SeqCst) || self.process != std::process::id() {
            return Ok(false);
        }
        let (file, _) = LedgerFile::open(&self.ledger, &self.say)?;
        file.append(&[Entry::GivenBack { time: now(), run: self.run }])?;
        Ok(true)
    }
}

impl Drop for Spending {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let Self { ledger, run, .. } = &*self;
        match self.settle() {
            Ok(true) => (self.say)(&Remark::GivenBack { ledger: ledger.clone(), run: *run }),
            Ok(false) => {}
            Err(error) => (self.say)(&Remark::StaysCharged { run: *run, error }),
        }
    }
}

impl fmt::Debug for Spending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ledger, run, balances, .. } = self;
        f.debug_struct("Spending")
            .field("ledger", ledger)
            .field("run", run)
            .field("balances", balances)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ledger with the charge of one run.
    const CHARGED: &str = concat!(
        "{\"entry\":\"dpsw ledger\",\"version\":1}\n",
        "{\"entry\":\"charge\",\"time\":\"\",\"run\":1,\"unit\":\"users\",\"epsilon\":1.0,\"delta\":0.0,",
        "\"window\":{\"items\":9},\"data_sets\":[]}\n"
    );

    #[test]
    fn a_fork_gives_nothing_back_that_its_parent_may_still_answer() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("spent.jsonl");
        let charged = |process| {
            std::fs::write(&path, CHARGED).expect("written");
            let mut spending = Spending::new(path.clone(), 1, Vec::new(), Box::new(|_| ()));
            spending.process = process;
            spending
        };
        let is_given_back = || std::fs::read_to_string(&path).is_ok_and(|text| text.contains("given back"));
        drop(charged(std::process::id() + 1));
        assert!(!is_given_back());
        drop(charged(std::process::id()));
        assert!(is_given_back());
    }
}
