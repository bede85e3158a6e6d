//! Runs every case with every seed.

use anyhow::{Context, Result};
use dpsw::{Delta, Plan};
use serde::{Deserialize, Serialize};

use super::case::Case;
use super::outcome::{Effort, Outcome};
use crate::preset::{Preset, Values};
use crate::seeds;
use crate::store::{Origin, Store};
use crate::stream::{RealData, Shelf};
use crate::sweep::Summary;

/// A case and what was measured.
pub type Row = crate::row::Row<Case, Measured>;

/// What was measured of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub epsilon: f64,
    pub delta: f64,
    pub substreams: u64,
    /// One outcome per seed.
    pub outcomes: Vec<Outcome>,
}

impl Measured {
    /// Whether the stream is too short and was repeated.
    pub fn is_repeated(&self) -> bool {
        self.outcomes.iter().any(|outcome| outcome.repeated)
    }

    /// A number over the seeds.
    pub fn summary(&self, number: impl Fn(&Outcome) -> f64) -> Option<Summary> {
        Summary::of(&self.outcomes.iter().map(number).collect::<Vec<f64>>())
    }

    /// The median over all seeds of the items until a new key of a share is listed; infinite where most never are.
    pub fn delay(&self, share: f64) -> Option<f64> {
        let surges = self.outcomes.iter().flat_map(|outcome| &outcome.surges);
        median(surges.filter(|surge| surge.share == share).flat_map(|surge| &surge.delays))
    }

    /// The median over the seeds of the items until anything is listed; infinite where nothing is.
    pub fn first_answer(&self) -> Option<f64> {
        median(self.outcomes.iter().map(|outcome| &outcome.first_answer))
    }
}

/// The median of some numbers of items, of which `None` is the largest; of two in the middle the larger one.
fn median<'a>(items: impl Iterator<Item = &'a Option<u64>>) -> Option<f64> {
    let mut items: Vec<f64> = items.map(|items| items.map_or(f64::INFINITY, |items| items as f64)).collect();
    items.sort_by(f64::total_cmp);
    items.get(items.len() / 2).copied()
}

fn effort(preset: &Preset) -> Effort {
    match preset.values {
        Values::Ends => Effort { queries: 4, surges: 1 },
        Values::Some => Effort { queries: 30, surges: 9 },
        Values::All => Effort { queries: 100, surges: 20 },
    }
}

/// The rows of all cases whose streams are there.
pub fn run(preset: &Preset, shelf: &Shelf, store: &Store) -> Result<Vec<Row>> {
    let data = RealData::of(shelf)?;
    let cases = Case::all(preset, |name| data.has(name));
    let ran = seeds::run(&cases, preset.seeds, Case::plan, |case, plan, seed| {
        let effort = effort(preset);
        let identity = format!("discovery | {case:?} | domain {} {effort:?} seed {seed}", preset.domain);
        let stream = case.stream(preset, seed);
        let origin = Origin { shelf, stream: Some(&stream), data: data.hash(&case.stream) };
        let measure = || Outcome::measure(plan, &case.followed(preset, shelf, seed)?, effort, seed);
        store.once(&identity, &origin, measure).context(identity)
    })?;
    let row = |(case, ran): (Case, seeds::Ran<Outcome>)| {
        let result = ran.map(|(plan, outcomes)| measured(&plan, outcomes));
        Row { case, result }
    };
    Ok(cases.into_iter().zip(ran).map(row).collect())
}

fn measured(plan: &Plan, outcomes: Vec<Outcome>) -> Measured {
    let settings = plan.settings();
    Measured {
        epsilon: settings.epsilon.get(),
        delta: settings.delta.map_or(0.0, Delta::get),
        substreams: settings.window.len().div_ceil(plan.substream_len()),
        outcomes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_counts_what_never_comes_as_the_longest() {
        for (items, wanted) in [
            (&[][..], None),
            (&[Some(3), Some(1), Some(2)], Some(2.0)),
            (&[None, Some(1), Some(2)], Some(2.0)),
            (&[None, Some(1), None], Some(f64::INFINITY)),
        ] {
            assert_eq!(median(items.iter()), wanted, "{items:?}");
        }
    }
}
