//! The methods that are compared, at a given size.

use std::fmt;

use anyhow::{Context, Result, ensure};
use clap::builder::PossibleValue;
use dpsw::plan::{CounterLayout, Expectation, Grid, Method, PaperMethod, Request, Shares, SubstreamLen};
use dpsw::{Claim, Delta, Domain, DpswSketch, Keys, Noise, Plan, Ratio, SearchSettings, Settings, Unit};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::baseline::{self, Kind};
use crate::running::{Followed, Running};

/// A method by the name that results use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MethodName {
    /// The paper's structure with its printed shares.
    Paper,
    /// The paper's structure with shares 0.8 / 0.05 / 0.05.
    PaperBalanced,
    /// One sketch per substream, pure epsilon.
    Tuned,
    /// The same with one level: all keys are cut alike.
    TunedPlain,
    /// The same without a list of keys, as the paper's structure counts: hashed counters, and any key can be asked for by
    /// name. Heavy hitters are chosen among candidates of the asker, which are all keys here.
    TunedHashed,
    /// The same without a public domain: keys are found in the stream.
    TunedDiscovered,
    /// The same for whole users: one item per user and substream counts. Here every item has a user of its own.
    TunedUser,
    /// A method that the paper compares with, or tumbling buckets.
    Baseline(Kind),
}

/// What a plan is made for.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// w, in items.
    pub window_len: u64,
    /// How many keys there are.
    pub domain_len: usize,
    pub bytes: u64,
    pub epsilon: f64,
    /// δ, for methods that need one.
    pub delta: f64,
}

/// A plan and the parameters that were chosen for it.
#[derive(Debug, Clone)]
pub struct Variant {
    /// As results show them.
    pub parameters: String,
    pub plan: AnyPlan,
}

/// A plan of any method.
#[derive(Debug, Clone)]
pub enum AnyPlan {
    Library(Box<Plan>),
    /// Of a method that it is compared with, at the ε that its releases share.
    Baseline(Kind, f64, Box<baseline::Plan>),
}

/// How much is tried to find the best parameters of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tuning {
    /// Nothing: the defaults.
    #[default]
    Defaults,
    /// What the paper says it tries: 2 to 5 rows of its own structure, and the grid of every other method.
    Published,
    /// More substreams and checkpoints of the paper's structure as well.
    Wide,
}

/// Parameters of the paper's structure that are not to be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Fixed {
    /// Rows of each sketch.
    pub rows: Option<u64>,
    pub substreams: Option<u64>,
    /// Checkpoints of a substream, on a grid of [`FINE_GRID`] steps.
    pub checkpoints: Option<u64>,
}

/// What tuning may choose.
#[derive(Debug, Clone)]
pub struct Choices {
    pub tuning: Tuning,
    pub fixed: Fixed,
    /// What the planner of the tuned method expects.
    pub expectation: Expectation,
}

/// Steps of a substream among which the number of checkpoints is varied.
pub const FINE_GRID: u64 = 20;
/// Bytes of a counter.
const COUNTER_LEN: u64 = 4;

/// Parameters of the paper's structure.
#[derive(Debug, Clone, Copy)]
struct PaperParameters {
    rows: u64,
    substreams: u64,
    spacing: Spacing,
}

/// Where checkpoints lie.
#[derive(Debug, Clone, Copy)]
struct Spacing {
    /// Numerator and denominator of α.
    alpha: (u64, u64),
    units: u64,
    /// How many that gives.
    checkpoints: u64,
}

const fn spacing(alpha: (u64, u64), checkpoints: u64) -> Spacing {
    Spacing { alpha, units: 10, checkpoints }
}

const PAPER_DEFAULT: PaperParameters =
    PaperParameters { rows: 4, substreams: 10, spacing: spacing((3, 4), 3) };

impl PaperParameters {
    /// The defaults, or what the paper says it tries: 2 to 5 rows; or also the values of its appendix that are not
    /// plainly worse: substreams of 0.05 w to 0.2 w, two, three or five checkpoints.
    fn grid(choices: &Choices) -> Result<Vec<Self>> {
        let Fixed { rows, substreams, checkpoints } = choices.fixed;
        let rows = match (rows, choices.tuning) {
            (Some(rows), _) => vec![rows],
            (None, Tuning::Defaults) => vec![PAPER_DEFAULT.rows],
            (None, _) => (2..=5).collect(),
        };
        let substreams = match (substreams, choices.tuning) {
            (Some(substreams), _) => vec![substreams],
            (None, Tuning::Wide) => vec![5, 10, 20],
            (None, _) => vec![PAPER_DEFAULT.substreams],
        };
        let spacings = match (checkpoints, choices.tuning) {
            (Some(checkpoints), _) => vec![Spacing::even(checkpoints)?],
            (None, Tuning::Wide) => vec![spacing((9, 10), 2), PAPER_DEFAULT.spacing, spacing((1, 2), 5)],
            (None, _) => vec![PAPER_DEFAULT.spacing],
        };
        let mut grid = Vec::new();
        for &rows in &rows {
            for &substreams in &substreams {
                grid.extend(spacings.iter().map(|&spacing| Self { rows, substreams, spacing }));
            }
        }
        Ok(grid)
    }

    /// Sketches that the structure keeps: those of the complete substreams that can still be asked, and of the running one.
    fn sketches(self) -> u64 {
        let checkpoints = self.spacing.checkpoints;
        self.substreams * checkpoints + 2 * checkpoints - 1
    }

    fn columns(self, bytes: u64) -> u64 {
        bytes / (COUNTER_LEN * self.sketches() * self.rows)
    }

    fn method(self, bytes: u64, shares: Shares) -> Result<Method> {
        let columns = self.columns(bytes);
        ensure!(2 <= columns, "{} rows of {columns} columns are too small; give more bytes", self.rows);
        let counters =
            CounterLayout::Hashed { rows: u32::try_from(self.rows)?, columns: u32::try_from(columns)? };
        let alpha = Ratio::new(self.spacing.alpha.0, self.spacing.alpha.1)?;
        let (substream, grid) = (SubstreamLen::PerWindow(self.substreams), Grid::Units(self.spacing.units));
        Ok(Method::Paper(PaperMethod { counters, shares, alpha, substream, grid }))
    }
}

impl Spacing {
    /// The smallest α, in hundredths, that gives this number of checkpoints on the fine grid: the most even spacing.
    fn even(checkpoints: u64) -> Result<Self> {
        let counts = |alpha: u64| {
            let next =
                |&last: &u64| (1 < last).then(|| ((100 - alpha) * last).div_ceil(100).clamp(1, last - 1));
            std::iter::successors(Some(FINE_GRID), next).count() as u64
        };
        let alpha = (1..100).find(|&alpha| counts(alpha) == checkpoints);
        let alpha = alpha.with_context(|| format!("no alpha gives {checkpoints} checkpoints"))?;
        Ok(Self { alpha: (alpha, 100), units: FINE_GRID, checkpoints })
    }
}

impl MethodName {
    /// What the price of privacy is measured against.
    pub const MICROSCOPE: Self = Self::Baseline(Kind::Microscope);

    /// Those of the library first.
    pub const ALL: [Self; 17] = [
        Self::Paper,
        Self::PaperBalanced,
        Self::Tuned,
        Self::TunedPlain,
        Self::TunedHashed,
        Self::TunedDiscovered,
        Self::TunedUser,
        Self::Baseline(Kind::PccMg),
        Self::Baseline(Kind::PccMgReduced),
        Self::Baseline(Kind::PccMgAllKeys),
        Self::Baseline(Kind::USketch),
        Self::Baseline(Kind::Blmz),
        Self::Baseline(Kind::Microscope),
        Self::Baseline(Kind::MicroscopeCu),
        Self::Baseline(Kind::MicroscopeCount),
        Self::Baseline(Kind::Tumbling),
        Self::Baseline(Kind::TumblingGauss),
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::PaperBalanced => "paper-balanced",
            Self::Tuned => "tuned",
            Self::TunedPlain => "tuned-plain",
            Self::TunedHashed => "tuned-hashed",
            Self::TunedDiscovered => "tuned-discovered",
            Self::TunedUser => "tuned-user",
            Self::Baseline(kind) => kind.name(),
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Whether it makes a promise; only Microscope-Sketch makes none.
    pub fn is_private(self) -> bool {
        use Kind::{Microscope, MicroscopeCount, MicroscopeCu};
        !matches!(self, Self::Baseline(Microscope | MicroscopeCu | MicroscopeCount))
    }

    /// The plans that spend these bytes; more than one if the best is to be found by trying.
    pub fn variants(self, size: Size, choices: &Choices) -> Result<Vec<Variant>> {
        let variants: Result<Vec<Variant>> = match self {
            Self::Tuned | Self::TunedPlain | Self::TunedHashed | Self::TunedDiscovered | Self::TunedUser => {
                self.tuned(size, choices.expectation.clone()).map(|variant| vec![variant])
            }
            Self::Paper | Self::PaperBalanced => {
                let grid = PaperParameters::grid(choices)?;
                grid.into_iter().map(|parameters| self.paper(size, parameters)).collect()
            }
            Self::Baseline(kind) => baseline_variants(kind, size, choices.tuning),
        };
        variants.with_context(|| format!("{} with {} bytes", self.name(), size.bytes))
    }

    /// What the planner chooses for a public guess: the structure must not be made for the data.
    fn tuned(self, size: Size, expectation: Expectation) -> Result<Variant> {
        let domain = match self {
            Self::TunedHashed => Domain::Asked(dpsw::Kind::Integers),
            Self::TunedDiscovered => Domain::Found(SearchSettings::new(dpsw::Kind::Integers)),
            _ => Domain::Public(Keys::Range(size.domain_len as u64)),
        };
        let unit = match self {
            Self::TunedUser => Unit::Users { per_substream: 1 },
            _ => Unit::ReplaceOne,
        };
        let needs_delta = matches!(self, Self::TunedDiscovered | Self::TunedUser);
        let delta = needs_delta.then(|| Delta::new(size.delta)).transpose()?;
        let settings = Settings { unit, delta, ..Settings::last_items(size.window_len, size.epsilon)? };
        let request =
            Request { expectation, ..Request::new(settings.with_domain(domain)) }.with_bytes(size.bytes);
        let request = if self == Self::TunedPlain { request.with_levels(1) } else { request };
        let plan = request.plan()?.plan;
        let counters = if plan.is_identity() { "identity" } else { "hashed" };
        let shape = plan.shape();
        let substreams = size.window_len.div_ceil(plan.substream_len());
        let levels = match plan.method() {
            Method::Tuned(tuned) if 0 < tuned.pinned => {
                format!(", {} pinned, {} levels", tuned.pinned, tuned.levels)
            }
            Method::Tuned(tuned) if 1 < tuned.levels => format!(", {} levels", tuned.levels),
            _ => String::new(),
        };
        let parameters =
            format!("{counters} {} x {}, {substreams} substreams{levels}", shape.rows, shape.columns);
        Ok(Variant { parameters, plan: AnyPlan::Library(Box::new(plan)) })
    }

    fn paper(self, size: Size, parameters: PaperParameters) -> Result<Variant> {
        let PaperParameters { rows, substreams, spacing: Spacing { checkpoints, .. } } = parameters;
        let shares = if self == Self::PaperBalanced { balanced(checkpoints)? } else { Shares::Printed };
        let settings = Settings::last_items(size.window_len, size.epsilon)?
            .with_delta(size.delta)?
            .with_keys(0..size.domain_len as u64)
            .with_method(parameters.method(size.bytes, shares)?);
        let columns = parameters.columns(size.bytes);
        let parameters = format!("{rows} x {columns}, {substreams} substreams, {checkpoints} checkpoints");
        Ok(Variant { parameters, plan: AnyPlan::Library(Box::new(Plan::new(settings)?)) })
    }
}

impl clap::ValueEnum for MethodName {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()))
    }
}

impl Serialize for MethodName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for MethodName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            D::Error::custom(format!("there is no method {name}; there are {known}"))
        })
    }
}

impl AnyPlan {
    /// The promise, with noise from the system.
    pub fn claim(&self) -> Claim {
        match self {
            Self::Library(plan) => plan.claim(),
            Self::Baseline(_, _, plan) => plan.claim(),
        }
    }

    /// Bytes of the sketches.
    pub fn sketch_bytes(&self) -> u64 {
        match self {
            Self::Library(plan) => plan.sketch_bytes(),
            Self::Baseline(_, _, plan) => plan.sketch_bytes(),
        }
    }

    /// The method before the first item.
    pub fn start(&self, noise: Noise) -> Result<Running> {
        Ok(match self {
            Self::Library(plan) => {
                Running::Library(Followed::new(DpswSketch::with_noise(Plan::clone(plan), noise)?, plan))
            }
            Self::Baseline(_, _, plan) => Running::Baseline(plan.start(noise)?),
        })
    }

    /// The predicted errors of frequent and of rare items, where the method can tell.
    pub fn predict(&self, expectation: &Expectation) -> Result<Option<[f64; 2]>> {
        let Self::Library(plan) = self else { return Ok(None) };
        let prediction = plan.predict(expectation)?;
        Ok(prediction.map(|prediction| [prediction.frequent(), prediction.rare()]))
    }
}

/// Everything in which two plans for one window and domain can differ; one without privacy is the same for every ε.
impl fmt::Display for AnyPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library(plan) => write!(f, "{:?}", plan.settings()),
            Self::Baseline(kind, epsilon, plan) => {
                write!(f, "{} {plan}", kind.name())?;
                match plan.claim() {
                    Claim::Pure(_) => write!(f, " epsilon {epsilon}"),
                    Claim::Approximate(_, delta) => write!(f, " epsilon {epsilon} delta {}", delta.get()),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// 0.8 for the whole substream, half of what is left for each further checkpoint, the last two alike: 0.8 / 0.05 / 0.05
/// for three.
fn balanced(checkpoints: u64) -> Result<Shares> {
    let mut shares = vec![Ratio::from_decimal(0.8)?];
    for checkpoint in 1..checkpoints {
        let halvings = checkpoint.min(checkpoints - 2);
        shares.push(Ratio::new(1, 10 << halvings)?);
    }
    Ok(Shares::Explicit(shares))
}

fn baseline_variants(kind: Kind, size: Size, tuning: Tuning) -> Result<Vec<Variant>> {
    let plans = if tuning == Tuning::Defaults { vec![kind.largest(size)?] } else { kind.grid(size)? };
    ensure!(!plans.is_empty(), "not even the smallest sketch fits");
    let variant = |plan: baseline::Plan| Variant {
        parameters: plan.to_string(),
        plan: AnyPlan::Baseline(kind, size.epsilon, Box::new(plan)),
    };
    Ok(plans.into_iter().map(variant).collect())
}

/// The δ for a stream of n items: n^-1.5, as in the paper.
pub fn delta_for(items: usize) -> f64 {
    (items as f64).powf(-1.5)
}

/// The claim as results name it.
pub fn claim_name(claim: Claim) -> &'static str {
    match claim {
        Claim::Pure(_) => "eps",
        Claim::Approximate(..) => "(eps, delta)",
        _ => "none",
    }
}

/// The ε and the δ of a claim, where it has them.
pub fn promised(claim: Claim) -> (Option<f64>, Option<f64>) {
    match claim {
        Claim::Pure(epsilon) => (Some(epsilon.get()), None),
        Claim::Approximate(epsilon, delta) => (Some(epsilon.get()), Some(delta.get())),
        _ => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(tuning: Tuning) -> Choices {
        Choices { tuning, fixed: Fixed::default(), expectation: Expectation::zipf(1000) }
    }

    #[test]
    fn balanced_shares_use_the_whole_budget() {
        let decimals = |checkpoints| match balanced(checkpoints).expect("ratios") {
            Shares::Explicit(shares) => shares.iter().map(|share| share.to_f64()).collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        assert_eq!(decimals(2), [0.8, 0.1]);
        assert_eq!(decimals(3), [0.8, 0.05, 0.05]);
        assert_eq!(decimals(5), [0.8, 0.05, 0.025, 0.0125, 0.0125]);
    }

    #[test]
    fn the_structure_of_the_paper_keeps_35_sketches() {
        assert_eq!(PAPER_DEFAULT.sketches(), 35);
        assert_eq!(PAPER_DEFAULT.columns(1_120_000), 2000);
        let len = |tuning| PaperParameters::grid(&choices(tuning)).expect("a grid").len();
        assert_eq!([Tuning::Defaults, Tuning::Published, Tuning::Wide].map(len), [1, 4, 36]);
    }

    #[test]
    fn the_plan_has_the_checkpoints_that_were_asked_for() {
        for checkpoints in [2, 3, 4, 5, 8, 10, 15] {
            let fixed = Fixed { checkpoints: Some(checkpoints), ..Fixed::default() };
            let choices = Choices { fixed, ..choices(Tuning::Defaults) };
            let size =
                Size { window_len: 100_000, domain_len: 1000, bytes: 400_000, epsilon: 1000.0, delta: 1e-9 };
            let variants = MethodName::Paper.variants(size, &choices).expect("a plan");
            let AnyPlan::Library(plan) = &variants[0].plan else { panic!("a plan of the library") };
            assert_eq!(plan.ranges().len() as u64, 2 * checkpoints - 1);
        }
    }

    #[test]
    fn every_method_has_its_own_name_and_a_plan() {
        let size = Size { window_len: 16_000, domain_len: 500, bytes: 400_000, epsilon: 1.0, delta: 1e-9 };
        for method in MethodName::ALL {
            assert_eq!(MethodName::named(method.name()), Some(method));
            let variants = method.variants(size, &choices(Tuning::Published)).expect("a plan");
            for variant in &variants {
                assert!(variant.plan.sketch_bytes() <= 400_000, "{} {}", method.name(), variant.parameters);
                assert_eq!(variant.plan.claim() != Claim::None, method.is_private());
            }
            let mut names: Vec<String> = variants.iter().map(|variant| variant.plan.to_string()).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), variants.len(), "{}", method.name());
        }
    }
}
