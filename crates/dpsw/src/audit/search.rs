//! A search for keys, by its law: what the real one and small wrong ones show on paths of counts.

use crate::audit::report::{AuditError, Control, Effort};
use crate::audit::statistics::Share;
use crate::noise::generator::{Generator, Noise};
use crate::noise::law::Law;
use crate::noise::one_sided::OneSided;
use crate::noise::table::Table;
use crate::plan::release::{COUNT_MIN, Release};
use crate::ratio::Ratio;

/// Checks of a search.
pub(super) const CHECKS: usize = 4;

/// The counts of a key at each check.
pub(super) type Path = [u64; CHECKS];

/// The check at which a key came out, if it did.
pub(super) type Outcome = Option<usize>;

/// The smallest count with which a key comes out for sure if its lasting noise is zero.
pub(super) fn sure_count(threshold: u64) -> u64 {
    threshold + COUNT_MIN - 1
}

/// Paths on which the usual mistakes show: a count that stands, one that grows, one that comes late.
pub(super) fn revealing_paths(threshold: u64) -> [Path; 3] {
    let enough = sure_count(threshold);
    [[enough + 2; CHECKS], [COUNT_MIN, enough - 1, enough, enough + 2], [0, 0, enough, enough]]
}

/// How many of the probabilities of a law are not those of the outcomes.
pub(super) fn count_misses(outcomes: &[Outcome], law: &[f64], doubt: f64) -> u64 {
    let mut missed = 0;
    for (place, &probability) in law.iter().enumerate() {
        // The last probability is that of never coming out.
        let outcome = Some(place).filter(|&place| place + 1 < law.len());
        let hits = outcomes.iter().filter(|&&seen| seen == outcome).count();
        let share = Share { hits, runs: outcomes.len() };
        missed += u64::from(probability < share.lower_limit(doubt) || share.upper_limit(doubt) < probability);
    }
    missed
}

/// The first check at which a key was listed or came out.
pub(super) fn first_check(listed: &[bool]) -> Outcome {
    listed.iter().position(|&is_listed| is_listed)
}

/// Whether a key was listed, left the list and came back, by whether it was listed at each check.
pub(super) fn came_back(listed: &[bool]) -> bool {
    1 < listed.chunk_by(|one, next| one == next).filter(|stretch| stretch[0]).count()
}

/// A mistake of a small search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchSlip {
    Nothing,
    /// Every check has the lasting noise alone.
    OneNoise,
    /// The lasting noise is drawn again when the search is restored, which it is before each check.
    Redrawn,
    /// A key that came out is looked at again once it has left the list.
    LooksAgain,
}

/// Holds each wrong search against the right one.
pub(super) fn run_controls(effort: Effort) -> Result<Vec<Control>, AuditError> {
    let small = SmallSearch::new()?;
    let by_law = "keys that come out otherwise than planned";
    let cases = [
        (SearchSlip::OneNoise, "one noise for all looks at a key", by_law),
        (SearchSlip::Redrawn, "the noise of a search drawn again after a restore", by_law),
        (
            SearchSlip::LooksAgain,
            "a key looked at again after it left the list",
            "keys that came back in their search",
        ),
    ];
    let mut controls = Vec::with_capacity(cases.len());
    for (slip, name, by) in cases {
        let count = if slip == SearchSlip::LooksAgain {
            SmallSearch::count_returned
        } else {
            SmallSearch::count_misses
        };
        let right = count(&small, SearchSlip::Nothing, effort)?;
        controls.push(Control::judge(name, by, right, count(&small, slip, effort)?));
    }
    Ok(controls)
}

/// A search for one key, with ε = 2.
struct SmallSearch {
    release: Release,
    lasting: Table,
    fresh: Table,
}

impl SmallSearch {
    fn new() -> Result<Self, AuditError> {
        // The real split: a sixth of epsilon for the lasting noise, five sixths for the fresh one (PRIVACY.md: rule 22).
        let (lasting, fresh) = (Ratio::new(3, 1)?, Ratio::new(3, 5)?);
        let release = Release { lasting, fresh, threshold: 4, checks: CHECKS as u64 };
        let [lasting, fresh] = [lasting, fresh].map(|scale| Table::new(Law::Laplace { scale }));
        Ok(Self { release, lasting, fresh })
    }

    /// At which checks a key comes out; it leaves the list at once.
    fn run_checks(&self, slip: SearchSlip, path: Path, generator: &mut Generator) -> Vec<bool> {
        let [mut lasting, mut fresh] = [&self.lasting, &self.fresh].map(OneSided::new);
        let mut kept = u64::from(lasting.draw(generator));
        let mut is_out = false;
        let mut outcomes = Vec::with_capacity(CHECKS);
        for count in path {
            if slip == SearchSlip::Redrawn {
                kept = lasting.draw(generator).into();
            }
            let above = (count + 1).saturating_sub(COUNT_MIN + kept);
            let fresh = if slip == SearchSlip::OneNoise { 0 } else { fresh.draw(generator).into() };
            let comes_out = 0 < above && self.release.threshold <= above + fresh && !is_out;
            // A key that came out is not looked at again in its search (PRIVACY.md: rule 32).
            is_out = (is_out || comes_out) && slip != SearchSlip::LooksAgain;
            outcomes.push(comes_out);
        }
        outcomes
    }

    fn count_misses(&self, slip: SearchSlip, effort: Effort) -> Result<u64, AuditError> {
        let mut generator = Noise::from_system().generator()?;
        let [path, ..] = revealing_paths(self.release.threshold);
        let outcomes: Vec<Outcome> =
            (0..effort.runs).map(|_| first_check(&self.run_checks(slip, path, &mut generator))).collect();
        Ok(count_misses(&outcomes, &self.release.outcome_law(&path), effort.doubt()))
    }

    fn count_returned(&self, slip: SearchSlip, effort: Effort) -> Result<u64, AuditError> {
        let mut generator = Noise::from_system().generator()?;
        let [path, ..] = revealing_paths(self.release.threshold);
        let mut returned = 0;
        for _ in 0..effort.runs {
            // Between two checks the key leaves the list.
            let listed: Vec<bool> = self
                .run_checks(slip, path, &mut generator)
                .into_iter()
                .flat_map(|listed| [listed, false])
                .collect();
            returned += u64::from(came_back(&listed));
        }
        Ok(returned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_listed_once_did_not_come_back() {
        for (listed, is_back) in [
            (&[][..], false),
            (&[false, false], false),
            (&[false, true, true], false),
            (&[true, false, false], false),
            (&[false, true, false], false),
            (&[true, false, true], true),
            (&[false, true, false, true], true),
        ] {
            assert_eq!(came_back(listed), is_back, "{listed:?}");
        }
    }

    /// Each of 5 probabilities is missed with probability at most 2e-4, so all three paths hold but for 3e-3; of the law of
    /// another threshold at least one is missed.
    #[test]
    fn outcomes_are_held_against_their_law() {
        let small = SmallSearch::new().expect("the system has randomness");
        let mut generator = Noise::seeded(5).generator().expect("seeded");
        for path in revealing_paths(small.release.threshold) {
            let mut outcome = |_| first_check(&small.run_checks(SearchSlip::Nothing, path, &mut generator));
            let outcomes: Vec<Outcome> = (0..20_000).map(&mut outcome).collect();
            assert_eq!(count_misses(&outcomes, &small.release.outcome_law(&path), 1e-4), 0, "{path:?}");
            let other = Release { threshold: small.release.threshold - 1, ..small.release };
            assert_ne!(count_misses(&outcomes, &other.outcome_law(&path), 1e-4), 0, "{path:?}");
        }
    }
}
