//! `dpsw-eval compare`: methods side by side on one stream, one row per method.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::cores::{self, Cores};
use crate::dataset::Dataset;
use crate::figure::Goal;
use crate::measure::{Errors, Heavy, Outcome, Workload, measure};
use crate::method::{Choices, MethodName, Size, Variant, claim_name, promised};

/// What is compared.
#[derive(Debug)]
pub struct Comparison<'a> {
    pub datasets: &'a [Dataset],
    pub methods: &'a [MethodName],
    pub size: Size,
    pub gammas: &'a [f64],
    pub queries: usize,
    pub choices: Choices,
}

/// One row of the result; what does not apply to a method is absent.
#[derive(Debug, Serialize)]
pub struct Row {
    method: MethodName,
    /// What was chosen for the method.
    pub parameters: String,
    /// What was tried, if more than one.
    tried: Vec<Tried>,
    dataset: String,
    claim: &'static str,
    epsilon: Option<f64>,
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
    coverage95_high: Option<f64>,
    coverage95_low: Option<f64>,
    predicted_mae_high: Option<f64>,
    predicted_mae_low: Option<f64>,
    insert_items_per_s: f64,
    frequency_ns: f64,
    heavy_hitters_us: f64,
    seeds: usize,
}

/// Parameters that were tried, and what they scored on a short run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tried {
    /// As results show them.
    pub parameters: String,
    /// The mean absolute errors of frequent and of rare items together.
    pub error: f64,
    /// The mean F1 over the thresholds, if any were asked for.
    pub f1: Option<f64>,
}

impl Tried {
    /// What a short run showed.
    pub fn new(parameters: &str, outcome: &Outcome) -> Self {
        let error = outcome.high.absolute + outcome.low.map_or(0.0, |low| low.absolute);
        let f1 = mean(outcome.heavy.iter().map(|heavy| heavy.f1));
        Self { parameters: parameters.to_owned(), error, f1 }
    }

    /// The index of the best; `None` of none.
    pub(crate) fn best(tried: &[Self], goal: Goal) -> Option<usize> {
        (0..tried.len()).min_by(|&a, &b| {
            let by_error = tried[a].error.total_cmp(&tried[b].error);
            match goal {
                Goal::Error => by_error,
                Goal::F1 => tried[b].f1.unwrap_or(0.0).total_cmp(&tried[a].f1.unwrap_or(0.0)).then(by_error),
            }
        })
    }
}

impl Row {
    pub fn parameters(&self) -> &str {
        &self.parameters
    }

    /// The mean absolute errors of frequent and of rare items, if there are any of those.
    pub fn errors(&self) -> [Option<f64>; 2] {
        [Some(self.mae_high), self.mae_low]
    }

    /// The predicted error over the measured one, of frequent and of rare items; `None` where nothing was predicted.
    pub fn predicted_to_measured(&self) -> Option<[f64; 2]> {
        Some([self.predicted_mae_high? / self.mae_high, self.predicted_mae_low? / self.mae_low?])
    }
}

/// Query times by which variants of a method are tried.
const PILOT_QUERIES: usize = 8;

/// A method with the parameters that were chosen for it.
pub(crate) struct Chosen {
    pub(crate) method: MethodName,
    pub(crate) variant: Variant,
    pub(crate) tried: Vec<Tried>,
}

/// Runs every method on every seed, on all cores.
pub fn run(comparison: &Comparison<'_>) -> Result<Vec<Row>> {
    let chosen = comparison.methods.iter().map(|&method| choose(comparison, method));
    run_chosen(comparison, chosen.collect::<Result<Vec<Chosen>>>()?)
}

/// The same with parameters that are chosen already.
pub(crate) fn run_chosen(comparison: &Comparison<'_>, chosen: Vec<Chosen>) -> Result<Vec<Row>> {
    let jobs: Vec<(usize, usize)> = (0..chosen.len())
        .flat_map(|method| (0..comparison.datasets.len()).map(move |seed| (method, seed)))
        .collect();
    let workload = workload(comparison, comparison.queries);
    let outcomes = cores::run("measure", Cores::All, &jobs, |&(method, seed)| {
        measure(&chosen[method].variant.plan, &comparison.datasets[seed], &workload, seed as u64)
    });
    let outcomes = outcomes.into_iter().collect::<Result<Vec<Outcome>>>()?;
    let by_method = outcomes.chunks(comparison.datasets.len().max(1));
    Ok(chosen
        .into_iter()
        .zip(by_method)
        .map(|(chosen, outcomes)| row(comparison, chosen, outcomes))
        .collect())
}

fn workload(comparison: &Comparison<'_>, queries: usize) -> Workload {
    Workload { window_len: comparison.size.window_len, queries, gammas: comparison.gammas.to_vec() }
}

/// The variant with the smallest error on the first seed: of frequent and rare items together.
fn choose(comparison: &Comparison<'_>, method: MethodName) -> Result<Chosen> {
    let mut variants = method.variants(comparison.size, &comparison.choices)?;
    if variants.len() == 1 {
        return Ok(Chosen { method, variant: variants.remove(0), tried: Vec::new() });
    }
    let tried = try_out(comparison, &variants)?;
    let best = Tried::best(&tried, Goal::Error).context("a method has at least one variant")?;
    let variant = variants.swap_remove(best);
    Ok(Chosen { method, variant, tried })
}

/// What variants score on a short run over the first seed.
pub(crate) fn try_out(comparison: &Comparison<'_>, variants: &[Variant]) -> Result<Vec<Tried>> {
    let dataset = comparison.datasets.first().context("at least one seed is needed")?;
    let workload = workload(comparison, PILOT_QUERIES);
    let tried = cores::run("tune", Cores::All, variants, |variant| {
        measure(&variant.plan, dataset, &workload, 0).map(|outcome| Tried::new(&variant.parameters, &outcome))
    });
    tried.into_iter().collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    (0.0 < count).then(|| sum / count)
}

fn row(comparison: &Comparison<'_>, chosen: Chosen, outcomes: &[Outcome]) -> Row {
    let plan = &chosen.variant.plan;
    let claim = plan.claim();
    let (epsilon, delta) = promised(claim);
    let of = |value: fn(&Outcome) -> Option<f64>| mean(outcomes.iter().filter_map(value));
    let always = |value: fn(&Outcome) -> f64| mean(outcomes.iter().map(value)).unwrap_or(f64::NAN);
    let low = |value: fn(&Errors) -> f64| mean(outcomes.iter().filter_map(|o| o.low.as_ref().map(value)));
    let scores = |value: fn(&Heavy) -> f64| {
        let score = |index: usize| mean(outcomes.iter().map(|o| value(&o.heavy[index]))).unwrap_or(f64::NAN);
        comparison.gammas.iter().enumerate().map(|(i, gamma)| (gamma.to_string(), score(i))).collect()
    };
    let predicted = outcomes.first().and_then(|outcome| outcome.predicted);
    Row {
        method: chosen.method,
        parameters: chosen.variant.parameters,
        tried: chosen.tried,
        dataset: comparison.datasets[0].name.clone(),
        claim: claim_name(claim),
        epsilon,
        delta,
        window: comparison.size.window_len,
        bytes: plan.sketch_bytes(),
        resident_bytes: always(|outcome| outcome.resident_bytes as f64) as u64,
        mae_high: always(|outcome| outcome.high.absolute),
        mae_low: low(|errors| errors.absolute),
        mre_high: always(|outcome| outcome.high.relative),
        mre_low: low(|errors| errors.relative),
        f1: scores(|heavy| heavy.f1),
        precision: scores(|heavy| heavy.precision),
        recall: scores(|heavy| heavy.recall),
        coverage95_high: of(|outcome| outcome.high.covered),
        coverage95_low: of(|outcome| outcome.low.and_then(|low| low.covered)),
        predicted_mae_high: predicted.map(|[high, _]| high),
        predicted_mae_low: predicted.map(|[_, low]| low),
        insert_items_per_s: always(|outcome| outcome.insert_items_per_s),
        frequency_ns: always(|outcome| outcome.frequency_ns),
        heavy_hitters_us: always(|outcome| outcome.heavy_hitters_us),
        seeds: outcomes.len(),
    }
}

pub fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<16} {:<12} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7}  f1\n",
        "method",
        "claim",
        "bytes",
        "resident",
        "mae high",
        "mae low",
        "mre high",
        "mre low",
        "cover h",
        "cover l"
    );
    let optional =
        |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |v| format!("{v:.digits$}"));
    for row in rows {
        let f1: Vec<String> = row.f1.iter().map(|(gamma, f1)| format!("{gamma}: {f1:.4}")).collect();
        text += &format!(
            "{:<16} {:<12} {:>10} {:>10} {:>9.1} {:>9} {:>9.4} {:>9} {:>7} {:>7}  {}\n",
            row.method.name(),
            row.claim,
            row.bytes,
            row.resident_bytes,
            row.mae_high,
            optional(row.mae_low, 1),
            row.mre_high,
            optional(row.mre_low, 4),
            optional(row.coverage95_high, 3),
            optional(row.coverage95_low, 3),
            f1.join(", ")
        );
        let best_of =
            if row.tried.is_empty() { String::new() } else { format!(" (best of {})", row.tried.len()) };
        text += &format!("{:<16} {}{best_of}\n", "", row.parameters);
    }
    text
}
