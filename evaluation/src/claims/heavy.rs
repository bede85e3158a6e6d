//! What the paper says of heavy hitters.

use super::frequency::{SOUND, STARVED};
use super::judge::Check::{EachDpsw, Once};
use super::judge::{Section, Statement};
use super::rows::{BLMZ, F1S, MICROSCOPE, PCC, PCC_ALL, RIVALS, U, rows};
use super::tally::{ALWAYS, MOSTLY, Tally, extent, span};
use crate::metric::Metric::{Precision, Recall};
use crate::results::Results;

pub(super) const SECTION: Section = Section {
    name: "Heavy-Hitter Identification",
    statements: &[
        Statement {
            says: "DPSW-Sketch has higher F1 than other DP sketches in almost all cases",
            check: EachDpsw(|r, m| rows(r, "epsilon-listing").beats(m, &RIVALS, &F1S, MOSTLY)),
            reason: SOUND,
        },
        Statement {
            says: "Its F1 is mostly close to Microscope-Sketch's for ε ≥ 1 (0.05 or less below)",
            check: EachDpsw(|r, m| {
                let duels = rows(r, "epsilon-listing").duels(m, &[MICROSCOPE], &F1S);
                let from_one = duels.iter().filter(|duel| 1.0 <= duel.x);
                let cases = from_one.map(|duel| (duel.other - 0.05 <= duel.mine, duel.mine - duel.other));
                Tally::spanning(MOSTLY, "its F1 minus Microscope-Sketch's", cases)
            }),
            reason: STARVED,
        },
        Statement {
            says: "The F1 of BLMZ-Sketch and U-Sketch improves with ε",
            check: Once(|r| rows(r, "epsilon-listing").ends(&[BLMZ, U], &F1S, |first, last| first < last)),
            reason: "With few columns U-Sketch errs by collisions, not by noise, so ε changes little.",
        },
        Statement {
            says: "The F1 of PCC-MG is the same for all ε",
            check: Once(pcc_is_constant),
            reason: "It is constant only if the keys of the summaries are released as they are, which tells who is in the \
                stream. Here keys are chosen after noise on the whole domain, so ε decides how many of them are right.",
        },
        Statement {
            says: "PCC-MG has a recall of 1 already for ε = 0.1, and low precision",
            check: Once(|r| {
                let metrics = [Recall(0.005), Recall(0.01), Precision(0.005), Precision(0.01)];
                rows(r, "epsilon-listing").each(PCC_ALL, &metrics, 0.0, |metric, value| match metric {
                    Recall(_) => 0.99 <= value,
                    _ => value <= 0.5,
                })
            }),
            reason: "Recall of 1 needs the exact key sets; with keys chosen under noise, low ε loses heavy hitters.",
        },
        Statement {
            says: "BLMZ-Sketch has higher F1 than PCC-MG",
            check: Once(|r| rows(r, "epsilon-listing").beats(BLMZ, &[PCC], &F1S, MOSTLY)),
            reason: "",
        },
    ],
};

fn pcc_is_constant(results: &Results) -> Tally {
    let (mut cases, mut texts) = (Vec::new(), Vec::new());
    for curve in rows(results, "epsilon-listing").curves(&[PCC_ALL], &F1S) {
        let scores: Vec<f64> = curve.iter().map(|(_, summary)| summary.mean).collect();
        let (low, high) = extent(scores.iter().copied());
        if 1 < curve.len() {
            cases.push(high - low <= 0.02);
            texts.push(span(&scores));
        }
    }
    Tally::new(ALWAYS, cases, format!("F1 with all keys listed: {}", texts.join("; ")))
}
