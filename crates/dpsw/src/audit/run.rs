//! The audit of a plan: trials, exact checks, controls.

use crate::audit::conversation::{Conversation, testable_claim};
use crate::audit::feed::Choices;
use crate::audit::report::{AuditError, Effort, Report};
use crate::audit::tally::Tally;
use crate::audit::trial::Trial;
use crate::audit::{control, cost, keys, repeats, tails, walk};
use crate::plan::settings::Settings;
use crate::plan::structure::Plan;

/// Runs that are carried through bytes, merges and restores. Few are enough: no chance is involved.
const CARRIED: usize = 10;

/// Audits the plan of these settings. A correct build fails with probability at most [`Effort::false_alarm`], and with
/// 5e-5 more for the control with a short seed (1e-8 at 400,000 seals).
///
/// # Errors
/// See [`AuditError`].
pub fn run(settings: &Settings, effort: Effort) -> Result<Report, AuditError> {
    let mut report = audit_claim(settings, effort)?;
    report.controls = control::run_controls(report.claimed, effort)?;
    Ok(report)
}

/// The audit without the controls.
pub(super) fn audit_claim(settings: &Settings, effort: Effort) -> Result<Report, AuditError> {
    effort.check_limits()?;
    let conversation = Conversation::new(settings)?;
    let claimed = testable_claim(conversation.plan())?;
    let mut choices = Choices::new()?;
    let mut tally = Tally::default();
    let trial = Trial::new(claimed, conversation.planned(), effort, |second| {
        conversation.run_once(second, &mut choices, &mut tally)
    })?;
    for _ in 0..CARRIED {
        conversation.check_round_trips(&mut choices, &mut tally)?;
    }
    // Noise for users grows with the number of substreams, of which the tiny plan may have fewer (PRIVACY.md: rule 35).
    tally.overspent = cost::count_overspent(&Plan::new(settings.clone())?, claimed);
    tally.repeated = repeats::count_repeated_seals(settings, effort.seals)?;
    tally.reused = repeats::count_reused_words(settings)?;
    walk::check_walks(settings, &mut choices, &mut tally)?;
    tails::check_tails(settings, &mut choices, &mut tally)?;
    let mut report = Report {
        claimed,
        // Without the tests of found keys, which have limits of their own.
        observed: trial.tests.iter().map(|test| test.bound).fold(0.0, f64::max),
        effort,
        tests: trial.tests,
        tightness: trial.tightness,
        checks: tally.list_checks(effort),
        controls: Vec::new(),
    };
    if let Some(search_plan) = settings.domain.search() {
        let verdict = keys::audit_keys(settings, search_plan, effort)?;
        report.tests.extend(verdict.tests);
        report.checks.extend(verdict.checks);
    }
    Ok(report)
}
