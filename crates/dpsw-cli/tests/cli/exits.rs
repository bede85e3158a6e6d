//! Each exit code means what the help says.

use std::io::{BufRead, BufReader, Read};
use std::process::Command;

use crate::run::Run;
use crate::sandbox::{Sandbox, errors, fails, records, text};

/// A file, a saved view of it and a damaged copy of that.
fn prepared() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", records(3000, |_, item| format!("{item}\n")));
    sandbox.write("broken.csv", "a,b\n\"\n");
    let save =
        ["top", "t.txt", "--window", "1000", "--epsilon", "1", "--domain", "keys.txt", "--save", "t.view"];
    assert_eq!(sandbox.run(&save).status.code(), Some(0));
    let mut bytes = std::fs::read(sandbox.path("t.view")).expect("a view");
    bytes[40] ^= 1;
    sandbox.write("damaged.view", bytes);
    sandbox.write("damaged.jsonl", "{\"entry\":\"dpsw ledger\",\"version\":1}\nnonsense\n");
    sandbox
}

#[test]
fn the_help_lists_every_exit_code() {
    let help = text(&Sandbox::new().run(&["--help"]));
    let listed: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Exit codes:")
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(listed, ["0", "1", "2", "3", "4", "5", "130"], "{help}");
    for command in ["top", "count"] {
        assert!(text(&Sandbox::new().run(&[command, "--help"])).contains("dpsw --help lists the exit codes"));
    }
}

#[test]
fn every_failure_has_its_exit_code() {
    let sandbox = prepared();
    let top = ["top", "t.txt", "--domain", "keys.txt", "--window", "1000", "--epsilon"];
    let with = |more: &[&'static str]| [&top[..], more].concat();
    for (command, code) in [
        (with(&["1", "--save", "missing/t.view"]), 1),
        (with(&["1", "--ledger", "missing/spent.jsonl"]), 1),
        (vec!["completions", "schema", "--out", "t.txt"], 1),
        (vec!["top", "t.txt"], 2),
        (vec!["tpo"], 2),
        (with(&["-1"]), 2),
        (with(&["1", "t.txt"]), 2),
        (with(&["0.0001"]), 3),
        (with(&["2", "--ledger", "spent.jsonl", "--budget", "1"]), 3),
        (with(&["1", "nowhere.txt"]), 4),
        (vec!["top", "broken.csv", "--column", "1", "--window", "1000", "--epsilon", "1"], 4),
        (vec!["top", "--view", "nowhere.view"], 4),
        (vec!["ledger", "nowhere.jsonl"], 4),
        (vec!["top", "--view", "damaged.view"], 5),
        (vec!["inspect", "damaged.view"], 5),
        (vec!["ledger", "damaged.jsonl"], 5),
        (with(&["1", "--ledger", "damaged.jsonl"]), 5),
    ] {
        let output = sandbox.run(&command);
        fails(&output, code, &[]);
        assert!(!errors(&output).is_empty(), "{command:?} says why");
    }
}

#[test]
fn an_interrupt_ends_with_130_and_what_was_there() {
    for signal in ["-INT", "-TERM"] {
        let sandbox = prepared();
        let follow =
            ["top", "t.txt", "--follow", "--domain", "keys.txt", "--window", "1000", "--epsilon", "1"];
        let mut run =
            Run::start(&mut sandbox.command(&[&follow[..], &["--every", "1000", "--ndjson"]].concat()));
        let mut answers = BufReader::new(run.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        assert!(answers.next().is_some(), "the file is read");
        run.signal(signal);
        assert_eq!(run.code(), Some(130), "{signal}");
        let mut said = String::new();
        run.stderr.take().expect("a pipe").read_to_string(&mut said).expect("UTF-8");
        assert!(said.contains("interrupted; this is what was there"), "{said}");
    }
}

#[test]
fn an_interrupted_demo_ends_with_130_and_a_summary() {
    let mut run = Run::start(&mut Sandbox::new().command(&["demo"]));
    let mut lines = BufReader::new(run.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(lines.next().is_some(), "it has begun");
    run.signal("-INT");
    assert!(lines.last().expect("a summary").starts_with("demo: "));
    assert_eq!(run.code(), Some(130));
}

#[test]
fn whoever_reads_the_answers_may_stop_early() {
    let sandbox = prepared();
    let binary = env!("CARGO_BIN_EXE_dpsw");
    let top =
        format!("{binary} top t.txt --domain keys.txt --window 1000 --epsilon 1 --every 10 --ndjson -q");
    // `head` has read its line and is gone long before the last answer.
    let shell = format!("{{ {top}; echo $? > code; }} | head -n 1");
    let mut command = Command::new("sh");
    let output = Run::start(command.args(["-c", &shell]).current_dir(sandbox.path(""))).output();
    assert_eq!(text(&output).lines().count(), 1, "{}", errors(&output));
    assert_eq!(std::fs::read_to_string(sandbox.path("code")).expect("a code"), "0\n");
}
