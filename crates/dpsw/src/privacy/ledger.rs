//! What one event can cost, charged before the stream starts.

use crate::error::OverBudget;
use crate::privacy::accounting::paper_epsilon;
use crate::privacy::parameters::{Claim, Delta, Epsilon};
use crate::ratio::Ratio;

/// The cost of something that an event can touch.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Cost {
    /// ε with δ = 0.
    Pure(Ratio),
    /// ρ-zCDP, converted as in the paper.
    Zcdp(f64),
    /// (ε, δ).
    Approximate(Ratio, f64),
}

/// The charges against one budget (ε, δ).
///
/// Invariant: all charges composed cost at most the budget; a charge that would break this is refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Ledger {
    epsilon: Epsilon,
    delta: Option<Delta>,
    charges: Vec<(String, Cost)>,
}

impl Ledger {
    /// An empty ledger. Without a δ only pure costs can be charged.
    #[must_use]
    pub fn new(epsilon: Epsilon, delta: Option<Delta>) -> Self {
        Self { epsilon, delta, charges: Vec::new() }
    }

    /// Charges one cost.
    ///
    /// # Errors
    /// The cost exceeds what is left of the budget, or it is negative or not a number. The ledger stays as it was.
    pub fn charge(&mut self, what: &str, cost: Cost) -> Result<(), OverBudget> {
        // Taken back if it does not fit: the error says what all charges would have cost together.
        self.charges.push((what.to_owned(), cost));
        if self.fits_budget() {
            return Ok(());
        }
        let (epsilon, delta) = self.spent();
        self.charges.pop();
        let spent = format!("epsilon = {epsilon}, delta = {delta:e}");
        Err(OverBudget { what: what.to_owned(), spent, budget: self.budget().to_string() })
    }

    /// What was charged, in order.
    #[must_use]
    pub fn charges(&self) -> &[(String, Cost)] {
        &self.charges
    }

    /// The budget as a claim.
    #[must_use]
    pub fn budget(&self) -> Claim {
        match self.delta {
            Some(delta) => Claim::Approximate(self.epsilon, delta),
            None => Claim::Pure(self.epsilon),
        }
    }

    /// ε and δ of everything charged: basic composition, where the zCDP charges add up in ρ and are converted
    /// with the δ that the others leave.
    #[must_use]
    pub fn spent(&self) -> (f64, f64) {
        let pure = self.exact_epsilon().map_or(f64::INFINITY, Ratio::to_f64);
        let (rho, flat) = (self.charged_rho(), self.flat_delta());
        if rho == 0.0 {
            return (pure, flat);
        }
        match self.delta.map(|delta| Delta::new(delta.get() - flat)) {
            Some(Ok(left)) => (pure + paper_epsilon(rho, left), flat + left.get()),
            _ => (f64::INFINITY, flat),
        }
    }

    fn fits_budget(&self) -> bool {
        let (epsilon, delta) = self.spent();
        // A negative cost would pay for the others.
        let is_cost = |value: f64| 0.0 <= value && value.is_finite();
        let are_costs = self.charges.iter().all(|(_, cost)| match cost {
            Cost::Pure(_) => true,
            Cost::Zcdp(rho) => is_cost(*rho),
            Cost::Approximate(_, delta) => is_cost(*delta),
        });
        // As exact ratios: a sum of rounded numbers could exceed the budget and look as if it met it.
        let pure_fits = self.exact_epsilon().is_some_and(|sum| sum <= self.epsilon.ratio());
        let mixed_fits = self.charged_rho() == 0.0 || epsilon <= self.epsilon.get();
        are_costs && pure_fits && mixed_fits && delta <= self.delta.map_or(0.0, Delta::get)
    }

    fn exact_epsilon(&self) -> Option<Ratio> {
        let zero = Ratio::new(0, 1).ok();
        self.charges.iter().fold(zero, |sum, (_, cost)| match cost {
            Cost::Pure(epsilon) | Cost::Approximate(epsilon, _) => sum?.checked_add(*epsilon),
            Cost::Zcdp(_) => sum,
        })
    }

    fn charged_rho(&self) -> f64 {
        self.charges.iter().map(|(_, cost)| if let Cost::Zcdp(rho) = cost { *rho } else { 0.0 }).sum()
    }

    fn flat_delta(&self) -> f64 {
        let costs = self.charges.iter().map(|(_, cost)| cost);
        costs.map(|cost| if let Cost::Approximate(_, delta) = cost { *delta } else { 0.0 }).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::accounting::paper_rho;

    fn epsilon(value: f64) -> Epsilon {
        Epsilon::new(value).expect("in range")
    }

    fn ratio(value: f64) -> Ratio {
        Ratio::from_decimal(value).expect("in range")
    }

    #[test]
    fn pure_charges_add_up_exactly_to_the_budget_and_no_further() {
        let mut ledger = Ledger::new(epsilon(0.3), None);
        for part in 0..3 {
            ledger.charge(&format!("part {part}"), Cost::Pure(ratio(0.1))).expect("0.3 in all");
        }
        let before = ledger.clone();
        let error = ledger.charge("one more", Cost::Pure(ratio(0.000_000_001))).expect_err("over");
        assert!(error.to_string().starts_with("one more would bring the cost to epsilon = 0.300000001"));
        assert_eq!(ledger, before);
    }

    #[test]
    fn gaussian_charges_need_a_delta_and_compose_in_rho() {
        let delta = Delta::new(1e-9).expect("in range");
        let half = paper_rho(epsilon(1.0), delta).get() / 2.0;
        assert!(Ledger::new(epsilon(1.0), None).charge("whole", Cost::Zcdp(half)).is_err());
        let mut ledger = Ledger::new(epsilon(1.0), Some(delta));
        ledger.charge("whole", Cost::Zcdp(half)).expect("half");
        ledger.charge("parts", Cost::Zcdp(half)).expect("the other half");
        assert!(ledger.charge("one more", Cost::Zcdp(half * 1e-6)).is_err());
    }

    #[test]
    fn a_negative_cost_gives_no_credit() {
        let mut ledger = Ledger::new(epsilon(1.0), Delta::new(1e-9).ok());
        for cost in [Cost::Zcdp(-0.1), Cost::Zcdp(f64::NAN), Cost::Approximate(ratio(0.1), -1.0)] {
            assert!(ledger.charge("credit", cost).is_err());
        }
        assert!(ledger.charges().is_empty());
    }

    #[test]
    fn delta_is_charged_too() {
        let mut ledger = Ledger::new(epsilon(1.0), Delta::new(1e-9).ok());
        ledger.charge("sketch", Cost::Approximate(ratio(0.5), 6e-10)).expect("fits");
        assert!(ledger.charge("keys", Cost::Approximate(ratio(0.5), 6e-10)).is_err());
    }

    #[track_caller]
    fn check_close(got: f64, wanted: f64) {
        assert!((got / wanted - 1.0).abs() < 1e-12, "got {got}, wanted {wanted}");
    }

    #[test]
    fn zcdp_charges_are_converted_with_the_delta_that_the_others_leave() {
        let (rho, flat, whole) = (0.01, 6e-10, 1e-9);
        let mut ledger = Ledger::new(epsilon(10.0), Delta::new(whole).ok());
        ledger.charge("sketches", Cost::Zcdp(rho)).expect("fits");
        ledger.charge("keys", Cost::Approximate(ratio(0.5), flat)).expect("fits");
        ledger.charge("more", Cost::Pure(ratio(0.25))).expect("fits");
        let (spent, delta) = ledger.spent();
        check_close(spent, 0.75 + paper_epsilon(rho, Delta::new(whole - flat).expect("in range")));
        check_close(delta, whole);
        let names: Vec<&str> = ledger.charges().iter().map(|(what, _)| what.as_str()).collect();
        assert_eq!(names, ["sketches", "keys", "more"]);
        assert!(ledger.charge("all delta", Cost::Approximate(ratio(0.1), whole - flat)).is_err());
    }

    #[test]
    fn zcdp_and_pure_charges_share_one_epsilon() {
        let delta = Delta::new(1e-9).expect("in range");
        let mut ledger = Ledger::new(epsilon(1.0), Some(delta));
        ledger.charge("sketches", Cost::Zcdp(paper_rho(epsilon(0.6), delta).get())).expect("0.6");
        assert!(ledger.charge("keys", Cost::Pure(ratio(0.41))).is_err());
        ledger.charge("keys", Cost::Pure(ratio(0.4))).expect("1.0 in all");
    }
}
