//! `dpsw-eval against`: one method against another on many streams, as ratios of their errors.

use anyhow::{Context, Result};
use dpsw::plan::Expectation;
use serde::Serialize;

use crate::compare::{Chosen, Comparison, Tried, run_chosen, try_out};
use crate::dataset::Dataset;
use crate::method::{Choices, Fixed, MethodName, Size, Tuning, delta_for};

/// What is compared.
#[derive(Debug)]
pub struct Contest {
    /// The one whose errors are divided, and the one by whose.
    pub methods: [MethodName; 2],
    /// Bytes of the sketches.
    pub bytes: u64,
    pub queries: usize,
}

/// A stream, one for each seed, and its window.
#[derive(Debug)]
pub struct Entry {
    /// The same stream of each seed.
    pub datasets: Vec<Dataset>,
    /// In items.
    pub window_len: u64,
}

/// Two methods on one stream.
#[derive(Debug, Serialize)]
pub struct Row {
    stream: String,
    epsilon: f64,
    parameters: [String; 2],
    /// Of each method: mean absolute errors of frequent and of rare items.
    errors: [[Option<f64>; 2]; 2],
    /// Those of the first method over those of the second.
    ratios: [Option<f64>; 2],
}

impl Contest {
    /// All streams at one epsilon. Where a method has several variants, the one with the smallest geometric mean error over all
    /// streams is taken for all.
    pub fn run(&self, entries: &[Entry], epsilon: f64) -> Result<Vec<Row>> {
        let comparisons: Vec<Comparison<'_>> = entries.iter().map(|entry| self.on(entry, epsilon)).collect();
        let places = self.methods.map(|method| best(method, &comparisons));
        let [one, other] = places;
        let places = [one?, other?];
        comparisons.iter().map(|comparison| row(comparison, places, epsilon)).collect()
    }

    fn on<'a>(&'a self, entry: &'a Entry, epsilon: f64) -> Comparison<'a> {
        let Dataset { items, domain_len, .. } = &entry.datasets[0];
        Comparison {
            datasets: &entry.datasets,
            methods: &self.methods,
            size: Size {
                window_len: entry.window_len,
                domain_len: *domain_len,
                bytes: self.bytes,
                epsilon,
                delta: delta_for(items.len()),
            },
            gammas: &[],
            queries: self.queries,
            choices: Choices {
                tuning: Tuning::Published,
                fixed: Fixed::default(),
                expectation: Expectation::zipf(*domain_len),
            },
        }
    }
}

/// The place of the best variant over all streams.
fn best(method: MethodName, comparisons: &[Comparison<'_>]) -> Result<usize> {
    let mut logs: Vec<f64> = Vec::new();
    for comparison in comparisons {
        let variants = method.variants(comparison.size, &comparison.choices)?;
        if variants.len() == 1 {
            return Ok(0);
        }
        let tried = try_out(comparison, &variants)?;
        logs.resize(tried.len(), 0.0);
        logs.iter_mut().zip(&tried).for_each(|(log, Tried { error, .. })| *log += error.ln());
    }
    (0..logs.len()).min_by(|&a, &b| logs[a].total_cmp(&logs[b])).context("at least one stream is needed")
}

fn row(comparison: &Comparison<'_>, places: [usize; 2], epsilon: f64) -> Result<Row> {
    let mut chosen = Vec::new();
    for (&method, place) in comparison.methods.iter().zip(places) {
        let variant = method.variants(comparison.size, &comparison.choices)?.swap_remove(place);
        chosen.push(Chosen { method, variant, tried: Vec::new() });
    }
    let rows = run_chosen(comparison, chosen)?;
    let errors = [rows[0].errors(), rows[1].errors()];
    let ratio = |group: usize| Some(errors[0][group]? / errors[1][group]?);
    Ok(Row {
        stream: comparison.datasets[0].name.clone(),
        epsilon,
        parameters: [0, 1].map(|method| rows[method].parameters().to_owned()),
        errors,
        ratios: [ratio(0), ratio(1)],
    })
}

pub fn mean_ratio(rows: &[Row]) -> f64 {
    let ratios: Vec<f64> = rows.iter().flat_map(|row| row.ratios).flatten().collect();
    ratios.iter().sum::<f64>() / ratios.len() as f64
}

pub fn table(rows: &[Row]) -> String {
    let number =
        |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |v| format!("{v:.digits$}"));
    let mut text = format!(
        "{:<16} {:>5} {:>8} {:>8} {:>8} {:>8} {:>6} {:>6}  {}\n",
        "stream", "eps", "high", "low", "high", "low", "ratio", "ratio", "parameters"
    );
    for Row { stream, epsilon, parameters, errors, ratios } in rows {
        let [one, other] = errors.map(|errors| errors.map(|error| number(error, 1)));
        let ratios = ratios.map(|ratio| number(ratio, 2));
        text += &format!(
            "{stream:<16} {epsilon:>5} {:>8} {:>8} {:>8} {:>8} {:>6} {:>6}  {}\n",
            one[0],
            one[1],
            other[0],
            other[1],
            ratios[0],
            ratios[1],
            parameters.join(" | ")
        );
    }
    text + &format!("{:<16} {:.3}\n", "mean ratio", mean_ratio(rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::baseline::Kind;
    use crate::dataset::Synthetic;

    fn entry(stream: Synthetic) -> Entry {
        let window_len = 2_000;
        Entry { datasets: vec![stream.generate_over(50, 6_000, window_len, 1)], window_len }
    }

    fn rows(methods: [MethodName; 2]) -> Vec<Row> {
        let contest = Contest { methods, bytes: 20_000, queries: 4 };
        contest.run(&[entry(Synthetic::Zipf), entry(Synthetic::Swap)], 1.0).expect("plans")
    }

    #[test]
    fn a_method_is_as_good_as_itself() {
        let rows = rows([MethodName::Tuned; 2]);
        assert_eq!((rows.len(), mean_ratio(&rows)), (2, 1.0));
        assert_eq!(table(&rows).lines().count(), 4);
    }

    #[test]
    fn one_variant_is_taken_for_all_streams() {
        let rows = rows([MethodName::TunedPlain, MethodName::Baseline(Kind::Tumbling)]);
        assert_eq!(rows[0].parameters, rows[1].parameters);
        assert!(rows.iter().flat_map(|row| row.ratios).flatten().all(|ratio| 0.0 < ratio));
    }
}
