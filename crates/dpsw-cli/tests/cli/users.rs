//! Whole users are protected: what one of them sends counts so often and no more.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use serde_json::Value;

use crate::formats::parquet_bytes;
use crate::sandbox::{EXACT, Sandbox, check_shares, errors, fails, json, records, text};

const USERS: [&str; 2] = ["--user-column", "u"];

fn estimate(answer: &Value, item: &str) -> f64 {
    let rows = answer["items"].as_array().expect("items");
    let row = rows.iter().find(|row| row["item"] == item).unwrap_or_else(|| panic!("{item} in {answer}"));
    row["estimate"].as_f64().expect("a number")
}

/// Substreams of a window of 10,000 items, as the planner chooses them.
fn substreams(sandbox: &Sandbox, per_user: &str) -> f64 {
    let fixed = ["plan", "--window", "10000", "--domain", "keys.txt", "--unit", "users", "--json"];
    let plan = json(&sandbox.run(&[&fixed[..], &EXACT, &["--per-user", per_user]].concat()));
    let structure = &plan["structure"];
    assert_eq!(
        (structure["unit"].as_str(), structure["per_user"].to_string().as_str()),
        (Some("users"), per_user)
    );
    (10_000.0 / structure["substream"].as_f64().expect("a length")).ceil()
}

#[test]
fn a_user_who_sends_much_counts_no_more_than_others() {
    let sandbox = Sandbox::new();
    // Everyone sends one item, but for every tenth record: 1,000 times c by one user.
    let record = |n: usize, _: &str| if n % 10 == 9 { "x,c\n".into() } else { format!("{n},a\n") };
    sandbox.write("t.csv", format!("u,k\n{}", records(10_000, record)));
    let fixed = ["top", "t.csv", "--column", "k", "--window", "10000", "--domain", "keys.txt", "--json"];
    for per_user in ["1", "5"] {
        let output = sandbox.run(&[&fixed[..], &EXACT, &USERS, &["--per-user", per_user]].concat());
        let answer = json(&output);
        let most = per_user.parse::<f64>().expect("a number") * substreams(&sandbox, per_user);
        assert!((1.0..=most + 0.5).contains(&estimate(&answer, "c")), "{most} at most: {answer}");
        assert!((estimate(&answer, "a") - 9000.0).abs() < 100.0, "{answer}");
        assert_eq!(answer["window"]["end"], 10_000);
        assert!(
            errors(&output).contains("whole users are protected, for each window"),
            "{}",
            errors(&output)
        );
    }
    let counted = ["count", "c", "--column", "k", "--window", "10000", "--json"];
    let answer = json(&sandbox.run(&[&counted[..], &EXACT, &USERS, &["--", "t.csv"]].concat()));
    assert!(estimate(&answer, "c") < 100.0, "{answer}");
}

/// 1,000 users in 1,000 seconds, where room was made for 2 x 100.
#[test]
fn what_was_not_counted_is_told() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", format!("t,u,k\n{}", records(1000, |n, item| format!("{n},user {n},{item}\n"))));
    let fixed =
        ["top", "t.csv", "--column", "k", "--time-column", "t", "--window", "1000s", "--domain", "keys.txt"];
    let output = sandbox.run(&[&fixed[..], &EXACT, &USERS, &["--expected-items", "100", "--json"]].concat());
    let answer = json(&output);
    let capped = answer["capped"].as_f64().expect("a number");
    let counted: f64 = ["a", "b", "c"].iter().map(|item| estimate(&answer, item)).sum();
    assert!(500.0 < capped && (counted + capped - 1000.0).abs() < 30.0, "{answer}");
    for part in ["of 1,000 records count for no item", "twice as many as --expected-items makes room for"] {
        assert!(errors(&output).contains(part), "{part:?} in {}", errors(&output));
    }
    let roomy = sandbox.run(&[&fixed[..], &EXACT, &USERS, &["--expected-items", "1000", "--json"]].concat());
    assert_eq!(json(&roomy)["capped"], 0);
    assert!(!errors(&roomy).contains("count for no item"), "{}", errors(&roomy));
}

/// Ten records of each of 500 users, in a window of all of them: two of each count, whose shares are those of the whole.
#[test]
fn counts_that_are_capped_are_called_so_and_their_shares_are_of_what_counts() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", format!("u,k\n{}", records(5000, |n, item| format!("{},{item}\n", n / 10 % 500))));
    sandbox.write("once.csv", format!("u,k\n{}", records(5000, |n, item| format!("{n},{item}\n"))));
    let fixed = ["--column", "k", "--window", "5000", "--domain", "keys.txt", "--user-column", "u"];
    let top = |file: &'static str, more: &[&'static str]| {
        sandbox.run(&[&["top", file][..], &fixed, &EXACT, more].concat())
    };
    let answer = json(&top("t.csv", &["--json"]));
    let (total, capped) =
        (answer["total"].as_u64().expect("a number"), answer["capped"].as_u64().expect("a number"));
    assert_eq!(total + capped, 5000, "{answer}");
    assert!(2000 < capped, "{answer}");
    let shares: f64 =
        answer["items"].as_array().expect("items").iter().filter_map(|row| row["share"].as_f64()).sum();
    assert!((shares - 1.0).abs() < 1e-3, "{answer}");
    let table = text(&top("t.csv", &[]));
    assert!(table.contains("counts are capped: 1 item of each user per"), "{table}");
    assert!(table.contains("  capped  95 % interval") && !table.contains("estimate"), "{table}");
    let most = json(&top("t.csv", &["--json", "--threshold", "0.9"]));
    assert_eq!(most["items"][0]["item"], "a", "a share of what counts: {most}");
    let rows = text(&top("t.csv", &["--csv"]));
    assert!(rows.lines().nth(1).is_some_and(|row| row.ends_with(&capped.to_string())), "{rows}");
    let table = text(&top("once.csv", &[]));
    assert!(table.contains("which nobody exceeded") && table.contains("estimate  95 % interval"), "{table}");
}

#[test]
fn how_many_users_it_takes_to_stand_out_is_said_before_anything_is_spent() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", format!("u,k\n{}", records(5000, |n, item| format!("{n},{item}\n"))));
    let top = ["top", "t.csv", "--column", "k", "--window", "5000", "--domain", "keys.txt", "--epsilon", "1"];
    let output = sandbox.run(&[&top[..], &USERS].concat());
    let said = errors(&output);
    let (_, rest) =
        said.split_once("an item stands out if it counts about ").unwrap_or_else(|| panic!("{said}"));
    let number =
        |text: &str| text.split(' ').next().and_then(|word| word.parse::<f64>().ok()).expect("a number");
    let (times, users) = (number(rest), number(rest.split_once("that takes ").expect("users").1));
    // Two items of each user count, one in each half of the window.
    assert_eq!(users, (times / 2.0).ceil(), "{said}");
    assert!((20.0..200.0).contains(&times), "{said}");
    // A key that is not found stands out nowhere.
    let found = ["top", "t.csv", "--column", "k", "--window", "5000", "--epsilon", "1", "--json"];
    let output = sandbox.run(&[&found[..], &USERS].concat());
    let needed = json(&output)["found_from"]["count"].as_u64().expect("a number");
    let needed = format!("if it counts about {needed} times");
    assert!(errors(&output).replace(',', "").contains(&needed), "{}", errors(&output));
}

#[test]
fn users_are_found_in_every_format_and_in_windows_of_time() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", format!("t,u,k\n{}", records(1000, |n, item| format!("{n},\"{n}\",{item}\n"))));
    sandbox.write("t.tsv", records(1000, |n, item| format!("{n}\tuser {n}\t{item}\n")));
    sandbox
        .write("t.ndjson", records(1000, |n, item| format!("{{\"k\":\"{item}\",\"u\":[{n}],\"t\":{n}}}\n")));
    let log = |n: usize, item: &str| {
        let (minute, second) = (n / 60, n % 60);
        format!("h{n} - - [10/Oct/2000:13:{minute:02}:{second:02} -0700] \"GET {item} HTTP/1.1\" 200 5\n")
    };
    sandbox.write("access.log", records(1000, log));
    let items: Vec<&str> = (0..1000).map(|n| crate::sandbox::PATTERN[n % 10]).collect();
    let columns: [(&str, ArrayRef); 3] = [
        ("u", Arc::new(Int64Array::from_iter_values(0..1000))),
        ("t", Arc::new(Int64Array::from_iter_values(0..1000))),
        ("k", Arc::new(StringArray::from(items))),
    ];
    sandbox.write("t.parquet", parquet_bytes(&RecordBatch::try_from_iter(columns).expect("a batch")));
    for (file, column, user, time) in [
        ("t.csv", "k", "u", Some("t")),
        ("t.tsv", "3", "2", Some("1")),
        ("t.ndjson", "/k", "/u/0", Some("/t")),
        ("access.log", "path", "host", None),
        ("t.parquet", "k", "u", Some("t")),
    ] {
        let chosen = [file, "--column", column, "--user-column", user];
        check_shares(&sandbox.top(&chosen), [0.5, 0.3, 0.2]);
        let timed = ["top", "--window", "1000s", "--domain", "keys.txt", "--json"];
        let time = time.map_or(vec![], |time| vec!["--time-column", time]);
        let answer = json(&sandbox.run(&[&timed[..], &chosen, &time, &EXACT].concat()));
        check_shares(&answer, [0.5, 0.3, 0.2]);
    }
}

#[test]
fn records_without_a_user_take_their_place_and_count_nowhere() {
    let sandbox = Sandbox::new();
    let record = |n: usize, item: &str| match n % 10 {
        3 => "{\n".to_owned(),
        7 => format!("{{\"k\":\"{item}\",\"u\":\"\"}}\n"),
        _ => format!("{{\"k\":\"{item}\",\"u\":{n}}}\n"),
    };
    sandbox.write("t.ndjson", records(1000, record));
    let chosen = ["t.ndjson", "--column", "k", "--user-column", "u"];
    let answer = sandbox.top(&[&chosen[..], &["--on-error", "skip"]].concat());
    // One of those without a user is admitted in each half of the window, and counts for no item.
    assert_eq!((&answer["total"], &answer["window"]["end"]), (&802.into(), &1000.into()), "{answer}");
    check_shares(&answer, [500.0 / 802.0, 300.0 / 802.0, 0.0]);
    sandbox.write("empty.csv", "u,k\nx,a\n,b\n");
    let strict = ["top", "empty.csv", "--column", "k", "--window", "1000", "--domain", "keys.txt"];
    fails(&sandbox.run(&[&strict[..], &EXACT, &USERS].concat()), 4, &["empty.csv:3: ", "the user is empty"]);
}

#[test]
fn what_has_no_users_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", "a\n");
    sandbox.write("t.csv", "u,k\nx,a\n");
    let top = ["top", "--window", "1000", "--domain", "keys.txt"];
    for (more, code, wanted) in [
        (&["t.txt", "--user-column", "1"][..], 2, "lines have no columns"),
        (&["t.csv", "--column", "k", "--user-column", "v"], 4, "no column \"v\""),
        (&["t.csv", "--column", "k", "--user-column", "u", "--per-user", "0"], 2, "from 1 to 1048576"),
        (&["t.csv", "--column", "k", "--per-user", "2"], 2, "--user-column"),
        (&["t.csv", "--column", "k", "--user-column", "u", "--method", "paper"], 3, "tuned one for users"),
    ] {
        fails(&sandbox.run(&[&top[..], &EXACT, more].concat()), code, &[wanted]);
    }
    let plan = ["plan", "--window", "1000000", "--keys", "100", "--epsilon", "1"];
    fails(&sandbox.run(&[&plan[..], &["--per-user", "2"]].concat()), 2, &["--unit users"]);
    fails(
        &sandbox.run(&[&plan[..], &["--unit", "users", "--per-user", "0"]].concat()),
        2,
        &["from 1 to 1048576"],
    );
    let page = text(&sandbox.run(&[&plan[..], &["--unit", "users"]].concat()));
    assert!(page.contains("for all items of one user inside any one window"), "{page}");
}
