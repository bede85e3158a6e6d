//! `dpsw audit`: attacks on a plan; claimed against observed.

use std::time::Duration;

use anyhow::Result;
use dpsw::audit::{self, Claimed, Effort, Report};
use dpsw::{Clock, Domain, Keys, Settings};
use dpsw_frontend::plan_request::{self, PlanRequest};
use dpsw_frontend::quantity::{Span, grouped};
use serde::Serialize;

use crate::args::{Audit, Means, UnitName};
use crate::count::plan::{self, How};
use crate::fault::{Fault, Kind};
use crate::show::output;
use crate::show::remark;

/// Runs `dpsw audit`.
pub(crate) fn run(command: &Audit) -> Result<()> {
    let settings = settings(command)?;
    let Audit { runs, seals, false_alarm, .. } = *command;
    remark::note(format!(
        "{} runs on each of two streams that differ in one event, and {} seals; this takes a while",
        grouped(runs as f64),
        grouped(seals as f64)
    ));
    let spinner = remark::spinner();
    let report = audit::run(&settings, Effort { runs, seals, false_alarm });
    spinner.finish_and_clear();
    let report = report?;
    if command.json {
        output::print_json(&Document::new(&report))?;
    } else {
        output::print(&format!("{report}\n"))?;
    }
    if report.holds() {
        Ok(())
    } else {
        Err(Fault::of(Kind::Failure, "the audit failed: a claim does not hold or a control was missed"))
    }
}

fn settings(command: &Audit) -> Result<Settings> {
    let domain = match command.discovered {
        true => plan::domain(None)?,
        false => Domain::Public(Keys::Range(command.keys)),
    };
    let is_time = matches!(command.window, Span::Time(_));
    let clock =
        if command.protects.unit == UnitName::AddRemove && is_time { Clock::Caller } else { Clock::Events };
    let window = plan_request::window(command.window, Duration::ZERO, clock, None);
    let request = PlanRequest::new(window, plan::unit(command.protects)?, command.epsilon, domain);
    let Means { delta, memory, method } = command.means;
    let how = How { method, paper: &command.paper, domain_file: None };
    Ok(plan::choose(PlanRequest { delta, memory, ..request }, how)?.plan.settings().clone())
}

/// A report in the words of the outside.
#[derive(Debug, Serialize)]
struct Document {
    holds: bool,
    claimed: Claim,
    observed: f64,
    runs: usize,
    seals: usize,
    false_alarm: f64,
    tests: Vec<Test>,
    tightness: Tightness,
    checks: Vec<Check>,
    controls: Vec<Control>,
}

#[derive(Debug, Serialize)]
struct Claim {
    measure: &'static str,
    value: f64,
}

#[derive(Debug, Serialize)]
struct Test {
    name: &'static str,
    forward: bool,
    true_positives: f64,
    false_positives: f64,
    bound: f64,
    limit: f64,
    ok: bool,
}

#[derive(Debug, Serialize)]
struct Tightness {
    planned: f64,
    shown_at_most: f64,
    ok: bool,
}

#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    violations: u64,
}

#[derive(Debug, Serialize)]
struct Control {
    name: &'static str,
    caught: bool,
    by: Option<&'static str>,
}

impl Document {
    fn new(report: &Report) -> Self {
        let claimed = match report.claimed {
            Claimed::Mu(value) => Claim { measure: "mu", value },
            Claimed::Epsilon(value) => Claim { measure: "epsilon", value },
            _ => Claim { measure: "unknown", value: f64::NAN },
        };
        let Effort { runs, seals, false_alarm } = report.effort;
        let audit::Tightness { planned, upper, ok } = report.tightness;
        Self {
            holds: report.holds(),
            claimed,
            observed: report.observed,
            runs,
            seals,
            false_alarm,
            tests: report.tests.iter().map(Test::new).collect(),
            tightness: Tightness { planned, shown_at_most: upper, ok },
            checks: report.checks.iter().map(Check::new).collect(),
            controls: report.controls.iter().map(Control::new).collect(),
        }
    }
}

impl Test {
    fn new(test: &audit::Test) -> Self {
        let audit::Test { name, forward, tpr, fpr, bound, limit, ok, .. } = *test;
        Self { name, forward, true_positives: tpr, false_positives: fpr, bound, limit, ok }
    }
}

impl Check {
    fn new(check: &audit::Check) -> Self {
        Self { name: check.name, violations: check.violations }
    }
}

impl Control {
    fn new(control: &audit::Control) -> Self {
        Self { name: control.name, caught: control.caught, by: control.by }
    }
}
