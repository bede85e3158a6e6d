//! On real streams the truth lies in the stated intervals as often as promised.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::Value;

use crate::sandbox::{Sandbox, errors, text};

/// The streams lie beside the project, or where `DPSW_DATA` says; without them the tests are skipped.
fn data(name: &str) -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let directory = std::env::var_os("DPSW_DATA").map_or(beside, PathBuf::from);
    let path = directory.join(name);
    if !path.exists() {
        eprintln!("SKIPPED: {} is not there; set DPSW_DATA", path.display());
    }
    path.exists().then_some(path)
}

/// What is promised of intervals when the stream drifts.
const PROMISED: f64 = 0.92;

/// How many keys of a window are looked at: the most frequent ones in truth, so that noise does not choose them. All keys
/// are listed.
const KEYS: usize = 30;

/// Answers over windows that do not overlap. The stream is fixed, keys have counters and noise of their own, and a substream
/// reaches into two windows at most. Janson's form of Hoeffding's bound: of n intervals, those that hold the truth are fewer
/// by more than sqrt(2 n ln(1e6) / 2) than promised with probability at most 1e-6.
#[track_caller]
fn check(name: &str, window: usize, columns: &[&str]) {
    let Some(path) = data(name) else { return };
    let bytes = zstd::decode_all(std::fs::File::open(&path).expect("a stream")).expect("unpacked");
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let items: Vec<&[u8]> =
        lines.map(|line| line.rsplit(|byte| *byte == b'\t').next().expect("a column")).collect();
    let mut keys: Vec<&[u8]> = items.clone();
    keys.sort_unstable();
    keys.dedup();
    let sandbox = Sandbox::new();
    sandbox.write("keys.txt", keys.join(&b'\n'));
    let path = path.display().to_string();
    let (window_text, every) = (window.to_string(), window.to_string());
    let fixed = [
        "top",
        &path,
        "--window",
        &window_text,
        "--every",
        &every,
        "--epsilon",
        "1",
        "--memory",
        "2MB",
        "--domain",
        "keys.txt",
        "--ndjson",
        // All keys, as they are: none is chosen by its size.
        "--all",
        "--top",
        "100000",
        "-q",
    ];
    let output = sandbox.run(&[&fixed[..], columns].concat());
    assert!(output.status.success(), "{}", errors(&output));
    let answers = text(&output);
    let answers = answers.lines().map(|line| serde_json::from_str::<Value>(line).expect("an answer"));
    let (mut held, mut total) = (0, 0);
    for answer in answers.filter(|answer| {
        answer["window"]["end"].as_u64().is_some_and(|end| (end as usize).is_multiple_of(window))
    }) {
        let end = answer["window"]["end"].as_u64().expect("a position") as usize;
        let (all, inside) = compare(&answer, &items[end - window..end]);
        (total, held) = (total + all, held + inside);
    }
    assert!(300 <= total, "{total} intervals");
    let least = PROMISED * f64::from(total) - (f64::from(total) * 1e6_f64.ln()).sqrt();
    assert!(
        least <= f64::from(held),
        "{name}: {held} of {total} intervals hold the truth, at least {least:.0} must"
    );
}

/// How many keys are looked at, and how many of them have an interval that holds the truth.
fn compare(answer: &Value, window: &[&[u8]]) -> (u32, u32) {
    let mut counts: HashMap<&[u8], u32> = HashMap::new();
    window.iter().for_each(|item| *counts.entry(item).or_default() += 1);
    let mut keys: Vec<(&[u8], u32)> = counts.into_iter().collect();
    keys.sort_unstable_by_key(|&(item, count)| (Reverse(count), item));
    keys.truncate(KEYS);
    let rows = answer["items"].as_array().expect("items");
    let number = |row: &Value, name: &str| row[name].as_f64().expect("a number");
    let holds = |&&(item, count): &&(&[u8], u32)| {
        let is_asked = |row: &&Value| row["item"].as_str().is_some_and(|name| name.as_bytes() == item);
        let truth = f64::from(count);
        rows.iter()
            .find(is_asked)
            .is_some_and(|row| number(row, "lower") <= truth && truth <= number(row, "upper"))
    };
    (keys.len() as u32, keys.iter().filter(holds).count() as u32)
}

#[test]
fn the_truth_lies_in_the_intervals_of_news_clicks() {
    check("fimi/kosarak-prefix.tsv.zst", 20_000, &["--column", "2"]);
}

#[test]
fn the_truth_lies_in_the_intervals_of_words() {
    check("sotu-words/sotu-words.tsv.zst", 100_000, &["--column", "2"]);
}

#[test]
fn the_truth_lies_in_the_intervals_of_package_updates() {
    check("void-touches/void-touches.tsv.zst", 20_000, &["--column", "2"]);
}
