//! What error a plan of the tuned method will have, before any item arrives: from a public guess of how counts are
//! spread, never from the stream.

use std::sync::{Arc, LazyLock};

use crate::error::ParameterError;
use crate::noise::law::Law;
use crate::noise::tail::Moments;
use crate::plan::levels::LevelPlan;
use crate::plan::limits::{CANDIDATE_DEVIATIONS, CANDIDATE_SHARE, LONGEST_SPAN, PINNED_DEVIATIONS, SPANS};
use crate::plan::predict::counts::Counts;
use crate::plan::predict::edges::Misfit;
use crate::plan::predict::false_rows::{Collisions, Listing};

/// The expected frequencies of the keys of a window: a public guess.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Prior {
    /// The i-th of `keys` keys has a share proportional to i to the minus `exponent`.
    Zipf {
        /// At least 0.
        exponent: f64,
        /// How many keys occur.
        keys: usize,
    },
    /// The shares of the window of each key.
    Shares(Vec<f64>),
}

impl std::str::FromStr for Prior {
    type Err = ParameterError;

    /// One expected count or share per line, after a key and a tab if there is one. Empty lines and those that start with `#`
    /// are skipped.
    fn from_str(text: &str) -> Result<Self, ParameterError> {
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
        let weights =
            lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).map(|(line, text)| {
                let field = text.rsplit('\t').next().unwrap_or(text);
                let weight = field.trim().parse().ok().filter(|weight| (0.0..=f64::MAX).contains(weight));
                weight.ok_or_else(|| ParameterError::ExpectationLine { line, field: field.to_owned() })
            });
        Ok(Self::Shares(weights.collect::<Result<_, _>>()?))
    }
}

/// The drift of the expected shares: their logarithms as Ornstein-Uhlenbeck processes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpectedDrift {
    /// The variance of a logarithm.
    pub variance: f64,
    /// The correlation time, in windows.
    pub correlation_windows: f64,
}

impl ExpectedDrift {
    /// Logarithms with variance 0.2 that a window forgets: real streams move about like this.
    pub const MODERATE: Self = Self { variance: 0.2, correlation_windows: 1.0 };

    /// The relative variance per window by which a share walks.
    pub(crate) fn walk(self) -> f64 {
        2.0 * self.variance / self.correlation_windows
    }
}

/// A public guess of what a window looks like.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// How counts are spread.
    pub prior: Prior,
    /// How they move, if they do.
    pub drift: Option<ExpectedDrift>,
}

/// The share of frequent keys that were rare a window ago.
const RISERS: f64 = 0.1;
/// The mean of the absolute value of a normal variable, in deviations.
const MEAN_ABSOLUTE: f64 = 0.797_884_56;
/// A key that is to be a candidate in nearly every window lies one deviation above the least that a candidate has.
const SURE_CANDIDATE_DEVIATIONS: f64 = CANDIDATE_DEVIATIONS + 1.0;
/// As well a key that is to be pinned in nearly every window.
const SURE_PINNED_DEVIATIONS: f64 = PINNED_DEVIATIONS + 1.0;

/// A number for each phase of the window at which errors are averaged.
type PerPhase = [f64; 8];

/// When windows are asked: the parts of a substream that have passed by then.
#[derive(Debug, PartialEq)]
pub(crate) struct Phases {
    parts: PerPhase,
    /// Of each part, for each of the spans: the planner asks for them a million times.
    misfits: [[Misfit; 8]; SPANS.len()],
}

/// At any time.
pub(crate) static ALL_PHASES: LazyLock<Phases> =
    LazyLock::new(|| Phases::new([0.0625, 0.1875, 0.3125, 0.4375, 0.5625, 0.6875, 0.8125, 0.9375]));
/// At the end of a substream: none has passed.
pub(crate) static NO_PHASE: LazyLock<Phases> = LazyLock::new(|| Phases::new([0.0; 8]));

impl Phases {
    fn new(parts: PerPhase) -> Self {
        Self { parts, misfits: SPANS.map(|span| parts.map(|x| Misfit::at_phase(x, span.into()))) }
    }
}

impl Expectation {
    /// What to expect without knowing better: Zipf with exponent 1 over this many keys, drifting moderately.
    #[must_use]
    pub fn zipf(keys: usize) -> Self {
        Self { prior: Prior::Zipf { exponent: 1.0, keys }, drift: Some(ExpectedDrift::MODERATE) }
    }

    /// The relative variance per window by which shares are expected to walk.
    pub(crate) fn walk(&self) -> f64 {
        self.drift.map_or(0.0, ExpectedDrift::walk)
    }

    /// Expected counts in a window of this many items.
    ///
    /// # Errors
    /// There is no key, or an exponent or share is negative or not finite.
    pub(crate) fn expected_counts(&self, items: u64) -> Result<Arc<Counts>, ParameterError> {
        let mut weights: Vec<f64> = match &self.prior {
            // The usual exponent needs no powers, which take long for a million keys.
            Prior::Zipf { exponent: 1.0, keys } => (1..=*keys).map(|rank| 1.0 / rank as f64).collect(),
            Prior::Zipf { exponent, keys } => (1..=*keys).map(|rank| (rank as f64).powf(-exponent)).collect(),
            Prior::Shares(shares) => shares.clone(),
        };
        let total: f64 = weights.iter().sum();
        if let Some(&bad) = weights.iter().find(|weight| !(0.0..=f64::MAX).contains(*weight)) {
            return Err(ParameterError::Expectation(bad));
        }
        if !(0.0 < total && total.is_finite()) {
            return Err(ParameterError::Expectation(total));
        }
        weights.iter_mut().for_each(|weight| *weight *= items as f64 / total);
        Ok(Arc::new(Counts::new(weights)))
    }
}

/// A structure whose error is predicted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PredictedStructure {
    /// Substreams of a window.
    pub(crate) substreams: f64,
    /// Rows of a sketch.
    pub(crate) rows: f64,
    /// Columns of a hashed sketch.
    pub(crate) columns: Option<f64>,
    /// The noise on a counter.
    pub(crate) law: Law,
    /// Keys with smaller counts are not known, so they can be neither fitted nor listed.
    pub(crate) least_fitted: f64,
    /// Keys of the public list; 0 without one.
    pub(crate) keys: usize,
    /// Keys that have counters of their own beside hashed ones.
    pub(crate) pinned: Option<Pinned>,
    /// How much of a substream has passed when a window is asked.
    pub(crate) phases: &'static Phases,
}

/// Keys that have counters of their own beside hashed ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pinned {
    /// The most.
    pub(crate) keys: usize,
    /// The noise on their counters.
    pub(crate) law: Law,
}

impl PredictedStructure {
    /// Draws of noise in the estimate of a window at this phase, by the squares of their weights.
    fn count_draws(&self, phase: f64) -> f64 {
        self.substreams + 2.0 * phase * phase
    }

    /// Keys that were found need not be told from others, so that one row is enough.
    fn can_fit(&self) -> bool {
        1.0 < self.rows || 0.0 < self.least_fitted
    }
}

/// The expected error of the item of one rank.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct RankError {
    /// From 1.
    pub rank: usize,
    /// Its expected count.
    pub count: f64,
    /// Its mean absolute error.
    pub error: f64,
}

/// The expected error, in items.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    counts: Arc<Counts>,
    phases: &'static Phases,
    /// Variance of noise and collisions at each phase.
    floor: PerPhase,
    substreams: f64,
    /// The relative variance per window by which shares walk.
    walk: f64,
    listing: Listing,
    levels: LevelPlan,
    /// The variance of the noise on a counter that one key has for itself, and from which count on keys have one.
    own: Option<(f64, f64)>,
}

impl Prediction {
    pub(crate) fn new(
        structure: PredictedStructure,
        counts: &Arc<Counts>,
        drift: Option<ExpectedDrift>,
    ) -> Self {
        let noise = structure
            .phases
            .parts
            .map(|x| structure.count_draws(x) * structure.law.variance() / structure.rows);
        // Without hashing all keys have counters of their own, whatever they count.
        let own = (structure.law.variance(), f64::NEG_INFINITY);
        let (floor, collisions, own) = match structure.columns {
            None => (noise, None, Some(own)),
            Some(columns) => {
                let shared = with_collisions(structure, columns, noise, counts);
                let PredictedStructure { substreams, rows, .. } = structure;
                let (fitted, can_fit) = (shared.pinned + shared.fitted, structure.can_fit());
                let collisions = Collisions { columns, rows, substreams, fitted, can_fit, times: 1.0 };
                let own = structure.pinned.map(|pinned| (pinned.law.variance(), shared.pinned_from));
                (shared.floor, Some(collisions), own)
            }
        };
        let draws = mean(structure.phases.parts.iter().map(|&x| structure.count_draws(x)));
        let listing = Listing {
            noise: Moments::of_draws(structure.law, draws).mean_of(structure.rows),
            collisions,
            least: structure.least_fitted,
            absent: structure.keys.saturating_sub(counts.sorted.len()),
        };
        let (walk, levels) = (drift.map_or(0.0, ExpectedDrift::walk), LevelPlan::default());
        let PredictedStructure { substreams, phases, .. } = structure;
        Self { counts: Arc::clone(counts), phases, floor, substreams, walk, listing, levels, own }
    }

    /// The same where frequent keys are cut more finely.
    pub(crate) fn with_levels(self, levels: LevelPlan) -> Self {
        Self { levels, ..self }
    }

    /// The mean absolute error of an item with this count.
    #[must_use]
    pub fn error_of(&self, count: f64) -> f64 {
        let slices = self.substreams * f64::from(1 << self.level_of(count));
        let (rate, own_noise) = (count / slices, self.own_noise(count));
        let place = self.choose_span(rate, slices, own_noise);
        let span = f64::from(SPANS[place]);
        let floor = |(x, floor): (f64, f64)| match own_noise {
            Some(noise) => noise * (slices + x * x * (1.0 + 1.0 / span)),
            None => floor,
        };
        let phases = self.phases.parts.into_iter().zip(self.floor).zip(self.phases.misfits[place]);
        let errors = phases.map(|((x, at_phase), misfit)| {
            let drift = rate.powi(2) * self.walk / slices * misfit.walk;
            MEAN_ABSOLUTE * (floor((x, at_phase)) + rate * misfit.sampling + drift).sqrt()
        });
        errors.sum::<f64>() / self.floor.len() as f64 + self.riser_error(count)
    }

    /// The variance of the noise on the counters of an item with this count, if it has its own.
    fn own_noise(&self, count: f64) -> Option<f64> {
        self.own.filter(|(_, from)| *from <= count).map(|(noise, _)| noise)
    }

    fn level_of(&self, count: f64) -> u32 {
        self.own_noise(count).map_or(0, |_| self.levels.level_for_count(count))
    }

    /// From how many slices the next one is predicted best, for an item that comes this often in a slice: a place among the
    /// spans.
    fn choose_span(&self, rate: f64, slices: f64, own_noise: Option<f64>) -> usize {
        let Some(noise) = own_noise else { return 0 };
        let variance = |span: f64| (noise + rate) / span + rate.powi(2) * self.walk / slices * span / 3.0;
        // One slice is always allowed, as there may be no more.
        let fits = |span: &f64| *span == 1.0 || *span <= LONGEST_SPAN * slices;
        let variances = SPANS.into_iter().map(f64::from).filter(fits).map(variance);
        variances
            .enumerate()
            .min_by(|(_, one), (_, other)| one.total_cmp(other))
            .map_or(0, |(place, _)| place)
    }

    /// A key that was rare is cut coarsely until the next substream: what that costs a frequent one on average.
    fn riser_error(&self, count: f64) -> f64 {
        if self.level_of(count) == 0 { 0.0 } else { RISERS * count / (6.0 * self.substreams.powi(2)) }
    }

    /// What to expect of the item of this rank, from 1; `None` beyond the last.
    #[must_use]
    pub fn rank(&self, rank: usize) -> Option<RankError> {
        let count = *self.counts.sorted.get(rank.checked_sub(1)?)?;
        Some(RankError { rank, count, error: self.error_of(count) })
    }

    /// What to expect of the ranks 1, 10, 100 and 1000, as far as there are that many keys.
    pub fn ranks(&self) -> impl Iterator<Item = RankError> {
        [1, 10, 100, 1000].into_iter().filter_map(|rank| self.rank(rank))
    }

    /// The mean absolute error of the 50 most frequent items.
    #[must_use]
    pub fn frequent(&self) -> f64 {
        mean(self.counts.frequent().iter().map(|&count| self.error_of(count)))
    }

    /// The mean error of the 50 most frequent items, relative to their counts.
    #[must_use]
    pub fn frequent_relative(&self) -> f64 {
        mean(self.counts.frequent().iter().map(|&count| self.error_of(count) / count))
    }

    /// The mean absolute error of the other items that occur at least 100 times; of an absent item if there is none.
    #[must_use]
    pub fn rare(&self) -> f64 {
        let rare = &self.counts.rare;
        if rare.is_empty() {
            self.error_of(0.0)
        } else {
            mean(rare.iter().map(|&count| self.error_of(count)))
        }
    }

    /// The mean error of those items relative to their counts; infinite if there is none.
    #[must_use]
    pub fn rare_relative(&self) -> f64 {
        let rare = &self.counts.rare;
        if rare.is_empty() {
            f64::INFINITY
        } else {
            mean(rare.iter().map(|&count| self.error_of(count) / count))
        }
    }

    /// The share of the window above which an item stands out from the noise: four deviations of an absent item.
    #[must_use]
    pub fn detectable_share(&self) -> f64 {
        let deviation = self.error_of(0.0) / MEAN_ABSOLUTE;
        (4.0 * deviation / self.counts.total).min(1.0)
    }

    /// How many of the 20 rows of a list are expected to be keys with less than a quarter of the 20th largest count, which
    /// frequent keys on the same counters or noise make look large. Rows that may be noise alone are hidden and not meant.
    #[must_use]
    pub fn false_rows(&self) -> f64 {
        self.listing.false_rows(&self.counts)
    }

    /// Whether hardly any row of a list is false.
    pub(crate) fn lists_well(&self) -> bool {
        self.listing.is_good(&self.counts)
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

/// The error of keys on hashed counters.
struct Shared {
    /// The variance with collisions.
    floor: PerPhase,
    /// How many keys are fitted, and how many pinned.
    fitted: usize,
    pinned: usize,
    /// The smallest count of a pinned key.
    pinned_from: f64,
}

/// The variance with collisions of the items that are neither fitted nor pinned, and how many are; which depends on the noise
/// that is left, so a few rounds.
fn with_collisions(structure: PredictedStructure, columns: f64, noise: PerPhase, counts: &Counts) -> Shared {
    let cells = structure.rows * columns;
    let typical = noise.iter().sum::<f64>() / noise.len() as f64;
    let (mut collisions, mut fitted, mut pinned) = (0.0, 0_usize, 0_usize);
    let above = |least: f64| counts.sorted.partition_point(|&count| least < count);
    let pinned_max = structure.pinned.map_or(0, |pinned| pinned.keys);
    let mut least_pinned = f64::INFINITY;
    for _ in 0..8 {
        let [sum, squares] = counts.sums_from(pinned + fitted);
        // Counts in a substream vary by chance: the mean of a square is the square of the mean, and the mean.
        collisions = (squares / structure.substreams + sum) / cells;
        let deviation = (typical + collisions).sqrt();
        least_pinned = (SURE_PINNED_DEVIATIONS * deviation).max(structure.least_fitted);
        pinned = above(least_pinned).min(pinned_max);
        let least = (SURE_CANDIDATE_DEVIATIONS * deviation).max(structure.least_fitted);
        let most = if structure.can_fit() { (CANDIDATE_SHARE * cells) as usize } else { 0 };
        fitted = above(least).saturating_sub(pinned).min(most);
    }
    // Each fitted key uses up one counter, and what it holds falls to the others.
    let free = 1.0 - fitted as f64 / cells;
    // Where all slots are taken the last key that got one tells from which count on; else the threshold does.
    let last = pinned.checked_sub(1).filter(|_| pinned == pinned_max).map(|last| counts.sorted[last]);
    let pinned_from = last.unwrap_or(least_pinned);
    Shared { floor: noise.map(|noise| (noise + collisions) / free), fitted, pinned, pinned_from }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::Ratio;

    fn structure(substreams: f64, rows: f64, columns: Option<f64>) -> PredictedStructure {
        let scale = Ratio::new(2 * rows as u64, 1).expect("a ratio");
        PredictedStructure {
            substreams,
            rows,
            columns,
            law: Law::Laplace { scale },
            least_fitted: 0.0,
            keys: 0,
            pinned: None,
            phases: &ALL_PHASES,
        }
    }

    fn prediction(structure: PredictedStructure) -> Prediction {
        let counts = Expectation::zipf(25_600).expected_counts(1_000_000).expect("a prior");
        Prediction::new(structure, &counts, None)
    }

    #[test]
    fn noise_grows_with_substreams_and_collisions_fall_with_columns() {
        let [few, many] = [10.0, 40.0].map(|w| prediction(structure(w, 1.0, None)).error_of(0.0));
        assert!((many / few - 2.0).abs() < 0.05, "{few} {many}");
        let [narrow, wide] = [500.0, 50_000.0].map(|b| prediction(structure(20.0, 2.0, Some(b))).rare());
        assert!(wide < narrow);
    }

    #[test]
    fn predictions_agree_with_the_published_simulations() {
        // zipf with 5 % uniform items, 280,000 counters: identity W = 20: 17/11; two rows, W = 20: 22/17.
        let uniform = 0.05 * 1e6 / 25_600.0;
        let zipf = Expectation::zipf(25_600).expected_counts(950_000).expect("a prior");
        let shares: Vec<f64> = zipf.sorted.iter().map(|count| count + uniform).collect();
        let counts = Expectation { prior: Prior::Shares(shares), drift: None }
            .expected_counts(1_000_000)
            .expect("a prior");
        for (structure, frequent, rare) in
            [(structure(20.0, 1.0, None), 17.0, 11.0), (structure(20.0, 2.0, Some(6666.0)), 22.0, 17.0)]
        {
            let prediction = Prediction::new(structure, &counts, None);
            assert!((prediction.frequent() / frequent - 1.0).abs() < 0.15, "{}", prediction.frequent());
            assert!((prediction.rare() / rare - 1.0).abs() < 0.15, "{}", prediction.rare());
        }
    }

    #[test]
    fn expectations_are_read_line_by_line() {
        let prior: Prior = "# public\nhome\t60\n\nabout us\t30.5\r\n10\n".parse().expect("numbers");
        assert_eq!(prior, Prior::Shares(vec![60.0, 30.5, 10.0]));
        for (text, line) in [("1\n2\nmany\n", 3), ("a\t-1", 1), ("inf", 1), ("5\n7\tNaN", 2)] {
            let error = text.parse::<Prior>().expect_err("not a count");
            assert!(error.to_string().contains(&format!("line {line}")), "{error}");
        }
    }

    #[test]
    fn what_is_no_expectation_is_refused() {
        for prior in [
            Prior::Shares(vec![0.5, -0.1]),
            Prior::Shares(vec![]),
            Prior::Zipf { exponent: f64::NAN, keys: 3 },
        ] {
            assert!(Expectation { prior, drift: None }.expected_counts(100).is_err());
        }
    }
}
