//! Verdicts of made-up results.

use super::frequency::SOUND;
use super::rows::{RIVALS, U};
use super::{Judged, Verdict, judge, judge_ours};
use crate::measure::{Errors, Heavy, Outcome};
use crate::method::MethodName;
use crate::results::Results;
use crate::sweep::{Measured, Row};

/// A method whose errors are `error` and whose scores are `score`.
fn row(sweep: &str, x: f64, method: MethodName, error: f64, score: f64) -> Row {
    let errors = Errors { absolute: error, relative: error / 1000.0, covered: None };
    let heavy = |gamma| Heavy { gamma, f1: score, precision: score, recall: score };
    let outcome = Outcome {
        high: errors,
        low: Some(errors),
        heavy: vec![heavy(0.005), heavy(0.01)],
        predicted: None,
        insert_items_per_s: 1e5,
        frequency_ns: 1.0,
        heavy_hitters_us: 1.0,
        resident_bytes: 1,
    };
    let measured = Measured {
        parameters: String::new(),
        tried: Vec::new(),
        claim: "eps".to_owned(),
        epsilon: Some(x),
        delta: None,
        window: 1000,
        items: 2000,
        domain: 10,
        bytes: 1,
        outcomes: vec![outcome],
    };
    Row { sweep: sweep.to_owned(), stream: "zipf".to_owned(), x, method, result: Ok(measured) }
}

fn judged(rows: Vec<Row>, says: &str) -> Judged {
    let results = Results { rows, ..Results::default() };
    let found = judge(&results).into_iter().find(|judged| judged.says.contains(says));
    found.expect("there is such a statement")
}

#[test]
fn a_verdict_follows_the_numbers() {
    let says = "at least 4 × the MAE";
    let rows = |rival: f64| {
        let mut rows = vec![row("epsilon", 1.0, MethodName::Paper, 10.0, 1.0)];
        rows.extend(RIVALS.map(|method| row("epsilon", 1.0, method, rival, 0.5)));
        rows
    };
    assert_eq!(judged(rows(50.0), says).findings[0].verdict, Verdict::Holds);
    // 2.5 times: enough for MRE, which is half of the cases, and not for MAE.
    let half = judged(rows(25.0), says);
    assert_eq!((half.findings[0].verdict, half.reason), (Verdict::InPart, Some(SOUND)));
    let fails = judged(rows(15.0), says);
    assert_eq!((fails.findings[0].verdict, fails.reason), (Verdict::Fails, Some(SOUND)));
    assert!(fails.findings[0].measured.contains("0 of 12 cases; baseline ÷ it: 1.5 to 1.5"), "{fails:?}");
    assert_eq!(fails.findings[2].verdict, Verdict::NotMeasured, "tuned was not run");
}

#[test]
fn scores_are_better_when_larger_and_limits_are_those_of_the_text() {
    let rows = |score, error| {
        vec![
            row("epsilon-listing", 1.0, MethodName::Paper, error, score),
            row("epsilon-listing", 1.0, U, error, 0.6),
        ]
    };
    let f1 = |score| judged(rows(score, 1.0), "higher F1 than other DP").findings[0].verdict;
    assert_eq!([f1(0.7), f1(0.6), f1(0.5)], [Verdict::Holds, Verdict::Holds, Verdict::Fails]);
    let within = |error| {
        let rows = vec![
            row("epsilon", 1.0, MethodName::Paper, error, 1.0),
            row("epsilon", 0.4, MethodName::Paper, 5e3, 1.0),
        ];
        judged(rows, "within 10 %").findings[0].verdict
    };
    assert_eq!(
        [within(99.0), within(101.0), within(1100.0)],
        [Verdict::Holds, Verdict::InPart, Verdict::Fails]
    );
}

#[test]
fn without_results_nothing_is_claimed() {
    let results = Results::default();
    for judged in judge(&results).into_iter().chain(judge_ours(&results)) {
        assert!(judged.findings.iter().all(|f| f.verdict == Verdict::NotMeasured), "{}", judged.says);
        assert_eq!(judged.reason, None);
    }
}

#[test]
fn growth_with_the_window_is_compared_with_the_window() {
    let at = |last: f64| {
        let rows = vec![
            row("window", 0.1, MethodName::Paper, 10.0, 1.0),
            row("window", 1.0, MethodName::Paper, last, 1.0),
        ];
        judged(rows, "more slowly than w").findings[0].verdict
    };
    assert_eq!([at(20.0), at(9.0), at(101.0)], [Verdict::Holds, Verdict::Fails, Verdict::Fails]);
}
