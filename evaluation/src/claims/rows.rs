//! The rows of one sweep, and the questions that several statements ask of them.

use super::tally::{Tally, extent, span};
use crate::baseline::Kind;
use crate::chart::short;
use crate::method::MethodName;
use crate::metric::Metric::{self, F1, MaeHigh, MaeLow, MreHigh, MreLow};
use crate::results::{Results, Value};

pub(super) const U: MethodName = MethodName::Baseline(Kind::USketch);
pub(super) const PCC: MethodName = MethodName::Baseline(Kind::PccMg);
pub(super) const PCC_ALL: MethodName = MethodName::Baseline(Kind::PccMgAllKeys);
pub(super) const BLMZ: MethodName = MethodName::Baseline(Kind::Blmz);
pub(super) const MICROSCOPE: MethodName = MethodName::MICROSCOPE;
/// The private methods that the paper compares with.
pub(super) const RIVALS: [MethodName; 3] = [U, PCC, BLMZ];

pub(super) const MAES: [Metric; 2] = [MaeHigh, MaeLow];
pub(super) const MRES: [Metric; 2] = [MreHigh, MreLow];
pub(super) const ERRORS: [Metric; 4] = [MaeHigh, MaeLow, MreHigh, MreLow];
pub(super) const F1S: [Metric; 2] = [F1(0.005), F1(0.01)];

/// The rows of one sweep.
#[derive(Clone, Copy)]
pub(super) struct Rows<'r> {
    results: &'r Results,
    sweep: &'static str,
}

pub(super) fn rows<'r>(results: &'r Results, sweep: &'static str) -> Rows<'r> {
    Rows { results, sweep }
}

/// One metric of two methods on a stream at a value of the axis.
pub(super) struct Duel {
    pub(super) stream: String,
    pub(super) x: f64,
    pub(super) metric: Metric,
    rival: MethodName,
    pub(super) mine: f64,
    pub(super) other: f64,
}

impl Duel {
    /// The rival's number over mine.
    pub(super) fn ratio(&self) -> f64 {
        self.other / self.mine
    }

    /// Equal scores are good enough, equal errors are not.
    fn is_won(&self) -> bool {
        if self.metric.is_score() { self.other <= self.mine } else { self.mine < self.other }
    }

    /// The smaller, the stronger the rival.
    fn lead(&self) -> f64 {
        if self.metric.is_score() { -self.ratio() } else { self.ratio() }
    }

    fn text(&self) -> String {
        format!(
            "strongest rival: {} with {} × its {} ({}, {})",
            self.rival.name(),
            short(self.ratio()),
            self.metric.key(),
            self.stream,
            short(self.x)
        )
    }
}

impl Rows<'_> {
    pub(super) fn streams(&self) -> Vec<String> {
        self.results.streams(self.sweep)
    }

    pub(super) fn values(&self) -> Vec<f64> {
        self.results.values(self.sweep)
    }

    pub(super) fn mean(&self, stream: &str, x: f64, method: MethodName, metric: Metric) -> Option<f64> {
        self.results.mean(self.sweep, stream, x, method, metric)
    }

    /// Every stream and value of the axis.
    pub(super) fn cells(&self) -> Vec<(String, f64)> {
        let values = self.values();
        let streams = self.streams();
        streams.iter().flat_map(|stream| values.iter().map(move |&x| (stream.clone(), x))).collect()
    }

    /// A curve for each stream, method and metric.
    pub(super) fn curves(&self, methods: &[MethodName], metrics: &[Metric]) -> Vec<Vec<Value>> {
        let mut curves = Vec::new();
        for stream in self.streams() {
            for &method in methods {
                let curve = |&metric| self.results.curve(self.sweep, &stream, method, metric);
                curves.extend(metrics.iter().map(curve));
            }
        }
        curves
    }

    /// `mine` against each rival, wherever both were measured.
    pub(super) fn duels(&self, mine: MethodName, rivals: &[MethodName], metrics: &[Metric]) -> Vec<Duel> {
        let mut duels = Vec::new();
        for (stream, x) in self.cells() {
            for &metric in metrics {
                let at = |method| self.mean(&stream, x, method, metric);
                let Some(mine) = at(mine) else { continue };
                let duel = |&rival: &MethodName| {
                    Some(Duel { stream: stream.clone(), x, metric, rival, mine, other: at(rival)? })
                };
                duels.extend(rivals.iter().filter_map(duel));
            }
        }
        duels
    }

    /// `mine` is better than the rivals in every cell; the rival that comes closest or is ahead is named.
    pub(super) fn beats(
        &self,
        mine: MethodName,
        rivals: &[MethodName],
        metrics: &[Metric],
        needed: f64,
    ) -> Tally {
        let duels = self.duels(mine, rivals, metrics);
        let strongest = duels.iter().min_by(|a, b| a.lead().total_cmp(&b.lead()));
        let text = strongest.map(Duel::text).unwrap_or_default();
        Tally::new(needed, duels.iter().map(Duel::is_won).collect(), text)
    }

    /// Steps of a curve that go the right way.
    pub(super) fn steps(
        &self,
        methods: &[MethodName],
        metrics: &[Metric],
        needed: f64,
        right: fn(f64, f64) -> bool,
    ) -> Tally {
        let curves = self.curves(methods, metrics);
        let steps = curves.iter().flat_map(|curve| curve.windows(2));
        let cases = steps.map(|pair| right(pair[0].1.mean, pair[1].1.mean)).collect();
        let growths: Vec<f64> = curves.iter().filter_map(|curve| growth(curve)).collect();
        Tally::new(needed, cases, format!("last ÷ first value of a curve: {}", span(&growths)))
    }

    /// The last value of each curve against the first.
    pub(super) fn ends(
        &self,
        methods: &[MethodName],
        metrics: &[Metric],
        right: fn(f64, f64) -> bool,
    ) -> Tally {
        let case = |curve: Vec<Value>| {
            let (first, last) = ends(&curve)?;
            Some((right(first.1.mean, last.1.mean), last.1.mean / first.1.mean))
        };
        let group = |&method: &MethodName| {
            (method.name(), self.curves(&[method], metrics).into_iter().filter_map(case).collect())
        };
        Tally::grouped(methods.iter().map(group), span).labelled("last ÷ first")
    }

    /// The largest value of each curve is at most `limit` times the smallest.
    pub(super) fn flat(&self, methods: &[MethodName], metrics: &[Metric], limit: f64) -> Tally {
        let case = |curve: Vec<Value>| {
            let (low, high) = extent(curve.iter().map(|(_, summary)| summary.mean));
            (1 < curve.len()).then(|| (high <= limit * low, high / low))
        };
        let group = |&method: &MethodName| {
            (method.name(), self.curves(&[method], metrics).into_iter().filter_map(case).collect())
        };
        let worst = |ratios: &[f64]| short(ratios.iter().copied().fold(0.0, f64::max));
        Tally::grouped(methods.iter().map(group), worst).labelled("largest ÷ smallest, at most")
    }

    /// A condition on every mean of the metrics from a value of the axis on.
    pub(super) fn each(
        &self,
        method: MethodName,
        metrics: &[Metric],
        from: f64,
        holds: fn(Metric, f64) -> bool,
    ) -> Tally {
        let cells: Vec<(String, f64)> = self.cells().into_iter().filter(|(_, x)| from <= *x).collect();
        let group = |&metric: &Metric| {
            let means = cells.iter().filter_map(|(stream, x)| self.mean(stream, *x, method, metric));
            (metric.key(), means.map(|mean| (holds(metric, mean), mean)).collect())
        };
        Tally::grouped(metrics.iter().map(group), span)
    }

    /// The MAE of frequent and of other items together, over the axis.
    pub(super) fn total_error(&self, stream: &str, method: MethodName) -> Vec<(f64, f64)> {
        let high = self.results.curve(self.sweep, stream, method, MaeHigh);
        let low = |x| self.mean(stream, x, method, MaeLow).unwrap_or(0.0);
        high.into_iter().map(|(x, summary)| (x, summary.mean + low(x))).collect()
    }

    /// The value of the axis at which that error is smallest, for each stream.
    pub(super) fn best_values(&self, method: MethodName) -> Vec<f64> {
        let best = |stream: &String| {
            let curve = self.total_error(stream, method);
            curve.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).map(|(x, _)| x)
        };
        self.streams().iter().filter_map(best).collect()
    }
}

/// The first and the last point of a curve of at least two.
pub(super) fn ends(curve: &[Value]) -> Option<(Value, Value)> {
    if let [first, .., last] = curve { Some((*first, *last)) } else { None }
}

/// The last value over the first.
fn growth(curve: &[Value]) -> Option<f64> {
    ends(curve).map(|(first, last)| last.1.mean / first.1.mean)
}
