//! Statements, and whether they hold.

use serde::Serialize;

use super::tally::Tally;
use super::{frequency, heavy, ours, parameters, space, supplement, window};
use crate::method::MethodName;
use crate::results::Results;

/// Whether a statement holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// In as many cases as its words ask for.
    Holds,
    /// In fewer cases than that, but in at least half of them.
    InPart,
    /// In fewer than half of the cases.
    Fails,
    /// There is nothing to measure it by.
    NotMeasured,
}

/// What was measured of a statement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Of which method, where the statement is about DPSW-Sketch.
    pub of: Option<MethodName>,
    pub measured: String,
    pub verdict: Verdict,
}

/// A statement with all that was found.
#[derive(Debug, Clone, Serialize)]
pub struct Judged {
    pub section: &'static str,
    pub says: &'static str,
    /// One finding, or one for each of the methods that it may be about.
    pub findings: Vec<Finding>,
    /// Why the first finding may not hold, where it does not: an explanation, not a measurement.
    pub reason: Option<&'static str>,
}

/// How a statement is checked.
#[derive(Clone, Copy)]
pub(super) enum Check {
    /// It is about DPSW-Sketch: for the printed budgets, for balanced ones and for the tuned method.
    EachDpsw(fn(&Results, MethodName) -> Tally),
    /// It names its methods: one finding.
    Once(fn(&Results) -> Tally),
}

/// A sentence that results can be held against.
pub(super) struct Statement {
    pub(super) says: &'static str,
    pub(super) check: Check,
    /// Empty where none is known.
    pub(super) reason: &'static str,
}

/// Statements under one heading.
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) statements: &'static [Statement],
}

const PAPER: [&Section; 7] = [
    &frequency::SECTION,
    &heavy::SECTION,
    &window::SECTION,
    &space::SECTION,
    &space::BASELINES,
    &parameters::SECTION,
    &supplement::SECTION,
];

/// Every statement of the paper with its findings.
pub fn judge(results: &Results) -> Vec<Judged> {
    judge_all(&PAPER, results)
}

/// What this project says of its own method, with the findings.
pub fn judge_ours(results: &Results) -> Vec<Judged> {
    judge_all(&ours::SECTIONS, results)
}

fn judge_all(sections: &[&Section], results: &Results) -> Vec<Judged> {
    let judged = |section: &&Section| section.judge(results);
    sections.iter().flat_map(judged).collect()
}

impl Section {
    fn judge(&self, results: &Results) -> Vec<Judged> {
        self.statements.iter().map(|statement| statement.judge(self.name, results)).collect()
    }
}

impl Statement {
    fn judge(&self, section: &'static str, results: &Results) -> Judged {
        let finding = |of, tally: Tally| Finding { of, measured: tally.text(), verdict: tally.verdict() };
        let findings: Vec<Finding> = match self.check {
            Check::Once(check) => vec![finding(None, check(results))],
            Check::EachDpsw(check) => [MethodName::Paper, MethodName::PaperBalanced, MethodName::Tuned]
                .map(|method| finding(Some(method), check(results, method)))
                .to_vec(),
        };
        let holds = matches!(findings[0].verdict, Verdict::Holds | Verdict::NotMeasured);
        let reason = (!holds && !self.reason.is_empty()).then_some(self.reason);
        Judged { section, says: self.says, findings, reason }
    }
}
