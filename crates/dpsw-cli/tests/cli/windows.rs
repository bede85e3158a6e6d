//! Windows of items and of time, answers on the way, and the methods.

use serde_json::Value;

use crate::sandbox::{EXACT, Sandbox, check_shares, errors, fails, json, records, text, timed};

fn documents(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a document per line")).collect()
}

#[test]
fn a_window_of_items_forgets_what_is_older() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", "c\n".repeat(5000) + &records(1000, |_, item| format!("{item}\n")));
    let answer = sandbox.top(&["t.txt"]);
    assert_eq!(
        (answer["window"]["start"].as_u64(), answer["window"]["end"].as_u64()),
        (Some(5000), Some(6000))
    );
    assert_eq!((answer["epsilon"].as_f64(), answer["delta"].as_f64()), (Some(1e6), Some(0.0)));
    for (row, (item, count)) in [("a", 500.0), ("b", 300.0), ("c", 200.0)].into_iter().enumerate() {
        assert_eq!(
            (&answer["items"][row]["item"], &answer["items"][row]["estimate"]),
            (&item.into(), &count.into())
        );
    }
}

/// How many records a file has is known before it is read, so that its last window is cut out to the item. Once at the end of
/// a line and once in it; with blank lines, quoted line ends and records that cannot be read.
#[test]
fn the_window_of_a_file_is_cut_to_the_item_in_every_format() {
    let sandbox = Sandbox::new();
    let item = |n: usize| if n < 537 { "c" } else { ["a", "b"][n % 2] };
    let written = |record: &dyn Fn(&str) -> String| records(1537, |n, _| record(item(n)));
    let lines = written(&|item| format!("{item}\n"));
    sandbox.write("t.txt", &lines);
    sandbox.write("open.txt", lines.trim_end());
    sandbox.write("t.csv", format!("k,note\n{}", written(&|item| format!("{item},\"two\nlines\"\n\n"))));
    sandbox.write("t.tsv", written(&|item| format!("1\t{item}\n")));
    sandbox.write("t.ndjson", written(&|item| format!("{{\"k\":\"{item}\"}}\n")));
    let log = |item: &str| format!("h - - [10/Oct/2000:13:55:36 -0700] \"GET {item} HTTP/1.1\" 200 5\n");
    sandbox.write("access.log", written(&log));
    sandbox.write("packed.txt.zst", zstd::encode_all(lines.as_bytes(), 0).expect("packed"));
    for arguments in [
        &["t.txt"][..],
        &["open.txt"],
        &["t.csv", "--column", "k", "--on-error", "skip"],
        &["t.tsv", "--column", "2"],
        &["t.ndjson", "--column", "/k"],
        &["access.log"],
        &["packed.txt.zst"],
    ] {
        let answer = sandbox.top(&[arguments, &["--all"]].concat());
        let end = answer["window"]["end"].as_u64().expect("a position");
        assert!(1537 <= end && answer["window"]["start"] == end - 1000, "{answer}");
        let rows = answer["items"].as_array().expect("items").iter();
        let counts: Vec<f64> = rows.map(|row| row["estimate"].as_f64().expect("a number")).collect();
        assert_eq!(
            counts.iter().sum::<f64>(),
            if end == 1537 { 1000.0 } else { 500.0 },
            "{arguments:?}: {answer}"
        );
        assert_eq!(counts[2], 0.0, "{arguments:?}: {answer}");
    }
}

/// A file shorter than the window is all that there is: keys are found in it, and it is planned for.
#[test]
fn a_file_that_is_shorter_than_the_window_is_answered_as_a_whole() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", records(3000, |_, item| format!("{item}\n")));
    for window in ["3000", "100000", "1000000000000"] {
        let output = sandbox.run(&["top", "t.txt", "--window", window, "--epsilon", "1", "--json"]);
        let answer = json(&output);
        assert_eq!((&answer["window"]["start"], &answer["window"]["end"]), (&0.into(), &3000.into()));
        // Noise reaches 100 with a probability below e^-20.
        check_estimates(&answer, [1500.0, 900.0, 600.0], 100.0);
    }
    // In a pipe nobody knows.
    let lines = records(3000, |_, item| format!("{item}\n"));
    let answer =
        json(&sandbox.pipe(&["top", "--window", "100000", "--epsilon", "1", "--json"], lines.as_bytes()));
    check_estimates(&answer, [1500.0, 900.0, 600.0], 100.0);
}

#[track_caller]
fn check_estimates(answer: &Value, counts: [f64; 3], reach: f64) {
    for (row, (item, count)) in ["a", "b", "c"].into_iter().zip(counts).enumerate() {
        let got = &answer["items"][row];
        assert_eq!(got["item"], item, "{answer}");
        assert!((got["estimate"].as_f64().expect("a number") - count).abs() < reach, "{answer}");
    }
}

#[test]
fn times_of_every_kind_make_the_same_window() {
    const START: usize = 971_208_000; // 2000-10-10T20:00:00Z
    let sandbox = Sandbox::new();
    let kinds: [fn(usize) -> String; 4] = [
        |n| (START + n).to_string(),
        |n| ((START + n) * 1000).to_string(),
        |n| format!("2000-10-10T20:{:02}:{:02}Z", n / 60, n % 60),
        |n| format!("10/Oct/2000:20:{:02}:{:02} +0000", n / 60, n % 60),
    ];
    for write in kinds {
        // The last 1,000 seconds of 1,500.
        let body = records(1500, |n, item| format!("{},{}\n", write(n), if n < 400 { "c" } else { item }));
        sandbox.write("t.csv", format!("t,k\n{body}"));
        let arguments = [&timed("t.csv", "k", "t", "1000s")[..], &["--json"]].concat();
        let answer = json(&sandbox.run(&[&arguments[..], &EXACT].concat()));
        assert_eq!(answer["window"]["unit"], "ms");
        assert_eq!(answer["window"]["end"].as_u64(), Some((START as u64 + 1499) * 1000 + 1), "{}", write(0));
        check_shares(&answer, [0.5, 0.3, 0.2]);
    }
}

/// The last 30 records are all c, which none before them are: whatever is predicted is wrong.
#[test]
fn a_file_that_is_over_is_answered_without_predicting() {
    let sandbox = Sandbox::new();
    let item = |n: usize| if n < 1970 { ["a", "b"][n % 2] } else { "c" };
    sandbox.write("t.txt", records(2000, |n, _| format!("{}\n", item(n))));
    sandbox.write("first.txt", records(1300, |n, _| format!("{}\n", item(n))));
    sandbox.write("then.txt", records(700, |n, _| format!("{}\n", item(1300 + n))));
    sandbox.write("t.csv", format!("t,u,k\n{}", records(2000, |n, _| format!("{n},{n},{}\n", item(n)))));
    let listed = ["--window", "1000", "--domain", "keys.txt"];
    let columns = ["t.csv", "--column", "k"];
    for arguments in [
        [&["top", "t.txt"][..], &listed].concat(),
        [&["top", "first.txt", "then.txt"][..], &listed].concat(),
        [&["top"][..], &columns, &["--user-column", "u"], &listed].concat(),
        [&["top"][..], &columns, &["--time-column", "t", "--window", "1000s", "--domain", "keys.txt"]]
            .concat(),
        vec!["count", "c", "--window", "1000", "--", "t.txt"],
    ] {
        let saved = sandbox
            .run(&[&arguments[..1], &EXACT, &["--save", "t.view", "--json"], &arguments[1..]].concat());
        let again = sandbox.run(&["count", "c", "--view", "t.view", "--json"]);
        for answer in [json(&saved), json(&again)] {
            assert_eq!(answer["covered"], answer["window"], "{arguments:?}");
            let c = answer["items"].as_array().expect("items").iter().find(|row| row["item"] == "c");
            assert_eq!(c.expect("a key")["estimate"], 30.0, "{arguments:?}: {answer}");
        }
    }
}

/// With this epsilon the noise of counters has a scale of 1 / 800: it is none but for a probability of e^-800.
#[test]
fn a_key_that_comes_up_at_the_end_of_a_file_is_found() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", records(1970, |n, _| format!("{}\n", ["a", "b"][n % 2])) + &"c\n".repeat(30));
    let answer = json(&sandbox.run(&["top", "t.txt", "--window", "1000", "--epsilon", "2000", "--json"]));
    let row = answer["items"].as_array().expect("items").iter().find(|row| row["item"] == "c");
    assert_eq!(row.map(|row| row["estimate"].as_f64().expect("a number").round()), Some(30.0), "{answer}");
}

/// Answers on the way predict what is not sealed yet; the last one, at the same record, does not.
#[test]
fn the_last_of_several_answers_is_that_of_the_finished_file() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", records(1970, |n, _| format!("{}\n", ["a", "b"][n % 2])) + &"c\n".repeat(30));
    let fixed = ["top", "t.txt", "--window", "990", "--domain", "keys.txt", "--every", "500", "--ndjson"];
    let answers = documents(&text(&sandbox.run(&[&fixed[..], &EXACT].concat())));
    assert_eq!(answers.len(), 4);
    let last = answers.last().expect("an answer");
    assert_eq!((&last["covered"], last["window"]["end"].as_u64()), (&last["window"], Some(2000)));
    let c = last["items"].as_array().expect("items").iter().find(|row| row["item"] == "c");
    assert_eq!(c.expect("a key")["estimate"], 30.0, "{last}");
}

/// 5.5 hours across the end of a substream, with a record a second, in a window of 30 days.
#[test]
fn a_window_longer_than_the_stream_counts_all_of_it() {
    const START: usize = 971_208_000;
    let sandbox = Sandbox::new();
    let body = records(19_800, |n, item| format!("{}\t{item}\n", START + n));
    sandbox.write("t.tsv", body);
    for window in ["30d", "364d", "3650d"] {
        let arguments = [&timed("t.tsv", "2", "1", window)[..], &["--json"]].concat();
        let answer = json(&sandbox.run(&[&arguments[..], &EXACT].concat()));
        assert_eq!(answer["items"][0]["estimate"], 9900.0, "{window}: {answer}");
    }
}

/// January, with 100 records a day: all but 30 of them the same, those the day's own. Dates have no time of day, so a window of
/// days is one of calendar days, the last one included whole; the same for hours.
#[test]
fn dates_make_windows_of_whole_days() {
    let sandbox = Sandbox::new();
    let record = |n: usize, _: &str| {
        let day = n / 100 + 1;
        let item = if n % 100 < 30 { format!("day {day}") } else { "same".to_owned() };
        format!("2026-01-{day:02},2026-01-01T{:02}:00:00Z,{item}\n", day.min(24) - 1)
    };
    sandbox.write("t.csv", format!("date,hour,k\n{}", records(3100, record)));
    sandbox.write("keys.txt", (1..=31).map(|day| format!("day {day}\n")).collect::<String>() + "same\n");
    let start = 1_767_225_600_000_u64; // 2026-01-01T00:00:00Z
    for (column, window, len, days) in [
        ("date", "7d", 86_400_000, 25..=31),
        ("date", "1d", 86_400_000, 31..=31),
        ("date", "3d", 86_400_000, 29..=31),
        ("date", "30d", 86_400_000, 2..=31),
        ("date", "365d", 86_400_000, 1..=31),
        ("hour", "7h", 3_600_000, 18..=23),
    ] {
        let arguments =
            [&timed("t.csv", "k", column, window)[..], &["--json", "--all", "--top", "100"]].concat();
        let answer = json(&sandbox.run(&[&arguments[..], &EXACT].concat()));
        let end = start + len * if column == "date" { 31 } else { 24 };
        assert_eq!(answer["window"]["end"], end, "{window}");
        for row in answer["items"].as_array().expect("items") {
            let day = row["item"].as_str().and_then(|item| item.strip_prefix("day ")).map(str::parse::<u64>);
            let Some(Ok(day)) = day else { continue };
            // In the hours all days from the 24th on are one.
            let is_inside = days.contains(&day) || (column == "hour" && 24 <= day);
            assert_eq!(row["estimate"], if is_inside { 30.0 } else { 0.0 }, "{window}: {row}");
        }
    }
    let table = text(&sandbox.run(&[&timed("t.csv", "k", "date", "7d")[..], &EXACT].concat()));
    assert!(table.contains("2026-01-25 00:00:00 to 2026-02-01 00:00:00 UTC"), "{table}");
}

/// Substreams of a window, as `--dry-run` says.
fn substreams(sandbox: &Sandbox, arguments: &[&str]) -> u64 {
    let plan = json(&sandbox.run(&[arguments, &["--epsilon", "1", "--dry-run", "--json"]].concat()));
    plan["plan"]["structure"]["substreams_kept"].as_u64().unwrap_or_else(|| panic!("{plan}"))
}

#[test]
fn a_window_of_time_is_planned_for_the_records_that_a_file_has() {
    let sandbox = Sandbox::new();
    sandbox.write("t.tsv", records(20_000, |n, item| format!("{n}\t{item}\n")));
    let window = timed("t.tsv", "2", "1", "2000s");
    let [guessed, given] = [&[][..], &["--expected-items", "1000000"]]
        .map(|more| substreams(&sandbox, &[&window, more].concat()));
    assert!(guessed < 10 && 10 < given, "{guessed} and {given}");
    let right = substreams(&sandbox, &[&window[..], &["--expected-items", "4000"]].concat());
    assert_eq!(guessed, right, "twice as many as usual");
}

#[test]
fn windows_that_are_too_short_or_too_long_are_refused_for_what_they_are() {
    let sandbox = Sandbox::new();
    let lines = records(1000, |_, item| format!("{item}\n"));
    sandbox.write("t.tsv", "1\ta\n");
    let pipe = |arguments: &[&str]| {
        sandbox.pipe(&[&["top", "--epsilon", "1"], arguments].concat(), lines.as_bytes())
    };
    for window in ["1", "2", "3", "10"] {
        let wanted = format!("the noise would hide an item that fills a whole window of {window} items");
        fails(&pipe(&["--window", window]), 3, &[&wanted, "raise epsilon or take a longer window"]);
        fails(&pipe(&["--window", window, "--domain", "keys.txt"]), 3, &[&wanted]);
    }
    let long = ["--window", "1000000000000"];
    fails(&pipe(&long), 2, &["window length must lie between 1 and 53687091200, got 1000000000000"]);
    fails(&pipe(&[&long[..], &["--domain", "keys.txt"]].concat()), 2, &["window length must lie"]);
    let found = pipe(&["--window", "1000000000"]);
    fails(
        &found,
        2,
        &["windows of up to 838,860,000 items, got 1,000,000,000", "shorter --window", "--domain"],
    );
    assert!(pipe(&["--window", "838860000"]).status.success());
    let years = [&timed("t.tsv", "2", "1", "20000d")[..], &["--epsilon", "1"]].concat();
    fails(&sandbox.run(&years), 2, &["a window of time has at most 12725", "got 20000 d"]);
}

#[test]
fn late_records_are_counted_while_their_interval_waits() {
    let sandbox = Sandbox::new();
    // Every tenth record is 30 seconds old.
    let body = records(2000, |n, item| format!("{}\t{item}\n", if n % 10 == 9 { n.max(30) - 30 } else { n }));
    sandbox.write("t.tsv", body);
    let arguments = [&timed("t.tsv", "2", "1", "100s")[..], &["--json"]].concat();
    let strict = sandbox.run(&[&arguments[..], &EXACT].concat());
    assert!(errors(&strict).contains("came too late"), "{}", errors(&strict));
    let patient = sandbox.run(&[&arguments[..], &EXACT, &["--lateness", "40s"]].concat());
    assert!(!errors(&patient).contains("came too late"), "{}", errors(&patient));
    json(&patient);
}

#[test]
fn answers_come_as_often_as_asked() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", records(10_000, |_, item| format!("{item}\n")));
    let fixed = ["top", "t.txt", "--window", "1000", "--domain", "keys.txt", "--epsilon", "1"];
    let output = sandbox.run(&[&fixed[..], &["--every", "2500", "--ndjson"]].concat());
    let ends: Vec<u64> =
        documents(&text(&output)).iter().filter_map(|answer| answer["window"]["end"].as_u64()).collect();
    assert_eq!(ends, [2500, 5000, 7500, 10_000]);
    let output = sandbox.run(&[&fixed[..], &["--every", "5000", "--csv", "--top", "2"]].concat());
    let rows = text(&output);
    let names = rows.lines().next().expect("a header");
    assert!(names.starts_with("position,rank,item,estimate,lower,upper,share,trend,item_base64,"), "{names}");
    let firsts: Vec<&str> = rows
        .lines()
        .skip(1)
        .map(|row| &row[..row.find(",a,").or(row.find(",b,")).expect("an item")])
        .collect();
    assert_eq!(firsts, ["5000,1", "5000,2", "10000,1", "10000,2"]);
    fails(&sandbox.run(&[&fixed[..], &["--every", "5000", "--json"]].concat()), 2, &["--ndjson"]);
}

#[test]
fn answers_come_as_often_as_asked_in_the_time_of_the_events() {
    let sandbox = Sandbox::new();
    sandbox.write("t.tsv", records(1001, |n, item| format!("{n}\t{item}\n")));
    let fixed = [&timed("t.tsv", "2", "1", "100s")[..], &["--epsilon", "1"]].concat();
    let output = sandbox.run(&[&fixed[..], &["--every", "250s", "--ndjson"]].concat());
    let ends: Vec<u64> =
        documents(&text(&output)).iter().filter_map(|answer| answer["window"]["end"].as_u64()).collect();
    // The last answer is that of the finished file, with its last record.
    assert_eq!(ends, [250_000, 500_000, 750_000, 1_000_001]);
}

#[test]
fn the_table_is_for_people() {
    let sandbox = Sandbox::new();
    // Each of the keys that never occur stands out with probability 2.5 % or so: not five of the six, but for 1e-7.
    sandbox.write("keys.txt", "a\nb\nc\nnever 1\nnever 2\nnever 3\nnever 4\nnever 5\nnever 6\n");
    sandbox.write("t.txt", records(10_000, |_, item| format!("{item}\n")));
    let output =
        sandbox.run(&["top", "t.txt", "--window", "10000", "--domain", "keys.txt", "--epsilon", "1"]);
    let table = text(&output);
    for part in [
        "all 10,000 items",
        "epsilon = 1, delta = 0",
        "95 % interval",
        "   1  a",
        "steady",
        "more rows may be noise alone; --all shows them",
    ] {
        assert!(table.contains(part), "{part:?} in {table}");
    }
    let all = sandbox.run(&[
        "top",
        "t.txt",
        "--window",
        "10000",
        "--domain",
        "keys.txt",
        "--epsilon",
        "1",
        "--all",
    ]);
    for part in ["~never", "the true count may be less than a quarter of what is shown"] {
        assert!(text(&all).contains(part), "{part:?} in {}", text(&all));
    }
    assert!(!table.contains('\u{1b}'), "no colours in a pipe");
    let message = errors(&output);
    for part in [
        "spends epsilon = 1, delta = 0 on the events of t.txt",
        "spends it again",
        "made from the stream itself",
    ] {
        assert!(message.contains(part), "{part:?} in {message}");
    }
    let coloured = sandbox.run(&[
        "top",
        "t.txt",
        "--window",
        "10000",
        "--domain",
        "keys.txt",
        "--epsilon",
        "1",
        "--color",
        "always",
    ]);
    assert!(text(&coloured).contains('\u{1b}'));
    let quiet =
        sandbox.run(&["top", "t.txt", "--window", "10000", "--domain", "keys.txt", "--epsilon", "1", "-q"]);
    assert!(quiet.stderr.is_empty(), "{}", errors(&quiet));
}

#[test]
fn without_a_domain_frequent_keys_are_found_and_rare_ones_are_not() {
    let sandbox = Sandbox::new();
    // The rare keys occur once each: one of them comes out with probability below delta.
    let text =
        records(20_000, |n, item| if n % 10 == 9 { format!("rare {n}\n") } else { format!("{item}\n") });
    sandbox.write("t.txt", text);
    for method in ["tuned", "paper"] {
        let fixed = [
            "top",
            "t.txt",
            "--window",
            "10000",
            "--epsilon",
            "2",
            "--method",
            method,
            "--json",
            "--save",
            "t.view",
        ];
        let output = sandbox.run(&fixed);
        let answer = json(&output);
        let mut items: Vec<&str> = answer["items"]
            .as_array()
            .expect("items")
            .iter()
            .filter_map(|row| row["item"].as_str())
            .collect();
        items.sort_unstable();
        assert_eq!(items, ["a", "b", "c"], "{answer}");
        assert_eq!(answer["delta"].as_f64(), Some(1e-10));
        assert!(errors(&output).contains("found in the stream, privately"), "{}", errors(&output));
        let again = json(&sandbox.run(&["top", "--view", "t.view", "--json"]));
        assert_eq!(again["items"], answer["items"]);
    }
}

#[test]
fn listed_keys_get_counters_of_their_own_unless_a_size_is_given() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", records(3000, |_, item| format!("{item}\n")));
    sandbox.write("keys.txt", (0..100_000).map(|n| format!("key {n}\n")).collect::<String>());
    let fixed = ["top", "t.txt", "--window", "1000", "--epsilon", "1", "--domain", "keys.txt"];
    let output = sandbox.run(&fixed);
    assert!(errors(&output).contains("each key has counters of its own"), "{}", errors(&output));
    let output = sandbox.run(&[&fixed[..], &["--memory", "400KB"]].concat());
    assert!(!errors(&output).contains("counters of its own"), "{}", errors(&output));
}

#[test]
fn the_list_of_found_keys_is_in_the_memory_and_what_counts_them_is_said() {
    let sandbox = Sandbox::new();
    sandbox.write("t.tsv", records(2000, |n, item| format!("{n}\t{item}\n")));
    let fixed = ["top", "t.tsv", "--column", "2", "--time-column", "1", "--window", "15m", "--epsilon", "1"];
    let output = sandbox.run(&fixed);
    assert!(output.status.success(), "{}", errors(&output));
    // In 2,000 seconds there is a record a second, so 900 in 15 minutes: twice as many are planned for.
    for part in
        ["finding keys takes up to", "% of the window, which holds about 1,800 items (--expected-items)"]
    {
        assert!(errors(&output).contains(part), "{part:?} in {}", errors(&output));
    }
    fails(&sandbox.run(&[&fixed[..], &["--memory", "30KB"]].concat()), 2, &["30000 bytes; give more"]);
    let strict = ["--window", "100", "--epsilon", "1", "--delta", "1e-200"];
    let short = sandbox.run(&[&["top", "t.tsv", "--column", "2"][..], &strict].concat());
    assert!(errors(&short).contains("no key can be frequent enough to be found"), "{}", errors(&short));
}

/// The share of a window with which keys are found, in the words of a plan and of a run.
#[test]
fn plans_and_runs_say_the_same_of_the_keys_that_are_found() {
    let sandbox = Sandbox::new();
    let after = |text: &str, before: &str| {
        let text = text.replace('\n', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("{before:?} in {text}"));
        rest.split(" of ").next().expect("a share").to_owned()
    };
    for (window, more) in [
        ("1000", &[][..]),
        ("10000", &[]),
        ("1000000", &[]),
        ("10m", &["--arrival-time"]),
        ("10m", &["--arrival-time", "--expected-items", "20000"]),
    ] {
        let given: Vec<&str> = more.iter().copied().filter(|word| *word != "--arrival-time").collect();
        let plan = sandbox.run(&[&["plan", "--window", window, "--epsilon", "2"][..], &given].concat());
        let run = sandbox.pipe(&[&["top", "--window", window, "--epsilon", "2"][..], more].concat(), b"a\n");
        let (planned, said) =
            (after(&text(&plan), "a key with "), after(&errors(&run), "usually those with "));
        assert_eq!(planned, said, "{window} {more:?}");
    }
}

#[test]
fn the_chart_of_a_plan_has_the_error_that_its_text_has() {
    let sandbox = Sandbox::new();
    for more in [
        &["--epsilon", "1"][..],
        &["--epsilon", "1", "--keys", "25000"],
        &["--epsilon", "1", "--keys", "1000000", "--memory", "1MB"],
        &["--target-error", "50"],
        &["--keys", "25000", "--target-share", "0.05"],
        &["--keys", "25000", "--target-error", "250", "--epsilon", "1", "--smallest-memory"],
    ] {
        let plan = json(&sandbox.run(&[&["plan", "--window", "1000000", "--json"][..], more].concat()));
        let chart = plan["error_by_epsilon"].as_array().expect("a chart");
        let here = chart.iter().find(|point| point["epsilon"] == plan["ledger"]["epsilon"]).expect("a point");
        assert_eq!(here["error"], plan["predicted"]["frequent"], "{more:?}");
        // The others are of the same size: with half of the epsilon no structure errs less.
        assert!(
            chart.windows(2).all(|pair| pair[1]["error"].as_f64() <= pair[0]["error"].as_f64()),
            "{more:?}"
        );
    }
}

#[test]
fn counters_take_as_much_memory_as_lowers_the_error_and_say_what_less_would_cost() {
    let sandbox = Sandbox::new();
    let plan = |more: &[&str]| json(&sandbox.run(&[&["plan", "--json"], more].concat()));
    let bytes = |plan: &Value| plan["bytes"]["sketch"].as_u64().expect("a size");
    let error = |plan: &Value| {
        let of = |group: &str| plan["predicted"][group].as_f64().expect("an error");
        of("frequent") + of("rare")
    };
    for (window, epsilon, helps) in [("10000", "1", false), ("1000000", "5", true), ("1h", "1", true)] {
        let asked = ["--window", window, "--epsilon", epsilon];
        let [small, large] =
            ["400KB", "12.8MB"].map(|memory| plan(&[&asked[..], &["--memory", memory]].concat()));
        let chosen = plan(&asked);
        assert!(error(&chosen) <= 1.05 * error(&large), "{window}");
        assert_eq!(400_000 < bytes(&chosen), helps, "{window}: {}", bytes(&chosen));
        assert_eq!(error(&chosen) < 0.9 * error(&small), helps, "{window}");
    }
    let run = sandbox.pipe(&["top", "--window", "1000000", "--epsilon", "5"], b"a\n");
    for part in ["counters take ", "with a tenth of it (--memory) errors would be "] {
        assert!(errors(&run).contains(part), "{part:?} in {}", errors(&run));
    }
}

#[test]
fn the_method_of_the_paper_takes_its_parameters() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", records(100_000, |_, item| format!("{item}\n")));
    let fixed = [
        "top",
        "t.txt",
        "--window",
        "50000",
        "--domain",
        "keys.txt",
        "--epsilon",
        "2",
        "--method",
        "paper",
        "--json",
    ];
    for more in [
        &[][..],
        &["--substreams", "5", "--alpha", "0.6", "--grid", "20", "--rows", "3", "--columns", "500"],
        &["--beta", "0.8", "--zeta", "0.01", "--eta", "0.05"],
        &["--shares", "0.8,0.05,0.05"],
    ] {
        let output = sandbox.run(&[&fixed[..], more].concat());
        let answer = json(&output);
        assert_eq!(answer["items"][0]["item"], "a", "{answer}");
        assert_eq!(answer["delta"].as_f64(), Some(1e-10));
        assert!(errors(&output).contains("delta = 1e-10, the default"), "{}", errors(&output));
    }
    fails(
        &sandbox.run(&[
            "top",
            "t.txt",
            "--window",
            "5000",
            "--domain",
            "keys.txt",
            "--epsilon",
            "1",
            "--rows",
            "3",
        ]),
        2,
        &["--method paper"],
    );
}

#[test]
fn what_cannot_be_private_is_refused_with_3() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", "a\n");
    let fixed = ["top", "t.txt", "--domain", "keys.txt"];
    for (more, wanted) in [
        (&["--window", "1000", "--epsilon", "1", "--delta", "0.1"][..], "delta must not exceed"),
        (&["--window", "1000", "--epsilon", "0.00001"], "raise epsilon"),
        (
            &["--window", "1000", "--epsilon", "1", "--method", "paper", "--shares", "0.9,0.2,0.2"],
            "more than 1",
        ),
    ] {
        fails(&sandbox.run(&[&fixed[..], more].concat()), 3, &[wanted]);
    }
}

#[test]
fn wrong_usage_is_refused_with_2() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", "a\n");
    sandbox.write("twice.txt", "a\n\nb\na\n");
    sandbox.write("none.txt", "\n");
    for (arguments, code, wanted) in [
        (&["top", "t.txt", "--window", "1000", "--domain", "keys.txt"][..], 2, "--epsilon"),
        (&["top", "t.txt", "--epsilon", "1", "--domain", "keys.txt"], 2, "--window"),
        (&["top", "t.txt", "--window", "0", "--epsilon", "1"], 2, "\"0\" is not a whole number from 1 to"),
        (&["top", "t.txt", "--window", "9", "--epsilon", "1", "--every", "-5"], 2, "\"-5\" is not"),
        (&["top", "t.txt", "--window", "9", "--epsilon", "1", "--delta", "-1"], 2, "between 0 and 1, got -1"),
        (&["plan", "--window", "9", "--target-error", "nan"], 2, "--target-error must be a number above 0"),
        (&["top", "t.txt", "--window", "1x", "--epsilon", "1"], 2, "15m"),
        (&["top", "t.txt", "--window", "1000", "--epsilon", "-1", "--domain", "keys.txt"], 2, "epsilon"),
        (&["top", "t.txt", "--window", "10s", "--epsilon", "1", "--domain", "keys.txt"], 2, "--time-column"),
        (
            &["top", "t.txt", "--window", "1000", "--epsilon", "1", "--domain", "twice.txt"],
            4,
            "twice.txt:4: ",
        ),
        (&["top", "t.txt", "--window", "1000", "--epsilon", "1", "--domain", "none.txt"], 4, "no keys"),
        (
            &["top", "t.txt", "--window", "1000", "--epsilon", "1", "--domain", "keys.txt", "--memory", "10"],
            2,
            "bytes",
        ),
        (
            &["top", "t.txt", "--window", "1000", "--epsilon", "1", "--domain", "keys.txt", "--watch"],
            2,
            "terminal",
        ),
        (&["topp"], 2, "'top'"),
    ] {
        fails(&sandbox.run(arguments), code, &[wanted]);
    }
}
