//! What a run would cost, without it.

use std::process::Stdio;

use crate::run::Run;
use crate::sandbox::{Sandbox, errors, fails, json, records, text};
use crate::schema;

const ASKED: [&str; 6] = ["--window", "1000", "--epsilon", "0.5", "--domain", "keys.txt"];

#[test]
fn a_dry_run_shows_the_plan_and_what_would_be_spent() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", "these are not the records of a table");
    for command in [&["top", "t.csv", "--column", "2"][..], &["count", "a", "t.csv", "--column", "2"]] {
        let output = sandbox.run(&[command, &ASKED, &["--dry-run", "--save", "t.view"]].concat());
        assert!(output.status.success(), "{}", errors(&output));
        let page = text(&output);
        for part in [
            "no item was counted",
            "t.csv (csv)",
            "epsilon = 0.5, delta = 0 on each event",
            "Expected error",
            "promise ",
            "would save   t.view",
        ] {
            assert!(page.contains(part), "{part:?} in {page}");
        }
        assert!(!errors(&output).contains("this run spends"), "{}", errors(&output));
        assert!(!sandbox.path("t.view").exists());
    }
}

#[test]
fn a_dry_run_is_a_document_too() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", records(3000, |_, item| format!("{item}\n")));
    let plan = json(&sandbox.run(&[&["top", "t.txt", "--dry-run", "--json"][..], &ASKED].concat()));
    schema::check(&schema::schema("dry-run"), &plan);
    schema::check(&schema::schema("plan"), &plan["plan"]);
    assert_eq!((&plan["dry_run"], &plan["epsilon"]), (&true.into(), &0.5.into()), "{plan}");
    assert_eq!(plan["files"][0]["format"], "told by its content", "{plan}");
    assert_eq!(plan["plan"]["structure"]["window"], 1000, "{plan}");
    fails(&sandbox.run(&[&["top", "t.txt", "--dry-run", "--csv"][..], &ASKED].concat()), 2, &["--csv"]);
}

#[test]
fn a_dry_run_does_not_wait_for_its_input() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&[&["top", "--dry-run"][..], &ASKED].concat());
    let mut run = Run::start(command.stdin(Stdio::piped()));
    assert_eq!(run.code(), Some(0));
}

#[test]
fn a_dry_run_refuses_what_a_run_would_refuse() {
    let sandbox = Sandbox::new();
    fails(&sandbox.run(&[&["top", "nowhere.txt", "--dry-run"][..], &ASKED].concat()), 4, &["nowhere.txt"]);
    sandbox.write("t.txt", "a\n");
    let save = ["top", "t.txt", "--dry-run", "--save", "missing/t.view"];
    fails(&sandbox.run(&[&save[..], &ASKED].concat()), 1, &["missing/t.view cannot be written"]);
}
