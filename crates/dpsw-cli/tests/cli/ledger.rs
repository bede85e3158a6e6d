//! What runs spend is added up and limited.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Output;

use serde_json::Value;

use crate::run::{Run, wait_until};
use crate::sandbox::{Sandbox, errors, fails, json, records, text};
use crate::schema;

fn prepared() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", records(3000, |number, item| format!("{item},user{}\n", number % 100)));
    sandbox
}

/// `dpsw top` with a ledger, for this epsilon.
fn top<'a>(file: &'a str, epsilon: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["top", file, "--window", "1000", "--domain", "keys.txt", "--no-header", "--column", "1"];
    [&fixed[..], &["--ledger", "spent.jsonl", "--epsilon", epsilon], more].concat()
}

fn spend(sandbox: &Sandbox, epsilon: &str, more: &[&str]) -> Output {
    sandbox.run(&top("t.csv", epsilon, more))
}

#[track_caller]
fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}", errors(output));
}

fn ledger(sandbox: &Sandbox) -> Value {
    json(&sandbox.run(&["ledger", "spent.jsonl", "--json"]))
}

/// Epsilon and budget of the only data set.
#[track_caller]
fn check(sandbox: &Sandbox, epsilon: f64, budget: Option<f64>) {
    let document = ledger(sandbox);
    assert_eq!(document["data_sets"].as_array().map(Vec::len), Some(1), "{document}");
    let set = &document["data_sets"][0];
    assert_eq!((set["epsilon"].as_f64(), set["budget"].as_f64()), (Some(epsilon), budget), "{document}");
}

#[test]
fn what_runs_spend_adds_up_to_the_budget_and_no_further() {
    let sandbox = prepared();
    succeeds(&spend(&sandbox, "0.1", &["--budget", "0.3"]));
    succeeds(&spend(&sandbox, "0.1", &[]));
    // In floating-point numbers 0.1 + 0.1 + 0.1 is more than 0.3.
    let third = spend(&sandbox, "0.1", &["--budget", "0.3"]);
    succeeds(&third);
    assert!(errors(&third).contains("epsilon = 0.3 of 0.3 is spent"), "{}", errors(&third));
    let refused = spend(&sandbox, "0.1", &[]);
    fails(
        &refused,
        3,
        &["t.csv has a budget of epsilon = 0.3: 0.3 is spent", "asks for 0.1", "0 is left", "--view"],
    );
    assert!(!errors(&refused).contains("this run spends"), "{}", errors(&refused));
    check(&sandbox, 0.3, Some(0.3));
}

#[test]
fn counting_is_charged_too() {
    let sandbox = prepared();
    let count =
        ["count", "a", "t.csv", "--column", "1", "--no-header", "--window", "1000", "--epsilon", "0.25"];
    succeeds(&sandbox.run(&[&count[..], &["--ledger", "spent.jsonl"]].concat()));
    check(&sandbox, 0.25, None);
    let ledger = fs::read_to_string(sandbox.path("spent.jsonl")).expect("a ledger");
    assert!(!ledger.contains("\"a\""), "a ledger names no items: {ledger}");
}

#[test]
fn a_budget_is_changed_in_the_ledger_alone() {
    let sandbox = prepared();
    succeeds(&spend(&sandbox, "1", &["--budget", "1.5"]));
    fails(
        &spend(&sandbox, "0.1", &["--budget", "3"]),
        3,
        &["has a budget of epsilon = 1.5", "--budget asks for 3"],
    );
    fails(&spend(&sandbox, "1", &[]), 3, &["0.5 is left", "--epsilon 0.5 at most"]);
    succeeds(&sandbox.run(&["ledger", "spent.jsonl", "--data-set", "t.csv", "--budget", "2"]));
    succeeds(&spend(&sandbox, "1", &["--budget", "2"]));
    check(&sandbox, 2.0, Some(2.0));
}

#[test]
fn two_runs_at_once_cannot_both_slip_through() {
    let sandbox = prepared();
    succeeds(&spend(&sandbox, "1", &["--budget", "2"]));
    let path = sandbox.path("spent.jsonl");
    let mut held = fs::File::options().append(true).open(&path).expect("a ledger");
    held.lock().expect("nobody holds it");
    let mut run = Run::start(&mut sandbox.command(&top("t.csv", "1", &[])));
    let mut said = BufReader::new(run.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(said.next().expect("a remark").contains("waiting for another run that holds spent.jsonl"));
    let ledger = fs::read_to_string(&path).expect("a ledger");
    let other = ledger.lines().last().expect("a charge").replace("\"run\":1", "\"run\":2");
    writeln!(held, "{other}").expect("another run is charged");
    held.unlock().expect("it was held");
    assert!(said.any(|line| line.contains("2 is spent")));
    assert_eq!(run.code(), Some(3));
    check(&sandbox, 2.0, Some(2.0));
}

#[test]
fn a_file_is_known_by_whatever_name() {
    let sandbox = prepared();
    succeeds(&spend(&sandbox, "1", &[]));
    succeeds(&sandbox.run(&top("./t.csv", "1", &[])));
    check(&sandbox, 2.0, None);
    sandbox.write("u.csv", "a,b\n".repeat(3000));
    succeeds(&sandbox.run(&top("t.csv", "1", &["u.csv"])));
    let document = ledger(&sandbox);
    let spent: Vec<Option<f64>> = document["data_sets"]
        .as_array()
        .expect("data sets")
        .iter()
        .map(|set| set["epsilon"].as_f64())
        .collect();
    assert_eq!(spent, [Some(3.0), Some(1.0)], "each file is a data set: {document}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_was_renamed_or_linked_is_the_same() {
    let sandbox = prepared();
    if fs::metadata(sandbox.path("t.csv")).expect("a file").created().is_err() {
        // Some file systems do not know when a file was made; there a path is all there is.
        return;
    }
    succeeds(&spend(&sandbox, "1", &["--budget", "2"]));
    fs::rename(sandbox.path("t.csv"), sandbox.path("t.csv.1")).expect("renamed");
    let renamed = sandbox.run(&top("t.csv.1", "1", &["--format", "csv"]));
    succeeds(&renamed);
    assert!(errors(&renamed).contains("t.csv before, and is again"), "{}", errors(&renamed));
    fs::hard_link(sandbox.path("t.csv.1"), sandbox.path("hard.csv")).expect("linked");
    std::os::unix::fs::symlink("t.csv.1", sandbox.path("soft.csv")).expect("linked");
    for name in ["hard.csv", "soft.csv"] {
        fails(&sandbox.run(&top(name, "1", &[])), 3, &["2 is spent", "0 is left"]);
    }
    check(&sandbox, 2.0, Some(2.0));
}

#[test]
fn a_named_data_set_takes_whatever_is_charged_to_it() {
    let sandbox = prepared();
    let named = ["--data-set", "shop", "--budget", "2"];
    succeeds(&spend(&sandbox, "1", &named));
    let fixed =
        ["top", "--window", "1000", "--domain", "keys.txt", "--ledger", "spent.jsonl", "--epsilon", "1"];
    let input = records(3000, |_, item| format!("{item}\n"));
    fails(&sandbox.pipe(&fixed, input.as_bytes()), 2, &["standard input has no path", "--data-set NAME"]);
    succeeds(&sandbox.pipe(&[&fixed[..], &["--data-set", "shop"]].concat(), input.as_bytes()));
    // Without a name it is charged where it was charged before, with another one it says so.
    fails(&spend(&sandbox, "1", &[]), 3, &["was charged to shop before, and is again", "shop has a budget"]);
    check(&sandbox, 2.0, Some(2.0));
    let other = spend(&sandbox, "1", &["--data-set", "other"]);
    succeeds(&other);
    assert!(
        errors(&other).contains("was charged to shop before; if its events are the same"),
        "{}",
        errors(&other)
    );
    fails(&spend(&sandbox, "1", &[]), 2, &["several data sets: other, shop", "--data-set"]);
}

#[test]
fn units_are_not_mixed() {
    let sandbox = prepared();
    let users = ["--user-column", "2", "--epsilon", "4"];
    let fixed = ["top", "t.csv", "--window", "1000", "--domain", "keys.txt", "--no-header", "--column", "1"];
    let users = [&fixed[..], &users, &["--ledger", "spent.jsonl"]].concat();
    succeeds(&sandbox.run(&users));
    fails(
        &spend(&sandbox, "1", &[]),
        3,
        &["charged for users, in each window so far", "for events", "do not add up"],
    );
    succeeds(&spend(&sandbox, "1", &["--data-set", "events of t"]));
    let document = ledger(&sandbox);
    schema::check(&schema::schema("ledger"), &document);
    let unit = |index: usize| document["data_sets"][index]["unit"].clone();
    assert_eq!((unit(0), unit(1)), ("users".into(), "replace-one".into()), "{document}");
}

#[test]
fn a_run_that_fails_before_it_answers_is_given_back() {
    let sandbox = prepared();
    sandbox.write("t.csv", "a,u\n\"\n");
    let output = spend(&sandbox, "1", &["--budget", "1"]);
    fails(&output, 4, &["t.csv:2", "given back"]);
    check(&sandbox, 0.0, Some(1.0));
    schema::check(&schema::schema("ledger"), &ledger(&sandbox));
    sandbox.write("t.csv", "a,u\n".repeat(3000));
    succeeds(&spend(&sandbox, "1", &[]));
    check(&sandbox, 1.0, Some(1.0));
    assert!(text(&sandbox.run(&["ledger", "spent.jsonl"])).contains("(given back"));
}

#[test]
fn a_run_that_fails_after_an_answer_stays_charged() {
    let sandbox = prepared();
    sandbox.write("t.csv", "a,u\n".repeat(3000) + "\"\n");
    let output = spend(&sandbox, "1", &["--every", "1000", "--ndjson"]);
    assert_eq!(output.status.code(), Some(4), "{}", errors(&output));
    assert!(!output.stdout.is_empty());
    check(&sandbox, 1.0, None);
}

#[test]
fn a_run_is_charged_before_it_reads_anything() {
    let sandbox = prepared();
    let awaited = Run::start(&mut sandbox.command(&top("later.csv", "1", &["--follow"])));
    wait_until("the run is charged", || {
        fs::read_to_string(sandbox.path("spent.jsonl")).is_ok_and(|text| text.contains("charge"))
    });
    awaited.signal("-KILL");
    drop(awaited);
    check(&sandbox, 1.0, None);
}

#[test]
fn an_interrupted_run_stays_charged() {
    let sandbox = prepared();
    let mut run = Run::start(&mut sandbox.command(&top("t.csv", "1", &["--follow"])));
    run.stderr.as_mut().expect("a pipe").read_exact(&mut [0]).expect("it has begun");
    run.signal("-INT");
    assert_eq!(run.output().status.code(), Some(130));
    check(&sandbox, 1.0, None);
}

#[test]
fn a_dry_run_and_a_view_charge_nothing() {
    let sandbox = prepared();
    let dry = spend(&sandbox, "1", &["--budget", "1.5", "--dry-run"]);
    assert!(text(&dry).contains("epsilon = 1 of 1.5 is spent"), "{}{}", text(&dry), errors(&dry));
    assert!(!sandbox.path("spent.jsonl").exists());
    succeeds(&spend(&sandbox, "1", &["--budget", "1.5", "--save", "t.view"]));
    fails(&spend(&sandbox, "1", &["--dry-run"]), 3, &["0.5 is left"]);
    succeeds(&sandbox.run(&["top", "--view", "t.view"]));
    fails(&sandbox.run(&["top", "--view", "t.view", "--ledger", "spent.jsonl"]), 2, &["--view"]);
    check(&sandbox, 1.0, Some(1.5));
}

#[test]
fn a_refused_run_leaves_no_ledger_behind() {
    let sandbox = prepared();
    fails(&spend(&sandbox, "2", &["--budget", "1"]), 3, &["asks for 2"]);
    assert!(!sandbox.path("spent.jsonl").exists());
}

#[test]
fn a_ledger_is_a_page_for_people() {
    let sandbox = prepared();
    succeeds(&spend(&sandbox, "0.5", &["--budget", "2"]));
    let page = text(&sandbox.run(&["ledger", "spent.jsonl"]));
    for part in ["t.csv (for events)", " 0.5 ", " 2 ", " 1.5 ", "1,000 items"] {
        assert!(page.contains(part), "{part:?} in {page}");
    }
    fails(&sandbox.run(&["inspect", "spent.jsonl"]), 2, &["dpsw ledger spent.jsonl"]);
    fails(&sandbox.run(&["ledger", "nowhere.jsonl"]), 4, &["nowhere.jsonl cannot be opened"]);
}

#[test]
fn a_last_line_that_was_cut_off_does_not_count_and_is_replaced() {
    let sandbox = prepared();
    succeeds(&spend(&sandbox, "1", &[]));
    let whole = fs::read_to_string(sandbox.path("spent.jsonl")).expect("a ledger");
    sandbox.write("spent.jsonl", format!("{whole}{}", &whole.lines().last().expect("a line")[..60]));
    assert!(errors(&sandbox.run(&["ledger", "spent.jsonl"])).contains("cut off"));
    succeeds(&spend(&sandbox, "1", &[]));
    check(&sandbox, 2.0, None);
    // An editor may leave out the end of the last line.
    let whole = fs::read_to_string(sandbox.path("spent.jsonl")).expect("a ledger");
    sandbox.write("spent.jsonl", whole.trim_end());
    succeeds(&spend(&sandbox, "1", &[]));
    check(&sandbox, 3.0, None);
}

#[test]
fn what_is_no_ledger_or_a_damaged_one_is_refused_and_left_alone() {
    let sandbox = prepared();
    succeeds(&spend(&sandbox, "1", &[]));
    let good = fs::read_to_string(sandbox.path("spent.jsonl")).expect("a ledger");
    let charge = good.lines().last().expect("a charge").to_owned();
    for (text, wanted) in [
        ("a,b\n".to_owned(), "is not a ledger"),
        ("no line end".to_owned(), "is not a ledger"),
        (good.replace("\"version\":1", "\"version\":2"), "version 2"),
        (format!("{good}nonsense\n"), "spent.jsonl:3"),
        (good.replace("\"epsilon\":1.0", "\"epsilon\":-1.0"), "epsilon must lie between"),
        (good.replace("\"delta\":0.0", "\"delta\":-0.5"), "delta must lie between"),
        (format!("{good}{charge}\n"), "run 1 follows"),
        (format!("{good}{{\"entry\":\"given back\",\"time\":\"\",\"run\":7}}\n"), "run 7"),
        (format!("{good}{{\"entry\":\"something new\"}}\n"), "something new"),
    ] {
        sandbox.write("spent.jsonl", &text);
        for command in [top("t.csv", "1", &[]), vec!["ledger", "spent.jsonl"]] {
            fails(&sandbox.run(&command), 5, &[wanted]);
        }
        assert_eq!(fs::read_to_string(sandbox.path("spent.jsonl")).expect("a file"), text);
    }
    let nowhere =
        ["top", "keys.txt", "--window", "1000", "--epsilon", "1", "--ledger", "missing/spent.jsonl"];
    fails(&sandbox.run(&nowhere), 1, &["missing/spent.jsonl cannot be written", "no item was counted"]);
}

#[test]
fn the_options_of_a_ledger_need_one() {
    let sandbox = prepared();
    let fixed = ["top", "t.csv", "--window", "1000", "--epsilon", "1"];
    for more in [["--budget", "2"], ["--data-set", "shop"]] {
        fails(&sandbox.run(&[&fixed[..], &more].concat()), 2, &["--ledger"]);
    }
    fails(&spend(&sandbox, "1", &["--budget", "-1"]), 2, &["--budget", "between 1e-6 and 1e6, got -1"]);
    fails(&spend(&sandbox, "1", &["--data-set", " "]), 2, &["--data-set needs a name"]);
}

#[test]
fn each_run_offers_a_ledger() {
    let sandbox = prepared();
    let output =
        sandbox.run(&["top", "t.csv", "--column", "1", "--no-header", "--window", "1000", "--epsilon", "1"]);
    assert!(errors(&output).contains("--ledger FILE adds it up"), "{}", errors(&output));
}
