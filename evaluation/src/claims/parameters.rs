//! What the paper says of the parameters of its structure.

use super::judge::Check::Once;
use super::judge::{Section, Statement};
use super::rows::{MAES, ends, rows};
use super::space::ONE_ARRAY;
use super::tally::{ALWAYS, MOSTLY, Tally, list};
use crate::method::MethodName;
use crate::metric::Metric::Throughput;
use crate::results::{Results, Value};

const PAPER: MethodName = MethodName::Paper;

pub(super) const SECTION: Section = Section {
    name: "Parameter Sensitivity",
    statements: &[
        Statement {
            says: "MAE grows significantly with the number of checkpoints",
            check: Once(|r| {
                rows(r, "checkpoints").steps(&[PAPER], &MAES, MOSTLY, |before, after| before < after)
            }),
            reason: "",
        },
        Statement {
            says: "Throughput drops nearly linearly with the number of checkpoints (by more than half from the fewest to the most that can be run)",
            check: Once(|r| {
                rows(r, "checkpoints").ends(&[PAPER], &[Throughput], |first, last| last < 0.5 * first)
            }),
            reason: ONE_ARRAY,
        },
        Statement {
            says: "MAE is lowest around 10 substreams a window and higher on both sides",
            check: Once(|r| {
                let best = rows(r, "substreams").best_values(PAPER);
                let cases = best.into_iter().map(|x| ((5.0..=20.0).contains(&x), x));
                Tally::of(ALWAYS, cases, |best| format!("lowest at {} substreams", list(best)))
            }),
            reason: "At 100 KB the sketches of more substreams are smaller, so zipf, with more frequent items than gauss has, collides earlier.",
        },
        Statement {
            says: "Throughput is almost not affected by the number of substreams",
            check: Once(|r| rows(r, "substreams").flat(&[PAPER], &[Throughput], 1.5)),
            reason: "Smaller sketches fit into faster memory, and sealing costs the same for each substream.",
        },
        Statement {
            says: "No single number of hash functions is good on all data sets",
            check: Once(no_single_number),
            reason: "Of the data sets that are here, noise decides: every row costs budget, so few rows are best.",
        },
        Statement {
            says: "Throughput decreases almost linearly with the number of hash functions",
            check: Once(|r| {
                let curves = rows(r, "rows").curves(&[PAPER], &[Throughput]);
                let cases = curves.iter().filter_map(|curve| linear_slowdown(curve));
                Tally::spanning(ALWAYS, "slowdown ÷ growth of rows", cases)
            }),
            reason: "",
        },
        Statement {
            says: "MAE does not decrease beyond 5 hash functions in most data sets",
            check: Once(|r| {
                let best = rows(r, "rows").best_values(PAPER);
                let cases = best.into_iter().map(|x| (x <= 5.0, x));
                Tally::of(0.5, cases, |best| format!("best: {}", list(best)))
            }),
            reason: "",
        },
    ],
};

/// One case, of at least two streams.
fn no_single_number(results: &Results) -> Tally {
    let best = rows(results, "rows").best_values(PAPER);
    let differs = best.iter().any(|&x| x != best[0]);
    let cases = if 1 < best.len() { vec![differs] } else { Vec::new() };
    Tally::new(ALWAYS, cases, format!("best: {}", list(&best)))
}

/// Whether the slowdown is that of the axis within a factor of 2, and the ratio of the two.
fn linear_slowdown(curve: &[Value]) -> Option<(bool, f64)> {
    let (first, last) = ends(curve)?;
    let ratio = (first.1.mean / last.1.mean) / (last.0 / first.0);
    Some(((0.5..=2.0).contains(&ratio), ratio))
}
