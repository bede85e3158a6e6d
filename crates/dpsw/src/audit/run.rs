//! The audit of a plan: trials, exact checks, controls.

use crate::audit::conversation::{Conversation, Tally, claimed};
use crate::audit::report::{AuditError, Check, Effort, Report};
use crate::audit::trial::Trial;
use crate::audit::{control, keys, repeats, statistics, tiny};
use crate::plan::settings::Settings;

/// Audits the plan of these settings. A correct build fails with probability at most [`Effort::false_alarm`], and with
/// 5e-5 more for the control with a short seed (1e-8 at 400,000 seals).
///
/// # Errors
/// See [`AuditError`].
pub fn run(settings: &Settings, effort: Effort) -> Result<Report, AuditError> {
    let mut report = audit_claim(settings, effort)?;
    report.controls = control::controls(report.claimed, effort)?;
    Ok(report)
}

/// The audit without the controls.
pub(super) fn audit_claim(settings: &Settings, effort: Effort) -> Result<Report, AuditError> {
    effort.check()?;
    let tiny = tiny::tiny(settings)?;
    let conversation = Conversation::new(tiny.clone())?;
    let claimed = claimed(&tiny, conversation.plan().claim())?;
    let mut tally = Tally::default();
    let trial =
        Trial::new(claimed, conversation.planned(), effort, |second| conversation.run(second, &mut tally))?;
    let mut report = Report {
        claimed,
        observed: trial.tests.iter().map(|test| test.bound).fold(0.0, f64::max),
        effort,
        tests: trial.tests,
        tightness: trial.tightness,
        checks: checks(&tally, effort, repeats::repeated_seals(&tiny, effort.seals)?),
        controls: Vec::new(),
    };
    let violations = conversation.miscounted(&tally, effort.doubt());
    report.checks.push(Check { name: "what should count is in the counters, and nothing else", violations });
    if let Some(discovery) = settings.domain.discovery() {
        let verdict = keys::audit(settings, discovery, effort)?;
        report.tests.extend(verdict.tests);
        report.checks.extend(verdict.checks);
    }
    Ok(report)
}

fn checks(tally: &Tally, effort: Effort, repeats: u64) -> Vec<Check> {
    let limit = statistics::sign_limit(tally.signs.pairs, effort.doubt());
    let check = |name, violations| Check { name, violations };
    vec![
        check("answers inside a segment change through the position alone", tally.moved),
        check("every arrival takes its position", tally.shifted),
        check("the same question has the same answer", tally.wavered),
        check("sealed counters are the same in every view", tally.altered),
        check("bytes, merged views and restored streams hold the same sealed counters", tally.lost),
        check(
            "the signs of the noise of two seals are unrelated",
            u64::from(!tally.signs.are_unrelated(limit)),
        ),
        check("no noise repeats in as many seals as asked for", repeats),
    ]
}
