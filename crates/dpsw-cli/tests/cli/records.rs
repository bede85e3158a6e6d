//! Records that cannot be read, and files that are not what they seem.

use std::process::Command;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};

use crate::formats::{arrow_bytes, parquet_bytes};
use crate::run::Run;
use crate::sandbox::{EXACT, PATTERN, Sandbox, check_shares, errors, fails, json, records, text, timed};

const TOP: [&str; 5] = ["top", "--window", "1000", "--domain", "keys.txt"];

fn top(sandbox: &Sandbox, arguments: &[&str]) -> std::process::Output {
    sandbox.run(&[&TOP[..], &EXACT, arguments].concat())
}

#[test]
fn errors_name_file_line_and_column_and_say_what_to_do() {
    let sandbox = Sandbox::new();
    sandbox.write("short.csv", "n,k\n1,a\n2\n");
    sandbox.write("bad.ndjson", "{\"k\":\"a\"}\n{\"k\" \"b\"}\n");
    sandbox.write("access.log", "hello\n");
    sandbox.write("open.csv", "n,k\n1,\"a\n");
    sandbox.write("times.csv", "t,k\n1,a\nsoon,b\n");
    sandbox.write("access.2.log", "h - - [soon] \"GET / HTTP/1.1\" 200 5\n");
    for (arguments, wanted) in [
        (
            &["short.csv", "--column", "k"][..],
            &["short.csv:3:2: ", "column 2 is wanted", "--on-error skip"][..],
        ),
        (&["bad.ndjson", "--column", "/k"], &["bad.ndjson:2:6: ", "not a JSON document"]),
        (&["bad.ndjson", "--column", "/x"], &["bad.ndjson:1: ", "nothing at \"/x\""]),
        (&["access.log"], &["access.log:1:1: ", "is it an access log?"]),
        (&["open.csv", "--column", "k"], &["open.csv:2: ", "not closed"]),
        (&["short.csv", "--column", "key"], &["short.csv: ", "no column \"key\"", "\"n\", \"k\""]),
        (&["short.csv", "--column", "3"], &["short.csv: ", "no column \"3\""]),
    ] {
        fails(&top(&sandbox, arguments), 4, wanted);
    }
    let timed = [
        "top",
        "--window",
        "10s",
        "--domain",
        "keys.txt",
        "times.csv",
        "--column",
        "k",
        "--time-column",
        "t",
    ];
    fails(&sandbox.run(&[&timed[..], &EXACT].concat()), 4, &["times.csv:3:1: ", "\"soon\" is not a time"]);
    let log = ["top", "access.2.log", "--window", "10s", "--domain", "keys.txt"];
    fails(&sandbox.run(&[&log[..], &EXACT].concat()), 4, &["access.2.log:1:8: ", "\"soon\" is not a time"]);
}

#[test]
fn a_time_column_that_makes_no_sense_is_refused() {
    let sandbox = Sandbox::new();
    let logged = "h - - [10/Oct/2000:13:55:36 -0700] \"GET a HTTP/1.1\" 200 5\n";
    sandbox.write("access.log", logged.repeat(100));
    sandbox.write("t.txt", "a\n");
    sandbox.write("t.csv", "t,k\n1,a\n");
    for (file, column, code, wanted) in [
        ("access.log", "host", 2, "access.log: the time of an access log is its column \"time\""),
        ("access.log", "when", 2, "the others are host, path, status, referrer and agent, got \"when\""),
        ("t.txt", "1", 2, "t.txt: lines have no columns"),
        ("t.csv", "host", 4, "t.csv: there is no column \"host\"; the columns are \"t\", \"k\""),
        ("t.csv", "k", 4, "t.csv:2:3: \"a\" is not a time"),
    ] {
        let item: &[&str] = if file == "t.csv" { &["--column", "k"] } else { &[] };
        let asked = ["top", file, "--window", "10s", "--domain", "keys.txt", "--time-column", column];
        fails(&sandbox.run(&[&asked[..], item, &EXACT].concat()), code, &[wanted]);
    }
    let named =
        ["top", "access.log", "--window", "10s", "--domain", "keys.txt", "--time-column", "time", "--json"];
    assert_eq!(json(&sandbox.run(&[&named[..], &EXACT].concat()))["items"][0]["item"], "a");
}

#[test]
fn which_column_is_the_item_is_asked_with_their_shapes_and_no_value() {
    let sandbox = Sandbox::new();
    let csv = "when,\"the user\",n\r\n2026-01-31T12:00:00Z,\"se\ncret\",417\r\n";
    sandbox.write("t.csv", csv);
    sandbox.write("t.tsv", "417\tsecret\n");
    sandbox.write("t.ndjson", "\n{\"user\":{\"name\":\"secret\"},\"n\":-417}\n");
    sandbox.write("semicolons.csv", csv.replace(',', ";"));
    let columns: [(&str, ArrayRef); 3] = [
        ("t", Arc::new(TimestampMicrosecondArray::from(vec![417]))),
        ("user", Arc::new(StringArray::from(vec!["secret"]))),
        ("n", Arc::new(Int64Array::from(vec![417]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    sandbox.write("t.parquet", parquet_bytes(&batch));
    sandbox.write("t.arrow", arrow_bytes(&batch, true));
    let csv_shapes = [
        "1  \"when\"      time",
        "2  \"the user\"  text of 7 characters",
        "3  \"n\"         whole number of 3 digits",
    ];
    let columnar_shapes = ["t     time", "user  text", "n     whole number"];
    for (file, wanted) in [
        ("t.csv", &csv_shapes[..]),
        ("t.tsv", &["1  whole number of 3 digits", "2  text of 6 characters"]),
        (
            "t.ndjson",
            &["/n          whole number of 3 digits", "/user/name  text of 6 characters", "JSON pointer"],
        ),
        (
            "semicolons.csv",
            &["1  \"when;\\\"the user\\\";n\"", "do columns end at ';'? Then say --delimiter ';'"],
        ),
        ("t.parquet", &columnar_shapes),
        ("t.arrow", &columnar_shapes),
    ] {
        let output = top(&sandbox, &[file]);
        fails(&output, 2, &[&format!("{file}: which column is the item? Name it with --column")]);
        fails(&output, 2, wanted);
        let said = errors(&output);
        assert!(!said.contains("secret") && !said.contains("417") && !said.contains("spends"), "{said}");
    }
    let piped = sandbox.pipe(&[&TOP[..], &EXACT, &["--format", "csv"]].concat(), csv.as_bytes());
    fails(&piped, 2, &csv_shapes);
    fails(
        &top(&sandbox, &["semicolons.csv", "--column", "n"]),
        4,
        &["there is no column \"n\"", "--delimiter ';'"],
    );
}

#[test]
fn what_is_missing_is_asked_for_in_words_that_help() {
    let sandbox = Sandbox::new();
    let csv = "when,k\n2026-01-31,secret\n";
    sandbox.write("t.csv", csv);
    sandbox.write("t.ndjson", "{\"k\":\"secret\",\"when\":\"2026-01-31\"}\n");
    let column: ArrayRef = Arc::new(StringArray::from(vec!["secret"]));
    sandbox.write("t.parquet", parquet_bytes(&RecordBatch::try_from_iter([("k", column)]).expect("a batch")));
    sandbox.write("t.txt", csv);
    sandbox.write("bars.txt", csv.replace(',', "|"));
    sandbox.write("pretty.json", "[\n  {\n    \"k\": 1\n  }\n]\n");
    let time = "which column is the time? A window of time needs it: name it with --time-column";
    for (arguments, code, wanted) in [
        (&["t.csv", "--column", "k", "--window", "1h"][..], 2, &[time, "1  \"when\"  time\n"][..]),
        (&["t.ndjson", "--column", "k", "--window", "1h"], 2, &[time, "/when  time\n"]),
        (&["t.parquet", "--window", "1h"], 2, &[time, "k  text\n"]),
        (&["t.txt", "--window", "1h"], 2, &["lines have no times", "--arrival-time"]),
        (&["t.txt", "--column", "k", "--window", "1000"], 2, &["the first one names some: say --format csv"]),
        (
            &["bars.txt", "--column", "k", "--window", "1000"],
            2,
            &["the first one names some: say --delimiter '|'"],
        ),
        (&["bars.txt", "--column", "x", "--window", "1000"], 2, &["give the --format"]),
        (
            &["pretty.json", "--column", "k", "--window", "1000"],
            4,
            &["pretty.json: ", "jq -c '.[]' FILE | dpsw"],
        ),
    ] {
        let output = sandbox.run(&[&["top", "--domain", "keys.txt"][..], &EXACT, arguments].concat());
        fails(&output, code, wanted);
        assert!(!errors(&output).contains("secret"), "{}", errors(&output));
    }
}

#[test]
fn blank_lines_between_documents_are_no_records() {
    let sandbox = Sandbox::new();
    sandbox.write("t.ndjson", records(1000, |_, item| format!("\n{{\"k\":\"{item}\"}}\r\n \r\n")));
    let answer = json(&top(&sandbox, &["t.ndjson", "--column", "/k", "--json"]));
    assert_eq!(answer["window"]["end"], 1000);
    check_shares(&answer, [0.5, 0.3, 0.2]);
    sandbox.write("bad.ndjson", "{\"k\":\"a\"}\n\n\n{\"k\"}\n");
    fails(&top(&sandbox, &["bad.ndjson", "--column", "/k"]), 4, &["bad.ndjson:4:5: "]);
}

#[test]
fn skipped_records_keep_their_place() {
    let sandbox = Sandbox::new();
    let broken = |n: usize| n % 10 == 3 || n % 10 == 7;
    sandbox.write(
        "t.ndjson",
        records(1000, |n, item| if broken(n) { "{\n".into() } else { format!("{{\"k\":\"{item}\"}}\n") }),
    );
    sandbox.write(
        "t.csv",
        format!(
            "n,k\n{}",
            records(1000, |n, item| if broken(n) { "1\n".into() } else { format!("1,{item}\n") })
        ),
    );
    for file in ["t.ndjson", "t.csv"] {
        let output = top(&sandbox, &[file, "--column", "k", "--on-error", "skip", "--json"]);
        let answer = json(&output);
        // The places of the two c in ten are taken by nothing.
        check_shares(&answer, [0.5, 0.3, 0.0]);
        assert_eq!(answer["window"]["end"], 1000);
        assert!(errors(&output).contains("200 of 1,000 records could not be read"), "{}", errors(&output));
    }
}

#[test]
fn skipped_records_keep_their_place_in_time() {
    let sandbox = Sandbox::new();
    // The first two have no time, later ones no item.
    let record = |n: usize, item: &str| match n {
        0 | 1 => "oops\n".to_owned(),
        _ if n % 10 == 3 || n % 10 == 7 => format!("{{\"t\":{n}}}\n"),
        _ => format!("{{\"t\":{n},\"k\":\"{item}\"}}\n"),
    };
    sandbox.write("t.ndjson", records(1001, record));
    let arguments = [&timed("t.ndjson", "k", "t", "1000s")[..], &["--on-error", "skip", "--json"]].concat();
    let answer = json(&sandbox.run(&[&arguments[..], &EXACT].concat()));
    check_shares(&answer, [0.5, 0.3, 0.0]);
}

#[test]
fn a_line_of_100_megabytes_takes_one_place_and_little_memory() {
    let sandbox = Sandbox::new();
    let half = records(500, |_, item| format!("{item}\n"));
    let mut bytes = half.clone().into_bytes();
    bytes.resize(bytes.len() + 100_000_000, b'x');
    bytes.push(b'\n');
    bytes.extend(half.as_bytes());
    sandbox.write("long.txt", bytes);
    fails(&top(&sandbox, &["long.txt"]), 4, &["long.txt:501: ", "longer than 1048576 bytes"]);
    let command = format!(
        "ulimit -d 60000; exec '{}' {} {} long.txt --on-error skip --json",
        env!("CARGO_BIN_EXE_dpsw"),
        TOP.join(" "),
        EXACT.join(" ")
    );
    let mut shell = Command::new("sh");
    let answer = json(&Run::start(shell.args(["-c", &command]).current_dir(sandbox.path(""))).output());
    assert_eq!(answer["window"]["end"], 1001);
    check_shares(&answer, [0.5, 0.3, 0.2]);
}

#[test]
fn a_file_without_records_says_so_and_a_short_one_is_answered() {
    let sandbox = Sandbox::new();
    for (name, bytes) in [("empty.txt", ""), ("empty.csv", ""), ("head.csv", "k\n")] {
        sandbox.write(name, bytes);
        let column = if name.ends_with("csv") { &["--column", "k"][..] } else { &[] };
        let output = top(&sandbox, &[&[name, "--json"], column].concat());
        let answer = json(&output);
        assert_eq!(answer["items"], serde_json::json!([]), "{name}");
        assert_eq!(answer["why"]["cause"], "nothing-read", "{answer}");
    }
    sandbox.write("short.txt", "a\nb\na\n");
    let answer = json(&top(&sandbox, &["short.txt", "--json"]));
    assert_eq!((&answer["items"][0]["item"], &answer["items"][0]["estimate"]), (&"a".into(), &2.0.into()));
    let kept = top(&sandbox, &["short.txt", "--json", "--save", "short.view"]);
    assert_eq!(json(&kept)["items"], answer["items"], "the view is that of the finished stream");
}

#[test]
fn bytes_that_are_no_text_are_items_too() {
    let sandbox = Sandbox::new();
    sandbox.write("keys.txt", b"\xff\xfe\nb\n");
    let mut bytes = Vec::new();
    for item in (0..1000).map(|n| PATTERN[n % 10]) {
        bytes.extend(if item == "a" { b"\xff\xfe" } else { item.as_bytes() });
        bytes.push(b'\n');
    }
    sandbox.write("bytes.txt", &bytes);
    let answer = json(&top(&sandbox, &["bytes.txt", "--json"]));
    assert_eq!(answer["items"][0]["item"], "\u{fffd}\u{fffd}");
    assert_eq!(answer["items"][0]["item_base64"], "//4=");
    assert!((answer["items"][0]["share"].as_f64().expect("a share") - 0.5).abs() < 0.011);
    assert!(answer["items"][1].get("item_base64").is_none());
    let rows = text(&top(&sandbox, &["bytes.txt", "--csv"]));
    let bases: Vec<&str> = rows.lines().skip(1).filter_map(|row| row.split(',').nth(8)).collect();
    assert_eq!(bases, ["//4=", ""]);
}

#[test]
fn items_that_are_too_long_to_be_found_are_counted_on_the_terminal_alone() {
    let sandbox = Sandbox::new();
    let item = |n: usize, item: &str| if n % 10 < 3 { "x".repeat(255 + n % 10) } else { item.to_owned() };
    sandbox.write("t.txt", records(5000, |n, text| format!("{}\n", item(n, text))));
    sandbox.write("t.csv", format!("u,k\n{}", records(5000, |n, text| format!("{n},{}\n", item(n, text)))));
    let asked = ["top", "--window", "5000", "--epsilon", "4", "--json"];
    let users = ["t.csv", "--column", "k", "--user-column", "u"];
    for (more, is_said) in
        [(&["t.txt"][..], true), (&users, true), (&["t.txt", "--domain", "keys.txt"], false)]
    {
        let output = sandbox.run(&[&asked[..], more].concat());
        json(&output);
        let said = errors(&output);
        assert!(!text(&output).contains("256 bytes"), "{}", text(&output));
        assert_eq!(said.contains("500 records have items of more than 256 bytes"), is_said, "{said}");
    }
}

#[test]
fn files_that_cannot_be_opened_are_named_before_anything_is_spent() {
    let sandbox = Sandbox::new();
    sandbox.write("t.txt", "a\n");
    std::fs::create_dir(sandbox.path("dir")).expect("a directory");
    // Nobody may open a socket as a file, not even an administrator.
    let _socket = std::os::unix::net::UnixListener::bind(sandbox.path("socket")).expect("a socket");
    let top = ["top", "--window", "1000", "--epsilon", "1"];
    let plan = ["plan", "--window", "1000", "--epsilon", "1"];
    for (name, wanted) in [
        ("nowhere", "nowhere cannot be opened: No such file"),
        ("dir", "dir is a directory"),
        ("socket", "socket cannot be opened"),
        ("t.txt/x", "t.txt/x cannot be opened: Not a directory"),
    ] {
        for arguments in [
            &[&top[..], &[name]].concat()[..],
            &[&top[..], &["t.txt", name]].concat(),
            &[&top[..], &["t.txt", "--domain", name]].concat(),
            &["top", "--view", name],
            &["count", "a", "--view", name],
            &["count", "a", "--window", "1000", "--epsilon", "1", "--", "t.txt", name],
            &["inspect", name],
            &[&plan[..], &["--domain", name]].concat(),
            &[&plan[..], &["--keys", "10", "--expect", name]].concat(),
        ] {
            let output = sandbox.run(arguments);
            fails(&output, 4, &[wanted]);
            assert!(!errors(&output).contains("spends"), "{arguments:?}: {}", errors(&output));
        }
    }
}

#[test]
fn files_that_are_not_what_they_seem_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("t.parquet", "not parquet");
    sandbox.write("t.arrow", "not arrow");
    let packed = crate::formats::gzip(records(100_000, |n, item| format!("{item} {n}\n")).as_bytes());
    sandbox.write("cut.txt.gz", &packed[..packed.len() / 2]);
    let packed = zstd::encode_all(&packed[..], 1).expect("packed");
    sandbox.write("cut.txt.zst", &packed[..packed.len() / 2]);
    sandbox.write("t.txt", "a\n");
    for (arguments, code, wanted) in [
        (&["t.parquet", "--column", "k"][..], 4, "damaged"),
        (&["t.arrow", "--column", "k"], 4, "damaged"),
        (&["cut.txt.gz"], 4, "cut.txt.gz cannot be read: it is damaged or cut off"),
        (&["cut.txt.zst"], 4, "cut.txt.zst cannot be read: it is damaged or cut off"),
        (&["t.txt", "--column", "2"], 2, "--format"),
        (&["t.txt", "--format", "csv"], 2, "--column"),
        (&["t.parquet", "--follow"], 2, "--follow"),
        (&["-", "--format", "parquet", "--column", "k"], 2, "pipe"),
    ] {
        fails(&top(&sandbox, arguments), code, &[wanted]);
    }
}
