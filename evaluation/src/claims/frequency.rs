//! What the paper says of frequency estimation.

use super::judge::Check::{EachDpsw, Once};
use super::judge::{Section, Statement};
use super::rows::{BLMZ, ERRORS, MAES, MICROSCOPE, MRES, PCC, RIVALS, U, rows};
use super::tally::{ALWAYS, MOSTLY, Tally, extent, span};
use crate::chart::short;
use crate::method::MethodName;
use crate::metric::Metric::{self, MaeHigh, MaeLow, MreHigh};
use crate::results::Results;

/// Why the printed budgets do badly.
pub(super) const STARVED: &str = "The printed budgets starve the partial sketches: for three checkpoints they get 0.8 % and 0.6 % of ρ, so \
    the one partial sketch in an answer is noisier than all whole ones together, and a minimum over rows of such noise is \
    biased. Budgets 0.8 / 0.05 / 0.05 in the same structure do better, one sketch a substream (tuned) much better.";
/// Why the baselines are not as bad, or as good, as in the paper.
pub(super) const SOUND: &str = "The published baselines are not private as coded (noise redrawn for each query, exact key sets and \
    raw counts kept) and add noise far above what their sensitivity asks. In a form that keeps its promise BLMZ-Sketch and \
    U-Sketch need much less noise, so they are better than the paper's curves; PCC-MG with its own counts must cover \
    the whole domain with noise, so it is worse.";

pub(super) const SECTION: Section = Section {
    name: "Frequency Estimation",
    statements: &[
        Statement {
            says: "MAE and MRE of all private sketches generally decrease with increasing ε",
            check: Once(|r| {
                let methods = [MethodName::Paper, U, PCC, BLMZ];
                rows(r, "epsilon").steps(&methods, &ERRORS, MOSTLY, |before, after| after <= before * 1.02)
            }),
            reason: "Where collisions or the bias of small summaries rule, more budget changes little, and seeds decide.",
        },
        Statement {
            says: "DPSW-Sketch has significantly lower MAE and MRE than all other private sketches, for every ε",
            check: EachDpsw(|r, m| rows(r, "epsilon").beats(m, &RIVALS, &ERRORS, ALWAYS)),
            reason: "The printed budgets starve the partial sketches, and sound BLMZ-Sketch and U-Sketch are better than the \
                paper's curves for them: their sensitivity is 2 (in a level, in a row), far below the published scales.",
        },
        Statement {
            says: "For ε ≥ 1 the MRE of DPSW-Sketch is always within 10 % (frequent) and 100 % (other items)",
            check: EachDpsw(within_limits),
            reason: STARVED,
        },
        Statement {
            says: "No other private sketch stays within these limits for ε ≥ 1",
            check: Once(no_rival_within_limits),
            reason: SOUND,
        },
        Statement {
            says: "U-Sketch, PCC-MG and BLMZ-Sketch are similar to each other on frequent items",
            check: Once(rivals_are_similar),
            reason: SOUND,
        },
        Statement {
            says: "PCC-MG is slightly better for small ε, U-Sketch for large ε",
            check: Once(pcc_then_u),
            reason: "Sound PCC-MG must hide which keys its summaries hold, by noise on the whole domain; at small ε that noise \
                is larger than what U-Sketch adds to its counters.",
        },
        Statement {
            says: "On other items U-Sketch is sometimes much worse than PCC-MG and BLMZ-Sketch",
            check: Once(u_is_sometimes_worse),
            reason: "Its noise is in the counters, drawn once at its own sensitivity, not added to every answer at scale 2√w/ε.",
        },
        Statement {
            says: "The three private baselines always have at least 4 × the MAE and 2 × the MRE of DPSW-Sketch",
            check: EachDpsw(|r, m| {
                let duels = rows(r, "epsilon").duels(m, &RIVALS, &ERRORS);
                let least = |metric: Metric| if MAES.contains(&metric) { 4.0 } else { 2.0 };
                let cases = duels.iter().map(|duel| (least(duel.metric) <= duel.ratio(), duel.ratio()));
                Tally::spanning(ALWAYS, "baseline ÷ it", cases)
            }),
            reason: SOUND,
        },
        Statement {
            says: "No private sketch is comparable to Microscope-Sketch (2 × its MAE or more, ε = 1), especially on other items",
            check: EachDpsw(|r, m| {
                let duels = rows(r, "epsilon").duels(m, &[MICROSCOPE], &MAES);
                let at_one = duels.iter().filter(|duel| duel.x == 1.0);
                let cases = at_one.map(|duel| (2.0 * duel.other <= duel.mine, duel.mine / duel.other));
                Tally::spanning(ALWAYS, "it ÷ Microscope-Sketch", cases)
            }),
            reason: "",
        },
    ],
};

/// The limits that the paper prints for ε ≥ 1.
fn within_limits(results: &Results, method: MethodName) -> Tally {
    rows(results, "epsilon")
        .each(method, &MRES, 1.0, |metric, error| error <= if metric == MreHigh { 0.1 } else { 1.0 })
}

fn no_rival_within_limits(results: &Results) -> Tally {
    let (mut cases, mut texts) = (Vec::new(), Vec::new());
    for rival in RIVALS {
        let within = within_limits(results, rival);
        if !within.is_empty() {
            cases.push(!within.holds_always());
            texts.push(format!("{}: {} within", rival.name(), within.text()));
        }
    }
    Tally::new(ALWAYS, cases, texts.join("; "))
}

fn rivals_are_similar(results: &Results) -> Tally {
    let rows = rows(results, "epsilon");
    let case = |(stream, x): (String, f64)| {
        let errors = RIVALS.iter().filter_map(|&method| rows.mean(&stream, x, method, MaeHigh));
        let (low, high) = extent(errors);
        (low <= high).then(|| (high <= 3.0 * low, high / low))
    };
    Tally::of(MOSTLY, rows.cells().into_iter().filter_map(case), |ratios| {
        format!("worst ÷ best of the three: {} (similar: up to 3)", span(ratios))
    })
}

fn pcc_then_u(results: &Results) -> Tally {
    let rows = rows(results, "epsilon");
    let values = rows.values();
    let ratio = |stream: &str, x: Option<&f64>| {
        let at = |method| rows.mean(stream, *x?, method, MaeHigh);
        Some(at(PCC)? / at(U)?)
    };
    let (mut cases, mut texts) = (Vec::new(), Vec::new());
    for stream in rows.streams() {
        let ends = [values.first(), values.last()].map(|x| ratio(&stream, x));
        let [Some(small), Some(large)] = ends else { continue };
        cases.extend([small < 1.0, 1.0 < large]);
        texts.push(format!("{stream}: {} and {}", short(small), short(large)));
    }
    let text = format!("PCC-MG ÷ U-Sketch at the smallest and the largest ε: {}", texts.join("; "));
    Tally::new(ALWAYS, cases, text)
}

/// One case: the worst place is enough for "sometimes".
fn u_is_sometimes_worse(results: &Results) -> Tally {
    let rows = rows(results, "epsilon");
    let ratio = |(stream, x): (String, f64)| {
        let at = |method| rows.mean(&stream, x, method, MaeLow);
        Some(at(U)? / at(PCC)?.max(at(BLMZ)?))
    };
    let worst = rows.cells().into_iter().filter_map(ratio).fold(0.0, f64::max);
    let case = (0.0 < worst).then_some((2.0 <= worst, worst));
    Tally::of(ALWAYS, case, |_| format!("at worst {} × the worse of the two", short(worst)))
}
