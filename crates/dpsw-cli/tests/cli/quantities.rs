//! Counts, times and sizes as people type them.

use crate::sandbox::{EXACT, Sandbox, errors, fails, json, records, text, timed};

/// A file of lines, and one with a record per second.
fn prepared() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", records(3000, |_, item| format!("{item}\n")));
    sandbox.write("t.csv", records(10_000, |number, item| format!("{},{item}\n", 1_700_000_000 + number)));
    sandbox
}

#[test]
fn a_window_of_items_is_typed_in_many_ways() {
    let sandbox = prepared();
    for window in ["1000", "1k", "1e3", "1_000", "1,000", "0.001M"] {
        let top = ["top", "t.txt", "--domain", "keys.txt", "--json", "--window", window];
        let answer = json(&sandbox.run(&[&top[..], &EXACT].concat()));
        assert_eq!(
            (&answer["window"]["start"], &answer["window"]["end"]),
            (&2000.into(), &3000.into()),
            "{window}"
        );
    }
}

#[test]
fn a_window_of_time_is_typed_in_many_ways() {
    let sandbox = prepared();
    for window in ["90min", "1h30m", "1.5h", "1 h 30 min", "90 minutes", "5400s"] {
        let top =
            [&timed("t.csv", "2", "1", window)[..], &EXACT, &["--expected-items", "5k", "--json"]].concat();
        let answer = json(&sandbox.run(&top));
        let place = |name: &str| answer["window"][name].as_u64().expect("a time");
        assert_eq!(place("end") - place("start"), 5_400_000, "{window}: {answer}");
    }
}

#[test]
fn every_other_quantity_is_typed_so() {
    let sandbox = prepared();
    let fixed = ["top", "t.txt", "--window", "1k", "--domain", "keys.txt", "--ndjson", "--quiet"];
    let more = ["--every", "1e3", "--top", "1e0", "--retention", "2e0", "--memory", "1e6"];
    let answers = text(&sandbox.run(&[&fixed[..], &EXACT, &more].concat()));
    assert_eq!(answers.lines().count(), 3, "{answers}");
    let plan = ["plan", "--epsilon", "1", "--json", "--window", "1w", "--keys", "25k"];
    let plan = json(&sandbox.run(&[&plan[..], &["--lateness", "1h30m", "--expected-items", "2M"]].concat()));
    assert_eq!(plan["structure"]["window"], 7 * 86_400_000, "{plan}");
    assert_eq!(text(&sandbox.run(&["demo", "--log", "1.2k"])).lines().count(), 1200);
}

#[test]
fn it_says_whether_minutes_or_millions_were_understood() {
    let sandbox = prepared();
    let said = |window: &str, more: &[&str]| {
        errors(
            &sandbox.run(&[&["plan", "--keys", "10", "--epsilon", "1", "--window", window], more].concat()),
        )
    };
    assert!(said("5m", &[]).contains("--window 5m is 5 min; 5M would be 5,000,000 items"));
    assert!(said("5M", &[]).contains("--window 5M is 5,000,000 items; 5m would be 5 min"));
    for (window, more) in [("5min", &[][..]), ("5000k", &[]), ("5m", &["--quiet"])] {
        assert!(!said(window, more).contains("would be"), "{window}");
    }
}

#[test]
fn a_wrong_quantity_is_named_with_the_allowed_forms() {
    let sandbox = prepared();
    let top = ["top", "t.txt", "--epsilon", "1"];
    for (option, value, wanted) in [
        ("--window", "5x", &["\"5x\"", "100k", "1h30m", "m means minutes, M millions"][..]),
        ("--window", "1,5", &["\"1,5\"", "2M"]),
        ("--every", "0", &["\"0\"", "100k", "1h30m"]),
        ("--top", "5m", &["\"5m\" is a time", "M means millions"]),
        ("--retention", "0", &["\"0\"", "from 1 to 4294967295"]),
        ("--lateness", "30", &["\"30\" has no unit of time", "90s"]),
        ("--expected-items", "1.5", &["\"1.5\" is not a whole number", "1e5"]),
        ("--per-user", "2M", &["\"2M\"", "from 1 to 1048576"]),
        ("--memory", "1TB", &["\"1TB\"", "400KB", "1MiB"]),
    ] {
        let window = if option == "--window" { &[][..] } else { &["--window", "1000"] };
        let output = sandbox.run(&[&top[..], window, &[option, value]].concat());
        fails(&output, 2, &[&[option][..], wanted].concat());
    }
}
