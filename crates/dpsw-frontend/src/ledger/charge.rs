//! A run is charged before it counts any item, or refused. Budgets are changed in the ledger alone, by its owner.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use dpsw::{Claim, Plan};

use crate::ledger::accounts::{Accounts, Balance, Document};
use crate::ledger::amount::Amount;
use crate::ledger::entry::{Charge, DataSet, Entry, FileMark, Protected, WindowLen, now};
use crate::ledger::error::{LedgerError, Remark};
use crate::ledger::file::{self, LedgerFile};

/// The account to which a run is charged.
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
    Ok(Spending::new(ledger.clone(), run, accounts.newest_balances(), Box::new(say)))
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
    Ok(accounts.newest_balances())
}

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
        say(&Remark::Unspent(name.clone()));
    }
    file.append(&[budget_entry(&name, budget)])
}

/// What a ledger says now; nothing is changed.
///
/// # Errors
/// The file cannot be read, or is no ledger, or is damaged.
pub fn read(ledger: &Path, say: &dyn Fn(&Remark)) -> Result<Document, LedgerError> {
    Ok(file::read(ledger, say)?.document(ledger))
}

/// The charge of a run. If this goes before the run showed or saved anything, the charge is given back; a run that is
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
    fn new(
        ledger: PathBuf,
        run: u64,
        balances: Vec<Balance>,
        say: Box<dyn Fn(&Remark) + Send + Sync>,
    ) -> Self {
        let is_settled = AtomicBool::new(false);
        Self { ledger, run, balances, is_settled, process: std::process::id(), say }
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
        data_sets: data_sets(account.data_set.as_deref(), paths, accounts, say)?,
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

fn budget_entry(data_set: &str, budget: Amount) -> Entry {
    Entry::Budget { time: now(), data_set: data_set.to_owned(), epsilon: budget.get() }
}

/// The data sets of these files: the one that was named, or one for each file, by its path.
fn data_sets(
    name: Option<&str>,
    paths: &[PathBuf],
    known: &Accounts,
    say: &dyn Fn(&Remark),
) -> Result<Vec<DataSet>, LedgerError> {
    match name {
        Some(name) => named(name, paths, known, say),
        // What is charged to nobody would never be missed.
        None if paths.is_empty() => Err(LedgerError::NoFiles),
        None => by_path(paths, known, say),
    }
}

fn named(
    name: &str,
    paths: &[PathBuf],
    known: &Accounts,
    say: &dyn Fn(&Remark),
) -> Result<Vec<DataSet>, LedgerError> {
    if name.trim().is_empty() {
        return Err(LedgerError::Nameless);
    }
    let files: Vec<FileMark> = paths.iter().filter_map(|path| FileMark::of(path)).collect();
    for file in &files {
        if let Some(other) = known.sets_of(file).into_iter().find(|other| *other != name) {
            say(&Remark::Elsewhere { file: file.path.clone(), data_set: other.to_owned() });
        }
    }
    Ok(vec![DataSet { name: name.to_owned(), files }])
}

fn by_path(paths: &[PathBuf], known: &Accounts, say: &dyn Fn(&Remark)) -> Result<Vec<DataSet>, LedgerError> {
    let mut sets: Vec<DataSet> = Vec::new();
    for path in paths {
        let file = FileMark::of(path).ok_or_else(|| LedgerError::NoPath(path.clone()))?;
        let name = name_of(&file, known, say)?;
        match sets.iter_mut().find(|set| set.name == name) {
            Some(set) => set.files.push(file),
            None => sets.push(DataSet { name, files: vec![file] }),
        }
    }
    Ok(sets)
}

/// The data set to which a file was charged before, or else its path.
fn name_of(file: &FileMark, known: &Accounts, say: &dyn Fn(&Remark)) -> Result<String, LedgerError> {
    match known.sets_of(file)[..] {
        [] => Ok(file.path.clone()),
        [name] => {
            if name != file.path {
                say(&Remark::Again { file: file.path.clone(), data_set: name.to_owned() });
            }
            Ok(name.to_owned())
        }
        ref names => Err(LedgerError::Several {
            file: file.path.clone(),
            data_sets: names.iter().map(|&name| name.to_owned()).collect(),
        }),
    }
}

/// A data set may also be named by one of its files.
fn known_name(name: &str, accounts: &Accounts) -> String {
    let file = FileMark::of(Path::new(name)).filter(|_| !accounts.names().contains(&name));
    match file.map(|file| accounts.sets_of(&file)).as_deref() {
        Some([only]) => (*only).to_owned(),
        _ => name.to_owned(),
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
