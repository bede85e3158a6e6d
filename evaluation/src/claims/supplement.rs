//! What the paper's supplement says: precision and recall, drift, and the size of the domain.

use super::frequency::SOUND;
use super::judge::Check::{EachDpsw, Once};
use super::judge::{Section, Statement};
use super::rows::{BLMZ, ERRORS, MAES, MICROSCOPE, PCC, RIVALS, U, rows};
use super::tally::{ALWAYS, MOSTLY, Tally};
use crate::method::MethodName;
use crate::metric::Metric::{F1, Precision, Recall};
use crate::results::Results;

pub(super) const SECTION: Section = Section {
    name: "Supplemental Experiments",
    statements: &[
        Statement {
            says: "DPSW-Sketch has both higher precision and higher recall than BLMZ-Sketch and U-Sketch",
            check: EachDpsw(|r, m| {
                let metrics = [Precision(0.005), Recall(0.005), Precision(0.01), Recall(0.01)];
                rows(r, "epsilon-listing").beats(m, &[BLMZ, U], &metrics, MOSTLY)
            }),
            reason: "A minimum over noisy rows that is biased upwards lists too much (recall 1, low precision) or too little; \
                sound BLMZ-Sketch is close to exact on frequent items.",
        },
        Statement {
            says: "Drift lowers the heavy-hitter scores of all methods (MovieLens; here the streams drift and swap against zipf)",
            check: Once(drift_lowers_scores),
            reason: "A drift over half a window moves counts less than the noise and the collisions of most methods do.",
        },
        Statement {
            says: "The MAE of all methods is relatively stable over the size of the domain (within a factor of 3)",
            check: Once(|r| {
                rows(r, "domain").flat(&[MethodName::Paper, U, PCC, BLMZ, MICROSCOPE], &MAES, 3.0)
            }),
            reason: "A domain of 400 items leaves hardly any collisions, and noise on all keys of a large one crowds out the \
                true ones in Misra-Gries summaries; the items that count as other ones change as well.",
        },
        Statement {
            says: "The MAE and MRE of DPSW-Sketch are stable over the size of the domain (within a factor of 3)",
            check: EachDpsw(|r, m| rows(r, "domain").flat(&[m], &ERRORS, 3.0)),
            reason: "With few items there are no collisions to speak of, and each of the other items has a larger count.",
        },
        Statement {
            says: "DPSW-Sketch consistently outperforms the other private sketches for every size of the domain",
            check: EachDpsw(|r, m| rows(r, "domain").beats(m, &RIVALS, &ERRORS, ALWAYS)),
            reason: SOUND,
        },
        Statement {
            says: "and closely matches Microscope-Sketch (within a factor of 2)",
            check: EachDpsw(|r, m| {
                let duels = rows(r, "domain").duels(m, &[MICROSCOPE], &MAES);
                let cases = duels.iter().map(|duel| (0.5 <= duel.ratio(), 1.0 / duel.ratio()));
                Tally::spanning(ALWAYS, "it ÷ Microscope-Sketch", cases)
            }),
            reason: "This contradicts the paper's own section on frequencies, which says that no private sketch is comparable.",
        },
    ],
};

fn drift_lowers_scores(results: &Results) -> Tally {
    let rows = rows(results, "drift");
    let mut cases = Vec::new();
    for method in [MethodName::Paper, U, PCC, BLMZ, MICROSCOPE, MethodName::Tuned] {
        let at = |stream| rows.mean(stream, 0.0, method, F1(0.005));
        for moving in ["drift", "swap"] {
            if let (Some(moving), Some(still)) = (at(moving), at("zipf")) {
                cases.push((moving < still, moving - still));
            }
        }
    }
    Tally::spanning(MOSTLY, "F1 with drift minus without", cases)
}
