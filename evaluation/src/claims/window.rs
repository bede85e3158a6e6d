//! What the paper says of the size of the window.

use super::frequency::SOUND;
use super::judge::Check::EachDpsw;
use super::judge::{Section, Statement};
use super::rows::{F1S, MAES, MRES, RIVALS, ends, rows};
use super::tally::{ALWAYS, MOSTLY, Tally};
use crate::metric::Metric::{F1, MaeHigh, MaeLow, MreHigh, MreLow};
use crate::results::Value;

pub(super) const SECTION: Section = Section {
    name: "Performance vs. Window Size",
    statements: &[
        Statement {
            says: "DPSW-Sketch is better than the other private sketches in almost all cases, for all window sizes",
            check: EachDpsw(|r, m| {
                let metrics = [MaeHigh, MaeLow, MreHigh, MreLow, F1(0.01)];
                rows(r, "window").beats(m, &RIVALS, &metrics, MOSTLY)
            }),
            reason: SOUND,
        },
        Statement {
            says: "The MAE of DPSW-Sketch increases with w, but more slowly than w",
            check: EachDpsw(|r, m| {
                let curves = rows(r, "window").curves(&[m], &MAES);
                let what = "growth from the smallest to the largest window";
                Tally::spanning(ALWAYS, what, curves.iter().filter_map(|curve| slow_growth(curve)))
            }),
            reason: "Where noise rules, the error does not depend on w.",
        },
        Statement {
            says: "The MRE of DPSW-Sketch drops with w",
            check: EachDpsw(|r, m| rows(r, "window").ends(&[m], &MRES, |first, last| last < first)),
            reason: "Other items are those with a count of at least 100: in a larger window rarer ones join them.",
        },
        Statement {
            says: "The F1 of DPSW-Sketch increases with w",
            check: EachDpsw(|r, m| rows(r, "window").ends(&[m], &F1S, |first, last| first <= last)),
            reason: "",
        },
    ],
};

/// Whether a curve grows more slowly than its axis, and how much it grows.
fn slow_growth(curve: &[Value]) -> Option<(bool, f64)> {
    let (first, last) = ends(curve)?;
    let growth = last.1.mean / first.1.mean;
    Some((1.0 < growth && growth < last.0 / first.0, growth))
}
