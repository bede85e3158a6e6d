//! What an audit finds: violations of what is exact, and how often coins are guessed.

use std::collections::BTreeSet;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// What must never happen, by kind.
    pub(crate) violations: BTreeSet<&'static str>,
    /// The first of each kind, in words.
    pub(crate) examples: Vec<String>,
    /// Replies that were compared.
    pub(crate) plain: u64,
    pub(crate) guesses: u64,
    pub(crate) right: u64,
}

/// A correct service is blamed for its counters with at most this probability in one audit.
pub(crate) const FALSE_ALARM: f64 = 1e-6;

impl Findings {
    pub(crate) fn blame(&mut self, what: &'static str, example: impl FnOnce() -> String) {
        if self.violations.insert(what) {
            self.examples.push(format!("{what}: {}", example()));
        }
    }

    /// Notes a guess of a coin.
    pub(crate) fn guess(&mut self, guess: Option<bool>, coin: bool) {
        if let Some(guess) = guess {
            self.guesses += 1;
            self.right += u64::from(guess == coin);
        }
    }

    pub(crate) fn share(&self) -> f64 {
        self.right as f64 / self.guesses.max(1) as f64
    }

    /// Whether coins are guessed more often than a claim of ε lets anybody do.
    ///
    /// Each coin is fair and its own. Whatever was seen before, and whatever is seen now, Bayes' rule gives either side of the
    /// coin a probability of at most q = e^ε / (1 + e^ε), as the claim bounds the ratio of the two by e^ε. Whether to guess and
    /// what follows from what is seen. So right guesses are at most as many as heads of T coins that show heads with
    /// probability q, however the trials depend on each other. By Chernoff's bound those have a share of s > q with
    /// probability at most exp(-T · KL(s || q)).
    pub(crate) fn beats(&self, epsilon: f64) -> bool {
        let (q, s) = (epsilon.exp() / (1.0 + epsilon.exp()), self.share());
        q < s && (-(self.guesses as f64) * divergence(s, q)).exp() < FALSE_ALARM
    }
}

/// KL(s || q) of two coins.
fn divergence(s: f64, q: f64) -> f64 {
    let part = |a: f64, b: f64| if a == 0.0 { 0.0 } else { a * (a / b).ln() };
    part(s, q) + part(1.0 - s, 1.0 - q)
}

#[test]
fn a_claim_is_beaten_by_what_it_forbids_and_not_by_what_it_allows() {
    // Of 1,000 guesses 731 are expected at ε = 1.
    for (right, is_beaten) in [(500, false), (731, false), (780, false), (820, true), (1000, true)] {
        let findings = Findings { guesses: 1000, right, ..Findings::default() };
        assert_eq!(findings.beats(1.0), is_beaten, "{right} of 1000");
    }
}
