//! What the paper's text says about its experiments, held against what was measured.

use serde::Serialize;

use crate::baseline::Kind;
use crate::chart::short;
use crate::draw::pairs;
use crate::method::MethodName;
use crate::metric::Metric::{self, F1, MaeHigh, MaeLow, MreHigh, MreLow, Precision, Recall, Throughput};
use crate::results::Results;
use crate::sweep::Summary;

/// Whether a statement holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it is said.
    Holds,
    /// In some cases.
    InPart,
    /// In few or no cases.
    Fails,
    /// There is nothing to measure it by.
    NotMeasured,
}

/// What was measured of a statement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Of which method, where the statement is about DPSW-Sketch.
    pub of: Option<MethodName>,
    /// In numbers.
    pub measured: String,
    /// Whether it holds.
    pub verdict: Verdict,
}

/// A statement with all that was found.
#[derive(Debug, Clone, Serialize)]
pub struct Judged {
    /// Where it stands.
    pub section: &'static str,
    /// What it says.
    pub says: &'static str,
    /// One finding, or one for each of the methods that it may be about.
    pub findings: Vec<Finding>,
    /// Why it may not hold of the method as published, where it does not: an explanation, not a measurement.
    pub reason: Option<&'static str>,
}

/// Who a statement is about.
#[derive(Clone, Copy)]
enum About {
    /// DPSW-Sketch: checked for its printed and balanced budgets and for the tuned method.
    Dpsw(fn(&Results, MethodName) -> Tally),
    /// The methods it is compared with.
    Others(fn(&Results) -> Tally),
}

struct Statement {
    section: &'static str,
    says: &'static str,
    about: About,
    reason: &'static str,
}

/// Cases in which a statement holds, and what share of them it needs.
struct Tally {
    cases: Vec<bool>,
    needed: f64,
    measured: String,
}

/// "Always" and "all".
const ALWAYS: f64 = 1.0;
/// "Almost all", "generally", "mostly".
const MOSTLY: f64 = 0.8;

impl Tally {
    fn new(needed: f64) -> Self {
        Self { cases: Vec::new(), needed, measured: String::new() }
    }

    fn add(&mut self, holds: bool) {
        self.cases.push(holds);
    }

    fn share(&self) -> f64 {
        self.cases.iter().filter(|holds| **holds).count() as f64 / self.cases.len() as f64
    }

    fn verdict(&self) -> Verdict {
        match self.share() {
            share if share.is_nan() => Verdict::NotMeasured,
            share if self.needed <= share => Verdict::Holds,
            share if 0.5 <= share => Verdict::InPart,
            _ => Verdict::Fails,
        }
    }

    fn text(&self) -> String {
        if self.cases.is_empty() {
            return "not measured".to_owned();
        }
        let hits = self.cases.iter().filter(|holds| **holds).count();
        let measured = if self.measured.is_empty() { String::new() } else { format!("; {}", self.measured) };
        format!("{hits} of {} cases{measured}", self.cases.len())
    }

    fn saying(self, measured: String) -> Self {
        Self { measured, ..self }
    }
}

const U: MethodName = MethodName::Baseline(Kind::USketch);
const PCC: MethodName = MethodName::Baseline(Kind::PccMg);
const PCC_ALL: MethodName = MethodName::Baseline(Kind::PccMgAllKeys);
const BLMZ: MethodName = MethodName::Baseline(Kind::Blmz);
const MICROSCOPE: MethodName = MethodName::MICROSCOPE;
const TUMBLING: MethodName = MethodName::Baseline(Kind::Tumbling);
/// The private methods that the paper compares with.
const RIVALS: [MethodName; 3] = [U, PCC, BLMZ];
const ERRORS: [Metric; 4] = [MaeHigh, MaeLow, MreHigh, MreLow];
const F1S: [Metric; 2] = [F1(0.005), F1(0.01)];

/// Every statement with its findings.
#[must_use]
pub fn judge(results: &Results) -> Vec<Judged> {
    STATEMENTS.iter().map(|statement| statement.judge(results)).collect()
}

/// What this project says of its own method.
#[must_use]
pub fn judge_ours(results: &Results) -> Vec<Judged> {
    OURS.iter().map(|statement| statement.judge(results)).collect()
}

impl Statement {
    fn judge(&self, results: &Results) -> Judged {
        let finding = |of, tally: Tally| Finding { of, measured: tally.text(), verdict: tally.verdict() };
        let findings: Vec<Finding> = match self.about {
            About::Others(check) => vec![finding(None, check(results))],
            About::Dpsw(check) => [MethodName::Paper, MethodName::PaperBalanced, MethodName::Tuned]
                .map(|method| finding(Some(method), check(results, method)))
                .to_vec(),
        };
        let holds = matches!(findings[0].verdict, Verdict::Holds | Verdict::NotMeasured);
        let reason = (!holds && !self.reason.is_empty()).then_some(self.reason);
        Judged { section: self.section, says: self.says, findings, reason }
    }
}

/// Every stream and value of a sweep.
fn cells(results: &Results, sweep: &str) -> Vec<(String, f64)> {
    let values = results.values(sweep);
    let streams = results.streams(sweep);
    streams.iter().flat_map(|stream| values.iter().map(move |&x| (stream.clone(), x))).collect()
}

/// The smallest and the largest of some ratios.
#[derive(Debug, Clone, Copy)]
struct Span {
    low: f64,
    high: f64,
}

impl Span {
    const EMPTY: Self = Self { low: f64::INFINITY, high: f64::NEG_INFINITY };

    fn add(&mut self, value: f64) {
        self.low = self.low.min(value);
        self.high = self.high.max(value);
    }

    fn text(self) -> String {
        if self.low <= self.high {
            format!("{} to {}", short(self.low), short(self.high))
        } else {
            "-".to_owned()
        }
    }
}

/// `mine` against each rival in every cell: whether mine is better, and the ratio rival / mine.
fn duel(
    results: &Results,
    sweep: &str,
    mine: MethodName,
    rivals: &[MethodName],
    metrics: &[Metric],
) -> Vec<Duel> {
    let mut duels = Vec::new();
    for (stream, x) in cells(results, sweep) {
        for &metric in metrics {
            let Some(one) = results.mean(sweep, &stream, x, mine, metric) else { continue };
            for &rival in rivals {
                let Some(other) = results.mean(sweep, &stream, x, rival, metric) else { continue };
                let is_better = if metric.is_score() { other <= one } else { one < other };
                duels.push(Duel { stream: stream.clone(), x, metric, rival, is_better, ratio: other / one });
            }
        }
    }
    duels
}

struct Duel {
    stream: String,
    x: f64,
    metric: Metric,
    rival: MethodName,
    is_better: bool,
    ratio: f64,
}

/// Better than the rivals in every cell; the rival that comes closest or is ahead is named.
fn beats(
    results: &Results,
    sweep: &str,
    mine: MethodName,
    rivals: &[MethodName],
    metrics: &[Metric],
    needed: f64,
) -> Tally {
    let duels = duel(results, sweep, mine, rivals, metrics);
    let mut tally = Tally::new(needed);
    duels.iter().for_each(|duel| tally.add(duel.is_better));
    let ahead = |duel: &&Duel| if duel.metric.is_score() { -duel.ratio } else { duel.ratio };
    let closest = duels.iter().min_by(|a, b| ahead(a).total_cmp(&ahead(b)));
    let text = closest.map(|duel| {
        let rival = duel.rival.name();
        format!(
            "strongest rival: {rival} with {} × its {} ({}, {})",
            short(duel.ratio),
            duel.metric.key(),
            duel.stream,
            short(duel.x)
        )
    });
    tally.saying(text.unwrap_or_default())
}

/// Steps of a curve that go the right way.
fn steps(
    results: &Results,
    sweep: &str,
    methods: &[MethodName],
    metrics: &[Metric],
    needed: f64,
    right: fn(f64, f64) -> bool,
) -> Tally {
    let mut tally = Tally::new(needed);
    let mut span = Span::EMPTY;
    for stream in results.streams(sweep) {
        for &method in methods {
            for &metric in metrics {
                let curve = results.curve(sweep, &stream, method, metric);
                curve.windows(2).for_each(|pair| tally.add(right(pair[0].1.mean, pair[1].1.mean)));
                if let [first, .., last] = curve.as_slice() {
                    span.add(last.1.mean / first.1.mean);
                }
            }
        }
    }
    tally.saying(format!("last ÷ first value of a curve: {}", span.text()))
}

/// The last value of each curve against the first.
fn ends(
    results: &Results,
    sweep: &str,
    methods: &[MethodName],
    metrics: &[Metric],
    right: fn(f64, f64) -> bool,
) -> Tally {
    let mut tally = Tally::new(ALWAYS);
    let mut texts = Vec::new();
    for &method in methods {
        let mut span = Span::EMPTY;
        for stream in results.streams(sweep) {
            for &metric in metrics {
                let curve = results.curve(sweep, &stream, method, metric);
                if let [first, .., last] = curve.as_slice() {
                    tally.add(right(first.1.mean, last.1.mean));
                    span.add(last.1.mean / first.1.mean);
                }
            }
        }
        texts.push(format!("{} {}", method.name(), span.text()));
    }
    tally.saying(format!("last ÷ first: {}", texts.join(", ")))
}

/// The largest over the smallest value of each curve.
fn flat(results: &Results, sweep: &str, methods: &[MethodName], metrics: &[Metric], limit: f64) -> Tally {
    let mut tally = Tally::new(ALWAYS);
    let mut texts = Vec::new();
    for &method in methods {
        let mut worst: f64 = 0.0;
        for stream in results.streams(sweep) {
            for &metric in metrics {
                let curve = results.curve(sweep, &stream, method, metric);
                let mut span = Span::EMPTY;
                curve.iter().for_each(|(_, summary)| span.add(summary.mean));
                if 1 < curve.len() {
                    tally.add(span.high <= limit * span.low);
                    worst = worst.max(span.high / span.low);
                }
            }
        }
        texts.push(format!("{} {}", method.name(), short(worst)));
    }
    tally.saying(format!("largest ÷ smallest, at most: {}", texts.join(", ")))
}

/// A condition on every value of a metric.
fn each(
    results: &Results,
    sweep: &str,
    methods: &[MethodName],
    metrics: &[Metric],
    from: f64,
    holds: fn(Metric, f64) -> bool,
) -> Tally {
    let mut tally = Tally::new(ALWAYS);
    let mut texts = Vec::new();
    for &metric in metrics {
        let mut span = Span::EMPTY;
        for (stream, x) in cells(results, sweep).into_iter().filter(|(_, x)| from <= *x) {
            for value in methods.iter().filter_map(|&method| results.mean(sweep, &stream, x, method, metric))
            {
                tally.add(holds(metric, value));
                span.add(value);
            }
        }
        texts.push(format!("{} {}", metric.key(), span.text()));
    }
    tally.saying(texts.join(", "))
}

fn within_printed(metric: Metric, value: f64) -> bool {
    value <= if metric == MreHigh { 0.1 } else { 1.0 }
}

/// Mean MAE over both groups at each value of an axis.
fn total_error(results: &Results, sweep: &str, stream: &str, method: MethodName) -> Vec<(f64, f64)> {
    let high = results.curve(sweep, stream, method, MaeHigh);
    let low = |x| results.mean(sweep, stream, x, method, MaeLow).unwrap_or(0.0);
    high.into_iter().map(|(x, summary)| (x, summary.mean + low(x))).collect()
}

/// Where an error is smallest on each stream.
fn best_values(results: &Results, sweep: &str, method: MethodName) -> Vec<f64> {
    let best = |stream: &String| {
        let curve = total_error(results, sweep, stream, method);
        curve.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(x, _)| x)
    };
    results.streams(sweep).iter().filter_map(best).collect()
}

fn join(values: &[f64]) -> String {
    values.iter().map(|&value| short(value)).collect::<Vec<String>>().join(", ")
}

const STARVED: &str = "The printed budgets starve the partial sketches: for three checkpoints they get 0.8 % and 0.6 % of ρ, so \
    the one partial sketch in an answer is noisier than all whole ones together, and a minimum over rows of such noise is \
    biased. Budgets 0.8 / 0.05 / 0.05 in the same structure do better, one sketch a substream (tuned) much better.";
const SOUND: &str = "The published baselines are not private as coded (noise redrawn for each query, exact key sets and \
    raw counts kept) and add noise far above what their sensitivity asks. In a form that keeps its promise BLMZ-Sketch and \
    U-Sketch need much less noise, so they are better than the paper's curves; PCC-MG with its own counts must cover \
    the whole domain with noise, so it is worse.";
const ONE_ARRAY: &str = "Between two checkpoints this implementation counts each item in one array only and adds that array \
    to the open sketches at the checkpoint, so the cost of an item does not grow with the number of sketches.";

const STATEMENTS: &[Statement] = &[
    Statement {
        section: "Frequency Estimation",
        says: "MAE and MRE of all private sketches generally decrease with increasing ε",
        about: About::Others(|r| {
            let methods = [MethodName::Paper, U, PCC, BLMZ];
            steps(r, "epsilon", &methods, &ERRORS, MOSTLY, |before, after| after <= before * 1.02)
        }),
        reason: "Where collisions or the bias of small summaries rule, more budget changes little, and seeds decide.",
    },
    Statement {
        section: "Frequency Estimation",
        says: "DPSW-Sketch has significantly lower MAE and MRE than all other private sketches, for every ε",
        about: About::Dpsw(|r, m| beats(r, "epsilon", m, &RIVALS, &ERRORS, ALWAYS)),
        reason: "The printed budgets starve the partial sketches, and sound BLMZ-Sketch and U-Sketch are better than the \
            paper's curves for them: their sensitivity is 2 (in a level, in a row), far below the published scales.",
    },
    Statement {
        section: "Frequency Estimation",
        says: "For ε ≥ 1 the MRE of DPSW-Sketch is always within 10 % (frequent) and 100 % (other items)",
        about: About::Dpsw(|r, m| each(r, "epsilon", &[m], &[MreHigh, MreLow], 1.0, within_printed)),
        reason: STARVED,
    },
    Statement {
        section: "Frequency Estimation",
        says: "No other private sketch stays within these limits for ε ≥ 1",
        about: About::Others(|r| {
            let mut tally = Tally::new(ALWAYS);
            let mut texts = Vec::new();
            for rival in RIVALS {
                let within = each(r, "epsilon", &[rival], &[MreHigh, MreLow], 1.0, within_printed);
                if !within.cases.is_empty() {
                    tally.add(within.share() < 1.0);
                    texts.push(format!("{}: {} within", rival.name(), within.text()));
                }
            }
            tally.saying(texts.join("; "))
        }),
        reason: SOUND,
    },
    Statement {
        section: "Frequency Estimation",
        says: "U-Sketch, PCC-MG and BLMZ-Sketch are similar to each other on frequent items",
        about: About::Others(|r| {
            let mut tally = Tally::new(MOSTLY);
            let mut spread = Span::EMPTY;
            for (stream, x) in cells(r, "epsilon") {
                let mut span = Span::EMPTY;
                RIVALS
                    .iter()
                    .filter_map(|&m| r.mean("epsilon", &stream, x, m, MaeHigh))
                    .for_each(|v| span.add(v));
                if span.low <= span.high {
                    tally.add(span.high <= 3.0 * span.low);
                    spread.add(span.high / span.low);
                }
            }
            tally.saying(format!("worst ÷ best of the three: {} (similar: up to 3)", spread.text()))
        }),
        reason: SOUND,
    },
    Statement {
        section: "Frequency Estimation",
        says: "PCC-MG is slightly better for small ε, U-Sketch for large ε",
        about: About::Others(|r| {
            let mut tally = Tally::new(ALWAYS);
            let mut texts = Vec::new();
            let values = r.values("epsilon");
            let (Some(&first), Some(&last)) = (values.first(), values.last()) else { return tally };
            for stream in r.streams("epsilon") {
                let ratio = |x| {
                    Some(
                        r.mean("epsilon", &stream, x, PCC, MaeHigh)?
                            / r.mean("epsilon", &stream, x, U, MaeHigh)?,
                    )
                };
                let (Some(small), Some(large)) = (ratio(first), ratio(last)) else { continue };
                tally.add(small < 1.0);
                tally.add(1.0 < large);
                texts.push(format!("{stream}: {} and {}", short(small), short(large)));
            }
            tally.saying(format!("PCC-MG ÷ U-Sketch at the smallest and the largest ε: {}", texts.join("; ")))
        }),
        reason: "Sound PCC-MG must hide which keys its summaries hold, by noise on the whole domain; at small ε that noise \
            is larger than what U-Sketch adds to its counters.",
    },
    Statement {
        section: "Frequency Estimation",
        says: "On other items U-Sketch is sometimes much worse than PCC-MG and BLMZ-Sketch",
        about: About::Others(|r| {
            let mut worst: f64 = 0.0;
            let mut tally = Tally::new(ALWAYS);
            for (stream, x) in cells(r, "epsilon") {
                let at = |m| r.mean("epsilon", &stream, x, m, MaeLow);
                if let (Some(u), Some(pcc), Some(blmz)) = (at(U), at(PCC), at(BLMZ)) {
                    worst = worst.max(u / pcc.max(blmz));
                }
            }
            if 0.0 < worst {
                tally.add(2.0 <= worst);
            }
            tally.saying(format!("at worst {} × the worse of the two", short(worst)))
        }),
        reason: "Its noise is in the counters, drawn once at its own sensitivity, not added to every answer at scale 2√w/ε.",
    },
    Statement {
        section: "Frequency Estimation",
        says: "The three private baselines always have at least 4 × the MAE and 2 × the MRE of DPSW-Sketch",
        about: About::Dpsw(|r, m| {
            let mut tally = Tally::new(ALWAYS);
            let mut span = Span::EMPTY;
            for duel in duel(r, "epsilon", m, &RIVALS, &ERRORS) {
                let least = if matches!(duel.metric, MaeHigh | MaeLow) { 4.0 } else { 2.0 };
                tally.add(least <= duel.ratio);
                span.add(duel.ratio);
            }
            tally.saying(format!("baseline ÷ it: {}", span.text()))
        }),
        reason: SOUND,
    },
    Statement {
        section: "Frequency Estimation",
        says: "No private sketch is comparable to Microscope-Sketch (2 × its MAE or more, ε = 1), especially on other items",
        about: About::Dpsw(|r, m| {
            let mut tally = Tally::new(ALWAYS);
            let mut span = Span::EMPTY;
            for stream in r.streams("epsilon") {
                for metric in [MaeHigh, MaeLow] {
                    let at = |method| r.mean("epsilon", &stream, 1.0, method, metric);
                    if let (Some(one), Some(other)) = (at(m), at(MICROSCOPE)) {
                        tally.add(2.0 * other <= one);
                        span.add(one / other);
                    }
                }
            }
            tally.saying(format!("it ÷ Microscope-Sketch: {}", span.text()))
        }),
        reason: "",
    },
    Statement {
        section: "Heavy-Hitter Identification",
        says: "DPSW-Sketch has higher F1 than other DP sketches in almost all cases",
        about: About::Dpsw(|r, m| beats(r, "epsilon-listing", m, &RIVALS, &F1S, MOSTLY)),
        reason: SOUND,
    },
    Statement {
        section: "Heavy-Hitter Identification",
        says: "Its F1 is mostly close to Microscope-Sketch's for ε ≥ 1 (0.05 or less below)",
        about: About::Dpsw(|r, m| {
            let mut tally = Tally::new(MOSTLY);
            let mut span = Span::EMPTY;
            for (stream, x) in cells(r, "epsilon-listing").into_iter().filter(|(_, x)| 1.0 <= *x) {
                for metric in F1S {
                    let at = |method| r.mean("epsilon-listing", &stream, x, method, metric);
                    if let (Some(one), Some(other)) = (at(m), at(MICROSCOPE)) {
                        tally.add(other - 0.05 <= one);
                        span.add(one - other);
                    }
                }
            }
            tally.saying(format!("its F1 minus Microscope-Sketch's: {}", span.text()))
        }),
        reason: STARVED,
    },
    Statement {
        section: "Heavy-Hitter Identification",
        says: "The F1 of BLMZ-Sketch and U-Sketch improves with ε",
        about: About::Others(|r| ends(r, "epsilon-listing", &[BLMZ, U], &F1S, |first, last| first < last)),
        reason: "With few columns U-Sketch errs by collisions, not by noise, so ε changes little.",
    },
    Statement {
        section: "Heavy-Hitter Identification",
        says: "The F1 of PCC-MG is the same for all ε",
        about: About::Others(|r| {
            let mut tally = Tally::new(ALWAYS);
            let mut texts = Vec::new();
            for stream in r.streams("epsilon-listing") {
                for metric in F1S {
                    let mut span = Span::EMPTY;
                    let curve = r.curve("epsilon-listing", &stream, PCC_ALL, metric);
                    curve.iter().for_each(|(_, summary)| span.add(summary.mean));
                    if 1 < curve.len() {
                        tally.add(span.high - span.low <= 0.02);
                        texts.push(span.text());
                    }
                }
            }
            tally.saying(format!("F1 with all keys listed: {}", texts.join("; ")))
        }),
        reason: "It is constant only if the keys of the summaries are released as they are, which tells who is in the \
            stream. Here keys are chosen after noise on the whole domain, so ε decides how many of them are right.",
    },
    Statement {
        section: "Heavy-Hitter Identification",
        says: "PCC-MG has a recall of 1 already for ε = 0.1, and low precision",
        about: About::Others(|r| {
            let metrics = [Recall(0.005), Recall(0.01), Precision(0.005), Precision(0.01)];
            each(r, "epsilon-listing", &[PCC_ALL], &metrics, 0.0, |metric, value| match metric {
                Recall(_) => 0.99 <= value,
                _ => value <= 0.5,
            })
        }),
        reason: "Recall of 1 needs the exact key sets; with keys chosen under noise, low ε loses heavy hitters.",
    },
    Statement {
        section: "Heavy-Hitter Identification",
        says: "BLMZ-Sketch has higher F1 than PCC-MG",
        about: About::Others(|r| beats(r, "epsilon-listing", BLMZ, &[PCC], &F1S, MOSTLY)),
        reason: "",
    },
    Statement {
        section: "Performance vs. Window Size",
        says: "DPSW-Sketch is better than the other private sketches in almost all cases, for all window sizes",
        about: About::Dpsw(|r, m| {
            let metrics = [MaeHigh, MaeLow, MreHigh, MreLow, F1(0.01)];
            beats(r, "window", m, &RIVALS, &metrics, MOSTLY)
        }),
        reason: SOUND,
    },
    Statement {
        section: "Performance vs. Window Size",
        says: "The MAE of DPSW-Sketch increases with w, but more slowly than w",
        about: About::Dpsw(|r, m| {
            let mut tally = Tally::new(ALWAYS);
            let mut span = Span::EMPTY;
            for stream in r.streams("window") {
                for metric in [MaeHigh, MaeLow] {
                    if let [first, .., last] = r.curve("window", &stream, m, metric).as_slice() {
                        let growth = last.1.mean / first.1.mean;
                        tally.add(1.0 < growth && growth < last.0 / first.0);
                        span.add(growth);
                    }
                }
            }
            tally.saying(format!("growth from the smallest to the largest window: {}", span.text()))
        }),
        reason: "Where noise rules, the error does not depend on w.",
    },
    Statement {
        section: "Performance vs. Window Size",
        says: "The MRE of DPSW-Sketch drops with w",
        about: About::Dpsw(|r, m| ends(r, "window", &[m], &[MreHigh, MreLow], |first, last| last < first)),
        reason: "Other items are those with a count of at least 100: in a larger window rarer ones join them.",
    },
    Statement {
        section: "Performance vs. Window Size",
        says: "The F1 of DPSW-Sketch increases with w",
        about: About::Dpsw(|r, m| ends(r, "window", &[m], &F1S, |first, last| first <= last)),
        reason: "",
    },
    Statement {
        section: "Space and Time Efficiency",
        says: "The errors of DPSW-Sketch fall with the size of the sketches and then become steady",
        about: About::Dpsw(|r, m| falls(r, &[m])),
        reason: "",
    },
    Statement {
        section: "Space and Time Efficiency",
        says: "So do those of U-Sketch and Microscope-Sketch",
        about: About::Others(|r| falls(r, &[U, MICROSCOPE])),
        reason: "",
    },
    Statement {
        section: "Space and Time Efficiency",
        says: "PCC-MG and BLMZ-Sketch are generally better when their sketches are smaller",
        about: About::Others(|r| {
            ends(r, "bytes", &[PCC, BLMZ], &[MaeHigh, MaeLow], |first, last| first < 0.98 * last)
        }),
        reason: "With reduced counts a summary of any size has sensitivity 2, so BLMZ-Sketch gains from every entry. The \
            best of all sizes that fit is reported, so PCC-MG cannot get worse with more bytes.",
    },
    Statement {
        section: "Space and Time Efficiency",
        says: "DPSW-Sketch inserts about 100,000 items a second (50,000 to 200,000)",
        about: About::Dpsw(|r, m| {
            each(r, "speed", &[m], &[Throughput], 0.0, |_, v| (5e4..=2e5).contains(&v))
        }),
        reason: "Another program on another machine. Counting each item in one array between two checkpoints, not in up to 2 |I| - 1, accounts for a small factor of the difference at most.",
    },
    Statement {
        section: "Space and Time Efficiency",
        says: "Its throughput is similar to U-Sketch's (within a factor of 2)",
        about: About::Dpsw(|r, m| {
            let mut tally = Tally::new(ALWAYS);
            let mut span = Span::EMPTY;
            for duel in duel(r, "speed", m, &[U], &[Throughput]) {
                tally.add((0.5..=2.0).contains(&duel.ratio));
                span.add(1.0 / duel.ratio);
            }
            tally.saying(format!("it ÷ U-Sketch: {}", span.text()))
        }),
        reason: ONE_ARRAY,
    },
    Statement {
        section: "Space and Time Efficiency",
        says: "Microscope-Sketch, BLMZ-Sketch and PCC-MG are faster than DPSW-Sketch",
        about: About::Dpsw(|r, m| {
            let duels = duel(r, "speed", m, &[MICROSCOPE, BLMZ, PCC], &[Throughput]);
            let mut tally = Tally::new(ALWAYS);
            let mut span = Span::EMPTY;
            for duel in duels {
                tally.add(1.0 < duel.ratio);
                span.add(duel.ratio);
            }
            tally.saying(format!("their speed ÷ its: {}", span.text()))
        }),
        reason: "Each item is counted in one array between two checkpoints, and the baselines here draw noise for the whole domain at each seal; none of them was made as fast as it could be.",
    },
    Statement {
        section: "Baseline Implementation",
        says: "The count-min version of Microscope-Sketch is the best of three in most cases",
        about: About::Others(|r| {
            let mut tally = Tally::new(0.51);
            let mut texts = Vec::new();
            for stream in r.streams("microscopes") {
                for metric in [MaeHigh, MaeLow, F1(0.005), F1(0.01)] {
                    let at = |kind| r.mean("microscopes", &stream, 0.0, MethodName::Baseline(kind), metric);
                    let kinds = [Kind::Microscope, Kind::MicroscopeCu, Kind::MicroscopeCount].map(at);
                    let [Some(min), Some(cu), Some(count)] = kinds else { continue };
                    // Equal to the last digit that a figure shows counts as best.
                    let (min, rival) =
                        if metric.is_score() { (-min, -cu.max(count)) } else { (min, cu.min(count)) };
                    tally.add(min <= rival + 0.01 * rival.abs());
                    texts.push(short(min / rival));
                }
            }
            tally.saying(format!("count-min ÷ the better of the others: {}", texts.join(", ")))
        }),
        reason: "At 100 KB with the same grid of settings, conservative updates avoid part of the collisions.",
    },
    Statement {
        section: "Parameter Sensitivity",
        says: "MAE grows significantly with the number of checkpoints",
        about: About::Others(|r| {
            let right = |before: f64, after: f64| before < after;
            steps(r, "checkpoints", &[MethodName::Paper], &[MaeHigh, MaeLow], MOSTLY, right)
        }),
        reason: "",
    },
    Statement {
        section: "Parameter Sensitivity",
        says: "Throughput drops nearly linearly with the number of checkpoints (by more than half from the fewest to the most that can be run)",
        about: About::Others(|r| {
            ends(r, "checkpoints", &[MethodName::Paper], &[Throughput], |first, last| last < 0.5 * first)
        }),
        reason: ONE_ARRAY,
    },
    Statement {
        section: "Parameter Sensitivity",
        says: "MAE is lowest around 10 substreams a window and higher on both sides",
        about: About::Others(|r| {
            let best = best_values(r, "substreams", MethodName::Paper);
            let mut tally = Tally::new(ALWAYS);
            best.iter().for_each(|x| tally.add((5.0..=20.0).contains(x)));
            tally.saying(format!("lowest at {} substreams", join(&best)))
        }),
        reason: "At 100 KB the sketches of more substreams are smaller, so zipf, with more frequent items than gauss has, collides earlier.",
    },
    Statement {
        section: "Parameter Sensitivity",
        says: "Throughput is almost not affected by the number of substreams",
        about: About::Others(|r| flat(r, "substreams", &[MethodName::Paper], &[Throughput], 1.5)),
        reason: "Smaller sketches fit into faster memory, and sealing costs the same for each substream.",
    },
    Statement {
        section: "Parameter Sensitivity",
        says: "No single number of hash functions is good on all data sets",
        about: About::Others(|r| {
            let best = best_values(r, "rows", MethodName::Paper);
            let mut tally = Tally::new(ALWAYS);
            if 1 < best.len() {
                tally.add(best.iter().any(|x| *x != best[0]));
            }
            tally.saying(format!("best: {}", join(&best)))
        }),
        reason: "Of the data sets that are here, noise decides: every row costs budget, so few rows are best.",
    },
    Statement {
        section: "Parameter Sensitivity",
        says: "Throughput decreases almost linearly with the number of hash functions",
        about: About::Others(|r| {
            let mut tally = Tally::new(ALWAYS);
            let mut span = Span::EMPTY;
            for stream in r.streams("rows") {
                if let [first, .., last] = r.curve("rows", &stream, MethodName::Paper, Throughput).as_slice()
                {
                    let ratio = (first.1.mean / last.1.mean) / (last.0 / first.0);
                    tally.add((0.5..=2.0).contains(&ratio));
                    span.add(ratio);
                }
            }
            tally.saying(format!("slowdown ÷ growth of rows: {}", span.text()))
        }),
        reason: "",
    },
    Statement {
        section: "Parameter Sensitivity",
        says: "MAE does not decrease beyond 5 hash functions in most data sets",
        about: About::Others(|r| {
            let best = best_values(r, "rows", MethodName::Paper);
            let mut tally = Tally::new(0.5);
            best.iter().for_each(|x| tally.add(*x <= 5.0));
            tally.saying(format!("best: {}", join(&best)))
        }),
        reason: "",
    },
    Statement {
        section: "Supplemental Experiments",
        says: "DPSW-Sketch has both higher precision and higher recall than BLMZ-Sketch and U-Sketch",
        about: About::Dpsw(|r, m| {
            let metrics = [Precision(0.005), Recall(0.005), Precision(0.01), Recall(0.01)];
            beats(r, "epsilon-listing", m, &[BLMZ, U], &metrics, MOSTLY)
        }),
        reason: "A minimum over noisy rows that is biased upwards lists too much (recall 1, low precision) or too little; \
            sound BLMZ-Sketch is close to exact on frequent items.",
    },
    Statement {
        section: "Supplemental Experiments",
        says: "Drift lowers the heavy-hitter scores of all methods (MovieLens; here the streams drift and swap against zipf)",
        about: About::Others(|r| {
            let mut tally = Tally::new(MOSTLY);
            let mut span = Span::EMPTY;
            for method in [MethodName::Paper, U, PCC, BLMZ, MICROSCOPE, MethodName::Tuned] {
                for stream in ["drift", "swap"] {
                    let at = |stream| r.mean("drift", stream, 0.0, method, F1(0.005));
                    if let (Some(moving), Some(still)) = (at(stream), at("zipf")) {
                        tally.add(moving < still);
                        span.add(moving - still);
                    }
                }
            }
            tally.saying(format!("F1 with drift minus without: {}", span.text()))
        }),
        reason: "A drift over half a window moves counts less than the noise and the collisions of most methods do.",
    },
    Statement {
        section: "Supplemental Experiments",
        says: "The MAE of all methods is relatively stable over the size of the domain (within a factor of 3)",
        about: About::Others(|r| {
            flat(r, "domain", &[MethodName::Paper, U, PCC, BLMZ, MICROSCOPE], &[MaeHigh, MaeLow], 3.0)
        }),
        reason: "A domain of 400 items leaves hardly any collisions, and noise on all keys of a large one crowds out the \
            true ones in Misra-Gries summaries; the items that count as other ones change as well.",
    },
    Statement {
        section: "Supplemental Experiments",
        says: "The MAE and MRE of DPSW-Sketch are stable over the size of the domain (within a factor of 3)",
        about: About::Dpsw(|r, m| flat(r, "domain", &[m], &ERRORS, 3.0)),
        reason: "With few items there are no collisions to speak of, and each of the other items has a larger count.",
    },
    Statement {
        section: "Supplemental Experiments",
        says: "DPSW-Sketch consistently outperforms the other private sketches for every size of the domain",
        about: About::Dpsw(|r, m| beats(r, "domain", m, &RIVALS, &ERRORS, ALWAYS)),
        reason: SOUND,
    },
    Statement {
        section: "Supplemental Experiments",
        says: "and closely matches Microscope-Sketch (within a factor of 2)",
        about: About::Dpsw(|r, m| {
            let mut tally = Tally::new(ALWAYS);
            let mut span = Span::EMPTY;
            for duel in duel(r, "domain", m, &[MICROSCOPE], &[MaeHigh, MaeLow]) {
                tally.add(0.5 <= duel.ratio);
                span.add(1.0 / duel.ratio);
            }
            tally.saying(format!("it ÷ Microscope-Sketch: {}", span.text()))
        }),
        reason: "This contradicts the paper's own section on frequencies, which says that no private sketch is comparable.",
    },
];

/// Errors at the largest size are smaller than at the smallest, and the last step changes less than the first.
fn falls(results: &Results, methods: &[MethodName]) -> Tally {
    let mut tally = Tally::new(MOSTLY);
    let mut span = Span::EMPTY;
    for stream in results.streams("bytes") {
        for &method in methods {
            let curve = total_error(results, "bytes", &stream, method);
            if let [first, second, .., before, last] = curve.as_slice() {
                tally.add(last.1 < first.1);
                tally.add((before.1 / last.1).ln().abs() <= (first.1 / second.1).ln().abs().max(0.1));
                span.add(first.1 / last.1);
            }
        }
    }
    tally.saying(format!("error at the smallest ÷ at the largest size: {}", span.text()))
}

const TUNED: MethodName = MethodName::Tuned;

const OURS: &[Statement] = &[
    Statement {
        section: "Accuracy",
        says: "At ε = 1, equal bytes and δ = 0 the errors of the tuned method are at most 0.12 × (frequent) and 0.10 × \
            (other) those of the paper's structure with printed budgets",
        about: About::Others(|r| ratios(r, MethodName::Paper, [0.12, 0.10])),
        reason: "Here the rows of the paper's structure are the best of four on the data; the aim is for its default of four.",
    },
    Statement {
        section: "Accuracy",
        says: "and at most 0.17 × and 0.18 × those with balanced budgets",
        about: About::Others(|r| ratios(r, MethodName::PaperBalanced, [0.17, 0.18])),
        reason: "Here the rows of the paper's structure are the best of four on the data; the aim is for its default of four.",
    },
    Statement {
        section: "Accuracy",
        says: "It is better than every other private method, tumbling buckets included, for every ε",
        about: About::Others(|r| {
            let rivals = [U, PCC, BLMZ, MethodName::Baseline(Kind::PccMgReduced), TUMBLING];
            beats(r, "epsilon", TUNED, &rivals, &ERRORS, ALWAYS)
        }),
        reason: "On streams that stand still. The planner guards against drift with more substreams, each of which adds noise; tumbling buckets take the fewest, which the figure of drift shows the price of.",
    },
    Statement {
        section: "Accuracy",
        says: "The same for every size of the sketches",
        about: About::Others(|r| {
            let rivals = [U, PCC, BLMZ, MethodName::Baseline(Kind::PccMgReduced), TUMBLING];
            beats(r, "bytes", TUNED, &rivals, &ERRORS, ALWAYS)
        }),
        reason: "As for ε: the rival that is ahead is tumbling buckets, where they fit, on streams that stand still.",
    },
    Statement {
        section: "Accuracy",
        says: "Its F1 at ε = 1 is at least 0.99",
        about: About::Others(|r| {
            let mut tally = Tally::new(ALWAYS);
            let mut span = Span::EMPTY;
            for stream in r.streams("epsilon-listing") {
                for value in F1S.iter().filter_map(|&f1| r.mean("epsilon-listing", &stream, 1.0, TUNED, f1)) {
                    tally.add(0.99 <= value);
                    span.add(value);
                }
            }
            tally.saying(span.text())
        }),
        reason: "",
    },
    Statement {
        section: "Error bars",
        says: "Its 95 % intervals hold 93 % to 97 % of the errors (at least 92 % under drift)",
        about: About::Others(coverage),
        reason: "",
    },
    Statement {
        section: "Planning",
        says: "Predicted errors are within 25 % of measured ones",
        about: About::Others(|r| {
            let mut tally = Tally::new(ALWAYS);
            let mut span = Span::EMPTY;
            for stream in ["zipf", "gauss", "drift", "swap"] {
                for group in 0..2 {
                    for (measured, predicted) in pairs(r, stream, group) {
                        tally.add((predicted / measured - 1.0).abs() <= 0.25);
                        span.add(predicted / measured);
                    }
                }
            }
            tally.saying(format!("predicted ÷ measured: {}", span.text()))
        }),
        reason: "",
    },
];

/// The share of errors inside the intervals of the tuned method at ε = 1.
fn coverage(results: &Results) -> Tally {
    let mut tally = Tally::new(ALWAYS);
    let mut span = Span::EMPTY;
    for (sweep, x) in [("epsilon", 1.0), ("drift", 0.0)] {
        for stream in results.streams(sweep) {
            let Some(measured) = results.measured(sweep, &stream, x, TUNED) else { continue };
            let outcomes = measured.outcomes.iter();
            let groups = outcomes.flat_map(|o| [o.high.covered, o.low.and_then(|low| low.covered)]);
            let Some(covered) = Summary::of(&groups.flatten().collect::<Vec<f64>>()) else { continue };
            let least = if matches!(stream.as_str(), "drift" | "swap") { 0.92 } else { 0.93 };
            tally.add((least..=0.97).contains(&covered.mean));
            span.add(covered.mean);
        }
    }
    tally.saying(format!("covered: {}", span.text()))
}

/// The errors of the tuned method over those of another at ε = 1, frequent and other items.
fn ratios(results: &Results, other: MethodName, limits: [f64; 2]) -> Tally {
    let mut tally = Tally::new(ALWAYS);
    let mut texts = Vec::new();
    for (sweep, x) in [("epsilon", 1.0), ("drift", 0.0)] {
        for stream in results.streams(sweep).iter().filter(|stream| sweep == "epsilon" || *stream != "zipf") {
            for (metric, limit) in [MaeHigh, MaeLow].into_iter().zip(limits) {
                let at = |method| results.mean(sweep, stream, x, method, metric);
                if let (Some(tuned), Some(other)) = (at(TUNED), at(other)) {
                    tally.add(tuned / other <= limit);
                    texts.push(format!("{stream} {}", short(tuned / other)));
                }
            }
        }
    }
    tally.saying(texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Errors, Heavy, Outcome};
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
        let results = Results { rows, distributions: Vec::new() };
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
}
