//! Plans, audits, completions and the man page.

use std::io::Read;

use crate::run::Run;
use crate::sandbox::{Sandbox, errors, fails, json, text};

#[test]
fn a_plan_is_a_readable_page_with_a_chart() {
    let output = Sandbox::new().run(&["plan", "--window", "1000000", "--epsilon", "1", "--keys", "25000"]);
    assert!(output.status.success(), "{}", errors(&output));
    let page = text(&output);
    for part in [
        "the last 1,000,000 items",
        "discrete Laplace",
        "item     1",
        "by epsilon",
        ">         1  █",
        "promise    all that is ever released",
        "epsilon = 1, delta = 0",
    ] {
        assert!(page.contains(part), "{part:?} in {page}");
    }
}

/// What only those who read the source would know.
const OURS: [&str; 10] =
    ["(s)", "0e0", "9.99", "tick", "Whole", "[0,", "identity", "resident", "level", "neighbouring"];

#[test]
fn plans_are_in_the_words_of_the_reader_and_fit_80_columns() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", "a\n".repeat(3000));
    let top = ["top", "t.txt", "--window", "1000", "--epsilon", "1", "-q", "--save", "t.view"];
    assert!(sandbox.run(&top).status.success());
    let plan = ["plan", "--epsilon", "1"];
    let with = |more: &[&'static str]| [&plan[..], more].concat();
    for arguments in [
        with(&["--window", "1000000", "--keys", "25000"]),
        with(&["--window", "15m"]),
        vec!["plan", "--epsilon", "0.1", "--window", "1000", "--retention", "3"],
        with(&["--window", "1000000", "--keys", "25000", "--method", "paper"]),
        with(&["--window", "15m", "--keys", "25000", "--unit", "users", "--per-user", "3"]),
        with(&["--window", "15m", "--keys", "25000", "--unit", "add-remove"]),
        vec!["inspect", "t.view"],
        vec!["top", "t.txt", "--window", "1000", "--epsilon", "1", "--dry-run"],
    ] {
        let output = sandbox.run(&arguments);
        let page = text(&output);
        assert!(
            output.status.success() && page.contains("promise "),
            "{arguments:?}: {page}{}",
            errors(&output)
        );
        for part in OURS {
            assert!(!page.contains(part), "{part:?} in {page}");
        }
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    }
}

#[test]
fn a_plan_as_json_has_everything() {
    let plan = json(&Sandbox::new().run(&[
        "plan",
        "--window",
        "1000000",
        "--epsilon",
        "1",
        "--keys",
        "25000",
        "--json",
    ]));
    for part in ["structure", "noise", "bytes", "ledger", "predicted", "contract", "error_by_epsilon"] {
        assert!(!plan[part].is_null(), "{part} in {plan}");
    }
    assert_eq!(plan["structure"]["counters"], "identity", "{plan}");
    assert!(plan["predicted"]["smallest_share"].as_f64().expect("a share") < 0.01);
    let errors: Vec<f64> = plan["error_by_epsilon"]
        .as_array()
        .expect("a curve")
        .iter()
        .filter_map(|point| point["error"].as_f64())
        .collect();
    assert!(errors.len() == 7 && errors.is_sorted_by(|a, b| a > b), "{errors:?}");
}

#[test]
fn a_plan_works_in_both_directions() {
    let sandbox = Sandbox::new();
    let fixed = ["plan", "--window", "1000000", "--keys", "25000", "--json"];
    let forward = json(&sandbox.run(&[&fixed[..], &["--epsilon", "1"]].concat()));
    let error = (forward["predicted"]["frequent"].as_f64().expect("an error") * 1.01).to_string();
    let back = json(&sandbox.run(&[&fixed[..], &["--target-error", &error]].concat()));
    let epsilon = back["ledger"]["epsilon"].as_f64().expect("an epsilon");
    assert!((0.7..=1.0).contains(&epsilon), "{epsilon}");
    let small = json(
        &sandbox
            .run(&[&fixed[..], &["--target-error", &error, "--epsilon", "2", "--smallest-memory"]].concat()),
    );
    let bytes = |plan: &serde_json::Value| plan["bytes"]["sketch"].as_u64().expect("bytes");
    assert!(bytes(&small) < bytes(&forward));
    for (more, code) in [
        (&["--target-error", "0.0001"][..], 2),
        (&["--target-error", "50", "--epsilon", "1"], 2),
        (&["--epsilon", "1", "--smallest-memory"], 2),
        (&["--epsilon", "1", "--unit", "add-remove"], 3),
        (&[], 2),
    ] {
        fails(&sandbox.run(&[&fixed[..], more].concat()), code, &[]);
    }
    let timed =
        ["plan", "--window", "15m", "--keys", "25000", "--epsilon", "1", "--unit", "add-remove", "--json"];
    assert_eq!(json(&sandbox.run(&timed))["structure"]["unit"], "add-remove");
    let paper = json(&sandbox.run(&[&fixed[..], &["--epsilon", "1", "--method", "paper"]].concat()));
    assert!(!paper["bounds"]["frequency"].is_null());
}

#[test]
fn expectations_come_from_a_file() {
    let sandbox = Sandbox::new();
    sandbox.write("expected.txt", "home\t60\nabout\t30\n");
    let fixed = ["plan", "--window", "10000", "--domain", "keys.txt", "--epsilon", "1", "--json", "--expect"];
    let plan = json(&sandbox.run(&[&fixed[..], &["expected.txt"]].concat()));
    assert_eq!(plan["predicted"]["ranks"][0]["count"].as_f64().map(f64::round), Some(6667.0));
    sandbox.write("wrong.txt", "home\tmany\n");
    fails(&sandbox.run(&[&fixed[..], &["wrong.txt"]].concat()), 4, &["wrong.txt: line 1"]);
}

#[test]
fn an_audit_holds_and_catches_its_controls() {
    // A correct build fails with probability 1e-6; the short seed repeats 19 times on average, and never with e^-19.
    let fixed = ["audit", "--epsilon", "1", "--runs", "2000", "--seals", "36000", "--false-alarm", "1e-6"];
    let mut tests = Vec::new();
    for more in [&[][..], &["--discovered"], &["--unit", "users", "--per-user", "2"]] {
        let report = json(&Sandbox::new().run(&[&fixed[..], &["--json"], more].concat()));
        assert_eq!(report["holds"], true);
        assert_eq!(report["claimed"]["measure"], "epsilon");
        let controls = report["controls"].as_array().expect("controls");
        assert!(!controls.is_empty() && controls.iter().all(|control| control["caught"] == true), "{report}");
        tests.push(report["tests"].as_array().map(Vec::len));
    }
    assert!(tests[0] < tests[1], "found keys have tests of their own: {tests:?}");
    fails(&Sandbox::new().run(&["audit", "--epsilon", "1", "--runs", "10"]), 2, &["at least 2000 runs"]);
}

#[test]
fn an_interrupt_ends_an_audit_at_once() {
    let sandbox = Sandbox::new();
    let mut run = Run::start(&mut sandbox.command(&["audit", "--epsilon", "1", "--runs", "10000000"]));
    let mut first = [0];
    run.stderr.as_mut().expect("a pipe").read_exact(&mut first).expect("it has begun");
    run.signal("-INT");
    // Ended by the signal, which a shell reports as 130.
    assert_eq!(run.code(), None);
}

#[test]
fn completions_and_the_man_page_are_written() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(text(&sandbox.run(&["completions", shell])).contains("epsilon"), "{shell}");
    }
    let page = text(&sandbox.run(&["completions", "man"]));
    for part in [".TH DPSW 1", ".SH DPSW TOP", "EXIT CODES", "130", "\\-\\-on\\-error", "spends epsilon"] {
        assert!(page.contains(part), "{part:?} in {page}");
    }
}

#[test]
fn each_command_has_a_page_of_its_own_that_man_shows_without_a_warning() {
    let sandbox = Sandbox::new();
    assert!(sandbox.run(&["completions", "man", "--out", "man1"]).status.success());
    for (name, wanted) in [
        ("dpsw", &["dpsw-top(1)", "EXIT CODES", "EXAMPLES"][..]),
        ("dpsw-top", &["EXAMPLES", "PRIVACY", "READING THE ANSWER", "JSON", "read.skipped", "EXIT CODES"]),
        ("dpsw-count", &["EXAMPLES", "PRIVACY", "JSON"]),
        ("dpsw-plan", &["EXAMPLES", "--target-error"]),
        ("dpsw-audit", &["EXAMPLES", "--seals"]),
        ("dpsw-inspect", &["EXAMPLES"]),
        ("dpsw-ledger", &["EXAMPLES"]),
        ("dpsw-demo", &["dpsw demo"]),
        ("dpsw-serve", &["dpsw serve --check"]),
        ("dpsw-completions", &["--out"]),
    ] {
        let Some(page) = shown(&sandbox, &format!("man1/{name}.1")) else { return };
        for part in wanted {
            assert!(page.contains(part), "{part:?} in {page}");
        }
    }
}

/// A page as `man` sets it, without warnings; `None`, with a message, where there is no `man`.
fn shown(sandbox: &Sandbox, page: &str) -> Option<String> {
    let mut man = std::process::Command::new("man");
    man.args(["--warnings", "-l", page]).current_dir(sandbox.path(""));
    man.env("MANWIDTH", "80").env("MAN_KEEP_FORMATTING", "").env("LC_ALL", "C.UTF-8").env("PAGER", "cat");
    let Ok(run) = Run::try_start(&mut man) else {
        eprintln!("SKIPPED: there is no `man`");
        return None;
    };
    let output = run.output();
    assert_eq!((output.status.code(), errors(&output)), (Some(0), String::new()), "{page}");
    Some(text(&output).replace('\u{2010}', "-"))
}

#[test]
fn help_starts_with_examples() {
    let sandbox = Sandbox::new();
    for command in ["top", "count", "plan", "audit", "inspect", "ledger", "demo", "completions"] {
        let help = text(&sandbox.run(&[command, "--help"]));
        let (examples, usage) = (help.find("Examples:"), help.find("Usage:"));
        assert!(examples.is_some() && examples < usage, "{help}");
    }
    let help = text(&sandbox.run(&["--help"]));
    assert!(help.find("Examples:") < help.find("Usage:"), "{help}");
    assert!(help.contains("Exit codes:"), "{help}");
}
