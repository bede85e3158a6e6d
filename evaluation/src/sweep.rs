//! Runs sweeps: plans, short runs that choose parameters, then every point that is not there yet.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use dpsw::Threshold;
use dpsw::plan::Expectation;
use serde::{Deserialize, Serialize};

use crate::compare::Tried;
use crate::cores::{self, Cores};
use crate::figure::{Axis, Streams, Sweep};
use crate::measure::{Outcome, Workload};
use crate::method::{Choices, Fixed, MethodName, Size, Tuning, Variant, claim_name, delta_for, promised};
use crate::metric::Metric;
use crate::preset::Preset;
use crate::store::{Point, Store};
use crate::stream::{Extent, REAL_STREAMS, Shelf, Stream, file_hash};

/// A method on a stream at a value of an axis.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    pub sweep: String,
    pub stream: String,
    /// The value of the axis.
    pub x: f64,
    pub method: MethodName,
    /// What was measured, or why the method could not be run.
    pub result: Result<Measured, String>,
}

/// A method with its parameters and its outcomes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measured {
    /// What was chosen.
    pub parameters: String,
    /// What was tried, if more than one.
    pub tried: Vec<Tried>,
    pub claim: String,
    /// ε, if something is promised.
    pub epsilon: Option<f64>,
    /// δ, if the promise has one.
    pub delta: Option<f64>,
    /// w.
    pub window: u64,
    /// n.
    pub items: usize,
    /// m.
    pub domain: usize,
    /// Bytes of the sketches.
    pub bytes: u64,
    /// One outcome per seed.
    pub outcomes: Vec<Outcome>,
}

impl Measured {
    /// The mean, the smallest and the largest of a metric over the seeds. For speed, `mean` is the
    /// largest value: whatever else a machine does only slows it down.
    pub fn summary(&self, metric: Metric) -> Option<Summary> {
        let values: Vec<f64> = self.outcomes.iter().filter_map(|outcome| metric.of(outcome)).collect();
        let summary = Summary::of(&values)?;
        let is_speed = metric == Metric::Throughput;
        Some(if is_speed { Summary { mean: summary.high, ..summary } } else { summary })
    }
}

/// A number over the seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

impl Summary {
    /// Of at least one value.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let low = values.iter().copied().reduce(f64::min)?;
        Some(Self { mean, low, high: values.iter().copied().fold(low, f64::max) })
    }
}

/// What sweeps need.
#[derive(Debug)]
pub struct Runner<'a> {
    pub preset: &'a Preset,
    pub shelf: &'a Shelf,
    pub store: &'a Store,
}

/// A row before it is run.
struct Case<'s> {
    sweep: &'s Sweep,
    stream: Stream,
    x: f64,
    method: MethodName,
    window_len: u64,
    extent: Extent,
    variants: Result<Vec<Variant>, String>,
}

impl Runner<'_> {
    /// The rows of all sweeps; a point that several sweeps share is run once.
    pub fn run(&self, sweeps: &[&Sweep]) -> Result<Vec<Row>> {
        let mut cases = Vec::new();
        for sweep in sweeps {
            cases.extend(self.cases(sweep)?);
        }
        let data = self.data(&cases)?;
        let planned = cores::run("plan", Cores::All, &cases, |case| self.variants(case));
        cases.iter_mut().zip(planned).for_each(|(case, variants)| case.variants = variants);
        let pilots: Vec<Vec<Point<'_>>> = cases.iter().map(|case| self.pilots(case)).collect();
        let piloted = self.measure("tune", &pilots, &data)?;
        let chosen: Vec<Option<usize>> =
            cases.iter().zip(&piloted).map(|(case, outcomes)| choose(case, outcomes)).collect();
        let points: Vec<Vec<Point<'_>>> =
            cases.iter().zip(&chosen).map(|(case, &chosen)| self.points(case, chosen)).collect();
        let outcomes = self.measure("measure", &points, &data)?;
        let rows = cases.iter().zip(&chosen).zip(piloted.iter().zip(outcomes));
        Ok(rows.map(|((case, &chosen), (piloted, outcomes))| row(case, chosen, piloted, outcomes)).collect())
    }

    /// Whether a stream is there.
    pub fn is_present(&self, name: &str) -> Result<bool> {
        let stream = self.preset.stream(name, self.preset.window, self.preset.domain, 0);
        Ok(stream.seed.is_some() || !stream.files(self.shelf.folder())?.is_empty())
    }

    fn cases<'s>(&self, sweep: &'s Sweep) -> Result<Vec<Case<'s>>> {
        let mut cases = Vec::new();
        for name in Streams::names(&sweep.streams) {
            if !self.is_present(name)? {
                continue;
            }
            for x in self.preset.values(sweep) {
                let real = REAL_STREAMS.iter().find(|real| real.name == name);
                let window_len = match (sweep.axis, real) {
                    (Axis::Window, _) => x as u64,
                    (_, Some(real)) => real.window_len.min(self.preset.window),
                    _ => self.preset.window,
                };
                let domain_len = if sweep.axis == Axis::Domain { x as usize } else { self.preset.domain };
                let stream = self.preset.stream(name, window_len, domain_len, 0);
                let extent = self.shelf.extent(&stream)?;
                if extent.items as u64 <= window_len {
                    eprintln!(
                        "{name}: {} items are too few for a window of {window_len}; skipped",
                        extent.items
                    );
                    continue;
                }
                cases.extend(sweep.methods.iter().map(|&method| Case {
                    sweep,
                    stream: stream.clone(),
                    x,
                    method,
                    window_len,
                    extent,
                    variants: Ok(Vec::new()),
                }));
            }
        }
        Ok(cases)
    }

    /// What the files of each stream hold.
    fn data(&self, cases: &[Case<'_>]) -> Result<BTreeMap<String, String>> {
        let streams: BTreeSet<&Stream> = cases.iter().map(|case| &case.stream).collect();
        let mut data = BTreeMap::new();
        for stream in streams {
            let files = stream.files(self.shelf.folder())?;
            let hashes = files.iter().map(|path| file_hash(path)).collect::<Result<Vec<String>>>()?;
            data.insert(stream.name.clone(), hashes.join(" "));
        }
        Ok(data)
    }

    fn variants(&self, case: &Case<'_>) -> Result<Vec<Variant>, String> {
        let (x, sweep) = (case.x, case.sweep);
        let size = Size {
            window_len: case.window_len,
            domain_len: case.extent.domain_len,
            bytes: sweep.bytes.unwrap_or(x as u64),
            epsilon: if sweep.axis == Axis::Epsilon { x } else { 1.0 },
            delta: delta_for(case.extent.items),
        };
        let on = |axis| (sweep.axis == axis).then_some(x as u64);
        let fixed = Fixed {
            rows: on(Axis::Rows),
            substreams: on(Axis::Substreams),
            checkpoints: on(Axis::Checkpoints),
        };
        let expectation = Expectation::zipf(case.extent.domain_len);
        let choices = Choices { tuning: Tuning::Published, fixed, expectation };
        let variants = case.method.variants(size, &choices).map_err(|error| format!("{error:#}"))?;
        let every = variants.len().div_ceil(self.preset.tries).max(1);
        Ok(variants.into_iter().step_by(every).collect())
    }

    /// A short run of each variant, if there is a choice.
    fn pilots<'c>(&self, case: &'c Case<'_>) -> Vec<Point<'c>> {
        let variants = case.variants.as_deref().unwrap_or_default();
        if variants.len() < 2 {
            return Vec::new();
        }
        let workload = self.preset.pilot(case.window_len);
        let stream = self.preset.pilot_stream(&case.stream, case.window_len);
        let point = |variant: &'c Variant| Point {
            plan: &variant.plan,
            stream: stream.clone(),
            workload: workload.clone(),
            seed: 0,
            alone: false,
        };
        variants.iter().map(point).collect()
    }

    /// The chosen variant with every seed.
    fn points<'c>(&self, case: &'c Case<'_>, chosen: Option<usize>) -> Vec<Point<'c>> {
        let Some(variant) = chosen.and_then(|index| case.variants.as_ref().ok()?.get(index)) else {
            return Vec::new();
        };
        let point = |seed| Point {
            plan: &variant.plan,
            stream: Stream { seed: case.stream.seed.map(|_| seed), ..case.stream.clone() },
            workload: self.preset.workload(case.window_len),
            seed,
            alone: case.sweep.cores == Cores::One,
        };
        (0..self.preset.seeds).map(point).collect()
    }

    /// The outcomes of all points, those that are not kept yet in the order of their streams.
    fn measure(
        &self,
        name: &'static str,
        points: &[Vec<Point<'_>>],
        data: &BTreeMap<String, String>,
    ) -> Result<Vec<Vec<Outcome>>> {
        let data = |point: &Point<'_>| data.get(&point.stream.name).map_or("", String::as_str);
        let mut known: BTreeMap<String, Outcome> = BTreeMap::new();
        let mut missing: BTreeMap<(Stream, String), &Point<'_>> = BTreeMap::new();
        for point in points.iter().flatten() {
            let identity = point.identity();
            if known.contains_key(&identity) {
                continue;
            }
            match self.store.find(point, self.shelf, data(point)) {
                Some(outcome) => drop(known.insert(identity, outcome)),
                None => drop(missing.insert((point.stream.clone(), identity), point)),
            }
        }
        for cores in [Cores::All, Cores::One] {
            let jobs: Vec<&Point<'_>> =
                missing.values().copied().filter(|point| point.alone == (cores == Cores::One)).collect();
            let outcomes = cores::run(name, cores, &jobs, |point| {
                let measured = self.store.measure(point, self.shelf, data(point));
                measured.with_context(|| point.identity())
            });
            for (point, outcome) in jobs.iter().zip(outcomes) {
                known.insert(point.identity(), outcome?);
            }
        }
        let outcome = |point: &Point<'_>| known[&point.identity()].clone();
        Ok(points.iter().map(|points| points.iter().map(outcome).collect()).collect())
    }
}

/// The best variant by the goal of the sweep.
fn choose(case: &Case<'_>, outcomes: &[Outcome]) -> Option<usize> {
    let variants = case.variants.as_ref().ok()?;
    if variants.len() < 2 {
        return (!variants.is_empty()).then_some(0);
    }
    let tried = tried(variants, outcomes);
    Tried::best(&tried, case.sweep.goal)
}

fn tried(variants: &[Variant], outcomes: &[Outcome]) -> Vec<Tried> {
    variants.iter().zip(outcomes).map(|(variant, outcome)| Tried::new(&variant.parameters, outcome)).collect()
}

fn row(case: &Case<'_>, chosen: Option<usize>, piloted: &[Outcome], outcomes: Vec<Outcome>) -> Row {
    let result = match &case.variants {
        Err(reason) => Err(reason.clone()),
        Ok(variants) => chosen
            .map(|chosen| measured(case, variants, &variants[chosen], piloted, outcomes))
            .context("nothing to choose from")
            .map_err(|error| error.to_string()),
    };
    Row {
        sweep: case.sweep.name.clone(),
        stream: case.stream.name.clone(),
        x: case.x,
        method: case.method,
        result,
    }
}

fn measured(
    case: &Case<'_>,
    variants: &[Variant],
    chosen: &Variant,
    piloted: &[Outcome],
    outcomes: Vec<Outcome>,
) -> Measured {
    let claim = chosen.plan.claim();
    let (epsilon, delta) = promised(claim);
    Measured {
        parameters: chosen.parameters.clone(),
        tried: tried(variants, piloted),
        claim: claim_name(claim).to_owned(),
        epsilon,
        delta,
        window: case.window_len,
        items: case.extent.items,
        domain: case.extent.domain_len,
        bytes: chosen.plan.sketch_bytes(),
        outcomes,
    }
}

/// Refuses a preset that no stream can satisfy.
pub fn check(preset: &Preset) -> Result<()> {
    let Preset { window, items, pilot_items, .. } = preset;
    ensure!(
        0 < *window && window.is_multiple_of(1000),
        "window must be a positive multiple of 1000, got {window}"
    );
    for (name, value) in [("items", items), ("pilot_items", pilot_items)] {
        ensure!(window < value, "{name} must exceed the window {window}, got {value}");
    }
    for (name, value) in [
        ("domain", preset.domain),
        ("seeds", usize::try_from(preset.seeds)?),
        ("queries", preset.queries),
        ("pilot_queries", preset.pilot_queries),
        ("tries", preset.tries),
    ] {
        ensure!(0 < value, "{name} must be at least 1, got 0");
    }
    preset.gammas.iter().try_for_each(|&gamma| Threshold::new(gamma).map(drop)).context("gammas")
}

/// Workloads of a preset.
impl Preset {
    fn workload(&self, window_len: u64) -> Workload {
        Workload { window_len, queries: self.queries, gammas: self.gammas.clone() }
    }

    fn pilot(&self, window_len: u64) -> Workload {
        Workload { window_len, queries: self.pilot_queries, gammas: vec![0.005, 0.01] }
    }

    /// As long relative to the window as the preset says.
    fn stream(&self, name: &str, window_len: u64, domain_len: usize, seed: u64) -> Stream {
        let items = self.scaled(self.items, window_len);
        Stream::new(name, domain_len, items, window_len, seed)
    }

    fn pilot_stream(&self, stream: &Stream, window_len: u64) -> Stream {
        let items = self.scaled(self.pilot_items, window_len).min(stream.items);
        Stream { items, ..stream.clone() }
    }

    fn scaled(&self, items: u64, window_len: u64) -> usize {
        (items as f64 / self.window as f64 * window_len as f64).ceil() as usize
    }
}
