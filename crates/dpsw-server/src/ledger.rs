//! The ledger of a source: what its streams, also those that are gone, may have spent on one event.

use dpsw::privacy::{Cost, Ledger};
use dpsw::{Claim, Delta, Epsilon};
use serde::{Deserialize, Serialize};

use crate::config::{ConfigError, Protects, SourceConfig};
use crate::engine::report::{ChargeReport, LedgerReport};
use crate::error::ChangeError;

/// The cost of one stream, and the batches that it is spent on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Charge {
    pub(crate) stream: String,
    pub(crate) epsilon: f64,
    pub(crate) delta: Option<f64>,
    /// The first batch that it counts.
    pub(crate) from: u64,
    /// The first one that it no longer counts; none while it runs.
    pub(crate) until: Option<u64>,
    pub(crate) from_ms: u64,
    pub(crate) until_ms: Option<u64>,
}

impl Charge {
    /// What a stream of this claim spends from a batch on.
    pub(crate) fn new(stream: &str, claim: Claim, from: u64, from_ms: u64) -> Option<Self> {
        let (epsilon, delta) = match claim {
            Claim::Pure(epsilon) => (epsilon, None),
            Claim::Approximate(epsilon, delta) => (epsilon, Some(delta.get())),
            _ => return None,
        };
        let stream = stream.to_owned();
        let epsilon = epsilon.get();
        Some(Self { stream, epsilon, delta, from, until: None, from_ms, until_ms: None })
    }

    fn epsilon(&self) -> Result<Epsilon, ConfigError> {
        Ok(Epsilon::new(self.epsilon)?)
    }

    fn claim(&self) -> Result<Claim, ConfigError> {
        Ok(match self.delta {
            None => Claim::Pure(self.epsilon()?),
            Some(delta) => Claim::Approximate(self.epsilon()?, Delta::new(delta)?),
        })
    }

    fn cost(&self) -> Result<Cost, ConfigError> {
        let epsilon = self.epsilon()?.ratio();
        Ok(self.delta.map_or(Cost::Pure(epsilon), |delta| Cost::Approximate(epsilon, delta)))
    }

    fn counts(&self, batch: u64) -> bool {
        self.from <= batch && self.until.is_none_or(|until| batch < until)
    }
}

/// Whether the budget of a source bears a further charge.
///
/// An event is in one batch, so streams that never counted the same batch never spend on the same event: what adds up on the
/// events to come are the streams that run. A user sends in many batches, and a window may reach over the end of one stream and
/// the beginning of another: there everything adds up that was ever charged.
pub(crate) fn check(source: &SourceConfig, charges: &[Charge], new: &Charge) -> Result<(), ChangeError> {
    let mut ledger = ledger_at(source, charges, new.from)?;
    Ok(ledger.charge(&format!("stream {:?}", new.stream), new.cost()?)?)
}

/// The charges on one batch.
fn ledger_at(source: &SourceConfig, charges: &[Charge], batch: u64) -> Result<Ledger, ChangeError> {
    let (epsilon, delta) = source.budget()?;
    let mut ledger = Ledger::new(epsilon, delta);
    for charge in charges.iter().filter(|charge| source.protects == Protects::Users || charge.counts(batch)) {
        ledger.charge(&charge.stream, charge.cost()?)?;
    }
    Ok(ledger)
}

/// What the streams of a source spend together.
pub(crate) fn report(source: &SourceConfig, charges: &[Charge]) -> Result<LedgerReport, ChangeError> {
    let (epsilon, delta) = source.budget()?;
    let mut spent: (f64, f64) = (0.0, 0.0);
    let mut reports = Vec::with_capacity(charges.len());
    for charge in charges {
        let (epsilon, delta) = ledger_at(source, charges, charge.from)?.spent();
        spent = (spent.0.max(epsilon), spent.1.max(delta));
        let Charge { stream, from_ms, until_ms, .. } = charge.clone();
        reports.push(ChargeReport { stream, claim: charge.claim()?, from_ms, until_ms });
    }
    Ok(LedgerReport {
        budget: delta.map_or(Claim::Pure(epsilon), |delta| Claim::Approximate(epsilon, delta)),
        spent,
        charges: reports,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(protects: &str, delta: &str) -> SourceConfig {
        let users = if protects == "users" { "user_column = 'user'\nitems_per_user = 1" } else { "" };
        toml::from_str(&format!(
            "name = 'web'\nprotects = '{protects}'\nepsilon = 2.0\n{delta}\n{users}\ncolumns = {{ page = 'text' }}"
        ))
        .expect("a source")
    }

    fn charge(stream: &str, epsilon: f64, delta: Option<f64>, batches: (u64, Option<u64>)) -> Charge {
        let (stream, (from, until)) = (stream.to_owned(), batches);
        Charge { stream, epsilon, delta, from, until, from_ms: 0, until_ms: until }
    }

    #[test]
    fn streams_that_run_at_the_same_time_add_up_and_what_does_not_fit_is_refused() {
        let running = [charge("a", 1.5, None, (0, None)), charge("gone", 1.5, None, (0, Some(10)))];
        let source = source("event", "");
        assert!(check(&source, &running, &charge("b", 0.5, None, (10, None))).is_ok());
        let error = check(&source, &running, &charge("c", 0.500_000_001, None, (10, None)));
        let error = error.expect_err("over").to_string();
        assert!(error.starts_with("stream \"c\" would bring the cost to epsilon = 2.000000001"), "{error}");
        assert!(check(&source, &running, &charge("d", 0.5, None, (9, None))).is_err(), "both count batch 9");
        let error = check(&source, &running, &charge("e", 0.1, Some(1e-10), (10, None)));
        assert!(error.is_err(), "the source has no delta");
    }

    #[test]
    fn what_streams_spend_on_users_adds_up_also_when_they_are_gone() {
        let gone = [charge("a", 1.5, None, (0, Some(10)))];
        let source = source("users", "delta = 1e-9");
        assert!(check(&source, &gone, &charge("b", 0.5, Some(1e-10), (1000, None))).is_ok());
        assert!(check(&source, &gone, &charge("b", 0.6, Some(1e-10), (1000, None))).is_err());
        assert!(check(&source, &gone, &charge("b", 0.5, Some(1e-8), (1000, None))).is_err());
    }

    #[test]
    fn the_report_says_the_most_that_any_event_costs() {
        let charges = [
            charge("a", 1.0, None, (0, Some(10))),
            charge("b", 0.75, None, (5, Some(20))),
            charge("c", 1.0, None, (10, None)),
            charge("d", 0.125, None, (20, None)),
        ];
        let report = report(&source("event", ""), &charges).expect("within the budget");
        assert_eq!((report.spent, report.charges.len()), ((1.75, 0.0), 4));
        assert_eq!(report.charges[1].until_ms, Some(20));
    }
}
