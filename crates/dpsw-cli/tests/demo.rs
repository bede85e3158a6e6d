//! The real binary, as a person would run it.

use std::process::{Command, Output};

fn dpsw(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dpsw")).args(arguments).output().expect("the binary runs")
}

#[test]
fn the_demo_prints_plain_lines_and_ends_with_a_summary() {
    let output = dpsw(&["demo"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("plain text");
    assert!(!text.contains('\u{1b}'), "no escape codes without a terminal");
    let summary = text.lines().last().expect("some lines");
    assert!(summary.starts_with("demo: 6076000 items at "), "{summary}");
    assert!(summary.ends_with("epsilon = 1, delta = 0"), "{summary}");
    let error = summary.split("top 50 ").nth(1).and_then(|rest| rest.split(' ').next()).expect("an error");
    assert!(error.parse::<f64>().expect("a number") < 5.0, "{summary}");
}

#[test]
fn a_wrong_command_exits_with_2_and_says_what_to_do() {
    let output = dpsw(&["dmo"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).expect("plain text");
    assert!(text.contains("demo"), "{text}");
}
