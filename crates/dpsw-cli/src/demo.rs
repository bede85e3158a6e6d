//! `dpsw demo`: a drifting stream, its private top items beside the truth that only a demo can know, and a summary.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Result;
use dpsw::{
    CounterLayout, Domain, DpswSketch, Epsilon, Item, Keys, Method, Noise, Plan, Settings, TunedMethod, Unit,
    Window, WindowView,
};

const WINDOW_LEN: u64 = 1_000_000;
const DOMAIN_LEN: u64 = 25_600;
const ITEMS: u64 = 6_000_000;
/// Does not divide the substreams, so that windows start and end anywhere.
const BATCH: u64 = 217_000;
/// Top items that the errors are averaged over.
const TOP: usize = 50;
/// Top items that are shown.
const SHOWN: usize = 5;

/// Runs the demo.
pub(crate) fn run(_: &crate::arguments::Demo) -> Result<()> {
    let out = &mut std::io::stdout().lock();
    let mut sketch = sketch()?;
    writeln!(
        out,
        "The {SHOWN} most frequent of {DOMAIN_LEN} items in the last {WINDOW_LEN}, as the stream drifts:"
    )?;
    writeln!(out, "private estimate (true count, which only a demo knows)\n")?;
    let (mut stream, mut truth) = (Stream::new(), Truth::new());
    let (mut ingest, mut errors) = (Duration::ZERO, Vec::new());
    while sketch.position() < ITEMS {
        let batch = stream.next_batch();
        let start = Instant::now();
        sketch.extend(&batch)?;
        ingest += start.elapsed();
        truth.extend(&batch);
        let view = sketch.view();
        if WINDOW_LEN <= sketch.position() {
            errors.extend(relative_errors(&truth, &view)?);
        }
        writeln!(out, "{}", line(&view, &truth)?)?;
        out.flush()?;
    }
    writeln!(out, "\n{}\n", sketch.plan())?;
    writeln!(out, "{}", summary(&sketch, ingest, &errors))?;
    Ok(())
}

fn sketch() -> Result<DpswSketch> {
    let counters = CounterLayout::Identity;
    let plan = Plan::new(Settings {
        window: Window::Items(WINDOW_LEN),
        unit: Unit::ReplaceOne,
        epsilon: Epsilon::new(1.0)?,
        delta: None,
        domain: Domain::Public(Keys::Range(DOMAIN_LEN)),
        method: Method::Tuned(TunedMethod { counters, ..TunedMethod::default() }),
        retention: 1,
    })?;
    Ok(DpswSketch::new(plan, Noise::from_system())?)
}

fn line(view: &WindowView, truth: &Truth) -> Result<String> {
    let mut line = format!("{:>9} items", view.window().end);
    for ranked in view.top(SHOWN)? {
        let Item::Integer(item) = ranked.item else { continue };
        let value = ranked.estimate.value;
        write!(line, "  #{item:<5} {value:>6} ({:>6})", truth.count(item))?;
    }
    Ok(line)
}

fn summary(sketch: &DpswSketch, ingest: Duration, errors: &[f64]) -> String {
    let items = sketch.position();
    let rate = items as f64 / ingest.as_secs_f64() / 1e6;
    let error = 100.0 * errors.iter().sum::<f64>() / errors.len() as f64;
    let claim = sketch.view().claim();
    format!(
        "demo: {items} items at {rate:.0} million a second, mean error of the top {TOP} {error:.1} %, {claim}"
    )
}

/// The errors of the true top items, relative to their counts.
fn relative_errors(truth: &Truth, view: &WindowView) -> Result<Vec<f64>> {
    let error = |item: u64| {
        let count = truth.count(item) as f64;
        Ok((view.frequency(item)?.value - count).abs() / count)
    };
    truth.top().into_iter().map(error).collect()
}

/// Zipf-distributed ranks; four fifths of the ranks pass to another item now and then.
struct Stream {
    cumulative: Vec<f64>,
    position: u64,
    state: u64,
}

impl Stream {
    fn new() -> Self {
        let mut sum = 0.0;
        let cumulative = (1..=DOMAIN_LEN).map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        });
        Self { cumulative: cumulative.collect(), position: 0, state: 1 }
    }

    fn next_batch(&mut self) -> Vec<u64> {
        (0..BATCH).map(|_| self.next_item()).collect()
    }

    fn next_item(&mut self) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let total = self.cumulative.last().expect("the domain is not empty");
        let uniform = (self.state >> 11) as f64 / 2_f64.powi(53) * total;
        let rank = self.cumulative.partition_point(|&c| c < uniform) as u64;
        let era = (self.position + rank * 131_071) / 2_000_000 * (rank % 5);
        self.position += 1;
        (rank * 7919 + era * 104_729) % DOMAIN_LEN
    }
}

/// The exact window.
struct Truth {
    window: VecDeque<u64>,
    counts: Vec<u64>,
}

impl Truth {
    fn new() -> Self {
        Self { window: VecDeque::new(), counts: vec![0; DOMAIN_LEN as usize] }
    }

    fn extend(&mut self, items: &[u64]) {
        for &item in items {
            self.window.push_back(item);
            self.counts[item as usize] += 1;
        }
        let expired = self.window.len().saturating_sub(WINDOW_LEN as usize);
        for item in self.window.drain(..expired) {
            self.counts[item as usize] -= 1;
        }
    }

    fn count(&self, item: u64) -> u64 {
        self.counts[item as usize]
    }

    fn top(&self) -> Vec<u64> {
        let mut items: Vec<u64> = (0..DOMAIN_LEN).collect();
        items.sort_by_key(|&item| std::cmp::Reverse(self.count(item)));
        items.truncate(TOP);
        items
    }
}
