//! `dpsw plan`: what a budget buys, or what an error costs.

use std::fmt::Write as _;
use std::io::stdout;
use std::path::Path;

use anyhow::Result;
use dpsw::plan::{Expectation, Group, Prediction, Prior, Target};
use dpsw::privacy::Cost;
use dpsw::{Clock, Domain, Keys, Plan, Unit};
use dpsw_frontend::memory;
use dpsw_frontend::plan_request::{self, PlanRequest};
use dpsw_frontend::quantity::{Span, grouped, millis, time};
use serde::Serialize;

use crate::args::{MethodName, PlanCommand, UnitName};
use crate::count::plan::{self, Chosen, How};
use crate::fault::Fault;
use crate::read::file::read_text;
use crate::show::answer;
use crate::show::output;
use crate::show::remark::{self, Style, is_coloured, paint};
use crate::show::words::{self, percent};

/// Runs `dpsw plan`.
pub(crate) fn run(command: &PlanCommand) -> Result<()> {
    let request = request(command)?;
    let how = how(command);
    let chosen = planned(command, &request, how)?;
    let curve = curve(&request, how, &chosen);
    let Chosen { plan, prediction, .. } = chosen;
    if let (None, Some(delta)) = (command.means.delta, plan.settings().delta) {
        remark::note(format!("delta = {:e}, the default where one is needed", delta.get()));
    }
    if command.json {
        let document = Page { plan: PlanDocument::new(&plan, prediction.as_ref()), error_by_epsilon: curve };
        return output::print_json(&document);
    }
    output::print(&page(command, &plan, prediction.as_ref(), &curve))
}

fn request(command: &PlanCommand) -> Result<PlanRequest> {
    let domain = match command.keys {
        Some(keys) => Domain::Public(Keys::Range(keys)),
        None => plan::domain(command.domain.as_deref())?,
    };
    let PlanCommand { window, past, means, .. } = command;
    let clock = if command.protects.unit == UnitName::AddRemove { Clock::Caller } else { Clock::Events };
    let window = plan_request::window(*window, past.lateness, clock, past.expected_items);
    let unit = plan::unit(command.protects)?;
    let request = PlanRequest::new(window, unit, command.epsilon.unwrap_or(1.0), domain);
    let expectation = match &command.expect {
        Some(path) => Expectation { prior: prior(path)?, ..request.expectation },
        None => request.expectation,
    };
    Ok(PlanRequest {
        delta: means.delta,
        memory: means.memory,
        retention: past.retention,
        expectation,
        ..request
    })
}

fn prior(path: &Path) -> Result<Prior> {
    let parsed = read_text(path)?.parse::<Prior>();
    parsed.map_err(|error| Fault::data(format!("{}: {error}", path.display())))
}

fn how(command: &PlanCommand) -> How<'_> {
    How { method: command.means.method, paper: &command.paper, domain_file: command.domain.as_deref() }
}

/// The plan that was asked for, in whichever direction, with its predicted error.
fn planned(command: &PlanCommand, request: &PlanRequest, how: How<'_>) -> Result<Chosen> {
    check_target("--target-error", command.target_error)?;
    check_target("--target-share", command.target_share)?;
    let target = match (command.target_error, command.target_share) {
        (Some(error), _) => Some(Target::Absolute(Group::Frequent, error)),
        (None, Some(share)) => Some(Target::Relative(Group::Frequent, share)),
        (None, None) if command.smallest_memory => {
            return Err(Fault::usage("--smallest-memory needs --target-error or --target-share"));
        }
        (None, None) => None,
    };
    let Some(target) = target else { return plan::choose(request.clone(), how) };
    if command.means.method == MethodName::Paper {
        return Err(Fault::usage(
            "the errors of the paper's method are bounds, not predictions; targets need --method tuned",
        ));
    }
    if command.epsilon.is_some() && !command.smallest_memory {
        return Err(Fault::usage(
            "give a target alone to find the epsilon, or --epsilon with --smallest-memory",
        ));
    }
    let asked = request.clone().for_planner()?;
    let asked = if command.means.memory.is_none() { memory::with_most(asked) } else { asked };
    let found = match command.smallest_memory {
        true => asked.smallest_bytes(target),
        false => asked.smallest_epsilon(target),
    };
    let found = found.map_err(|error| plan::explained(error, request.window, how.domain_file))?;
    let bytes = if command.smallest_memory { found.plan.sketch_bytes() } else { asked.bytes };
    Ok(Chosen::new(found, asked.with_bytes(bytes)))
}

fn check_target(name: &str, target: Option<f64>) -> Result<()> {
    match target {
        Some(value) if !value.is_finite() || value <= 0.0 => {
            Err(Fault::usage(format!("{name} must be a number above 0, got {value}")))
        }
        _ => Ok(()),
    }
}

/// The error that another epsilon would give.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Point {
    epsilon: f64,
    /// The mean error of the 50 most frequent items; in the paper's method, the bound on a frequency.
    error: f64,
}

/// Factors of the epsilons in the chart.
const FACTORS: [f64; 7] = [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0];

/// The chosen plan, and the plans of the same size with other epsilons.
fn curve(request: &PlanRequest, how: How<'_>, chosen: &Chosen) -> Vec<Point> {
    let memory = chosen.request.as_ref().map(|request| request.bytes).or(request.memory);
    let mut curve = Vec::new();
    for factor in FACTORS {
        let epsilon = chosen.plan.settings().epsilon.get() * factor;
        let error = if factor == 1.0 {
            error(chosen)
        } else {
            // Where noise hides everything, or the arithmetic overflows, the curve has no point.
            let other = plan::choose(PlanRequest { epsilon, memory, ..request.clone() }, how);
            other.ok().and_then(|other| error(&other))
        };
        curve.extend(error.map(|error| Point { epsilon, error }));
    }
    curve
}

fn error(Chosen { plan, prediction, .. }: &Chosen) -> Option<f64> {
    match prediction {
        Some(prediction) => Some(prediction.frequent()),
        None => plan.paper_bounds().map(|bounds| bounds.frequency),
    }
}

#[derive(Debug, Serialize)]
struct Page {
    #[serde(flatten)]
    plan: PlanDocument,
    error_by_epsilon: Vec<Point>,
}

/// A plan in the words of the outside.
#[derive(Debug, Serialize)]
pub(crate) struct PlanDocument {
    structure: Structure,
    noise: Vec<NoiseDocument>,
    bytes: Bytes,
    ledger: LedgerDocument,
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted: Option<Predicted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bounds: Option<Bounds>,
    contract: String,
}

#[derive(Debug, Serialize)]
struct Structure {
    method: &'static str,
    unit: &'static str,
    /// Items of each user that count per substream.
    #[serde(skip_serializing_if = "Option::is_none")]
    per_user: Option<u32>,
    /// Users of a substream whose items count.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_room: Option<u64>,
    /// In items or milliseconds.
    window: u64,
    window_unit: &'static str,
    retention: u32,
    substream: u64,
    substreams_kept: u64,
    counters: &'static str,
    rows: u32,
    columns: u32,
    keys: Option<usize>,
}

#[derive(Debug, Serialize)]
struct NoiseDocument {
    range: String,
    start: u64,
    end: u64,
    law: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<f64>,
    variance: f64,
}

#[derive(Debug, Serialize)]
struct Bytes {
    sketch: u64,
    resident: u64,
}

#[derive(Debug, Serialize)]
struct LedgerDocument {
    epsilon: f64,
    delta: f64,
    charges: Vec<Charge>,
}

#[derive(Debug, Serialize)]
struct Charge {
    what: String,
    cost: String,
}

#[derive(Debug, Serialize)]
struct Predicted {
    frequent: f64,
    frequent_share: f64,
    rare: f64,
    ranks: Vec<RankError>,
    smallest_share: f64,
}

#[derive(Debug, Serialize)]
struct RankError {
    rank: usize,
    count: f64,
    error: f64,
}

#[derive(Debug, Serialize)]
struct Bounds {
    sketch: f64,
    frequency: f64,
    frequency_failure: f64,
    main: Option<f64>,
}

impl PlanDocument {
    pub(crate) fn new(plan: &Plan, prediction: Option<&Prediction>) -> Self {
        let (epsilon, delta) = plan.ledger().spent();
        let charges = plan.ledger().charges().iter();
        let charges =
            charges.map(|(what, cost)| Charge { what: what.clone(), cost: describe(*cost) }).collect();
        Self {
            structure: Structure::new(plan),
            noise: plan.ranges().iter().map(noise).collect(),
            bytes: Bytes { sketch: plan.sketch_bytes(), resident: plan.resident_bytes() },
            ledger: LedgerDocument { epsilon, delta, charges },
            predicted: prediction.map(Predicted::new),
            bounds: plan.paper_bounds().map(|bounds| Bounds {
                sketch: bounds.sketch,
                frequency: bounds.frequency,
                frequency_failure: bounds.frequency_failure,
                main: bounds.main,
            }),
            contract: plan.contract(),
        }
    }
}

impl Structure {
    fn new(plan: &Plan) -> Self {
        let settings = plan.settings();
        Self {
            method: plan.method().name(),
            unit: answer::unit(settings.unit),
            user_room: plan.user_room(),
            per_user: if let Unit::Users { per_substream } = settings.unit {
                Some(per_substream)
            } else {
                None
            },
            window: settings.window.len(),
            window_unit: if settings.window.time().is_some() { "ms" } else { "items" },
            retention: settings.retention,
            substream: plan.substream_len(),
            substreams_kept: plan.substreams_kept(),
            counters: if plan.is_identity() { "identity" } else { "hashed" },
            rows: plan.shape().rows,
            columns: plan.shape().columns,
            keys: settings.domain.keys().map(Keys::len),
        }
    }
}

impl Predicted {
    fn new(prediction: &Prediction) -> Self {
        let rank = |of: dpsw::plan::RankError| RankError { rank: of.rank, count: of.count, error: of.error };
        Self {
            frequent: prediction.frequent(),
            frequent_share: prediction.frequent_relative(),
            rare: prediction.rare(),
            ranks: prediction.ranks().map(rank).collect(),
            smallest_share: prediction.detectable_share(),
        }
    }
}

fn noise(range: &dpsw::plan::PlannedRange) -> NoiseDocument {
    let law = range.law();
    let offsets = range.offsets();
    NoiseDocument {
        range: format!("{:?}", range.role()).to_lowercase(),
        start: offsets.start,
        end: offsets.end,
        law: law.name(),
        scale: law.scale(),
        variance: law.variance(),
    }
}

fn describe(cost: Cost) -> String {
    match cost {
        Cost::Pure(epsilon) => format!("epsilon {epsilon}"),
        Cost::Zcdp(rho) => format!("rho {rho:.6} (zCDP)"),
        Cost::Approximate(epsilon, delta) => format!("epsilon {epsilon}, delta {delta:e}"),
        _ => "see the library".to_owned(),
    }
}

fn page(command: &PlanCommand, plan: &Plan, prediction: Option<&Prediction>, curve: &[Point]) -> String {
    let coloured = is_coloured(&stdout());
    let mut text = String::new();
    let heading = |title: &str| paint(Style::Bold, title, coloured);
    let asked = match command.window {
        Span::Items(items) => format!("the last {} items", grouped(items as f64)),
        Span::Time(length) => format!("the last {}", time(millis(length))),
    };
    let _ = writeln!(text, "{}\n", heading(&format!("A plan for {asked} with {}", plan.claim())));
    let _ = writeln!(text, "{}\n", words::plan(plan));
    if let Some(prediction) = prediction {
        let _ =
            writeln!(text, "{}", heading(if command.expect.is_some() { "Expected error" } else { EXPECTED }));
        expected(&mut text, prediction);
    }
    if !curve.is_empty() {
        let what = if prediction.is_some() {
            "Mean error of the 50 most frequent items"
        } else {
            "Bound on the error of a count"
        };
        let _ = writeln!(text, "{}", heading(&format!("{what}, by epsilon")));
        chart(&mut text, curve, plan.settings().epsilon.get());
    }
    text
}

/// What errors are predicted for; `--expect` takes another guess.
pub(crate) const EXPECTED: &str =
    "Expected error, if the n-th most frequent item occurs 1/n as often as the first";

pub(crate) fn expected(text: &mut String, prediction: &Prediction) {
    let occurs = |of: &RankError| 1.0 <= of.count;
    for RankError { rank, count, error } in Predicted::new(prediction).ranks.into_iter().filter(occurs) {
        let share = if error < count { percent(error / count) } else { "more than it counts".to_owned() };
        let _ =
            writeln!(text, "  item {rank:>5}  {:>10} times, off by {error:>6.0} ({share})", grouped(count));
    }
    let _ = writeln!(
        text,
        "  on average the 50 most frequent items are off by {:.0}, rarer ones by {:.0}",
        prediction.frequent(),
        prediction.rare()
    );
    let false_rows = prediction.false_rows();
    if 0.5 <= false_rows {
        let _ = writeln!(text, "  of the 20 rows of a list about {false_rows:.0} hardly occur in the window");
    }
    let share = percent(prediction.detectable_share());
    let _ = writeln!(text, "  an item stands out from the noise if it has {share} of the window or more\n");
}

/// Columns of the longest bar.
const BAR_LEN: f64 = 40.0;

/// A bar of this share of the longest, to an eighth of a column.
fn bar(share: f64) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share * BAR_LEN * 8.0).round().max(1.0) as usize;
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

fn chart(text: &mut String, curve: &[Point], chosen: f64) {
    let most = curve.iter().map(|point| point.error).fold(1e-9, f64::max);
    for Point { epsilon, error } in curve {
        let bar = bar(error / most);
        let mark = if (epsilon / chosen - 1.0).abs() < 1e-9 { ">" } else { " " };
        let error = if *error < 10.0 { format!("{error:.1}") } else { grouped(*error) };
        let _ = writeln!(
            text,
            "{mark} {:>9}  {bar} {error}",
            format!("{epsilon:.4}").trim_end_matches('0').trim_end_matches('.')
        );
    }
    text.push('\n');
}
