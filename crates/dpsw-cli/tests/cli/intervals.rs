//! On real streams the truth lies in the stated intervals as often as promised.

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

/// Answers over windows that do not overlap: their noise is independent, so the number of intervals that hold the truth
/// is above a binomial one with the promised share. Hoeffding: it falls short by more than sqrt(n ln(1e6) / 2) with
/// probability at most 1e-6.
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
        "--top",
        "30",
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
    assert!(60 <= total, "{total} intervals");
    let least = PROMISED * f64::from(total) - (f64::from(total) * 1e6_f64.ln() / 2.0).sqrt();
    assert!(
        least <= f64::from(held),
        "{name}: {held} of {total} intervals hold the truth, at least {least:.0} must"
    );
}

fn compare(answer: &Value, window: &[&[u8]]) -> (u32, u32) {
    let mut counts: HashMap<&[u8], f64> = HashMap::new();
    window.iter().for_each(|item| *counts.entry(item).or_default() += 1.0);
    let rows = answer["items"].as_array().expect("items");
    let number = |row: &Value, name: &str| row[name].as_f64().expect("a number");
    let holds = |row: &&Value| {
        let truth = counts.get(row["item"].as_str().expect("text").as_bytes()).copied().unwrap_or(0.0);
        number(row, "lower") <= truth && truth <= number(row, "upper")
    };
    (rows.len() as u32, rows.iter().filter(holds).count() as u32)
}

#[test]
fn the_truth_lies_in_the_intervals_of_news_clicks() {
    check("fimi/kosarak-prefix.tsv.zst", 60_000, &["--column", "2"]);
}

#[test]
fn the_truth_lies_in_the_intervals_of_words() {
    check("sotu-words/sotu-words.tsv.zst", 200_000, &["--column", "2"]);
}

#[test]
fn the_truth_lies_in_the_intervals_of_package_updates() {
    check("void-touches/void-touches.tsv.zst", 50_000, &["--column", "2"]);
}
