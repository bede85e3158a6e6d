//! What the paper says of space and time, and of its choice of a baseline.

use super::judge::Check::{EachDpsw, Once};
use super::judge::{Section, Statement};
use super::rows::{BLMZ, MAES, MICROSCOPE, PCC, U, rows};
use super::tally::{ALWAYS, MOSTLY, Tally, list};
use crate::baseline::Kind;
use crate::method::MethodName;
use crate::metric::Metric::{F1, MaeHigh, MaeLow, Throughput};
use crate::results::Results;

/// Why more sketches do not slow insertion down.
pub(super) const ONE_ARRAY: &str = "Between two checkpoints this implementation counts each item in one array only and adds that array \
    to the open sketches at the checkpoint, so the cost of an item does not grow with the number of sketches.";

pub(super) const SECTION: Section = Section {
    name: "Space and Time Efficiency",
    statements: &[
        Statement {
            says: "The errors of DPSW-Sketch fall with the size of the sketches and then become steady",
            check: EachDpsw(|r, m| falls(r, &[m])),
            reason: "",
        },
        Statement {
            says: "So do those of U-Sketch and Microscope-Sketch",
            check: Once(|r| falls(r, &[U, MICROSCOPE])),
            reason: "",
        },
        Statement {
            says: "PCC-MG and BLMZ-Sketch are generally better when their sketches are smaller",
            check: Once(|r| rows(r, "bytes").ends(&[PCC, BLMZ], &MAES, |first, last| first < 0.98 * last)),
            reason: "With reduced counts a summary of any size has sensitivity 2, so BLMZ-Sketch gains from every entry. The \
                best of all sizes that fit is reported, so PCC-MG cannot get worse with more bytes.",
        },
        Statement {
            says: "DPSW-Sketch inserts about 100,000 items a second (50,000 to 200,000)",
            check: EachDpsw(|r, m| {
                rows(r, "speed").each(m, &[Throughput], 0.0, |_, speed| (5e4..=2e5).contains(&speed))
            }),
            reason: "Another program on another machine. Counting each item in one array between two checkpoints, not in up to 2 |I| - 1, accounts for a small factor of the difference at most.",
        },
        Statement {
            says: "Its throughput is similar to U-Sketch's (within a factor of 2)",
            check: EachDpsw(|r, m| {
                let duels = rows(r, "speed").duels(m, &[U], &[Throughput]);
                let cases =
                    duels.iter().map(|duel| ((0.5..=2.0).contains(&duel.ratio()), 1.0 / duel.ratio()));
                Tally::spanning(ALWAYS, "it ÷ U-Sketch", cases)
            }),
            reason: ONE_ARRAY,
        },
        Statement {
            says: "Microscope-Sketch, BLMZ-Sketch and PCC-MG are faster than DPSW-Sketch",
            check: EachDpsw(|r, m| {
                let duels = rows(r, "speed").duels(m, &[MICROSCOPE, BLMZ, PCC], &[Throughput]);
                let cases = duels.iter().map(|duel| (1.0 < duel.ratio(), duel.ratio()));
                Tally::spanning(ALWAYS, "their speed ÷ its", cases)
            }),
            reason: "Each item is counted in one array between two checkpoints, and the baselines here draw noise for the whole domain at each seal; none of them was made as fast as it could be.",
        },
    ],
};

pub(super) const BASELINES: Section = Section {
    name: "Baseline Implementation",
    statements: &[Statement {
        says: "The count-min version of Microscope-Sketch is the best of three in most cases",
        check: Once(count_min_is_best),
        reason: "At 100 KB with the same grid of settings, conservative updates avoid part of the collisions.",
    }],
};

/// Errors are smaller at the largest size than at the smallest, and the last step changes them less than the first, or by
/// at most a tenth of their logarithm.
fn falls(results: &Results, methods: &[MethodName]) -> Tally {
    let rows = rows(results, "bytes");
    let mut cases = Vec::new();
    for stream in rows.streams() {
        for &method in methods {
            let curve = rows.total_error(&stream, method);
            if let [first, second, .., before, last] = curve.as_slice() {
                let change = |from: f64, to: f64| (from / to).ln().abs();
                let is_steady = change(before.1, last.1) <= change(first.1, second.1).max(0.1);
                let fall = first.1 / last.1;
                cases.extend([(last.1 < first.1, fall), (is_steady, fall)]);
            }
        }
    }
    Tally::spanning(MOSTLY, "error at the smallest ÷ at the largest size", cases)
}

fn count_min_is_best(results: &Results) -> Tally {
    let rows = rows(results, "microscopes");
    let mut cases = Vec::new();
    for stream in rows.streams() {
        for metric in [MaeHigh, MaeLow, F1(0.005), F1(0.01)] {
            let at = |kind| rows.mean(&stream, 0.0, MethodName::Baseline(kind), metric);
            let kinds = [Kind::Microscope, Kind::MicroscopeCu, Kind::MicroscopeCount].map(at);
            let [Some(min), Some(cu), Some(count)] = kinds else { continue };
            let (min, rival) = if metric.is_score() { (-min, -cu.max(count)) } else { (min, cu.min(count)) };
            // Equal to the last digit that a figure shows counts as best.
            cases.push((min <= rival + 0.01 * rival.abs(), min / rival));
        }
    }
    Tally::of(0.51, cases, |ratios| format!("count-min ÷ the better of the others: {}", list(ratios)))
}
