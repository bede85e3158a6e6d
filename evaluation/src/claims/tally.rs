//! In how many cases a statement holds, and the numbers that decide them.

use super::judge::Verdict;
use crate::chart::short;

/// "Always" and "all".
pub(super) const ALWAYS: f64 = 1.0;
/// "Almost all", "generally", "mostly".
pub(super) const MOSTLY: f64 = 0.8;

/// The cases of a statement, and the share of them in which it must hold.
pub(super) struct Tally {
    cases: Vec<bool>,
    needed: f64,
    measured: String,
}

impl Tally {
    pub(super) fn new(needed: f64, cases: Vec<bool>, measured: String) -> Self {
        Self { cases, needed, measured }
    }

    /// Each case comes with the number that decides it; `text` shows the numbers.
    pub(super) fn of(
        needed: f64,
        cases: impl IntoIterator<Item = (bool, f64)>,
        text: impl FnOnce(&[f64]) -> String,
    ) -> Self {
        let (cases, values): (Vec<bool>, Vec<f64>) = cases.into_iter().unzip();
        Self::new(needed, cases, text(&values))
    }

    /// Shows the smallest and the largest number after what they are.
    pub(super) fn spanning(needed: f64, what: &str, cases: impl IntoIterator<Item = (bool, f64)>) -> Self {
        Self::of(needed, cases, |values| format!("{what}: {}", span(values)))
    }

    /// Cases that must all hold, in groups; the numbers of each are shown after its name.
    pub(super) fn grouped<N: AsRef<str>>(
        groups: impl IntoIterator<Item = (N, Vec<(bool, f64)>)>,
        text: fn(&[f64]) -> String,
    ) -> Self {
        let (mut cases, mut texts) = (Vec::new(), Vec::new());
        for (name, group) in groups {
            let group = Self::of(ALWAYS, group, text);
            cases.extend(group.cases);
            texts.push(format!("{} {}", name.as_ref(), group.measured));
        }
        Self::new(ALWAYS, cases, texts.join(", "))
    }

    /// The same after a word on what the numbers are.
    pub(super) fn labelled(self, what: &str) -> Self {
        Self { measured: format!("{what}: {}", self.measured), ..self }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    pub(super) fn holds_always(&self) -> bool {
        self.cases.iter().all(|&holds| holds)
    }

    pub(super) fn verdict(&self) -> Verdict {
        match self.hits() as f64 / self.cases.len() as f64 {
            share if share.is_nan() => Verdict::NotMeasured,
            share if self.needed <= share => Verdict::Holds,
            share if 0.5 <= share => Verdict::InPart,
            _ => Verdict::Fails,
        }
    }

    pub(super) fn text(&self) -> String {
        if self.cases.is_empty() {
            return "not measured".to_owned();
        }
        let measured = if self.measured.is_empty() { String::new() } else { format!("; {}", self.measured) };
        format!("{} of {} cases{measured}", self.hits(), self.cases.len())
    }

    fn hits(&self) -> usize {
        self.cases.iter().filter(|holds| **holds).count()
    }
}

/// The smallest and the largest number; infinite the wrong way round where there is none.
pub(super) fn extent(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let wider = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
    values.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), wider)
}

pub(super) fn span(values: &[f64]) -> String {
    let (low, high) = extent(values.iter().copied());
    if low <= high { format!("{} to {}", short(low), short(high)) } else { "-".to_owned() }
}

pub(super) fn list(values: &[f64]) -> String {
    values.iter().map(|&value| short(value)).collect::<Vec<String>>().join(", ")
}
