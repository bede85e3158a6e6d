//! The demo without a terminal, and its log.

use std::io::{BufRead, BufReader, Read};

use crate::run::Run;
use crate::sandbox::{EXACT, Sandbox, errors, json, text};

#[test]
fn the_demo_prints_plain_lines_and_ends_with_a_summary() {
    let output = Sandbox::new().run(&["demo"]);
    assert!(output.status.success());
    let text = text(&output);
    assert!(!text.contains('\u{1b}'), "no escape codes without a terminal");
    let summary = text.lines().last().expect("some lines");
    assert!(summary.starts_with("demo: 6076000 items at "), "{summary}");
    assert!(summary.ends_with("epsilon = 1, delta = 0"), "{summary}");
    for part in ["by the paper's method", "held the truth", "promise"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

#[test]
fn the_demo_beats_the_method_of_the_paper() {
    let summary = json(&Sandbox::new().run(&["demo", "--json"]));
    let number = |name: &str| summary[name].as_f64().expect("a number");
    // The stream is fixed, and each key has a counter with Laplace noise of scale 2 in each of 21 substreams, of which the
    // newest counts twice at most: E exp(0.2 |noise|) <= 2 / (1 - 0.16)^20 / (1 - 0.64) < 182. So the |noise| of 50 keys adds
    // up to 1,500 with probability at most 182^50 exp(-300) < 1e-17, and a mean over windows no more often, as exp is convex.
    // The true top 50 of every window occur 1,800 times or more. What interpolation misses is below 0.5 %.
    assert!(number("error") < 1500.0 / 50.0 / 1800.0 + 0.005, "{summary}");
    // 9.2 % with a standard deviation of 0.2 % in 16 runs, so this limit lies 25 of them below.
    assert!(0.04 < number("paper_error"), "{summary}");
    assert!(least_held(number("intervals")) <= number("intervals_held"), "{summary}");
    assert!(number("bytes") <= number("paper_bytes"), "{summary}");
}

/// Keys have noise of their own, and of windows that lie 217,000 items apart at most 5 share a substream. With so many
/// intervals that depend on each other, those that hold the truth are fewer by more than sqrt(5 n ln(1e6) / 2) than the 92 %
/// that are promised with probability at most 1e-6 (Janson's form of Hoeffding's bound).
fn least_held(intervals: f64) -> f64 {
    0.92 * intervals - (5.0 * intervals * 1e6_f64.ln() / 2.0).sqrt()
}

/// A made-up log in `access.log`, and its text.
fn log(lines: &str) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    let output = sandbox.run(&["demo", "--log", lines]);
    assert!(output.status.success(), "{}", errors(&output));
    sandbox.write("access.log", &output.stdout);
    (sandbox, text(&output))
}

#[test]
fn a_made_up_log_is_always_the_same() {
    let (sandbox, text) = log("3000");
    assert_eq!(text.lines().count(), 3000);
    assert_eq!(sandbox.run(&["demo", "--log", "3000", "--quiet"]).stdout, text.as_bytes());
    let first = text.lines().next().expect("a line");
    assert!(first.contains("[11/May/2026:20:00:00 +0000] \"GET /"), "{first}");
    assert!(text.lines().last().expect("a line").contains("12/May/2026:19:59:"));
}

#[test]
fn a_made_up_log_looks_like_one() {
    let (sandbox, text) = log("20000");
    let different = |column: usize| {
        let words = text.lines().filter_map(|line| line.split(' ').nth(column));
        words.collect::<std::collections::HashSet<&str>>().len()
    };
    assert!((300..=2100).contains(&different(6)), "{} paths", different(6));
    assert!(500 <= different(0), "{} hosts", different(0));
    for (column, item) in
        [("status", "404"), ("referrer", "https://search.example/"), ("agent", "curl/8.13.0")]
    {
        sandbox.write("keys.txt", item);
        let top =
            ["top", "access.log", "--column", column, "--window", "20000", "--domain", "keys.txt", "--json"];
        let answer = json(&sandbox.run(&[&top[..], &EXACT].concat()));
        assert_eq!(answer["items"][0]["item"], item, "{answer}");
    }
}

#[test]
fn trends_show_in_a_made_up_log() {
    let (sandbox, _) = log("100000");
    sandbox.write("keys.txt", "/\n/summer-sale\n/live-stream\n");
    let fixed = ["top", "access.log", "--domain", "keys.txt", "--json"];
    for (window, retention) in [("10000", "1"), ("10k", "2"), ("50k", "1"), ("3h", "2")] {
        let more = ["--window", window, "--retention", retention];
        let answer = json(&sandbox.run(&[&fixed[..], &EXACT, &more].concat()));
        let trend = |item: &str| {
            let rows = answer["items"].as_array().expect("items");
            rows.iter().find(|row| row["item"] == item).map(|row| row["trend"].clone()).unwrap_or_default()
        };
        assert_eq!(
            (trend("/summer-sale"), trend("/live-stream")),
            ("rising".into(), "falling".into()),
            "{answer}"
        );
    }
}

#[test]
fn whoever_reads_a_made_up_log_may_stop_early() {
    let sandbox = Sandbox::new();
    let mut run = Run::start(&mut sandbox.command(&["demo", "--log", "1000000000"]));
    let mut lines = BufReader::new(run.stdout.take().expect("a pipe")).lines();
    assert!(lines.next().expect("a line").expect("UTF-8").contains(" HTTP/1.1"));
    drop(lines);
    assert_eq!(run.code(), Some(0));
}

#[test]
fn an_interrupt_ends_a_made_up_log() {
    let sandbox = Sandbox::new();
    let mut run = Run::start(&mut sandbox.command(&["demo", "--log", "1000000000"]));
    run.stderr.as_mut().expect("a pipe").read_exact(&mut [0]).expect("it has begun");
    run.signal("-INT");
    let mut stdout = run.stdout.take().expect("a pipe");
    std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    assert_eq!(run.code(), Some(130));
}
