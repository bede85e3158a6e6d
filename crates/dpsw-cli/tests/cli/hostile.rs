//! Items with names that would break a table or steer a terminal.

use std::process::Command;

use unicode_width::UnicodeWidthStr;

use crate::run::Run;
use crate::sandbox::{EXACT, Sandbox, json, text};

/// Controls of terminals and of writing direction, wide and narrow characters, and a long name.
fn names() -> Vec<String> {
    let long = "long ".repeat(2000);
    let names = [
        "\u{1b}[31mred\u{1b}]0;title\u{7}",
        "\u{9b}2J",
        "back\u{8}\u{8}\u{8}\u{8}forth",
        "right\u{202e}left",
        "\u{2066}isolated\u{2069}\u{200f}",
        "日本語の長い名前",
        "e\u{301}e\u{301}e\u{301}",
        "hidden\u{200b}\u{feff}\u{e0041}",
        "tab\tand, \"quotes\"",
        &long,
        "plain",
    ];
    names.map(str::to_owned).to_vec()
}

/// A stream in which each name occurs 100 times.
fn stream() -> Sandbox {
    let sandbox = Sandbox::new();
    let lines = names().join("\n") + "\n";
    sandbox.write("keys.txt", &lines);
    sandbox.write("t.txt", lines.repeat(100));
    sandbox
}

const TOP: [&str; 6] = ["top", "t.txt", "--window", "10000", "--domain", "keys.txt"];

fn is_steering(character: char) -> bool {
    let is_mark =
        matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
    (character.is_control() && character != '\n') || is_mark || matches!(character, '\u{feff}' | '\u{e0041}')
}

/// Estimates stand below each other, whatever the items are.
#[track_caller]
fn check_aligned(table: &str) {
    assert!(!table.contains(is_steering), "{table:?}");
    let rows: Vec<&str> = table.lines().filter(|line| line.contains("100 – 100")).collect();
    assert_eq!(rows.len(), names().len(), "{table}");
    let place = |row: &str| row[..row.find("100 – 100").expect("an interval")].width();
    assert!(rows.iter().all(|row| place(row) == place(rows[0])), "{table}");
}

#[test]
fn a_table_stays_aligned_and_steers_nothing() {
    let sandbox = stream();
    check_aligned(&text(&sandbox.run(&[&TOP[..], &EXACT].concat())));
}

#[test]
fn documents_steer_nothing_and_have_the_items_as_they_are() {
    let sandbox = stream();
    let output = sandbox.run(&[&TOP[..], &EXACT, &["--json"]].concat());
    assert!(!text(&output).contains(is_steering), "{}", text(&output));
    let answer = json(&output);
    let rows = answer["items"].as_array().expect("items");
    let mut got: Vec<&str> = rows.iter().filter_map(|row| row["item"].as_str()).collect();
    let mut wanted = names();
    got.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(got, wanted);
    let rows = text(&sandbox.run(&[&TOP[..], &EXACT, &["--csv"]].concat()));
    let mut reader = csv::Reader::from_reader(rows.as_bytes());
    let mut items: Vec<String> = reader.records().map(|row| row.expect("a row")[2].to_owned()).collect();
    items.sort_unstable();
    assert_eq!(items, wanted);
}

#[test]
fn remarks_and_errors_steer_nothing() {
    let sandbox = stream();
    let name = "\u{1b}[31mred.txt";
    sandbox.write(name, "a\n");
    for arguments in [
        &["top", name, "--window", "1000", "--epsilon", "1"][..],
        &["top", "no\u{202e}where.txt", "--window", "1000", "--epsilon", "1"],
        &["count", "\u{9b}2J", "--domain", "keys.txt", "--window", "1000", "--epsilon", "1", "t.txt\u{7}"],
    ] {
        let errors = String::from_utf8_lossy(&sandbox.run(arguments).stderr).into_owned();
        assert!(!errors.is_empty() && !errors.contains(is_steering), "{errors:?}");
    }
}

/// In a terminal of 80 columns, made by `script`, no line of a table is wider, and CSV steers nothing either.
#[test]
fn a_screen_of_80_columns_is_wide_enough() {
    let sandbox = stream();
    for layout in ["", "--csv"] {
        let command = format!(
            "stty cols 80; '{}' -q --color never {} {} {layout}",
            env!("CARGO_BIN_EXE_dpsw"),
            TOP.join(" "),
            EXACT.join(" ")
        );
        let mut script = Command::new("script");
        script.args(["-qfec", &command, "/dev/null"]).current_dir(sandbox.path(""));
        let Ok(run) = Run::try_start(script.env("TERM", "xterm-256color")) else {
            eprintln!("SKIPPED: there is no `script` to make a terminal with");
            return;
        };
        let screen = text(&run.output()).replace("\r\n", "\n");
        assert!(!screen.contains(is_steering), "{screen:?}");
        if layout.is_empty() {
            check_aligned(&screen);
            assert!(screen.lines().all(|line| line.width() <= 80), "{screen}");
        }
    }
}
