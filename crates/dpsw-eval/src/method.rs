//! The methods that are compared, at a given size.

use anyhow::{Context, Result};
use dpsw::{
    Claim, CounterLayout, Delta, Discovery, Domain, Epsilon, Expectation, Keys, Kind, Method, PaperMethod,
    Plan, Ratio, Request, Settings, Shares, SubstreamLen, Unit, Window,
};

/// A method by the name that results use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum MethodName {
    /// The paper's structure with its printed shares.
    Paper,
    /// The paper's structure with shares 0.8 / 0.05 / 0.05.
    PaperBalanced,
    /// One sketch per substream, pure epsilon.
    Tuned,
    /// The same without a public domain: keys are found in the stream.
    TunedDiscovered,
    /// The same for whole users, of each of whom one item a substream counts; here every item has a user of its own.
    TunedUser,
}

/// What a plan is made for.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// w, in items.
    pub window_len: u64,
    /// How many keys there are.
    pub domain_len: usize,
    /// Bytes that the sketches may take.
    pub bytes: u64,
    /// ε.
    pub epsilon: f64,
    /// δ, for methods that need one.
    pub delta: f64,
}

/// A plan and the parameters that were chosen for it.
#[derive(Debug)]
pub struct Variant {
    /// As results show them.
    pub parameters: String,
    /// The plan.
    pub plan: Plan,
}

/// What tuning may choose.
#[derive(Debug, Clone)]
pub struct Choices {
    /// Try the paper's parameters over a grid instead of its defaults.
    pub tune: bool,
    /// What the planner of the tuned method expects.
    pub expectation: Expectation,
}

/// Bytes of a counter.
const COUNTER_LEN: u64 = 4;

/// Parameters of the paper's structure.
#[derive(Debug, Clone, Copy)]
struct PaperParameters {
    rows: u64,
    substreams: u64,
    /// Numerator and denominator of α, and the checkpoints it gives on a grid of ten.
    alpha: (u64, u64),
    checkpoints: u64,
}

const PAPER_DEFAULT: PaperParameters =
    PaperParameters { rows: 4, substreams: 10, alpha: (3, 4), checkpoints: 3 };

impl PaperParameters {
    /// The defaults, or what the paper says it tries: 2 to 5 rows; and the values of its appendix that are not plainly
    /// worse: substreams of 0.05 w to 0.2 w, two, three or five checkpoints.
    fn grid(tune: bool) -> Vec<Self> {
        if !tune {
            return vec![PAPER_DEFAULT];
        }
        let alphas = [((9, 10), 2), ((3, 4), 3), ((1, 2), 5)];
        let with = |rows, substreams| {
            alphas.map(|(alpha, checkpoints)| Self { rows, substreams, alpha, checkpoints })
        };
        (2..=5).flat_map(|rows| [5, 10, 20].into_iter().flat_map(move |s| with(rows, s))).collect()
    }

    /// Sketches that the structure keeps: those of the complete substreams that can still be asked, and those of the running one.
    fn sketches(self) -> u64 {
        self.substreams * self.checkpoints + 2 * self.checkpoints - 1
    }

    fn columns(self, bytes: u64) -> u64 {
        bytes / (COUNTER_LEN * self.sketches() * self.rows)
    }

    fn method(self, bytes: u64, shares: Shares) -> Result<Method> {
        let counters = CounterLayout::Hashed { rows: self.rows as u32, columns: self.columns(bytes) as u32 };
        let alpha = Ratio::new(self.alpha.0, self.alpha.1)?;
        let substream = SubstreamLen::PerWindow(self.substreams);
        Ok(Method::Paper(PaperMethod { counters, shares, alpha, substream, ..PaperMethod::default() }))
    }
}

impl MethodName {
    /// The name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::PaperBalanced => "paper-balanced",
            Self::Tuned => "tuned",
            Self::TunedDiscovered => "tuned-discovered",
            Self::TunedUser => "tuned-user",
        }
    }

    /// The plans that spend these bytes; more than one if the best is to be found by trying.
    ///
    /// # Errors
    /// No plan fits.
    pub fn variants(self, size: Size, choices: &Choices) -> Result<Vec<Variant>> {
        let variants: Result<Vec<Variant>> = match self {
            Self::Tuned | Self::TunedDiscovered | Self::TunedUser => {
                self.tuned(size, choices.expectation.clone()).map(|variant| vec![variant])
            }
            Self::Paper | Self::PaperBalanced => {
                let grid = PaperParameters::grid(choices.tune);
                grid.into_iter().map(|parameters| self.paper(size, parameters)).collect()
            }
        };
        variants.with_context(|| format!("{} with {} bytes", self.name(), size.bytes))
    }

    /// What the planner chooses for a public guess: the structure must not be made for the data.
    fn tuned(self, size: Size, expectation: Expectation) -> Result<Variant> {
        let domain = match self {
            Self::TunedDiscovered => {
                Domain::Discovered(Discovery { epoch: 0, ..Discovery::new(Kind::Integers) })
            }
            _ => Domain::Public(Keys::Range(size.domain_len as u64)),
        };
        let unit = match self {
            Self::TunedUser => Unit::Users { per_substream: 1 },
            _ => Unit::ReplaceOne,
        };
        let delta = (self != Self::Tuned).then(|| Delta::new(size.delta)).transpose()?;
        let request = Request {
            window: Window::Items(size.window_len),
            unit,
            epsilon: Epsilon::new(size.epsilon)?,
            delta,
            domain,
            retention: 1,
            bytes: size.bytes,
            expectation,
        };
        let plan = request.plan()?.plan;
        let counters = if plan.is_identity() { "identity" } else { "hashed" };
        let shape = plan.shape();
        let substreams = size.window_len.div_ceil(plan.substream_len());
        let parameters = format!("{counters} {} x {}, {substreams} substreams", shape.rows, shape.columns);
        Ok(Variant { parameters, plan })
    }

    fn paper(self, size: Size, parameters: PaperParameters) -> Result<Variant> {
        let shares = match self {
            Self::PaperBalanced => balanced(parameters.checkpoints)?,
            _ => Shares::Printed,
        };
        let settings = Settings {
            window: Window::Items(size.window_len),
            unit: Unit::ReplaceOne,
            epsilon: Epsilon::new(size.epsilon)?,
            delta: Some(Delta::new(size.delta)?),
            domain: Domain::Public(Keys::Range(size.domain_len as u64)),
            method: parameters.method(size.bytes, shares)?,
            retention: 1,
        };
        let PaperParameters { rows, substreams, checkpoints, .. } = parameters;
        let columns = parameters.columns(size.bytes);
        let parameters = format!("{rows} x {columns}, {substreams} substreams, {checkpoints} checkpoints");
        Ok(Variant { parameters, plan: Plan::new(settings)? })
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

/// The claim as results name it.
#[must_use]
pub fn claim_name(claim: Claim) -> &'static str {
    match claim {
        Claim::Pure(_) => "eps",
        Claim::Approximate(..) => "(eps, delta)",
        _ => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(PaperParameters::grid(true).len(), 36);
    }
}
