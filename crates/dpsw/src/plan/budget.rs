//! What the sketches and the search for keys may spend.

use crate::error::{DeltaUse, Fraction, PlanError};
use crate::plan::limits::check_fraction;
use crate::plan::settings::{NoiseChoice, Settings};
use crate::privacy::parameters::{Delta, Epsilon};
use crate::ratio::Ratio;

/// The budget of the sketches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) epsilon: Epsilon,
    pub(crate) delta: Option<Delta>,
    pub(crate) keys: Option<KeyBudget>,
}

/// The budget of the search for keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyBudget {
    pub(crate) epsilon: Ratio,
    /// ε of keys and sketches together.
    pub(crate) whole: f64,
    pub(crate) delta: f64,
}

impl KeyBudget {
    /// The δ of one event, where so many are protected together, each with an equal part of ε: by group privacy they have
    /// (exp(ε) - 1) / (exp(ε / events) - 1) times as much.
    pub(crate) fn delta_of(&self, events: u64) -> f64 {
        let each = self.whole / events as f64;
        // The quotient of exp(each) - 1 and exp(whole) - 1, which may be too large to calculate.
        let part = (each - self.whole).exp() * (-each).exp_m1() / (-self.whole).exp_m1();
        self.delta * part.min(1.0)
    }
}

impl Budget {
    /// What the sketches have left after the keys, if those have a share; a δ only if the noise of the sketches needs one.
    pub(crate) fn for_sketches(
        settings: &Settings,
        keys_share: Option<Ratio>,
        noise: NoiseChoice,
    ) -> Result<Self, PlanError> {
        let (whole, needs_delta) = (settings.epsilon, noise.needs_delta());
        let Some(share) = keys_share else {
            // A δ that nothing needs must not weaken the claim.
            return Ok(Self { epsilon: whole, delta: settings.delta.filter(|_| needs_delta), keys: None });
        };
        let keys = Self::of_keys(settings, share, noise)?;
        let refused = PlanError::KeysEpsilon { epsilon: whole.get() };
        // An exact difference: keys and sketches together spend ε to the last digit (PRIVACY.md: rule 22).
        let rest = whole.ratio().checked_sub(keys.epsilon).ok_or(refused)?;
        let sketch_delta = settings.delta.filter(|_| needs_delta).map(|delta| Delta::new(delta.get() / 2.0));
        let epsilon = Epsilon::from_ratio(rest)?;
        Ok(Self { epsilon, delta: sketch_delta.transpose()?, keys: Some(keys) })
    }

    /// What finding keys may spend with this share of ε; half of δ is for sketches that need one.
    pub(crate) fn of_keys(
        settings: &Settings,
        share: Ratio,
        noise: NoiseChoice,
    ) -> Result<KeyBudget, PlanError> {
        let delta = settings.delta.ok_or(PlanError::DeltaNeeded(DeltaUse::Keys))?.get();
        check_fraction(Fraction::KeyShare, share.to_f64())?;
        let whole = settings.epsilon.get();
        let epsilon = settings.epsilon.ratio().checked_mul(share);
        let epsilon = epsilon.ok_or(PlanError::KeysEpsilon { epsilon: whole })?;
        // What the half of the sketches leaves, so that rounding cannot make both more than δ.
        let of_keys = if noise.needs_delta() { delta - delta / 2.0 } else { delta };
        Ok(KeyBudget { epsilon, whole, delta: of_keys * (1.0 - KEY_MARGIN) })
    }
}

/// Kept back from the δ of the keys, so that rounding errors fall on the side of a higher threshold.
const KEY_MARGIN: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    const DELTA: f64 = 1e-6;

    fn budget(share: Option<Ratio>, noise: NoiseChoice) -> Budget {
        let settings = Settings::last_items(100, 2.0).and_then(|settings| settings.with_delta(DELTA));
        Budget::for_sketches(&settings.expect("in range"), share, noise).expect("a budget")
    }

    #[test]
    fn sketches_have_all_where_no_keys_are_found_and_a_delta_only_if_they_need_one() {
        for (noise, delta) in [(NoiseChoice::Laplace, None), (NoiseChoice::Gaussian, Some(DELTA))] {
            let budget = budget(None, noise);
            assert_eq!((budget.epsilon.get(), budget.delta.map(Delta::get)), (2.0, delta));
            assert!(budget.keys.is_none());
        }
    }

    #[test]
    fn keys_and_sketches_share_epsilon_and_delta_as_the_proof_says() {
        for (noise, of_sketch) in [(NoiseChoice::Laplace, 0.0), (NoiseChoice::Gaussian, DELTA / 2.0)] {
            let budget = budget(Some(Ratio::new(1, 5).expect("a ratio")), noise);
            let of_keys = budget.keys.expect("keys are found");
            assert_eq!(of_keys.epsilon, Ratio::new(2, 5).expect("a ratio"));
            assert_eq!(budget.epsilon.ratio(), Ratio::new(8, 5).expect("a ratio"));
            assert_eq!(budget.delta.map_or(0.0, Delta::get), of_sketch);
            let spent = of_sketch + of_keys.delta;
            assert!(DELTA * (1.0 - 2e-9) < spent && spent < DELTA * (1.0 - 1e-10), "{spent:e}");
        }
    }

    #[test]
    fn the_delta_of_one_event_adds_up_to_that_of_all() {
        for (whole, events) in [(2.0, 1), (2.0, 7), (0.1, 100), (600.0, 1), (600.0, 300)] {
            let epsilon = Ratio::new(1, 5).expect("a ratio");
            let budget = KeyBudget { epsilon, whole, delta: DELTA };
            // One after the other: delta of k events is delta of one plus exp(epsilon of one) times that of k - 1.
            let each = (whole / events as f64).exp();
            let sum = (0..events).fold(0.0, |sum, _| budget.delta_of(events) + each * sum);
            assert!((sum / DELTA - 1.0).abs() < 1e-9, "{whole}, {events}: {sum:e}");
        }
    }
}
