//! What this project says of its own method.

use super::judge::Check::Once;
use super::judge::{Section, Statement};
use super::rows::{BLMZ, ERRORS, F1S, MAES, PCC, U, rows};
use super::tally::{ALWAYS, Tally, span};
use crate::baseline::Kind;
use crate::chart::short;
use crate::draw::pairs;
use crate::method::MethodName;
use crate::metric::Metric::MaeHigh;
use crate::results::Results;
use crate::sweep::{Measured, Summary};

const TUNED: MethodName = MethodName::Tuned;
/// Every other private method.
const OTHERS: [MethodName; 5] =
    [U, PCC, BLMZ, MethodName::Baseline(Kind::PccMgReduced), MethodName::Baseline(Kind::Tumbling)];
/// Where ε is 1: the sweep and the value of its axis.
const AT_ONE: [(&str, f64); 2] = [("epsilon", 1.0), ("drift", 0.0)];
const BEST_ROWS: &str = "Here the rows of the paper's structure are the best of four on the data; the aim is for its default of four.";

pub(super) const SECTIONS: [&Section; 3] = [&ACCURACY, &ERROR_BARS, &PLANNING];

const ACCURACY: Section = Section {
    name: "Accuracy",
    statements: &[
        Statement {
            says: "At ε = 1, equal bytes and δ = 0 the errors of the tuned method are at most 0.12 × (frequent) and 0.10 × \
                (other) those of the paper's structure with printed budgets",
            check: Once(|r| ratios(r, MethodName::Paper, [0.12, 0.10])),
            reason: BEST_ROWS,
        },
        Statement {
            says: "and at most 0.17 × and 0.18 × those with balanced budgets",
            check: Once(|r| ratios(r, MethodName::PaperBalanced, [0.17, 0.18])),
            reason: BEST_ROWS,
        },
        Statement {
            says: "It is better than every other private method, tumbling buckets included, for every ε",
            check: Once(|r| rows(r, "epsilon").beats(TUNED, &OTHERS, &ERRORS, ALWAYS)),
            reason: "On streams that stand still. The planner guards against drift with more substreams, each of which adds noise; tumbling buckets take the fewest, which the figure of drift shows the price of.",
        },
        Statement {
            says: "The same for every size of the sketches",
            check: Once(|r| rows(r, "bytes").beats(TUNED, &OTHERS, &ERRORS, ALWAYS)),
            reason: "As for ε: the rival that is ahead is tumbling buckets, where they fit, on streams that stand still.",
        },
        Statement { says: "Its F1 at ε = 1 is at least 0.99", check: Once(scores), reason: "" },
    ],
};

const ERROR_BARS: Section = Section {
    name: "Error bars",
    statements: &[Statement {
        says: "Its 95 % intervals hold 93 % to 97 % of the errors (at least 92 % under drift)",
        check: Once(coverage),
        reason: "",
    }],
};

const PLANNING: Section = Section {
    name: "Planning",
    statements: &[Statement {
        says: "Predicted errors are within 25 % of measured ones",
        check: Once(predictions),
        reason: "",
    }],
};

/// The errors of the tuned method over those of another at ε = 1, frequent and other items.
fn ratios(results: &Results, other: MethodName, [high, low]: [f64; 2]) -> Tally {
    let (mut cases, mut texts) = (Vec::new(), Vec::new());
    for (sweep, x) in AT_ONE {
        let duels = rows(results, sweep).duels(TUNED, &[other], &MAES);
        // The stream zipf is in both sweeps.
        let is_new = |stream: &str| sweep == "epsilon" || stream != "zipf";
        for duel in duels.iter().filter(|duel| duel.x == x && is_new(&duel.stream)) {
            let (ratio, limit) = (duel.mine / duel.other, if duel.metric == MaeHigh { high } else { low });
            cases.push(ratio <= limit);
            texts.push(format!("{} {}", duel.stream, short(ratio)));
        }
    }
    Tally::new(ALWAYS, cases, texts.join(", "))
}

fn scores(results: &Results) -> Tally {
    let rows = rows(results, "epsilon-listing");
    let streams = rows.streams();
    let score = |stream: &String| F1S.map(|f1| rows.mean(stream, 1.0, TUNED, f1));
    let scores = streams.iter().flat_map(score).flatten();
    Tally::of(ALWAYS, scores.map(|score| (0.99 <= score, score)), span)
}

/// The share of errors inside the intervals of the tuned method at ε = 1.
fn coverage(results: &Results) -> Tally {
    let mut cases = Vec::new();
    for (sweep, x) in AT_ONE {
        for stream in results.streams(sweep) {
            let least = if matches!(stream.as_str(), "drift" | "swap") { 0.92 } else { 0.93 };
            let covered = results.measured(sweep, &stream, x, TUNED).and_then(covered);
            cases.extend(covered.map(|share| ((least..=0.97).contains(&share), share)));
        }
    }
    Tally::spanning(ALWAYS, "covered", cases)
}

/// The mean share over the seeds and both groups of items.
fn covered(measured: &Measured) -> Option<f64> {
    let groups = measured.outcomes.iter().flat_map(|o| [o.high.covered, o.low.and_then(|low| low.covered)]);
    Summary::of(&groups.flatten().collect::<Vec<f64>>()).map(|summary| summary.mean)
}

fn predictions(results: &Results) -> Tally {
    let streams = ["zipf", "gauss", "drift", "swap"].into_iter();
    let pairs = streams.flat_map(|stream| (0..2).flat_map(move |group| pairs(results, stream, group)));
    let case = |(measured, predicted): (f64, f64)| {
        ((predicted / measured - 1.0).abs() <= 0.25, predicted / measured)
    };
    Tally::spanning(ALWAYS, "predicted ÷ measured", pairs.map(case))
}
