//! Limits on probabilities, and what a pair of them says about privacy.

use crate::audit::report::{Claimed, Test};
use crate::privacy::accounting::{bisect, normal_quantile};

/// How many thresholds the pilot tries.
const THRESHOLDS: usize = 16;

impl Claimed {
    /// ε or μ.
    #[must_use]
    pub fn value(self) -> f64 {
        match self {
            Self::Epsilon(value) | Self::Mu(value) => value,
        }
    }

    /// The loss of an event with these probabilities under the two streams; negative if it speaks for the other one.
    fn loss(self, hit: f64, false_hit: f64) -> f64 {
        match self {
            Self::Epsilon(_) => (hit / false_hit).ln(),
            Self::Mu(_) => normal_quantile(hit) - normal_quantile(false_hit),
        }
    }
}

/// The share of runs in which an event happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) hits: usize,
    pub(super) runs: usize,
}

impl Share {
    pub(super) fn of(scores: &[f64], threshold: f64) -> Self {
        Self { hits: scores.iter().filter(|&&score| threshold <= score).count(), runs: scores.len() }
    }

    pub(super) fn plain(self) -> f64 {
        self.hits as f64 / self.runs as f64
    }

    /// Clopper-Pearson: the probability lies below this with probability at most `doubt`.
    pub(super) fn lower_limit(self, doubt: f64) -> f64 {
        let (hits, runs) = (self.hits as f64, self.runs as f64);
        if self.hits == 0 { 0.0 } else { beta_quantile(doubt, hits, runs - hits + 1.0) }
    }

    /// Clopper-Pearson: the probability lies above this with probability at most `doubt`.
    pub(super) fn upper_limit(self, doubt: f64) -> f64 {
        1.0 - Self { hits: self.runs - self.hits, ..self }.lower_limit(doubt)
    }

    /// Wilson's limits: good enough to choose a threshold.
    fn wilson_limits(self, z: f64) -> [f64; 2] {
        let (share, square) = (self.plain(), z * z / self.runs as f64);
        let spread = (share * (1.0 - share) * square + square * square / 4.0).sqrt();
        [-spread, spread].map(|side| ((share + square / 2.0 + side) / (1.0 + square)).clamp(0.0, 1.0))
    }
}

/// The scores of one question to the two streams. A large score speaks for the second one.
#[derive(Debug, Clone, Default)]
pub(super) struct Scores {
    pub(super) first: Vec<f64>,
    pub(super) second: Vec<f64>,
}

impl Scores {
    /// The same with the roles of the streams exchanged.
    fn mirrored(&self) -> Self {
        let [first, second] =
            [&self.second, &self.first].map(|scores| scores.iter().map(|score| -score).collect());
        Self { first, second }
    }

    /// Of some thresholds, the one with the largest bound.
    fn best_threshold(&self, claimed: Claimed, doubt: f64) -> f64 {
        let z = -normal_quantile(doubt);
        let mut pooled = [self.first.as_slice(), &self.second].concat();
        pooled.sort_unstable_by(f64::total_cmp);
        let bound = |threshold: f64| {
            let [low, _] = Share::of(&self.second, threshold).wilson_limits(z);
            let [_, high] = Share::of(&self.first, threshold).wilson_limits(z);
            claimed.loss(low, high)
        };
        let candidates = (1..THRESHOLDS).map(|i| pooled[i * pooled.len() / THRESHOLDS]);
        candidates
            .map(|t| (bound(t), t))
            .fold((f64::NEG_INFINITY, pooled[pooled.len() / 2]), |a, b| if a.0 < b.0 { b } else { a })
            .1
    }
}

/// The event that a test looks for: its threshold, or the scores of a pilot to choose one by.
#[derive(Debug, Clone)]
pub(super) enum Event {
    AtLeast(f64),
    Pilot(Scores),
}

impl Event {
    /// The same with the roles of the streams exchanged.
    fn mirrored(&self) -> Self {
        match self {
            Self::AtLeast(threshold) => Self::AtLeast(*threshold),
            Self::Pilot(pilot) => Self::Pilot(pilot.mirrored()),
        }
    }
}

/// The claim that events are judged against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judge {
    pub(super) claimed: Claimed,
    /// The probability with which the claim may fail.
    pub(super) delta: f64,
    /// The probability with which each limit may be wrong.
    pub(super) doubt: f64,
}

impl Judge {
    /// Judges the event and its mirror image.
    pub(super) fn judge_both(self, name: &'static str, event: &Event, scores: &Scores) -> [Test; 2] {
        let mirrored = self.judge_event(name, &event.mirrored(), &scores.mirrored());
        [self.judge_event(name, event, scores), Test { forward: false, ..mirrored }]
    }

    fn judge_event(self, name: &'static str, event: &Event, scores: &Scores) -> Test {
        let Self { claimed, delta, doubt } = self;
        let threshold = match event {
            Event::AtLeast(threshold) => *threshold,
            Event::Pilot(pilot) => pilot.best_threshold(claimed, doubt),
        };
        let hit = Share::of(&scores.second, threshold);
        let false_hit = Share::of(&scores.first, threshold);
        // The claim is P ≤ exp(ε) Q + δ, so δ is subtracted before the ratio is taken.
        let sure_hit = (hit.lower_limit(doubt) - delta).max(0.0);
        let bound = claimed.loss(sure_hit, false_hit.upper_limit(doubt)).max(0.0);
        Test {
            name,
            forward: true,
            tpr: hit.plain(),
            fpr: false_hit.plain(),
            bound,
            upper: claimed.loss(hit.upper_limit(doubt), false_hit.lower_limit(doubt)),
            limit: claimed.value(),
            ok: bound <= claimed.value(),
        }
    }
}

/// The largest mean of this many independent, symmetric signs, except with probability `doubt` (Hoeffding).
pub(super) fn sign_limit(signs: u64, doubt: f64) -> f64 {
    (2.0 * (2.0 / doubt).ln() / signs.max(1) as f64).sqrt()
}

fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    bisect(0.0, 1.0, |x| beta_cumulative(x, a, b) < p)
}

/// The regularised incomplete beta function, by its continued fraction where that converges fast.
fn beta_cumulative(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || 1.0 <= x {
        return x.clamp(0.0, 1.0);
    }
    let log_norm = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b);
    let front = (log_norm + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(x, a, b) / a
    } else {
        1.0 - front * beta_fraction(1.0 - x, b, a) / b
    }
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    let away_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut c = 1.0;
    let mut fraction = d;
    for m in 1..10_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            fraction *= c * d;
        }
        if (fraction / before - 1.0).abs() < 1e-14 {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_close(got: f64, wanted: f64, tolerance: f64) {
        assert!((got - wanted).abs() <= tolerance, "got {got}, wanted {wanted} within {tolerance}");
    }

    #[test]
    fn normal_quantiles_agree_with_the_table() {
        for (p, wanted) in [
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_054),
            (0.999, 3.090_232_306_167_814),
            (1e-10, -6.361_340_902_404_056),
        ] {
            check_close(normal_quantile(p), wanted, 1e-10);
        }
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
    }

    #[test]
    fn limits_without_hits_or_misses_are_the_closed_forms() {
        for runs in [10, 1000, 20_000] {
            let none = Share { hits: 0, runs };
            let all = Share { hits: runs, runs };
            let wanted = 1e-3_f64.powf(1.0 / runs as f64);
            check_close(none.upper_limit(1e-3), 1.0 - wanted, 1e-12);
            check_close(all.lower_limit(1e-3), wanted, 1e-12);
            assert_eq!((none.lower_limit(1e-3), all.upper_limit(1e-3)), (0.0, 1.0));
        }
    }

    /// P[X ≥ hits] for a binomial X, by its terms.
    fn binomial_tail(hits: usize, runs: usize, p: f64) -> f64 {
        let term = |k: usize| {
            let (k, n) = (k as f64, runs as f64);
            let log = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
            (log + k * p.ln() + (n - k) * (-p).ln_1p()).exp()
        };
        (hits..=runs).map(term).sum()
    }

    #[test]
    fn at_its_limit_the_count_has_exactly_the_stated_probability() {
        for (hits, runs, doubt) in [(1, 10, 0.025), (5, 10, 0.025), (47, 2000, 1e-4), (7750, 20_000, 1e-6)] {
            let share = Share { hits, runs };
            check_close(binomial_tail(hits, runs, share.lower_limit(doubt)) / doubt, 1.0, 1e-6);
            let below = binomial_tail(runs - hits, runs, 1.0 - share.upper_limit(doubt));
            check_close(below / doubt, 1.0, 1e-6);
        }
        // The usual example: 5 of 10 at 95 %.
        check_close(Share { hits: 5, runs: 10 }.lower_limit(0.025), 0.187_086, 1e-6);
        check_close(Share { hits: 5, runs: 10 }.upper_limit(0.025), 0.812_914, 1e-6);
    }

    #[test]
    fn a_loss_is_unbounded_where_one_stream_never_shows_the_event() {
        for claimed in [Claimed::Epsilon(1.0), Claimed::Mu(1.0)] {
            assert_eq!(claimed.loss(0.0, 1.0), f64::NEG_INFINITY);
            assert_eq!(claimed.loss(0.5, 0.0), f64::INFINITY);
        }
        check_close(Claimed::Epsilon(1.0).loss(0.3875, 0.1425), 1.0003, 1e-4);
        check_close(Claimed::Mu(1.0).loss(0.691_462_461, 0.308_537_539), 1.0, 1e-8);
    }

    #[test]
    fn a_pilot_finds_the_threshold_between_two_separate_laws() {
        let pilot = Scores { first: vec![0.0; 100], second: vec![1.0; 100] };
        let judge = Judge { claimed: Claimed::Mu(1.0), delta: 0.0, doubt: 1e-3 };
        let [forward, backward] = judge.judge_both("", &Event::Pilot(pilot.clone()), &pilot);
        for test in [forward, backward] {
            assert_eq!((test.tpr, test.fpr, test.ok), (1.0, 0.0, false));
        }
    }
}
