//! An answer without rows says what is missing and what would help.

use crate::sandbox::{EXACT, Sandbox, errors, json, records, text};

/// 3,000 lines of which none occurs twice.
fn unlike() -> String {
    (0..3000).map(|number| format!("item {number}\n")).collect()
}

/// The cause in JSON, and what the table says.
#[track_caller]
fn check(sandbox: &Sandbox, arguments: &[&str], cause: &str, wanted: &[&str]) {
    let answer = json(&sandbox.run(&[&["top", "--json"], arguments].concat()));
    assert_eq!(answer["items"], serde_json::json!([]), "{answer}");
    assert_eq!(answer["why"]["cause"], cause, "{answer}");
    let table = text(&sandbox.run(&[&["top"], arguments].concat()));
    let words = table.replace('\n', " ");
    for part in wanted {
        assert!(words.contains(part), "{part:?} in {table}");
    }
    assert!(words.contains("nothing to show: ") && words.contains("what helps: "), "{table}");
    assert!(table.lines().skip(1).all(|line| line.chars().count() <= 80), "{table}");
}

#[test]
fn an_answer_without_rows_says_why() {
    let sandbox = Sandbox::new();
    sandbox.write("none.txt", "");
    sandbox.write("few.txt", "a\nb\n");
    sandbox.write("unlike.txt", unlike());
    sandbox.write("broken.ndjson", "{\n".repeat(20));
    sandbox.write("many.txt", records(3000, |_, item| format!("{item}\n")));
    let window = ["--window", "1000", "--epsilon", "1"];
    let listed = ["--window", "1000", "--domain", "keys.txt"];
    let with = |more: &[&'static str]| [more, &window].concat();
    let exact = |more: &[&'static str]| [more, &listed, &EXACT].concat();
    check(&sandbox, &with(&["none.txt"]), "nothing-read", &["no record was read", "name of the file"]);
    check(
        &sandbox,
        &with(&["broken.ndjson", "--column", "k", "--on-error", "skip"]),
        "nothing-counted",
        &["20 records cannot be read", "--format"],
    );
    check(
        &sandbox,
        &with(&["few.txt"]),
        "nothing-found",
        &["no key is listed yet", "so far: 2 records", "--domain", "--format and --column"],
    );
    check(&sandbox, &with(&["unlike.txt"]), "nothing-found", &["so far: 3,000 records"]);
    check(
        &sandbox,
        &exact(&["unlike.txt"]),
        "below-noise",
        &["takes about 1 occurrence", "the window has 1,000 items", "--all shows rows"],
    );
    check(
        &sandbox,
        &exact(&["many.txt", "--threshold", "0.6"]),
        "below-threshold",
        &["no item has 60 % of the window; the largest has about 50 %", "smaller --threshold"],
    );
}

#[test]
fn a_plan_for_far_more_items_than_there_are_is_named_first() {
    let sandbox = Sandbox::new();
    sandbox.write("t.tsv", records(1000, |n, item| format!("{n}\t{item}\n")));
    let top = ["t.tsv", "--column", "2", "--time-column", "1", "--window", "1000s", "--epsilon", "1"];
    let top = [&top[..], &["--expected-items", "1000000"]].concat();
    check(&sandbox, &top, "nothing-found", &["what helps: say --expected-items 1000,", "not 1,000,000"]);
}

#[test]
fn before_the_first_seal_it_says_how_much_is_missing() {
    let sandbox = Sandbox::new();
    sandbox.write("few.txt", "a\nb\n");
    let output =
        sandbox.run(&["top", "few.txt", "--window", "1000", "--epsilon", "1", "--every", "1", "--ndjson"]);
    let first = text(&output).lines().next().map(serde_json::from_str::<serde_json::Value>);
    let why = &first.expect("an answer").expect("a document")["why"];
    assert_eq!(why["cause"], "nothing-sealed", "{why}");
    assert!(
        why["message"].as_str().is_some_and(|text| text.ends_with("are complete; 1 record so far")),
        "{why}"
    );
}

#[test]
fn a_header_alone_is_explained_beside_it() {
    let sandbox = Sandbox::new();
    sandbox.write("few.txt", "a\nb\n");
    let output = sandbox.run(&["top", "few.txt", "--window", "1000", "--epsilon", "1", "--csv"]);
    assert_eq!(text(&output).lines().count(), 1, "{}", text(&output));
    assert!(errors(&output).contains("nothing to show: no key is listed yet"), "{}", errors(&output));
}

#[test]
fn a_saved_view_speaks_of_another_run() {
    let sandbox = Sandbox::new();
    sandbox.write("few.txt", "a\nb\n");
    let save = ["top", "few.txt", "--window", "1000", "--epsilon", "1", "--save", "few.view"];
    assert!(sandbox.run(&save).status.success());
    check(&sandbox, &["--view", "few.view"], "nothing-found", &["in another run, read more"]);
}

/// The noise floor is about the count from which rows are shown: of 100 keys with a third of it hardly any is shown, of 100
/// with three times as much hardly any is missed. Errors have about a quarter of the floor as their deviation, so that each
/// row is wrong with probability below 1 %, and 20 of 100 with one below 1e-18.
#[test]
fn the_noise_floor_is_where_rows_begin_to_show() {
    let sandbox = Sandbox::new();
    sandbox.write("none.txt", "other\n".repeat(10_000));
    let keys: String = (0..2000).map(|number| format!("key {number}\n")).collect();
    sandbox.write("domain.txt", keys);
    let fixed = ["top", "--window", "10000", "--epsilon", "1", "--domain", "domain.txt", "--json"];
    let empty = json(&sandbox.run(&[&fixed[..], &["none.txt"]].concat()));
    let message = empty["why"]["message"].as_str().expect("a message");
    let floor = message.split_once("takes about ").and_then(|(_, rest)| rest.split(' ').next());
    let floor: usize = floor.and_then(|floor| floor.parse().ok()).unwrap_or_else(|| panic!("{message}"));
    for (count, shown) in [(floor / 3, 0..20), (3 * floor, 80..101)] {
        let rounds = (0..count).flat_map(|_| (0..100).map(|number| format!("key {number}\n")));
        let filler = "other\n".repeat(10_000 - 100 * count);
        sandbox.write("some.txt", filler + &rounds.collect::<String>());
        let answer = json(&sandbox.run(&[&fixed[..], &["some.txt", "--top", "100"]].concat()));
        let rows = answer["items"].as_array().expect("items").len();
        assert!(shown.contains(&rows), "{rows} rows of {count} occurrences, the floor is {floor}");
    }
}
