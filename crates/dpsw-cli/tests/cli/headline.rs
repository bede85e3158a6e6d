//! The first lines of a table say what was counted.

use crate::sandbox::{EXACT, Sandbox, records, text, timed};

#[track_caller]
fn check(sandbox: &Sandbox, arguments: &[&str], wanted: &[&str]) {
    let output = text(&sandbox.run(&[arguments, &EXACT].concat()));
    let lines: Vec<&str> = output.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(lines, wanted, "{output}");
}

#[test]
fn a_headline_says_how_much_of_the_stream_was_counted() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", records(5150, |_, item| format!("{item}\n")));
    let promise = "epsilon = 1000000, delta = 0 for each event";
    let top = ["top", "t.txt", "--domain", "keys.txt", "--window"];
    let with = |more: &[&'static str]| [&top[..], more].concat();
    check(&sandbox, &with(&["1000"]), &["the last 1,000 of 5,150 items", promise]);
    check(&sandbox, &with(&["10000"]), &["all 5,150 items", promise]);
    check(
        &sandbox,
        &with(&["1000", "--method", "paper", "--substreams", "10", "--delta", "1e-10", "--every", "1050"]),
        &[
            "the last 1,000 of 1,050 items",
            "the newest 20 items are not sealed yet and left out",
            "epsilon = 1000000, delta = 1e-10 for each event",
        ],
    );
}

#[test]
fn a_headline_says_which_span_of_time_was_counted() {
    let sandbox = Sandbox::new();
    // From 2000-10-10T20:00:00Z on, an event a second.
    sandbox.write("t.tsv", records(1500, |n, item| format!("{}\t{item}\n", 971_208_000 + n)));
    check(
        &sandbox,
        &timed("t.tsv", "2", "1", "1000s"),
        &[
            "the last 16.7 min, about 1,000 items: 2000-10-10 20:08:19 to 20:24:59 UTC",
            "epsilon = 1000000, delta = 0 for each event",
        ],
    );
}

#[test]
fn a_headline_says_how_many_items_of_a_user_count() {
    let sandbox = Sandbox::new();
    let record = |n: usize, item: &str| format!("{},{item}\n", if n.is_multiple_of(2) { 0 } else { n });
    sandbox.write("t.csv", format!("u,k\n{}", records(1000, record)));
    let top = ["top", "t.csv", "--column", "k", "--user-column", "u", "--window", "1000"];
    let output = text(&sandbox.run(&[&top[..], &["--domain", "keys.txt"], &EXACT].concat()));
    let lines: Vec<&str> = output.lines().collect();
    assert!(lines[1].starts_with("counts are capped: 1 item of each user per "), "{output}");
    assert!(lines[1..3].join(" ").ends_with(" items beyond that count nowhere"), "{output}");
    assert!(lines[3].ends_with(" for all that a user sends in a window"), "{output}");
}
