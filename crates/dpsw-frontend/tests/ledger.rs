//! A ledger as a front end uses it: charged before anything is counted, and given back unless something was answered.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use dpsw::{Plan, Settings, Unit};
use dpsw_frontend::ledger::{self, Account, Failure, LedgerError, Remark, Spending};
use tempfile::TempDir;

struct Desk {
    folder: TempDir,
    said: Arc<Mutex<Vec<String>>>,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("log"), "a\n").expect("a file");
        Self { folder, said: Arc::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn account(&self, data_set: Option<&str>, budget: Option<f64>) -> Account {
        Account { ledger: self.path("spent.jsonl"), budget, data_set: data_set.map(str::to_owned) }
    }

    /// Charges a run over these files.
    fn charge(&self, account: &Account, epsilon: f64, files: &[&str]) -> Result<Spending, LedgerError> {
        let paths: Vec<PathBuf> = files.iter().map(|name| self.path(name)).collect();
        let said = Arc::clone(&self.said);
        let say = move |remark: &Remark| said.lock().expect("one at a time").push(remark.to_string());
        ledger::charge(account, &plan(epsilon, Unit::ReplaceOne), &paths, say)
    }

    fn said(&self) -> String {
        self.said.lock().expect("one at a time").join("\n")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path("spent.jsonl")).expect("a ledger")
    }

    /// Epsilons of the data sets, and whether each run was given back.
    fn sums(&self) -> (Vec<f64>, Vec<bool>) {
        let document = ledger::read(&self.path("spent.jsonl"), &|_| ()).expect("a ledger");
        let sets = document.data_sets.iter().map(|set| set.epsilon.get()).collect();
        (sets, document.runs.iter().map(|run| run.given_back).collect())
    }
}

fn plan(epsilon: f64, unit: Unit) -> Plan {
    let settings = Settings::last_items(1000, epsilon).expect("in range").with_keys(["a", "b"]);
    Settings { unit, ..settings }.plan().expect("a plan")
}

#[test]
fn what_a_front_end_holds_may_go_to_another_thread() {
    fn check<T: Send + Sync + 'static>() {}
    check::<Spending>();
}

#[test]
fn what_goes_unanswered_is_given_back_and_what_answered_is_not() {
    let desk = Desk::new();
    let account = desk.account(Some("shop"), Some(3.0));
    let first = desk.charge(&account, 1.0, &[]).expect("it fits");
    assert!(desk.text().contains("\"charge\""), "it is charged at once");
    assert_eq!((first.run(), first.ledger()), (1, desk.path("spent.jsonl").as_path()));
    drop(first);
    assert!(desk.said().contains("run 1 is given back"), "{}", desk.said());

    let second = desk.charge(&account, 0.5, &[]).expect("it fits");
    let lines: Vec<String> = second.balances().iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["epsilon = 0.5 of 3 is spent on shop with this run, 2.5 is left"]);
    second.answer();
    drop(second);
    assert_eq!(desk.sums(), (vec![0.5], vec![true, false]));
}

#[test]
fn a_charge_is_given_back_once_when_asked_and_never_after_an_answer() {
    let desk = Desk::new();
    let account = desk.account(Some("shop"), None);
    let unanswered = desk.charge(&account, 1.0, &[]).expect("it fits");
    assert_eq!(unanswered.give_back().ok(), Some(true));
    assert_eq!(desk.text().matches("given back").count(), 1);
    assert_eq!(desk.said(), "", "who asks gets the result");
    let answered = desk.charge(&account, 1.0, &[]).expect("it fits");
    answered.answer();
    assert_eq!(answered.give_back().ok(), Some(false));
    assert_eq!(desk.sums(), (vec![1.0], vec![true, false]));
}

#[test]
fn a_run_that_panics_has_spent() {
    let desk = Desk::new();
    let spending = desk.charge(&desk.account(Some("shop"), None), 1.0, &[]).expect("it fits");
    let run = std::thread::spawn(move || {
        let _held = spending;
        panic!("on purpose");
    });
    assert!(run.join().is_err());
    assert_eq!(desk.sums(), (vec![1.0], vec![false]));
}

#[test]
fn what_cannot_be_given_back_stays_charged_and_says_so() {
    let desk = Desk::new();
    let account = desk.account(Some("shop"), None);
    let spending = desk.charge(&account, 1.0, &[]).expect("it fits");
    let whole = desk.text();
    fs::write(desk.path("spent.jsonl"), format!("{whole}nonsense\n")).expect("written");
    drop(spending);
    assert!(desk.said().contains("run 1 stays charged") && desk.said().contains(":3:"), "{}", desk.said());
    fs::write(desk.path("spent.jsonl"), whole).expect("written");
    assert_eq!(desk.sums(), (vec![1.0], vec![false]));
}

#[test]
fn events_of_no_file_need_a_name() {
    let desk = Desk::new();
    let error = desk.charge(&desk.account(None, None), 1.0, &[]).expect_err("no name");
    assert_eq!(error.kind(), Failure::Usage);
    assert!(!desk.path("spent.jsonl").exists(), "nothing is charged: {error}");
    let stdin = [PathBuf::from("-")];
    let account = desk.account(None, None);
    let error = ledger::charge(&account, &plan(1.0, Unit::ReplaceOne), &stdin, |_| ()).expect_err("no path");
    assert!(matches!(error, LedgerError::NoPath(_)), "{error}");
}

#[test]
fn a_preview_says_what_a_run_would_leave_and_charges_nothing() {
    let desk = Desk::new();
    let (account, plan) = (desk.account(Some("shop"), Some(1.5)), plan(1.0, Unit::ReplaceOne));
    let preview = || ledger::preview(&account, &plan, &[], &|_| ());
    let balances = preview().expect("it fits");
    assert_eq!(balances[0].left.map(|left| left.to_string()).as_deref(), Some("0.5"));
    assert!(!desk.path("spent.jsonl").exists());
    desk.charge(&account, 1.0, &[]).expect("it fits").answer();
    assert_eq!(preview().expect_err("0.5 is left").kind(), Failure::Refused);
}

#[test]
fn a_budget_is_set_by_name_or_by_file() {
    let desk = Desk::new();
    desk.charge(&desk.account(Some("shop"), Some(1.0)), 1.0, &["log"]).expect("it fits").answer();
    let file = desk.path("log");
    let file = file.to_str().expect("plain text");
    ledger::set_budget(&desk.path("spent.jsonl"), file, 2.0, &|_| ()).expect("it is known");
    desk.charge(&desk.account(None, None), 1.0, &["log"]).expect("it fits").answer();
    assert_eq!(desk.sums(), (vec![2.0], vec![false, false]));
}

/// Python has no `--budget`.
#[test]
fn no_word_of_a_ledger_is_an_option_of_the_command_line() {
    let desk = Desk::new();
    let shop = desk.account(Some("shop"), Some(1.0));
    desk.charge(&shop, 0.5, &["log"]).expect("it fits").answer();
    desk.charge(&desk.account(Some("other"), None), 0.5, &["log"]).expect("it fits").answer();
    let users = plan(1.0, Unit::Users { per_substream: 1 });
    let errors = [
        (desk.charge(&desk.account(None, None), 1.0, &["log"]), Failure::Usage),
        (desk.charge(&desk.account(Some(" "), None), 1.0, &[]), Failure::Usage),
        (desk.charge(&desk.account(None, Some(-1.0)), 1.0, &[]), Failure::Usage),
        (desk.charge(&desk.account(Some("shop"), Some(2.0)), 0.1, &[]), Failure::Refused),
        (desk.charge(&shop, 1.0, &[]), Failure::Refused),
        (ledger::charge(&shop, &users, &[], |_| ()), Failure::Refused),
    ];
    for (error, kind) in errors {
        let error = error.expect_err("it does not fit");
        assert_eq!(error.kind(), kind, "{error}");
        assert!(!error.to_string().contains("--"), "{error}");
    }
    let said = desk.said();
    assert!(said.contains("was charged to shop before; if its events are the same"), "{said}");
    assert!(!said.contains("--"), "{said}");
}
