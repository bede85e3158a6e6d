//! What the sketches and the search for keys may spend.

use crate::error::{DeltaUse, Fraction, PlanError};
use crate::item::domain::Discovery;
use crate::plan::limits::check_fraction;
use crate::plan::settings::{NoiseChoice, Settings};
use crate::privacy::parameters::{Delta, Epsilon};
use crate::ratio::Ratio;

/// What the sketches may spend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) epsilon: Epsilon,
    pub(crate) delta: Option<Delta>,
    pub(crate) keys: Option<KeyBudget>,
}

/// What finding keys may spend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyBudget {
    pub(crate) epsilon: Ratio,
    /// The probability with which a key may come out that only one of two neighbours has.
    pub(crate) delta_of_key: f64,
}

impl Budget {
    pub(crate) fn of(settings: &Settings, noise: NoiseChoice) -> Result<Self, PlanError> {
        Self::new(settings.epsilon, settings.delta, settings.domain.discovery(), noise)
    }

    /// What the sketches have left after the keys; a δ only if their noise needs one.
    pub(crate) fn new(
        whole: Epsilon,
        delta: Option<Delta>,
        discovery: Option<Discovery>,
        noise: NoiseChoice,
    ) -> Result<Self, PlanError> {
        let needs_delta = noise.needs_delta();
        let Some(discovery) = discovery else {
            return Ok(Self { epsilon: whole, delta: delta.filter(|_| needs_delta), keys: None });
        };
        let delta = delta.ok_or(PlanError::DeltaNeeded(DeltaUse::Keys))?.get();
        check_fraction(Fraction::KeyShare, discovery.share.to_f64())?;
        let refused = PlanError::KeysEpsilon { epsilon: whole.get() };
        let epsilon = whole.ratio().checked_mul(discovery.share).ok_or(refused.clone())?;
        let rest = whole.ratio().checked_sub(epsilon).ok_or(refused.clone())?;
        let of_sketch = if needs_delta { delta / 2.0 } else { 0.0 };
        let delta_of_key = (delta - of_sketch) / (1.0 + whole.get().exp()) * (1.0 - KEY_MARGIN);
        if delta_of_key < f64::MIN_POSITIVE {
            return Err(refused);
        }
        let keys = KeyBudget { epsilon, delta_of_key };
        let sketch_delta = needs_delta.then(|| Delta::new(of_sketch)).transpose()?;
        Ok(Self { epsilon: Epsilon::from_ratio(rest)?, delta: sketch_delta, keys: Some(keys) })
    }
}

/// Kept back from the δ of a key, so that rounding errors fall on the side of a higher threshold.
pub(crate) const KEY_MARGIN: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::value::Kind;

    const DELTA: f64 = 1e-6;

    fn budget(discovery: Option<Discovery>, noise: NoiseChoice) -> Budget {
        let epsilon = Epsilon::new(2.0).expect("in range");
        Budget::new(epsilon, Delta::new(DELTA).ok(), discovery, noise).expect("a budget")
    }

    fn keys() -> Discovery {
        Discovery { share: Ratio::new(1, 5).expect("a ratio"), ..Discovery::new(Kind::Integers) }
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
        // delta = delta of the sketches + (1 + e^epsilon) delta of a key, with the whole epsilon.
        for (noise, of_sketch) in [(NoiseChoice::Laplace, 0.0), (NoiseChoice::Gaussian, DELTA / 2.0)] {
            let budget = budget(Some(keys()), noise);
            let of_keys = budget.keys.expect("keys are found");
            assert_eq!(of_keys.epsilon, Ratio::new(2, 5).expect("a ratio"));
            assert_eq!(budget.epsilon.ratio(), Ratio::new(8, 5).expect("a ratio"));
            assert_eq!(budget.delta.map_or(0.0, Delta::get), of_sketch);
            let spent = of_sketch + (1.0 + 2_f64.exp()) * of_keys.delta_of_key;
            assert!(DELTA * (1.0 - 2e-9) < spent && spent < DELTA * (1.0 - 1e-10), "{spent:e}");
        }
    }
}
