//! Where the presence of events is private: nothing but the clock says when what is answered, and no number of records is said.

use crate::sandbox::{Sandbox, errors, fails, json, records, text};

const PRESENCE: [&str; 9] = [
    "--unit",
    "add-remove",
    "--arrival-time",
    "--window",
    "1h",
    "--expected-items",
    "3000",
    "--domain",
    "keys.txt",
];

#[test]
fn what_would_show_whether_an_event_was_there_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", "t,u,k\n1,x,a\n");
    let fixed = ["top", "--epsilon", "1", "--domain", "keys.txt", "--unit", "add-remove"];
    for (more, code, words) in [
        (&["-", "--window", "100", "--arrival-time"][..], 3, "needs a window of time"),
        (&["t.csv", "--column", "k", "--time-column", "t", "--window", "1h"], 3, "needs --arrival-time"),
        (&["-", "--window", "1h", "--arrival-time", "--every", "10"], 3, "needs --every with a time"),
        (&["t.csv", "--column", "k", "--user-column", "u", "--window", "1h"], 2, "choose one"),
    ] {
        fails(&sandbox.run(&[&fixed[..], more].concat()), code, &[words]);
    }
    let users = ["top", "t.csv", "--column", "k", "--window", "100", "--epsilon", "1", "--unit", "users"];
    fails(&sandbox.run(&users), 2, &["--user-column"]);
}

/// Of 1,237 records 177 cannot be read.
#[test]
fn no_number_of_records_is_said_where_their_presence_is_private() {
    let sandbox = Sandbox::new();
    let record =
        |n: usize, item: &str| if n % 7 == 3 { "{\n".into() } else { format!("{{\"k\":\"{item}\"}}\n") };
    let input = records(1237, record);
    let read =
        ["top", "-", "--format", "ndjson", "--column", "k", "--on-error", "skip", "--epsilon", "1", "-v"];
    let run = |more: &[&str]| sandbox.pipe(&[&read[..], &PRESENCE, more].concat(), input.as_bytes());
    let answer = json(&run(&["--json"]));
    assert_eq!((&answer["unit"], &answer["read"].is_null()), (&"add-remove".into(), &true), "{answer}");
    let table = run(&["--save", "t.view"]);
    assert!(errors(&table).contains("some records could not be read and were skipped"), "{}", errors(&table));
    let inspected = sandbox.run(&["inspect", "t.view"]);
    // Times and estimates have digits of their own; none of those is written like this.
    for said in [text(&table), errors(&table), text(&inspected)] {
        for number in ["1,237", "1237 ", "177 rec", "177 of"] {
            assert!(!said.contains(number), "{number} in {said}");
        }
    }
}
