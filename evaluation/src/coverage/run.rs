//! Runs every case with every seed.

use anyhow::{Context, Result};
use dpsw::Plan;
use serde::{Deserialize, Serialize};

use super::case::Case;
use super::outcome::Outcome;
use crate::preset::{Preset, Values};
use crate::seeds;
use crate::store::{Origin, Store};
use crate::stream::{RealData, Shelf};

/// A case and what was measured.
pub type Row = crate::row::Row<Case, Measured>;

/// What was measured of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub keys: u64,
    pub substreams: u64,
    /// Whether every key has a counter of its own.
    pub own_counters: bool,
    /// Bytes of the sketches.
    pub bytes: u64,
    /// One outcome per seed.
    pub outcomes: Vec<Outcome>,
}

impl Measured {
    pub fn total(&self) -> Outcome {
        let mut total = Outcome::default();
        self.outcomes.iter().for_each(|outcome| total.add(outcome));
        total
    }
}

fn queries(preset: &Preset) -> usize {
    match preset.values {
        Values::Ends => 4,
        Values::Some => 30,
        Values::All => 100,
    }
}

/// The rows of all cases whose streams are there.
pub fn run(preset: &Preset, shelf: &Shelf, store: &Store) -> Result<Vec<Row>> {
    let data = RealData::of(shelf)?;
    let cases = Case::all(preset, |name| data.has(name));
    let plan = |case: &Case| case.plan(case.keys_of_stream(preset, shelf)?);
    let ran = seeds::run(&cases, preset.seeds, plan, |case, plan, seed| {
        let queries = queries(preset);
        let identity =
            format!("coverage | {case:?} | domain {} queries {queries} seed {seed}", preset.domain);
        let stream = case.stream(preset, seed);
        let origin = Origin { shelf, stream: stream.as_ref(), data: data.hash(&case.stream) };
        let measure = || {
            let arrivals = case.arrivals(preset, shelf, plan, seed)?;
            Outcome::measure(case, plan, &arrivals, queries, seed)
        };
        store.once(&identity, &origin, measure).context(identity)
    })?;
    let row = |(case, ran): (Case, seeds::Ran<Outcome>)| {
        let result = ran.map(|(plan, outcomes)| measured(&case, &plan, outcomes));
        Row { case, result }
    };
    Ok(cases.into_iter().zip(ran).map(row).collect())
}

fn measured(case: &Case, plan: &Plan, outcomes: Vec<Outcome>) -> Measured {
    Measured {
        keys: plan.settings().domain.keys().map_or(0, |keys| keys.len() as u64),
        substreams: case.window.div_ceil(plan.substream_len()),
        own_counters: plan.is_identity(),
        bytes: plan.sketch_bytes(),
        outcomes,
    }
}
