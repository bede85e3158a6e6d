//! Saved views answer like the run that saved them.

use crate::sandbox::{EXACT, Sandbox, errors, fails, json, records, text};

fn saved() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", records(10_000, |_, item| format!("{item}\n")));
    let save = [
        "top",
        "t.txt",
        "--window",
        "5000",
        "--epsilon",
        "1",
        "--domain",
        "keys.txt",
        "--save",
        "t.view",
        "--json",
    ];
    let output = sandbox.run(&save);
    sandbox.write("first.json", &output.stdout);
    json(&output);
    sandbox
}

#[test]
fn a_view_answers_the_same_again_and_again() {
    let sandbox = saved();
    let first = std::fs::read_to_string(sandbox.path("first.json")).expect("the first answer");
    let mut first: serde_json::Value = serde_json::from_str(&first).expect("a document");
    // What was read is said by the run that read it.
    assert_eq!(first["read"]["records"], 10_000);
    first["read"] = serde_json::Value::Null;
    for _ in 0..2 {
        let output = sandbox.run(&["top", "--view", "t.view", "--json"]);
        assert_eq!(json(&output), first);
        assert!(errors(&output).contains("nothing was spent"));
    }
    let shorter = json(&sandbox.run(&["top", "--view", "t.view", "--window", "1000", "--json"]));
    assert_eq!(shorter["window"]["start"], 9000);
    let most = json(&sandbox.run(&["top", "--view", "t.view", "--threshold", "0.4", "--json"]));
    assert_eq!(most["items"].as_array().map(Vec::len), Some(1));
    let both = ["top", "--view", "t.view", "--threshold", "0.1", "--top", "2"];
    let first = json(&sandbox.run(&[&both[..], &["--json"]].concat()));
    assert_eq!((first["items"].as_array().map(Vec::len), &first["more"]), (Some(2), &1.into()), "{first}");
    assert!(text(&sandbox.run(&both)).contains("1 row more of at least this share; --top shows more"));
    let left = std::fs::read_dir(sandbox.path("")).expect("a directory").count();
    assert_eq!(left, 4, "no partial file stays behind");
}

#[test]
fn a_view_is_asked_nothing_that_only_a_stream_can_answer() {
    let sandbox = saved();
    for more in
        [&["--watch"][..], &["--every", "10"], &["--memory", "1MB"], &["--user-column", "1"], &["t.txt"]]
    {
        fails(&sandbox.run(&[&["top", "--view", "t.view"], more].concat()), 2, &["--view"]);
    }
}

#[test]
fn a_view_that_cannot_be_saved_is_refused_before_anything_is_spent() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", records(10_000, |_, item| format!("{item}\n")));
    std::fs::create_dir(sandbox.path("dir")).expect("a directory");
    let fixed = ["top", "t.txt", "--window", "5000", "--epsilon", "1", "--domain", "keys.txt", "--save"];
    for place in ["missing/t.view", "dir"] {
        let output = sandbox.run(&[&fixed[..], &[place]].concat());
        fails(&output, 1, &[place, "cannot be written, so nothing was read and spent"]);
        assert!(!errors(&output).contains("this run spends"), "{}", errors(&output));
    }
}

#[test]
fn what_cannot_be_read_is_refused_before_anything_is_spent() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", "a\n");
    let fixed = ["top", "t.txt", "--window", "5000", "--epsilon", "1", "--domain", "keys.txt"];
    for (more, code) in [(&["nowhere.txt"][..], 4), (&["--column", "2"], 2)] {
        let output = sandbox.run(&[&fixed[..], more].concat());
        fails(&output, code, &[]);
        assert!(!errors(&output).contains("this run spends"), "{}", errors(&output));
    }
}

#[test]
fn items_are_counted_from_a_view_or_a_stream() {
    let sandbox = saved();
    let first = json(&sandbox.run(&["top", "--view", "t.view", "--json"]));
    let counted = json(&sandbox.run(&["count", "b", "a", "--view", "t.view", "--json"]));
    assert_eq!(counted["items"][1]["estimate"], first["items"][0]["estimate"]);
    assert_eq!(counted["items"][0]["item"], "b");
    let direct = ["count", "c", "never", "c", "--window", "10000", "--json"];
    let answer = json(&sandbox.run(&[&direct[..], &EXACT, &["--", "t.txt"]].concat()));
    let estimate = |index: usize| answer["items"][index]["estimate"].as_f64().expect("a number");
    assert!((estimate(0) - 2000.0).abs() < 30.0, "{answer}");
    assert!(estimate(1).abs() < 30.0 && estimate(2) == estimate(0), "{answer}");
    fails(
        &sandbox.run(&["count", "never", "--view", "t.view"]),
        2,
        &["\"never\"", "not in the public domain"],
    );
    fails(&sandbox.run(&["count", "a", "--view", "t.view", "--", "t.txt"]), 2, &["--view"]);
}

#[test]
fn a_view_is_inspected() {
    let sandbox = saved();
    let page = text(&sandbox.run(&["inspect", "t.view"]));
    for part in [
        "t.view",
        "items 5,000 to 10,000",
        "3 in the public list",
        "epsilon = 1, delta = 0",
        "discrete Laplace",
    ] {
        assert!(page.contains(part), "{part:?} in {page}");
    }
    let document = json(&sandbox.run(&["inspect", "t.view", "--json"]));
    assert_eq!(document["epsilon"], 1.0);
    assert_eq!(document["plan"]["structure"]["window"], 5000);
    assert_eq!(document["keys"], 3);
}

#[test]
fn found_keys_are_inspected() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", records(10_000, |_, item| format!("{item}\n")));
    assert!(
        sandbox
            .run(&["top", "t.txt", "--window", "5000", "--epsilon", "1", "--save", "t.view"])
            .status
            .success()
    );
    let page = text(&sandbox.run(&["inspect", "t.view"]));
    assert!(page.contains("3 found in the stream: a, b, c\n"), "{page}");
    let document = json(&sandbox.run(&["inspect", "t.view", "--json"]));
    assert_eq!(document["found"], serde_json::json!({ "keys": 3, "first": ["a", "b", "c"] }));
    assert!(document["keys"].is_null(), "{document}");
}

#[test]
fn a_damaged_view_is_refused_with_5() {
    let sandbox = saved();
    let mut bytes = std::fs::read(sandbox.path("t.view")).expect("a view");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    sandbox.write("damaged.view", &bytes);
    sandbox.write("short.view", &bytes[..middle]);
    sandbox.write("other.view", "something else");
    for name in ["damaged.view", "short.view", "other.view"] {
        for command in [&["top", "--view", name][..], &["count", "a", "--view", name], &["inspect", name]] {
            fails(&sandbox.run(command), 5, &[name]);
        }
    }
    fails(&sandbox.run(&["inspect", "nowhere.view"]), 4, &["nowhere.view cannot be opened"]);
}

/// Twenty keys of 100 items each, whose estimates noise scatters. Only a request that hides nothing shows them as they are; in
/// every other one the rows were chosen, and what they share pulls them together. Noise would have to be the same for all keys
/// by chance for that not to show.
#[test]
fn a_list_of_few_keys_is_corrected_by_default() {
    let sandbox = Sandbox::new();
    let keys: Vec<String> = (0..20).map(|key| format!("page-{key}")).collect();
    sandbox.write("few.txt", keys.join("\n"));
    sandbox.write("t.txt", (0..2000).map(|item| keys[item % 20].clone() + "\n").collect::<String>());
    let count = ["top", "t.txt", "--window", "2000", "--epsilon", "1", "--domain", "few.txt"];
    assert!(sandbox.run(&[&count[..], &["--save", "t.view"]].concat()).status.success());
    let spread = |more: &[&str]| {
        let answer = json(&sandbox.run(&[&["top", "--view", "t.view", "--json"], more].concat()));
        let rows = answer["items"].as_array().expect("rows").iter();
        let counts: Vec<f64> = rows.map(|row| row["estimate"].as_f64().expect("a number")).collect();
        assert!(15 < counts.len(), "{answer}");
        counts[0] - counts[15]
    };
    let plain = spread(&["--all"]);
    for chosen in [
        &[][..],
        &["--top", "1000"],
        &["--threshold", "0.0001"],
        &["--all", "--threshold", "0.0001"],
        &["--all", "--top", "19"],
    ] {
        assert!(spread(chosen) < plain, "{chosen:?}");
    }
    assert_eq!(spread(&["--all", "--top", "1000"]), plain);
}
