//! When the count of a key lets it out: the noise of a search, the threshold, and the law of the check at which a key comes
//! out. PRIVACY.md says why it holds.

use crate::plan::budget::KeyBudget;
use crate::ratio::Ratio;

/// Keys with fewer items in a search are never looked at.
pub(crate) const COUNT_MIN: u64 = 4;
/// The lasting noise has one of these parts of ε, the fresh noise the others.
const PARTS: u64 = 6;
/// The highest threshold of found keys: it and the noise fit in 32 bits.
const THRESHOLD_MAX: u64 = 1 << 29;

/// The law by which keys are released. At each check a key with n ≥ [`COUNT_MIN`] items is above by n - (`COUNT_MIN` - 1) - u, where the
/// lasting noise u is drawn once per key and search. It comes out if it is above by at least one and, with fresh noise v of
/// each check added, by at least the threshold. Both laws are one-sided: P[u ≥ i] = exp(-i / scale).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Release {
    /// The scale of u.
    pub(crate) lasting: Ratio,
    /// The scale of v.
    pub(crate) fresh: Ratio,
    /// At least 1.
    pub(crate) threshold: u64,
    /// The most checks of a search.
    pub(crate) checks: u64,
}

impl Release {
    /// With the lowest threshold that the budget allows for this many checks, where this many events are protected together;
    /// `None` for an ε that is too fine or a δ that is too small.
    pub(crate) fn new(budget: &KeyBudget, checks: u64, events: u64) -> Option<Self> {
        // Exact ratios: the two parts of ε add up to all of it (PRIVACY.md: rule 22).
        let lasting = budget.epsilon.checked_divide(PARTS.checked_mul(events)?)?;
        let fresh = lasting.checked_mul(Ratio::new(1, PARTS - 1).ok()?)?;
        let delta = budget.delta_of(events);
        let release = |threshold| Self { lasting, fresh, threshold, checks };
        // Rounded up: a threshold that is one too high costs accuracy, one that is too low the promise.
        let above = (release(1).excess_delta() / delta).ln() * fresh.to_f64() * (1.0 + 1e-12);
        let above = above.ceil().max(0.0);
        let is_in_reach = above < THRESHOLD_MAX as f64 && lasting.to_f64() < THRESHOLD_MAX as f64;
        // Below this floats lose digits, and with them the margin that is kept back.
        if delta < f64::MIN_POSITIVE || !is_in_reach {
            return None;
        }
        Some(release(1 + above as u64)).filter(|release| release.excess_delta() <= delta)
    }

    /// The δ of one event: with this probability the check at which a key comes out may tell more than exp(ε) about it.
    pub(crate) fn excess_delta(&self) -> f64 {
        let at_zero = -(-1.0 / self.lasting.to_f64()).exp_m1();
        let lets_one_out = (-((self.threshold - 1) as f64) / self.fresh.to_f64()).exp();
        self.checks as f64 * at_zero * lets_one_out
    }

    /// The law of the check at which a key comes out that has these counts at the checks: the probability of each, and last
    /// that of none.
    pub(crate) fn outcome_law(&self, counts: &[u64]) -> Vec<f64> {
        let counted = |count: u64| (count + 1).saturating_sub(COUNT_MIN);
        let most = counts.iter().copied().map(counted).max().unwrap_or(0);
        let at_least = |lasting: u64| (-(lasting as f64) / self.lasting.to_f64()).exp();
        let mut law = vec![0.0; counts.len() + 1];
        // With as much lasting noise the key is above at no check.
        law[counts.len()] = at_least(most);
        for lasting in 0..most {
            let mut left = at_least(lasting) * -(-1.0 / self.lasting.to_f64()).exp_m1();
            for (check, &count) in counts.iter().enumerate() {
                let out = left * self.lets_out(counted(count).saturating_sub(lasting));
                law[check] += out;
                left -= out;
            }
            law[counts.len()] += left;
        }
        law
    }

    /// With which probability a check lets out a key that is above by this much.
    fn lets_out(&self, above: u64) -> f64 {
        let missing = self.threshold.saturating_sub(above);
        // Fresh noise alone must let nothing out: the proof rests on it (PRIVACY.md: rule 22).
        if above == 0 { 0.0 } else { (-(missing as f64) / self.fresh.to_f64()).exp() }
    }

    /// The smallest count with which one check finds a key with this probability, whatever its fresh noise.
    pub(crate) fn count_found(&self, probability: f64) -> f64 {
        let steps = (-(1.0 - probability).ln() * self.lasting.to_f64()).ceil().max(1.0);
        (self.threshold + COUNT_MIN - 2) as f64 + steps
    }

    /// With which probability, at least, one check finds a key of which this many items are expected and `missing` are lost,
    /// whatever its fresh noise. Items come as a Poisson stream: the mean of exp(-count / scale) is exp(-expected (1 -
    /// exp(-1 / scale))), and it exceeds the chance to miss the key.
    pub(crate) fn chance_found(&self, expected: f64, missing: f64) -> f64 {
        let rate = 1.0 / self.lasting.to_f64();
        let least = (self.threshold + COUNT_MIN - 2) as f64 + missing;
        -(rate * least + expected * (-rate).exp_m1()).min(0.0).exp_m1()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(epsilon: f64, delta: f64) -> KeyBudget {
        let epsilon = Ratio::from_decimal(epsilon).expect("a ratio");
        KeyBudget { epsilon, whole: 1.0, delta }
    }

    #[test]
    fn the_threshold_is_the_lowest_that_the_budget_allows() {
        for epsilon in [0.05, 0.2, 1.0, 7.5] {
            for delta in [0.3, 1e-3, 1e-10, 1e-40] {
                for checks in [1, 20, 1000] {
                    let release = Release::new(&budget(epsilon, delta), checks, 1).expect("a threshold");
                    assert!(release.excess_delta() <= delta, "{release:?}");
                    let lower = Release { threshold: release.threshold.saturating_sub(1), ..release };
                    let is_lowest = release.threshold == 1 || delta < lower.excess_delta() * (1.0 + 1e-9);
                    assert!(is_lowest, "{release:?}");
                }
            }
        }
    }

    #[test]
    fn epsilon_is_split_exactly_between_lasting_and_fresh_noise() {
        let release = Release::new(&budget(0.2, 1e-10), 20, 3).expect("a threshold");
        // y = 0.2 / 6 / 3 and x = 5 y.
        assert_eq!(release.lasting, Ratio::new(90, 1).expect("a ratio"));
        assert_eq!(release.fresh, Ratio::new(18, 1).expect("a ratio"));
    }

    #[test]
    fn what_cannot_be_drawn_or_reached_is_refused() {
        assert!(Release::new(&budget(1e-9, 1e-10), 20, 1).is_none(), "the threshold is out of reach");
        assert!(Release::new(&budget(1.0, 1e-310), 20, 1).is_none(), "delta is too small to calculate with");
        assert!(Release::new(&budget(1.0, 1e-10), 20, u64::MAX).is_none(), "too many events");
    }

    /// With which probability a key is above the threshold by its lasting noise alone.
    fn is_above(release: &Release, count: u64) -> f64 {
        let most = (count + 1).checked_sub(COUNT_MIN + release.threshold);
        most.map_or(0.0, |most| 1.0 - (-((most + 1) as f64) / release.lasting.to_f64()).exp())
    }

    #[test]
    fn a_count_is_found_with_the_stated_probability() {
        let release = Release::new(&budget(0.2, 1e-10), 20, 1).expect("a threshold");
        for probability in [0.1, 0.5, 0.9, 0.99] {
            let count = release.count_found(probability) as u64;
            assert!(probability <= is_above(&release, count) + 1e-12, "{probability}");
            assert!(is_above(&release, count - 1) < probability, "{probability}");
            let by_one_check = release.outcome_law(&[count])[0];
            assert!(is_above(&release, count) <= by_one_check, "fresh noise only helps");
        }
    }

    #[test]
    fn keys_that_come_at_random_are_found_at_least_as_often_as_stated() {
        let release = Release::new(&budget(0.8, 1e-6), 20, 1).expect("a threshold");
        for (expected, slack) in [(5.0_f64, 0.02), (30.0, 0.02), (40.0, 0.02), (60.0, 0.02), (100.0, 1e-9)] {
            let log_weight =
                |count: u64| count as f64 * expected.ln() - expected - libm::lgamma(count as f64 + 1.0);
            let exact: f64 = (0..400).map(|count| log_weight(count).exp() * is_above(&release, count)).sum();
            let stated = release.chance_found(expected, 0.0);
            assert!(stated <= exact + 1e-12, "{expected}: {stated} {exact}");
            // Of a hundred expected items enough come but with probability below 1e-9: there it is exact.
            let is_near = exact < 0.9 || exact - stated < slack;
            assert!(is_near, "{expected}: {stated} {exact}");
            assert_eq!(release.chance_found(expected, 2000.0), 0.0);
        }
    }

    /// By how much some outcomes are likelier than exp(ε) times as likely under another law.
    fn divergence(one: &[f64], other: &[f64], epsilon: f64) -> f64 {
        one.iter().zip(other).map(|(one, other)| (one - epsilon.exp() * other).max(0.0)).sum()
    }

    /// The law of two keys together.
    fn both(one: &[f64], other: &[f64]) -> Vec<f64> {
        one.iter().flat_map(|one| other.iter().map(move |other| one * other)).collect()
    }

    struct Paths(crate::noise::generator::Generator);

    impl Paths {
        fn below(&mut self, bound: u64) -> u64 {
            self.0.next_u64() % bound
        }

        /// Counts that never fall: from too few to look at up to above the threshold, standing still or growing.
        fn path(&mut self, release: &Release) -> Vec<u64> {
            let enough = release.threshold + COUNT_MIN + 10;
            let mut count = if self.below(3) == 0 { COUNT_MIN - 1 } else { self.below(enough) };
            let step = [1, 2, enough][self.below(3) as usize];
            let mut next = || {
                count += self.below(step);
                count
            };
            (0..release.checks).map(|_| next()).collect()
        }

        /// The same with one event more from some check on.
        fn raised(&mut self, path: &[u64]) -> Vec<u64> {
            let from = self.below(path.len() as u64) as usize;
            path.iter().enumerate().map(|(check, count)| count + u64::from(from <= check)).collect()
        }
    }

    /// Calls a judge with thousands of laws and their budgets, where so many events are protected together.
    fn on_laws(events: u64, mut judge: impl FnMut(&Release, &KeyBudget, &mut Paths)) {
        let mut noise = crate::noise::generator::Noise::seeded(9);
        let mut paths = Paths(noise.generator().expect("seeded"));
        for _ in 0..3000 {
            let epsilon = [0.2, 0.5, 1.0, 2.0, 4.0][paths.below(5) as usize];
            let delta = [1e-2, 1e-4, 1e-6][paths.below(3) as usize];
            // The smallest whole budget leaves the most for each event.
            let budget = KeyBudget { whole: epsilon, ..budget(epsilon, delta) };
            let release = Release::new(&budget, 1 + paths.below(6), events).expect("a threshold");
            judge(&release, &budget, &mut paths);
        }
    }

    /// Laws are calculated to about 1e-14.
    const ROUNDING: f64 = 1e-12;

    #[test]
    fn one_event_more_shows_no_more_than_the_fresh_noise_and_one_less_than_the_lasting_noise_allows() {
        let (mut worst, mut worst_below) = (0.0_f64, 0.0_f64);
        on_laws(1, |release, budget, paths| {
            let path = paths.path(release);
            let raised = paths.raised(&path);
            let [up, down] = [&raised, &path].map(|path| release.outcome_law(path));
            let (x, y) = (1.0 / release.fresh.to_f64(), 1.0 / release.lasting.to_f64());
            let excess = divergence(&up, &down, x);
            assert!(excess <= budget.delta + ROUNDING, "{release:?} {path:?} {raised:?}");
            assert!(divergence(&down, &up, y) <= ROUNDING, "{release:?} {path:?} {raised:?}");
            worst = worst.max(excess / release.excess_delta());
            let below = Release { threshold: release.threshold.max(2) - 1, ..*release };
            let [up, down] = [&raised, &path].map(|path| below.outcome_law(path));
            worst_below = worst_below.max(divergence(&up, &down, x) / budget.delta);
        });
        assert!(0.99 < worst && worst < 1.0 + 1e-9, "the bound is met: {worst}");
        assert!(1.0 < worst_below, "a lower threshold would be seen: {worst_below}");
    }

    #[test]
    fn a_replaced_event_shows_no_more_than_the_budget() {
        on_laws(1, |release, budget, paths| {
            let [one, other] = [(); 2].map(|()| paths.path(release));
            // One key has the event in the first stream, the other one in the second, from the same check on.
            let from = paths.below(release.checks) as usize;
            let raised = |path: &[u64]| -> Vec<u64> {
                path.iter().enumerate().map(|(check, count)| count + u64::from(from <= check)).collect()
            };
            let first = both(&release.outcome_law(&raised(&one)), &release.outcome_law(&other));
            let second = both(&release.outcome_law(&one), &release.outcome_law(&raised(&other)));
            for (first, second) in [(&first, &second), (&second, &first)] {
                let excess = divergence(first, second, budget.epsilon.to_f64());
                assert!(excess <= budget.delta + ROUNDING, "{release:?} {one:?} {other:?}");
            }
        });
    }

    /// An event more that pushes out the last one of a time window's search, of the same key.
    #[test]
    fn an_event_that_is_pushed_out_again_shows_no_more_than_the_budget() {
        on_laws(1, |release, budget, paths| {
            let path = paths.path(release);
            let raised = paths.raised(&path);
            let until = paths.below(release.checks + 1) as usize;
            let pushed = [&raised[..until], &path[until..]].concat();
            let [one, other] = [&path, &pushed].map(|path| release.outcome_law(path));
            for (one, other) in [(&one, &other), (&other, &one)] {
                let excess = divergence(one, other, budget.epsilon.to_f64());
                assert!(excess <= budget.delta + ROUNDING, "{release:?} {path:?} {pushed:?}");
            }
        });
    }

    #[test]
    fn all_events_of_a_user_together_show_no_more_than_the_budget() {
        for events in [2, 3, 7] {
            on_laws(events, |release, budget, paths| {
                let [one, other] = [(); 2].map(|()| paths.path(release));
                let (mut more, mut less) = (one.clone(), other.clone());
                for _ in 0..events {
                    let key = if paths.below(2) == 0 { &mut more } else { &mut less };
                    *key = paths.raised(key);
                }
                let first = both(&release.outcome_law(&more), &release.outcome_law(&other));
                let second = both(&release.outcome_law(&one), &release.outcome_law(&less));
                for (first, second) in [(&first, &second), (&second, &first)] {
                    let excess = divergence(first, second, budget.epsilon.to_f64());
                    assert!(excess <= budget.delta + ROUNDING, "{release:?} {more:?} {less:?}");
                }
            });
        }
    }
}
