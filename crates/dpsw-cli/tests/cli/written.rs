//! An answer that cannot be written is not lost without a word.

use std::process::Command;

use crate::run::Run;
use crate::sandbox::{Sandbox, errors, json, records};

/// Runs a line of shell beside the binary.
fn shell(sandbox: &Sandbox, line: &str) -> std::process::Output {
    let line = line.replace("dpsw", env!("CARGO_BIN_EXE_dpsw"));
    Run::start(Command::new("sh").args(["-c", &line]).current_dir(sandbox.path(""))).output()
}

fn stream() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", records(10_000, |_, item| format!("{item}\n")));
    sandbox
}

const TOP: &str = "dpsw top t.txt --window 5000 --epsilon 1 --domain keys.txt";

#[track_caller]
fn check(line: &str, code: i32, wanted: &[&str]) -> Sandbox {
    let sandbox = stream();
    let output = shell(&sandbox, line);
    assert_eq!(output.status.code(), Some(code), "{line}: {}", errors(&output));
    for part in wanted {
        assert!(errors(&output).contains(part), "{part:?} in {}", errors(&output));
    }
    sandbox
}

#[test]
fn an_answer_on_a_full_disk_is_an_error_that_says_what_was_spent() {
    for layout in ["", "--json", "--csv", "--every 1000 --ndjson"] {
        let lost = ["standard output cannot be written", "its budget is spent", "--save would have kept it"];
        check(&format!("{TOP} {layout} > /dev/full"), 1, &lost);
    }
    for command in ["dpsw plan --window 1000 --epsilon 1 --keys 10", "dpsw completions bash"] {
        check(&format!("{command} > /dev/full"), 1, &["standard output cannot be written"]);
    }
}

#[test]
fn a_view_is_saved_before_its_answer_is_written() {
    for layout in ["", "--every 1000 --ndjson"] {
        let sandbox = check(&format!("{TOP} {layout} --save t.view > /dev/full"), 1, &["kept in t.view"]);
        assert!(!json(&sandbox.run(&["top", "--view", "t.view", "--json"]))["window"]["end"].is_null());
    }
    let sandbox = check(&format!("{TOP} --save t.view | true"), 0, &[]);
    assert_eq!(json(&sandbox.run(&["top", "--view", "t.view", "--json"]))["window"]["end"], 10_000);
}

#[test]
fn a_closed_output_is_refused_before_anything_is_spent() {
    check(&format!("{TOP} >&-"), 1, &["standard output is closed", "nothing was read and spent", "--save"]);
    check(&format!("{TOP} --save t.view >&-"), 0, &["saved to t.view"]);
    check(&format!("{TOP} > /dev/null"), 0, &[]);
}

#[test]
fn remarks_that_cannot_be_written_do_not_keep_the_answer() {
    let sandbox = stream();
    let output = shell(&sandbox, &format!("{TOP} --json 2> /dev/full"));
    assert_eq!(json(&output)["read"]["records"], 10_000);
}
