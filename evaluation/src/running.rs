//! A method that follows a stream, and the answers it gives.

use anyhow::Result;
use dpsw::{Batch, Domain, DpswSketch, Item, Plan, Threshold, Unit, WindowView};

use crate::baseline::Baseline;

/// A method that takes items.
pub enum Running {
    Library(Followed),
    Baseline(Box<dyn Baseline>),
}

/// A sketch of the library, and what its plan says of it.
pub struct Followed {
    sketch: Box<DpswSketch>,
    resident_bytes: u64,
    /// The next user, where users are protected: every item has its own.
    next_user: Option<u64>,
}

impl Followed {
    pub(crate) fn new(sketch: DpswSketch, plan: &Plan) -> Self {
        let next_user = matches!(plan.settings().unit, Unit::Users { .. }).then_some(0);
        Self { sketch: Box::new(sketch), resident_bytes: plan.resident_bytes(), next_user }
    }

    fn insert(&mut self, items: &[u64]) -> Result<()> {
        let Some(first) = self.next_user else {
            self.sketch.extend(Batch::integers(items))?;
            return Ok(());
        };
        let next = first + items.len() as u64;
        let users: Vec<u64> = (first..next).collect();
        self.sketch.extend(Batch::integers(items).by(&users))?;
        self.next_user = Some(next);
        Ok(())
    }
}

/// A method that answers about the window up to now.
pub enum Answers<'a> {
    Library(WindowView),
    Baseline(&'a dyn Baseline),
}

/// What an asker knows beside the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Public {
    /// w, in items.
    pub window_len: u64,
    /// How many keys there are, numbered from 0.
    pub domain_len: usize,
}

/// How often an item occurs, and what the error exceeds with a probability of 5 % only, where the method can tell.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    pub value: f64,
    /// Half the length of the 95 % interval.
    pub error_bound: Option<f64>,
}

impl Running {
    pub fn insert(&mut self, items: &[u64]) -> Result<()> {
        match self {
            Self::Library(followed) => followed.insert(items),
            Self::Baseline(baseline) => Ok(baseline.insert(items)?),
        }
    }

    /// What can be asked now.
    pub fn answers(&self) -> Answers<'_> {
        match self {
            Self::Library(followed) => Answers::Library(followed.sketch.view()),
            Self::Baseline(baseline) => Answers::Baseline(baseline.as_ref()),
        }
    }

    pub fn resident_bytes(&self) -> u64 {
        match self {
            Self::Library(followed) => followed.resident_bytes,
            Self::Baseline(baseline) => baseline.resident_bytes(),
        }
    }
}

impl Answers<'_> {
    pub fn frequency(&self, item: u64) -> Result<Answer> {
        Ok(match self {
            Self::Library(view) => {
                let estimate = view.frequency(item)?;
                Answer { value: estimate.value, error_bound: Some(estimate.error_bound) }
            }
            Self::Baseline(baseline) => Answer { value: baseline.frequency(item), error_bound: None },
        })
    }

    /// The items with at least this share of the window; of a sketch that lists none, among all that the asker knows.
    pub fn heavy_hitters(&self, gamma: f64, public: Public) -> Result<Vec<u64>> {
        let view = match self {
            Self::Library(view) => view,
            Self::Baseline(baseline) => return Ok(baseline.heavy_hitters(gamma * public.window_len as f64)),
        };
        let threshold = Threshold::new(gamma)?;
        let ranked = if let Domain::Asked(_) = view.plan().settings().domain {
            let candidates: Vec<Item<'_>> = (0..public.domain_len as u64).map(Item::Integer).collect();
            view.heavy_hitters_among(&candidates, threshold)?
        } else {
            view.heavy_hitters(threshold)?
        };
        let number = |item| if let Item::Integer(number) = item { Some(number) } else { None };
        Ok(ranked.into_iter().filter_map(|ranked| number(ranked.item)).collect())
    }
}

#[cfg(test)]
mod tests {
    use dpsw::plan::Expectation;
    use dpsw::{Claim, Noise};

    use super::*;
    use crate::method::{AnyPlan, Choices, Fixed, MethodName, Size, Tuning};

    fn hashed() -> AnyPlan {
        let size = Size { window_len: 1_000, domain_len: 50, bytes: 100_000, epsilon: 1_000.0, delta: 1e-9 };
        let choices = Choices {
            tuning: Tuning::Defaults,
            fixed: Fixed::default(),
            expectation: Expectation::zipf(size.domain_len),
        };
        MethodName::TunedHashed.variants(size, &choices).expect("a plan").remove(0).plan
    }

    #[test]
    fn without_a_list_heavy_hitters_are_chosen_among_the_keys_of_the_asker() {
        let plan = hashed();
        assert!(matches!(plan.claim(), Claim::Pure(_)));
        let mut method = plan.start(Noise::seeded(1)).expect("seeded");
        let items: Vec<u64> = (0..2_000).map(|i| if i % 2 == 0 { 7 } else { i % 50 }).collect();
        method.insert(&items).expect("integers");
        let heavy = |domain_len| {
            let public = Public { window_len: 1_000, domain_len };
            method.answers().heavy_hitters(0.3, public).expect("candidates")
        };
        assert_eq!(heavy(50), [7]);
        assert_eq!(heavy(7), [0; 0]);
    }
}
