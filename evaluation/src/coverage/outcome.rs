//! What one seed of a case showed.

use anyhow::{Result, ensure};
use dpsw::Plan;
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::arrivals::{Arrivals, Occurrences};
use super::case::Case;
use super::chosen::Cells;
use super::follow::Follower;
use super::listed::Listed;
use super::moved::Moved;

/// What one seed of a case showed, or all of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub listed: Listed,
    pub chosen: Cells,
    /// Trends, where the stream stands still.
    pub moved: Moved,
}

impl Outcome {
    /// Follows the stream and asks at random positions; everything random comes from the seed.
    pub fn measure(case: &Case, plan: &Plan, arrivals: &Arrivals, queries: usize, seed: u64) -> Result<Self> {
        let mut random = ChaCha12Rng::seed_from_u64(0xc0ffee + seed);
        let (first, end) = (case.asked_from(), arrivals.end());
        ensure!(first < end, "the stream ends at {end}; questions start at {first}");
        let mut positions: Vec<u64> = (0..queries).map(|_| random.random_range(first..=end)).collect();
        positions.sort_unstable();
        let truth = Occurrences::of(arrivals);
        let chosen = case.chosen(arrivals.keys());
        let known = case.keys.map_or(arrivals.keys(), |listed| listed.min(arrivals.keys()));
        let mut follower = Follower::new(plan.clone(), arrivals, seed)?;
        let mut outcome = Self::default();
        for position in positions {
            follower.advance(position)?;
            let view = follower.view();
            outcome.listed.ask(&view, &truth, known)?;
            outcome.chosen.ask(&view, &truth, &chosen, &mut random)?;
            if case.stands_still() && case.keys.is_none() {
                outcome.moved.ask(&view, &chosen)?;
            }
        }
        Ok(outcome)
    }

    pub fn add(&mut self, other: &Self) {
        self.listed.add(&other.listed);
        self.chosen.add(&other.chosen);
        self.moved.add(&other.moved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::{Asked, Ends};
    use crate::preset::Preset;
    use crate::stream::Shelf;

    fn measured(case: &Case, queries: usize, seed: u64) -> Outcome {
        let (preset, shelf) = (Preset::tiny(), Shelf::new(None));
        let plan = case.plan(case.keys_of_stream(&preset, &shelf).expect("keys")).expect("a plan");
        let arrivals = case.arrivals(&preset, &shelf, &plan, seed).expect("a stream");
        Outcome::measure(case, &plan, &arrivals, queries, seed).expect("it runs")
    }

    fn zipf() -> Case {
        Case { stream: "zipf".to_owned(), window: 2_000, epsilon: 1.0, keys: None, bytes: None, retention: 1 }
    }

    /// 150 seeds with one question for three absent keys each: 450 independent intervals, of which 94 to 97 % hold 0.
    /// (Laplace noise has longer tails than the normal law, and drift that noise feigns makes intervals longer.) All of
    /// them do in one of 0.97^-450 = 900,000 runs at most; fewer than 88 %, 5.5 deviations from 94 %, do in one of 800,000.
    /// Intervals of half the length would hold 0 in 68 %.
    #[test]
    fn intervals_of_absent_keys_are_found_to_hold_nothing_in_19_of_20_cases() {
        let mut total = Outcome::default();
        (0..150).for_each(|seed| total.add(&measured(&zipf(), 1, seed)));
        let of_absent = |asked, ends| {
            total.chosen.coverage(|cell| cell.key == "absent" && cell.asked == asked && cell.ends == ends)
        };
        let share = of_absent(Asked::Whole, Ends::Now).expect("answers");
        assert!((0.88..1.0).contains(&share), "{share}");
        assert!(of_absent(Asked::Third, Ends::Before).is_some(), "past windows are asked about");
        assert_eq!(of_absent(Asked::Whole, Ends::Before), None, "no whole window of the past is retained");
    }

    #[test]
    fn the_same_seed_gives_the_same_outcome() {
        assert_eq!(measured(&zipf(), 3, 5), measured(&zipf(), 3, 5));
        assert_ne!(measured(&zipf(), 3, 5), measured(&zipf(), 3, 6));
    }

    #[test]
    fn with_a_long_list_rows_are_judged_and_no_key_is_asked_by_name() {
        let outcome = measured(&Case { keys: Some(5_000), ..zipf() }, 2, 1);
        assert_eq!((outcome.listed.queries, outcome.moved.chosen), (2, 0));
        assert!(outcome.chosen.names().is_empty());
        let of_zipf = measured(&zipf(), 2, 1);
        assert_eq!(of_zipf.chosen.names(), ["1", "3", "10", "30", "100", "300", "absent"]);
        assert_eq!(of_zipf.moved.chosen, 2 * 9);
    }
}
