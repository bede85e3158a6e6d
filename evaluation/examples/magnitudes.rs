//! Errors of every baseline at ε = 1, w = 10⁶ on the paper's synthetic streams, to compare with an independent
//! implementation: `cargo run --release -p dpsw-eval --example magnitudes [SEED]`. One minute.

use std::time::Instant;

use anyhow::{Context, Result};
use dpsw::{Noise, Ratio};
use dpsw_eval::baseline::{Baseline, Listing, Plan, Task, blmz, microscope, pcc_mg, tumbling, u_sketch};
use dpsw_eval::dataset::{Dataset, Synthetic};
use dpsw_eval::measure::Heavy;
use dpsw_eval::method::{Size, delta_for};
use dpsw_eval::truth::Truth;
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

const WINDOW_LEN: usize = 1_000_000;
const ITEMS: usize = 3_000_000;
const QUERIES: usize = 12;
const GAMMAS: [f64; 2] = [0.005, 0.01];

fn main() -> Result<()> {
    let seed = match std::env::args().nth(1) {
        Some(seed) => seed.parse().with_context(|| format!("the seed must be a number, got {seed}"))?,
        None => 1,
    };
    let streams = [Synthetic::Zipf, Synthetic::Gauss];
    let datasets = streams.map(|stream| stream.generate(ITEMS, WINDOW_LEN as u64, seed));
    for (plan, noise) in plans()? {
        let noisy = if noise { "" } else { ", without noise" };
        println!("{plan}{noisy}, {} bytes", plan.sketch_bytes());
        for dataset in &datasets {
            let noise = if noise { Noise::seeded(seed) } else { Noise::off() };
            println!("    {:<6} {}", dataset.name, measure(plan.start(noise)?.as_mut(), dataset, seed)?);
        }
    }
    Ok(())
}

/// Every row of the comparison; `false` for a row without noise.
fn plans() -> Result<Vec<(Plan, bool)>> {
    let size = Size {
        window_len: WINDOW_LEN as u64,
        domain_len: 25_600,
        bytes: 0,
        epsilon: 1.0,
        // Of the whole stream of the paper.
        delta: delta_for(10_000_000),
    };
    let task = Task::new(size)?;
    let mut plans = Vec::new();
    plans.extend(tumbling_plans(task)?.map(|plan| (plan, true)));
    plans.extend(u_sketch_plans(task)?.into_iter().map(|plan| (plan, true)));
    plans.extend(pcc_mg_plans(task)?);
    plans.extend(blmz_plans(task)?.into_iter().map(|plan| (plan, true)));
    plans.extend(microscope_plans(task)?.into_iter().map(|plan| (plan, true)));
    Ok(plans)
}

fn tumbling_plans(task: Task) -> Result<impl Iterator<Item = Plan>> {
    use tumbling::NoiseKind::{Gauss, Laplace};
    let plan = |(buckets, noise)| {
        tumbling::Plan::new(task, tumbling::Parameters { buckets, noise, edges: tumbling::Edges::Whole })
    };
    let plans = [(10, Laplace), (10, Gauss), (20, Laplace)].into_iter().map(plan);
    Ok(plans.collect::<Result<Vec<_>>>()?.into_iter().map(Plan::Tumbling))
}

fn u_sketch_plans(task: Task) -> Result<Vec<Plan>> {
    use u_sketch::Combine::{MinOfSums, SumOfMins};
    let plan = |(rows, columns, combine)| {
        let release = u_sketch::Release::PerBlock;
        u_sketch::Plan::new(task, u_sketch::Parameters { rows, columns, combine, release }).map(Plan::USketch)
    };
    let rows = [(2, 250, MinOfSums), (2, 2500, MinOfSums), (3, 1666, MinOfSums), (3, 1666, SumOfMins)];
    rows.into_iter().map(plan).collect()
}

fn pcc_mg_plans(task: Task) -> Result<Vec<(Plan, bool)>> {
    use pcc_mg::Counts::{Original, Reduced};
    let mut plans = Vec::new();
    for lambda in [0.025, 0.05, 0.1] {
        for (counts, noise) in [(Original, false), (Original, true), (Reduced, true)] {
            let (lambda, levels) = (Ratio::from_decimal(lambda)?, pcc_mg::LevelRule::Fit);
            let parameters = pcc_mg::Parameters { lambda, levels, counts, listing: Listing::Threshold };
            plans.push((Plan::PccMg(pcc_mg::Plan::new(task, parameters)?), noise));
        }
    }
    Ok(plans)
}

fn blmz_plans(task: Task) -> Result<Vec<Plan>> {
    let plan = |alpha| {
        let alpha = Ratio::from_decimal(alpha)?;
        let parameters = blmz::Parameters { alpha, tracker_factor: blmz::TRACKER_FACTOR };
        blmz::Plan::new(task, parameters).map(Plan::Blmz)
    };
    [0.105, 0.0256, 0.0052].into_iter().map(plan).collect()
}

fn microscope_plans(task: Task) -> Result<Vec<Plan>> {
    let plan = |sub_windows| {
        let published = microscope::Parameters::PUBLISHED;
        let parameters = microscope::Parameters { sub_windows, rows: 2, pixel_bits: 8, ..published };
        microscope::Plan::new(task, parameters.fill(100_000)).map(Plan::Microscope)
    };
    [1, 2].into_iter().map(plan).collect()
}

/// Mean errors over the questions, and what inserting costs.
fn measure(method: &mut dyn Baseline, dataset: &Dataset, seed: u64) -> Result<String> {
    let mut random = ChaCha12Rng::seed_from_u64(seed);
    let mut times: Vec<usize> = (0..QUERIES).map(|_| random.random_range(1_300_000..=ITEMS)).collect();
    times.sort_unstable();
    let mut truth = Truth::new(&dataset.items, dataset.domain_len, WINDOW_LEN);
    let (mut high, mut low, mut f1, mut seconds, mut position) = (0.0, 0.0, [0.0; 2], 0.0, 0);
    for &time in &times {
        let start = Instant::now();
        method.insert(&dataset.items[position..time])?;
        seconds += start.elapsed().as_secs_f64();
        position = time;
        truth.advance(time);
        let frequent = truth.frequent();
        high += error(method, &truth, &frequent);
        low += error(method, &truth, &truth.rare(&frequent, &mut random));
        for (f1, gamma) in f1.iter_mut().zip(GAMMAS) {
            let found = method.heavy_hitters(gamma * WINDOW_LEN as f64);
            *f1 += Heavy::of(gamma, &found, &truth.heavy(gamma)).f1;
        }
    }
    let mean = |sum: f64| sum / QUERIES as f64;
    Ok(format!(
        "high {:>8.1}  low {:>8.1}  f1 {:.3} / {:.3}  resident {:>9}  {:>5.1} M items/s",
        mean(high),
        mean(low),
        mean(f1[0]),
        mean(f1[1]),
        method.resident_bytes(),
        position as f64 / seconds / 1e6
    ))
}

fn error(method: &dyn Baseline, truth: &Truth<'_>, items: &[u64]) -> f64 {
    let error = |&item: &u64| (method.frequency(item) - truth.count(item) as f64).abs();
    items.iter().map(error).sum::<f64>() / items.len() as f64
}
