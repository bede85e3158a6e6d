//! The demo without a terminal.

use crate::sandbox::{Sandbox, json, text};

#[test]
fn the_demo_prints_plain_lines_and_ends_with_a_summary() {
    let output = Sandbox::new().run(&["demo"]);
    assert!(output.status.success());
    let text = text(&output);
    assert!(!text.contains('\u{1b}'), "no escape codes without a terminal");
    let summary = text.lines().last().expect("some lines");
    assert!(summary.starts_with("demo: 6076000 items at "), "{summary}");
    assert!(summary.ends_with("epsilon = 1, delta = 0"), "{summary}");
    for part in ["by the paper's method", "held the truth", "contract"] {
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
