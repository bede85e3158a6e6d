//! `dpsw-eval compare`: methods side by side on one stream, one row a method.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dpsw::{Claim, DpswSketch, Expectation, Item, Noise, Plan, Prior, Threshold, Unit, WindowView};
use indicatif::{ProgressBar, ProgressStyle};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;

use crate::dataset::Dataset;
use crate::method::{Choices, MethodName, Size, Variant, claim_name};
use crate::truth::Truth;

/// What is compared.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// One stream a seed.
    pub datasets: &'a [Dataset],
    /// The methods, a row each.
    pub methods: &'a [MethodName],
    /// What the plans are made for.
    pub size: Size,
    /// Thresholds of heavy hitters.
    pub gammas: &'a [f64],
    /// Query times a seed.
    pub queries: usize,
    /// What tuning may choose.
    pub choices: Choices,
}

/// One row of the result.
#[derive(Debug, Serialize)]
pub struct Row {
    method: &'static str,
    /// What was chosen for the method.
    parameters: String,
    dataset: String,
    claim: &'static str,
    epsilon: f64,
    delta: Option<f64>,
    window: u64,
    bytes: u64,
    resident_bytes: u64,
    mae_high: f64,
    mae_low: Option<f64>,
    mre_high: f64,
    mre_low: Option<f64>,
    f1: BTreeMap<String, f64>,
    precision: BTreeMap<String, f64>,
    recall: BTreeMap<String, f64>,
    coverage95_high: f64,
    coverage95_low: Option<f64>,
    predicted_mae_high: Option<f64>,
    predicted_mae_low: Option<f64>,
    insert_items_per_s: f64,
    frequency_ns: f64,
    heavy_hitters_us: f64,
    seeds: usize,
}

impl Row {
    /// The predicted error over the measured one, of frequent and of rare items; `None` where nothing was predicted.
    #[must_use]
    pub fn predicted_to_measured(&self) -> Option<[f64; 2]> {
        Some([self.predicted_mae_high? / self.mae_high, self.predicted_mae_low? / self.mae_low?])
    }
}

/// Query times by which variants of a method are tried.
const PILOT_QUERIES: usize = 8;

/// Runs every method on every seed, on all cores.
///
/// # Errors
/// A plan cannot be made or the stream is too short.
pub fn run(comparison: &Comparison<'_>) -> Result<Vec<Row>> {
    let variants = comparison.methods.iter().map(|m| m.variants(comparison.size, &comparison.choices));
    let variants = variants.collect::<Result<Vec<_>>>()?;
    let chosen = variants.into_iter().map(|v| choose(comparison, v)).collect::<Result<Vec<_>>>()?;
    let jobs: Vec<(usize, usize)> = (0..comparison.datasets.len())
        .flat_map(|seed| (0..chosen.len()).map(move |method| (method, seed)))
        .collect();
    let outcomes = on_all_cores("measure", &jobs, |&(method, seed)| {
        measure(comparison, &chosen[method].plan, seed, comparison.queries)
    });
    let mut merged: Vec<Outcome> = chosen.iter().map(|_| Outcome::default()).collect();
    for ((method, _), outcome) in jobs.into_iter().zip(outcomes) {
        merged[method].merge(outcome?);
    }
    let rows = chosen.into_iter().zip(&merged).enumerate();
    Ok(rows.map(|(method, (variant, outcome))| row(comparison, method, variant, outcome)).collect())
}

/// The variant with the smallest error on the first seed: of frequent and rare items together.
fn choose(comparison: &Comparison<'_>, mut variants: Vec<Variant>) -> Result<Variant> {
    if variants.len() == 1 {
        return Ok(variants.remove(0));
    }
    let score = |variant: &Variant| -> Result<f64> {
        let outcome = measure(comparison, &variant.plan, 0, PILOT_QUERIES)?;
        let (high, low) = (&outcome.high, &outcome.low);
        Ok(high.mean(high.absolute).unwrap_or(0.0) + low.mean(low.absolute).unwrap_or(0.0))
    };
    let scores = on_all_cores("tune", &variants, score).into_iter().collect::<Result<Vec<f64>>>()?;
    let best = (0..scores.len()).min_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    Ok(variants.swap_remove(best.context("a method has at least one variant")?))
}

/// The results in the order of the jobs; progress goes to stderr.
fn on_all_cores<J: Sync, T: Send + Sync>(
    name: &'static str,
    jobs: &[J],
    work: impl Fn(&J) -> T + Sync,
) -> Vec<T> {
    let style = ProgressStyle::with_template("{prefix:8} {bar:40} {pos}/{len}  {eta} left");
    let progress = ProgressBar::new(jobs.len() as u64).with_prefix(name);
    progress.set_style(style.expect("a valid template"));
    let next = AtomicUsize::new(0);
    let results: Vec<OnceLock<T>> = jobs.iter().map(|_| OnceLock::new()).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores.min(jobs.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { break };
                    let _ = results[index].set(work(job));
                    progress.inc(1);
                }
            });
        }
    });
    progress.finish_and_clear();
    results.into_iter().map(|result| result.into_inner().expect("every job is done")).collect()
}

/// Sums over all questions.
#[derive(Debug, Default)]
struct Outcome {
    high: Errors,
    low: Errors,
    /// By threshold: hits, answers, truths.
    heavy: BTreeMap<String, Scores>,
    inserted: u64,
    inserting: Duration,
    asked: u64,
    asking: Duration,
    listed: u64,
    listing: Duration,
    /// Of frequent and rare items, from the shape of a true window, which stands in for a public guess.
    predicted: Option<(f64, f64)>,
}

#[derive(Debug, Default)]
struct Errors {
    count: f64,
    absolute: f64,
    relative: f64,
    covered: f64,
}

#[derive(Debug, Default)]
struct Scores {
    count: f64,
    f1: f64,
    precision: f64,
    recall: f64,
}

impl Outcome {
    fn merge(&mut self, other: Self) {
        self.high.merge(&other.high);
        self.low.merge(&other.low);
        for (gamma, scores) in other.heavy {
            self.heavy.entry(gamma).or_default().merge(&scores);
        }
        self.inserted += other.inserted;
        self.inserting += other.inserting;
        self.asked += other.asked;
        self.asking += other.asking;
        self.listed += other.listed;
        self.listing += other.listing;
        self.predicted = self.predicted.or(other.predicted);
    }
}

impl Errors {
    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.absolute += other.absolute;
        self.relative += other.relative;
        self.covered += other.covered;
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        (0.0 < self.count).then(|| sum / self.count)
    }
}

impl Scores {
    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.f1 += other.f1;
        self.precision += other.precision;
        self.recall += other.recall;
    }

    /// Two empty sets agree.
    fn add(&mut self, found: &[u64], heavy: &[u64]) {
        let hits = found.iter().filter(|item| heavy.contains(item)).count() as f64;
        let share = |of: usize| {
            if of == 0 { f64::from(found.is_empty() && heavy.is_empty()) } else { hits / of as f64 }
        };
        let both = found.len() + heavy.len();
        self.count += 1.0;
        self.f1 += if both == 0 { 1.0 } else { 2.0 * hits / both as f64 };
        self.precision += share(found.len());
        self.recall += share(heavy.len());
    }
}

fn measure(comparison: &Comparison<'_>, plan: &Plan, seed: usize, queries: usize) -> Result<Outcome> {
    let dataset = &comparison.datasets[seed];
    let window_len = comparison.size.window_len as usize;
    let first = window_len * 13 / 10;
    ensure!(
        first < dataset.items.len(),
        "{} has {} items; a window of {window_len} needs more than {first}",
        dataset.name,
        dataset.items.len()
    );
    // The same questions for every method.
    let mut random = ChaCha12Rng::seed_from_u64(0x5eed + seed as u64);
    let mut times: Vec<usize> =
        (0..queries).map(|_| random.random_range(first..=dataset.items.len())).collect();
    times.sort_unstable();
    let mut sketch = DpswSketch::new(plan.clone(), Noise::seeded(seed as u64))?;
    let mut truth = Truth::new(&dataset.items, dataset.domain_len, window_len);
    let mut outcome = Outcome::default();
    let mut position = 0;
    for time in times {
        let items = &dataset.items[position..time];
        let start = Instant::now();
        if let Unit::Users { .. } = plan.settings().unit {
            let users: Vec<u64> = (position as u64..time as u64).collect();
            sketch.extend_by(&users, items)?;
        } else {
            sketch.extend(items)?;
        }
        outcome.inserting += start.elapsed();
        outcome.inserted += items.len() as u64;
        position = time;
        truth.advance(time);
        if outcome.predicted.is_none() {
            let prior = Prior::Shares(truth.shares());
            let prediction = plan.predict(&Expectation { prior, drift: dataset.drift })?;
            outcome.predicted = prediction.map(|prediction| (prediction.frequent(), prediction.rare()));
        }
        ask(&sketch.view(), &truth, comparison.gammas, &mut random, &mut outcome)?;
    }
    Ok(outcome)
}

fn ask(
    view: &WindowView,
    truth: &Truth<'_>,
    gammas: &[f64],
    random: &mut ChaCha12Rng,
    outcome: &mut Outcome,
) -> Result<()> {
    for &gamma in gammas {
        let start = Instant::now();
        let ranked = view.heavy_hitters(Threshold::new(gamma)?)?;
        outcome.listing += start.elapsed();
        outcome.listed += 1;
        let found: Vec<u64> = ranked
            .iter()
            .filter_map(|r| if let Item::Integer(i) = r.item { Some(i) } else { None })
            .collect();
        outcome.heavy.entry(gamma.to_string()).or_default().add(&found, &truth.heavy(gamma));
    }
    let frequent = truth.frequent();
    let rare = truth.rare(&frequent, random);
    for (items, errors) in [(&frequent, &mut outcome.high), (&rare, &mut outcome.low)] {
        for &item in items {
            let start = Instant::now();
            let estimate = view.frequency(item)?;
            outcome.asking += start.elapsed();
            outcome.asked += 1;
            let count = truth.count(item) as f64;
            let error = (estimate.value - count).abs();
            errors.count += 1.0;
            errors.absolute += error;
            errors.relative += error / count.max(1.0);
            errors.covered += f64::from(error <= estimate.error_bound);
        }
    }
    Ok(())
}

fn row(comparison: &Comparison<'_>, method: usize, variant: Variant, outcome: &Outcome) -> Row {
    let plan = &variant.plan;
    let claim = plan.claim();
    let scores = |value: fn(&Scores) -> f64| {
        outcome.heavy.iter().map(|(gamma, scores)| (gamma.clone(), value(scores) / scores.count)).collect()
    };
    let per = |time: Duration, count: u64| time.as_secs_f64() / count.max(1) as f64;
    let (high, low) = (&outcome.high, &outcome.low);
    Row {
        method: comparison.methods[method].name(),
        parameters: variant.parameters,
        dataset: comparison.datasets[0].name.clone(),
        claim: claim_name(claim),
        epsilon: comparison.size.epsilon,
        delta: matches!(claim, Claim::Approximate(..)).then_some(comparison.size.delta),
        window: comparison.size.window_len,
        bytes: plan.sketch_bytes(),
        resident_bytes: plan.resident_bytes(),
        mae_high: high.mean(high.absolute).unwrap_or(f64::NAN),
        mae_low: low.mean(low.absolute),
        mre_high: high.mean(high.relative).unwrap_or(f64::NAN),
        mre_low: low.mean(low.relative),
        f1: scores(|s| s.f1),
        precision: scores(|s| s.precision),
        recall: scores(|s| s.recall),
        coverage95_high: high.mean(high.covered).unwrap_or(f64::NAN),
        coverage95_low: low.mean(low.covered),
        predicted_mae_high: outcome.predicted.map(|(high, _)| high),
        predicted_mae_low: outcome.predicted.map(|(_, low)| low),
        insert_items_per_s: 1.0 / per(outcome.inserting, outcome.inserted),
        frequency_ns: per(outcome.asking, outcome.asked) * 1e9,
        heavy_hitters_us: per(outcome.listing, outcome.listed) * 1e6,
        seeds: comparison.datasets.len(),
    }
}

/// The rows as a table for people.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<16} {:<12} {:>10} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7}  f1\n",
        "method", "claim", "bytes", "mae high", "mae low", "mre high", "mre low", "cover h", "cover l"
    );
    let optional =
        |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |v| format!("{v:.digits$}"));
    for row in rows {
        let f1: Vec<String> = row.f1.iter().map(|(gamma, f1)| format!("{gamma}: {f1:.4}")).collect();
        text += &format!(
            "{:<16} {:<12} {:>10} {:>9.1} {:>9} {:>9.4} {:>9} {:>7.3} {:>7}  {}\n",
            row.method,
            row.claim,
            row.bytes,
            row.mae_high,
            optional(row.mae_low, 1),
            row.mre_high,
            optional(row.mre_low, 4),
            row.coverage95_high,
            optional(row.coverage95_low, 3),
            f1.join(", ")
        );
        text += &format!("{:<16} {}\n", "", row.parameters);
    }
    text
}
