//! How many rows of a list will probably be false: keys that hardly occur and rank among the most frequent, by noise or by
//! a frequent key on one of their counters. docs/design/estimation.md derives it.

use crate::noise::tail::{Moments, Tail};
use crate::plan::predict::counts::Counts;

/// Rows of the list that plans are judged by.
pub(crate) const LISTED: usize = 20;
/// The share of false rows that is no matter: one of 20.
const FALSE_ROWS_MAX: f64 = 0.05;
/// A row is false if its key has less than this share of the last row's count. Lists mark rows by the same share.
const FALSE_SHARE: f64 = 0.25;
/// Lists hide rows that may be noise alone: those of a size that noise gives to one of all keys with this probability.
const HIDDEN: f64 = 0.025;
/// How many times as frequent as expected keys may be that cannot be fitted.
const SURPRISE: f64 = 4.0;
/// Collisions are added up in so many steps to what they need.
const STEPS: usize = 64;
/// Standard errors that nothing reaches.
const FAR: f64 = 1e6;

/// The part of a plan that decides, besides counts, who is listed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Listing {
    /// Of the noise in an estimate.
    pub(crate) noise: Moments,
    /// None where keys have counters of their own.
    pub(crate) collisions: Option<Collisions>,
    /// Keys with smaller counts are never listed.
    pub(crate) least: f64,
    /// Keys of the list that are not expected to occur.
    pub(crate) absent: usize,
}

/// The collisions of keys on shared counters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Collisions {
    pub(crate) columns: f64,
    pub(crate) rows: f64,
    pub(crate) substreams: f64,
    /// How many of the most frequent keys are fitted and taken away.
    pub(crate) fitted: usize,
    /// Whether keys that are more frequent than expected would be fitted.
    pub(crate) can_fit: bool,
    /// How many times as frequent as expected the others are.
    pub(crate) times: f64,
}

impl Listing {
    /// Whether hardly any row that is shown is false, also if the guess of the counts is wrong.
    pub(crate) fn is_good(&self, counts: &Counts) -> bool {
        let surprised = Self { collisions: self.collisions.map(Collisions::with_surprise), ..*self };
        [surprised, *self].iter().all(|listing| {
            let list = listing.expect_list(counts);
            let shown = counts.at_least(list.shown).clamp(1, LISTED);
            list.count_reaching(LISTED) <= FALSE_ROWS_MAX * shown as f64
        })
    }

    /// How many rows are false. Each pushes a true one out, and the last place needs more.
    pub(crate) fn false_rows(&self, counts: &Counts) -> f64 {
        let list = self.expect_list(counts);
        let with = |pushed: usize| list.count_reaching(LISTED - pushed).max(pushed as f64);
        (0..LISTED).map(with).fold(LISTED as f64, f64::min)
    }

    fn expect_list<'a>(&'a self, counts: &'a Counts) -> ExpectedList<'a> {
        let first = counts.at_least(FALSE_SHARE * counts.of_rank(LISTED));
        let end = counts.at_least(self.least).max(first);
        let keys = (end - first + self.absent).max(1) as f64;
        let shown = Tail::new(self.noise).reach_at(HIDDEN / keys) * self.noise.variance.sqrt();
        ExpectedList { listing: self, counts, false_keys: &counts.sorted[first..end], shown }
    }
}

/// The list of the most frequent keys.
struct ExpectedList<'a> {
    listing: &'a Listing,
    counts: &'a Counts,
    /// Expected counts of those that do not belong there.
    false_keys: &'a [f64],
    /// The least estimate that is shown.
    shown: f64,
}

impl ExpectedList<'_> {
    /// How many false keys are expected to be shown with at least the count of this rank.
    fn count_reaching(&self, rank: usize) -> f64 {
        let error = Error::new(self.listing, self.counts, self.counts.of_rank(rank).max(self.shown));
        let mut keys = by_steps(self.false_keys, error.step);
        keys[0] += self.listing.absent as f64;
        let occupied = keys.iter().enumerate().filter(|&(_, &keys)| 0.0 < keys);
        occupied.map(|(step, keys)| keys * error.chance_to_reach(step)).sum()
    }
}

/// The law of an error, by steps to what it has to reach.
struct Error {
    step: f64,
    /// The probability that collisions add up to so many steps.
    collisions: [f64; STEPS + 1],
    /// The probability that noise and small collisions make up for what is missing after so many steps.
    rest: [f64; STEPS + 1],
}

impl Error {
    fn new(listing: &Listing, counts: &Counts, count: f64) -> Self {
        let Some(of) = listing.collisions else {
            return Self::of_steps([0.0; STEPS + 1], count / STEPS as f64, listing.noise, count);
        };
        // Estimates are less by what collisions add on average.
        let level = |from: usize| of.times * counts.sums_from(from)[0] / of.columns;
        let step = (count + level(of.fitted)) / STEPS as f64;
        let (keys, small) = of.split_keys(counts, step);
        let [sum, squares] = counts.sums_from(small);
        let mut moments = listing.noise;
        moments.variance += (squares / of.substreams + sum) / of.cells();
        let moments = moments.times_root(1.0 / (1.0 - of.fitted as f64 / of.cells()));
        let expected = keys.map(|keys| keys * of.counters_per_key() / of.columns);
        Self::of_steps(expected, step, moments, count + level(of.fitted) - level(small))
    }

    fn of_steps(expected: [f64; STEPS + 1], step: f64, moments: Moments, missing: f64) -> Self {
        let (tail, deviation) = (Tail::new(moments), moments.variance.sqrt());
        let rest = |steps: usize| chance_beyond(tail, (missing - steps as f64 * step) / deviation);
        Self { step, collisions: law_of_sums(expected), rest: std::array::from_fn(rest) }
    }

    /// The probability that a key whose own count is so many steps reaches all of them.
    fn chance_to_reach(&self, own: usize) -> f64 {
        let at = |steps: usize| self.collisions[steps] * self.rest[(own + steps).min(STEPS)];
        (0..STEPS).map(at).sum::<f64>() + self.collisions[STEPS]
    }
}

impl Collisions {
    /// Those of keys that are more frequent than expected.
    fn with_surprise(self) -> Self {
        Self { times: if self.can_fit { 1.0 } else { SURPRISE }, ..self }
    }

    /// Counters that hold a key in a window.
    fn counters_per_key(&self) -> f64 {
        self.rows * self.substreams
    }

    /// Counters of a sketch.
    fn cells(&self) -> f64 {
        self.rows * self.columns
    }

    /// How many keys add so many steps where they share a counter, and the rank from which on they add less than one.
    fn split_keys(&self, counts: &Counts, step: f64) -> ([f64; STEPS + 1], usize) {
        let step = step * self.counters_per_key() / self.times;
        let small = counts.at_least(step / 2.0).max(self.fitted);
        (by_steps(&counts.sorted[self.fitted..small], step), small)
    }
}

/// The probability of an error of more than `z` standard errors.
fn chance_beyond(tail: Tail, z: f64) -> f64 {
    // Without noise every distance is infinite, in standard errors.
    let far = tail.chance_beyond(z.abs().min(FAR));
    if z < 0.0 { 1.0 - far } else { far }
}

/// How many of the counts, largest first, round to so many steps; the last has all beyond.
fn by_steps(sorted: &[f64], step: f64) -> [f64; STEPS + 1] {
    let mut above = 0;
    let mut keys = [0.0; STEPS + 1];
    for (steps, keys) in keys.iter_mut().enumerate().rev() {
        let least = (steps as f64 - 0.5) * step;
        let until = above + sorted[above..].partition_point(|&count| least <= count);
        (*keys, above) = ((until - above) as f64, until);
    }
    keys
}

/// The law of a sum of steps of which so many of each size are expected (Panjer's recursion); the last has all beyond.
fn law_of_sums(expected: [f64; STEPS + 1]) -> [f64; STEPS + 1] {
    let mut law = [0.0; STEPS + 1];
    law[0] = (-expected[1..].iter().sum::<f64>()).exp();
    for sum in 1..STEPS {
        let terms = (1..=sum).map(|step| step as f64 * expected[step] * law[sum - step]);
        law[sum] = terms.sum::<f64>() / sum as f64;
    }
    // Rounding may leave less than nothing.
    law[STEPS] = (1.0 - law[..STEPS].iter().sum::<f64>()).max(0.0);
    law
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::generator::Noise;
    use crate::plan::predict::errors::{Expectation, Prediction, Prior};
    use crate::plan::settings::{CounterLayout, Settings, TunedMethod};
    use crate::plan::structure::Plan;
    use crate::stream::sketch::DpswSketch;
    use crate::view::estimate::Ranked;

    const KEYS: u64 = 35_519;
    const WINDOW: u64 = 20_000;

    fn plan(epsilon: f64, substreams: u64, counters: CounterLayout) -> Plan {
        let method = TunedMethod { substreams, counters, ..TunedMethod::default() };
        let settings = Settings::last_items(WINDOW, epsilon).expect("in range").with_keys(0..KEYS);
        settings.with_method(method).plan().expect("a plan")
    }

    fn prediction(plan: &Plan, exponent: f64, keys: usize) -> Prediction {
        let expectation = Expectation { prior: Prior::Zipf { exponent, keys }, drift: None };
        plan.predict(&expectation).expect("a prior").expect("tuned")
    }

    /// Keys of a window that follows Zipf's law.
    fn stream(seed: u64) -> Vec<u64> {
        let mut sum = 0.0;
        let sums: Vec<f64> = (1..=KEYS)
            .map(|rank| {
                sum += 1.0 / rank as f64;
                sum
            })
            .collect();
        let mut generator = Noise::seeded(seed).generator().expect("seeded");
        let mut key = || {
            let share = (generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            sums.partition_point(|&until| until <= share * sum) as u64
        };
        (0..WINDOW).map(|_| key()).collect()
    }

    /// How many of 20 rows have less than a quarter of the 20th largest count.
    fn measured(plan: &Plan, seed: u64) -> f64 {
        let mut truth = vec![0.0; KEYS as usize];
        let mut sketch = DpswSketch::with_noise(plan.clone(), Noise::seeded(seed)).expect("seeded");
        for key in stream(1000 + seed) {
            truth[key as usize] += 1.0;
            sketch.add(key).expect("a key");
        }
        let least = FALSE_SHARE * Counts::new(truth.clone()).of_rank(LISTED);
        let view = sketch.view();
        let is_false = |row: &&Ranked<'_>| {
            let key: usize = row.item.to_string().parse().expect("a number");
            truth[key] < least
        };
        view.top(LISTED).expect("sealed").all().filter(is_false).count() as f64
    }

    #[test]
    fn false_rows_are_as_many_as_measured() {
        const SEEDS: u64 = 16;
        for (rows, columns, substreams, is_good) in [
            (1, 28_557, 5, false),
            (1, 28_557, 10, false),
            (1, 7_128, 20, false),
            (2, 100, 5, true),
            (2, 3_564, 5, true),
        ] {
            let plan = plan(1.0, substreams, CounterLayout::Hashed { rows, columns });
            let prediction = prediction(&plan, 1.0, KEYS as usize);
            let measured = (0..SEEDS).map(|seed| measured(&plan, seed)).sum::<f64>() / SEEDS as f64;
            let predicted = prediction.false_rows();
            let agrees = measured / 2.0 - 0.1 <= predicted && predicted <= 2.0 * measured + 0.1;
            assert!(agrees, "{rows} x {columns}, {substreams}: {predicted}, measured {measured}");
            assert_eq!(prediction.lists_well(), is_good, "{rows} x {columns}, {substreams}: {predicted}");
        }
    }

    #[test]
    fn noise_alone_makes_no_false_rows_that_are_shown() {
        for epsilon in [0.1, 1.0, 1e6] {
            let predicted = prediction(&plan(epsilon, 5, CounterLayout::Identity), 1.0, KEYS as usize);
            assert!(predicted.false_rows() < 0.03 && predicted.lists_well(), "{}", predicted.false_rows());
        }
    }

    #[test]
    fn a_single_row_is_not_saved_by_noise_that_covers_what_is_expected() {
        let plan = plan(0.1, 8, CounterLayout::Hashed { rows: 1, columns: 4_984 });
        let prediction = prediction(&plan, 1.0, KEYS as usize);
        assert!(prediction.false_rows() < 1.0 && !prediction.lists_well());
    }

    #[test]
    fn keys_of_the_list_that_are_not_expected_count_and_equal_ones_do_not() {
        let plan = plan(1.0, 5, CounterLayout::Hashed { rows: 1, columns: 28_557 });
        let [few, all] = [100, KEYS as usize].map(|keys| prediction(&plan, 1.0, keys).false_rows());
        assert!(5.0 < few && 5.0 < all, "{few} {all}");
        assert_eq!(prediction(&plan, 0.0, KEYS as usize).false_rows(), 0.0);
    }

    #[test]
    fn sums_of_steps_follow_poisson_s_law() {
        let mut expected = [0.0; STEPS + 1];
        expected[2] = 0.5;
        let law = law_of_sums(expected);
        for (steps, probability) in [(0, 1.0), (1, 0.0), (2, 0.5), (3, 0.0), (4, 0.125), (6, 0.125 / 6.0)] {
            assert!((law[steps] - probability * (-0.5_f64).exp()).abs() < 1e-12, "{steps}");
        }
        expected[STEPS] = 0.1;
        assert!((law_of_sums(expected)[STEPS] - (1.0 - (-0.1_f64).exp())).abs() < 1e-9);
    }

    #[test]
    fn counts_round_to_steps() {
        let keys = by_steps(&[700.0, 640.0, 19.0, 15.0, 14.0, 4.0, 0.0], 10.0);
        assert_eq!((keys[STEPS], keys[2], keys[1], keys[0]), (2.0, 2.0, 1.0, 2.0));
        assert_eq!(keys.iter().sum::<f64>(), 7.0);
    }
}
