//! What sweeps gave: rows to look up, to draw and to write.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::coverage;
use crate::discovery;
use crate::measure::Outcome;
use crate::method::MethodName;
use crate::metric::Metric;
use crate::sweep::{Measured, Row, Summary};

/// Rows of sweeps and the distributions of streams.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Results {
    /// In the order in which they were planned.
    pub rows: Vec<Row>,
    /// Of the streams that a figure of distributions names and that are there.
    pub distributions: Vec<Distribution>,
    /// Whether answers can be believed, if a figure shows it.
    #[serde(default)]
    pub coverage: Vec<coverage::Row>,
    /// How well keys are found, if a figure shows it.
    #[serde(default)]
    pub discovery: Vec<discovery::Row>,
}

/// How the frequencies of a stream are distributed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    pub stream: String,
    /// n.
    pub items: usize,
    /// m.
    pub domain: usize,
    /// Frequencies, and the share of the domain that is at least as frequent.
    pub points: Vec<(f64, f64)>,
}

/// Each thing once, where it first appears; for few.
pub(crate) fn distinct<T: PartialEq>(things: impl Iterator<Item = T>) -> Vec<T> {
    let mut known = Vec::new();
    for thing in things {
        if !known.contains(&thing) {
            known.push(thing);
        }
    }
    known
}

/// A point of a curve.
pub type Value = (f64, Summary);

impl Results {
    fn of(&self, sweep: &str) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.sweep == sweep)
    }

    /// The streams of a sweep, in order.
    pub fn streams(&self, sweep: &str) -> Vec<String> {
        distinct(self.of(sweep).map(|row| &row.stream)).into_iter().cloned().collect()
    }

    /// The methods of a sweep, in order.
    pub fn methods(&self, sweep: &str) -> Vec<MethodName> {
        distinct(self.of(sweep).map(|row| row.method))
    }

    /// The values of a sweep's axis, in ascending order.
    pub fn values(&self, sweep: &str) -> Vec<f64> {
        let mut values: Vec<f64> = self.of(sweep).map(|row| row.x).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    }

    /// What was measured at a value of the axis, if the method could be run there.
    pub fn measured(&self, sweep: &str, stream: &str, x: f64, method: MethodName) -> Option<&Measured> {
        let is_it =
            |row: &&Row| row.sweep == sweep && row.stream == stream && row.x == x && row.method == method;
        self.rows.iter().find(is_it).and_then(|row| row.result.as_ref().ok())
    }

    /// A metric over the seeds; a price is relative to Microscope-Sketch.
    pub fn summary(
        &self,
        sweep: &str,
        stream: &str,
        x: f64,
        method: MethodName,
        metric: Metric,
    ) -> Option<Summary> {
        let summary = self.measured(sweep, stream, x, method)?.summary(metric)?;
        if !metric.is_price() {
            return Some(summary);
        }
        let one = self.measured(sweep, stream, x, MethodName::MICROSCOPE)?.summary(metric)?.mean;
        Some(Summary { mean: summary.mean / one, low: summary.low / one, high: summary.high / one })
    }

    pub fn mean(&self, sweep: &str, stream: &str, x: f64, method: MethodName, metric: Metric) -> Option<f64> {
        self.summary(sweep, stream, x, method, metric).map(|summary| summary.mean)
    }

    /// A metric over the axis, where the method could be run.
    pub fn curve(&self, sweep: &str, stream: &str, method: MethodName, metric: Metric) -> Vec<Value> {
        let at = |x| Some((x, self.summary(sweep, stream, x, method, metric)?));
        self.values(sweep).into_iter().filter_map(at).collect()
    }

    /// All rows as CSV: one line per seed, and one with the reason where a method could not be run.
    pub fn csv(&self, gammas: &[f64]) -> Result<String> {
        let errors = [Metric::MaeHigh, Metric::MaeLow, Metric::MreHigh, Metric::MreLow];
        let scores = gammas.iter().flat_map(|&gamma| Metric::scores(gamma));
        let metrics: Vec<Metric> = errors.into_iter().chain(scores).chain([Metric::Throughput]).collect();
        let mut writer = csv::Writer::from_writer(Vec::new());
        let names = COLUMNS.split_whitespace().map(str::to_owned);
        writer.write_record(names.chain(metrics.iter().map(|metric| metric.key())))?;
        for row in &self.rows {
            for line in lines(row, &metrics) {
                writer.write_record(line)?;
            }
        }
        Ok(String::from_utf8(writer.into_inner()?)?)
    }
}

/// The columns before those of the metrics.
const COLUMNS: &str = "sweep stream x method claim epsilon delta window items domain bytes resident_bytes parameters tried \
    seed frequency_ns heavy_hitters_us absent_because";
/// Between the method and the reason why it is absent.
const MEASURED: usize = 13;

fn lines(row: &Row, metrics: &[Metric]) -> Vec<Vec<String>> {
    let start = [row.sweep.clone(), row.stream.clone(), row.x.to_string(), row.method.name().to_owned()];
    let blanks = |count: usize| vec![String::new(); count];
    match &row.result {
        Err(reason) => {
            vec![[start.to_vec(), blanks(MEASURED), vec![reason.clone()], blanks(metrics.len())].concat()]
        }
        Ok(measured) => {
            let seeds = measured.outcomes.iter().enumerate();
            let numbers = |outcome| metrics.iter().map(|metric| optional(metric.of(outcome))).collect();
            let line = |(seed, outcome)| {
                [start.to_vec(), of_seed(measured, seed, outcome).to_vec(), blanks(1), numbers(outcome)]
                    .concat()
            };
            seeds.map(line).collect()
        }
    }
}

fn of_seed(measured: &Measured, seed: usize, outcome: &Outcome) -> [String; MEASURED] {
    [
        measured.claim.clone(),
        optional(measured.epsilon),
        optional(measured.delta),
        measured.window.to_string(),
        measured.items.to_string(),
        measured.domain.to_string(),
        measured.bytes.to_string(),
        outcome.resident_bytes.to_string(),
        measured.parameters.clone(),
        measured.tried.len().max(1).to_string(),
        seed.to_string(),
        outcome.frequency_ns.to_string(),
        outcome.heavy_hitters_us.to_string(),
    ]
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
