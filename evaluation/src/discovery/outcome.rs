//! What one seed of a case showed.

use std::collections::BTreeSet;

use anyhow::Result;
use dpsw::{Batch, DpswSketch, Item, Noise, Plan, WindowView};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::case::Followed;
use super::surge::{SHARES, Surge};
use crate::truth::Truth;

/// The true top that is looked for.
const TOP: usize = 20;

/// What one seed of a case showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The mean share of the true top 20 among the keys that were found, after the first window.
    pub recall: f64,
    /// The share of query times at which the most frequent key is not among them.
    pub first_missing: f64,
    /// Items until anything is listed.
    pub first_answer: Option<u64>,
    /// New keys, for each share.
    pub surges: Vec<Surge>,
    /// Whether the stream is too short and was repeated.
    pub repeated: bool,
}

impl Outcome {
    /// Follows the stream and asks; everything random comes from the seed.
    pub(super) fn measure(plan: &Plan, followed: &Followed, effort: Effort, seed: u64) -> Result<Self> {
        let mut random = ChaCha12Rng::seed_from_u64(0xd15c + seed);
        let [recall, first_missing] = recall(plan, followed, effort.queries, &mut random, seed)?;
        let surge = |&share| Surge::measure(plan, followed, share, effort.surges, seed);
        Ok(Self {
            recall,
            first_missing,
            first_answer: first_answer(plan, followed, seed)?,
            surges: SHARES.iter().map(surge).collect::<Result<_>>()?,
            repeated: followed.is_repeated(),
        })
    }
}

/// How much is asked of a seed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    pub(super) queries: usize,
    /// New keys for each share.
    pub(super) surges: u64,
}

/// The keys that were found, also those that a list hides because they may no longer occur.
fn found(view: &WindowView) -> Result<BTreeSet<u64>> {
    let number = |item| if let Item::Integer(number) = item { Some(number) } else { None };
    Ok(view.top(usize::MAX)?.all().filter_map(|ranked| number(ranked.item)).collect())
}

/// The mean share of the true top that was found, and how often the first was not.
fn recall(
    plan: &Plan,
    followed: &Followed,
    queries: usize,
    random: &mut ChaCha12Rng,
    seed: u64,
) -> Result<[f64; 2]> {
    let window_len = plan.settings().window.len() as usize;
    let mut times: Vec<usize> =
        (0..queries).map(|_| random.random_range(window_len..=followed.len())).collect();
    times.sort_unstable();
    let items: Vec<u64> = followed.from(0).take(followed.len()).collect();
    let mut truth = Truth::new(&items, followed.keys(), window_len);
    let mut sketch = DpswSketch::with_noise(plan.clone(), Noise::seeded(seed))?;
    let (mut position, mut recalled, mut missing) = (0, 0.0, 0.0);
    for time in times {
        sketch.extend(Batch::integers(&items[position..time]))?;
        position = time;
        truth.advance(time);
        let known = found(&sketch.view())?;
        let top = truth.top(TOP);
        recalled += top.iter().filter(|item| known.contains(item)).count() as f64 / top.len() as f64;
        missing += f64::from(truth.top(1).iter().any(|item| !known.contains(item)));
    }
    Ok([recalled, missing].map(|sum| sum / queries as f64))
}

/// Items until anything is listed, in steps of a substream: between two seals no list changes.
fn first_answer(plan: &Plan, followed: &Followed, seed: u64) -> Result<Option<u64>> {
    let mut sketch = DpswSketch::with_noise(plan.clone(), Noise::seeded(seed))?;
    let step = plan.substream_len() as usize;
    let mut items = followed.from(0);
    for position in (step..=followed.len()).step_by(step) {
        let taken: Vec<u64> = items.by_ref().take(step).collect();
        sketch.extend(Batch::integers(&taken))?;
        if !sketch.view().top(1)?.is_empty() {
            return Ok(Some(position as u64));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::Case;
    use crate::preset::Preset;
    use crate::stream::Shelf;

    fn measured(window: u64, seed: u64) -> Outcome {
        let (preset, shelf) = (Preset::tiny(), Shelf::new(None));
        let case = Case { stream: "zipf".to_owned(), window };
        let followed = case.followed(&preset, &shelf, seed).expect("a stream");
        let effort = Effort { queries: 3, surges: 2 };
        Outcome::measure(&case.plan().expect("a plan"), &followed, effort, seed).expect("it runs")
    }

    /// The key of a surge of 60 % has thousands of events per epoch, tens of times the threshold of the search, and the
    /// noise on them is below a hundred but for one draw in e^10.
    #[test]
    fn a_key_that_takes_most_of_a_stream_is_found_within_two_epochs() {
        let outcome = measured(20_000, 1);
        assert_eq!(outcome.surges[0].share, 0.6);
        for delay in &outcome.surges[0].delays {
            assert!(delay.is_some_and(|items| 0 < items && items <= 40_000), "{:?}", outcome.surges);
        }
        assert!(outcome.first_answer.is_some_and(|items| items <= 40_000), "{outcome:?}");
        assert!(0.0 < outcome.recall && outcome.recall <= 1.0 && !outcome.repeated, "{outcome:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_outcome() {
        assert_eq!(measured(5_000, 2), measured(5_000, 2));
        assert_ne!(measured(5_000, 2), measured(5_000, 3));
    }
}
