//! The methods that are compared, at a given size.

use anyhow::{Context, Result};
use dpsw::{
    Claim, CounterLayout, Delta, Domain, Epsilon, Expectation, Keys, Method, PaperMethod, Plan, Ratio,
    Request, Settings, Shares, Unit, Window,
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

/// Rows of the paper's sketches.
const PAPER_ROWS: u64 = 4;
/// Sketches that the paper's structure keeps: ten substreams of three, and five of the running one.
const PAPER_SKETCHES: u64 = 35;
/// Bytes of a counter.
const COUNTER_LEN: u64 = 4;

impl MethodName {
    /// The name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::PaperBalanced => "paper-balanced",
            Self::Tuned => "tuned",
        }
    }

    /// The plan that spends these bytes.
    ///
    /// # Errors
    /// No plan fits.
    pub fn plan(self, size: Size) -> Result<Plan> {
        let method = match self {
            Self::Paper => paper(size, Shares::Printed),
            Self::PaperBalanced => paper(size, balanced()?),
            Self::Tuned => return tuned(size),
        };
        let settings = Settings {
            window: Window::Items(size.window_len),
            unit: Unit::ReplaceOne,
            epsilon: Epsilon::new(size.epsilon)?,
            delta: Some(Delta::new(size.delta)?),
            domain: Domain::Public(Keys::Range(size.domain_len as u64)),
            method,
            retention: 1,
        };
        Plan::new(settings).with_context(|| format!("{} with {} bytes", self.name(), size.bytes))
    }
}

fn paper(size: Size, shares: Shares) -> Method {
    let columns = (size.bytes / (COUNTER_LEN * PAPER_SKETCHES * PAPER_ROWS)) as u32;
    let counters = CounterLayout::Hashed { rows: PAPER_ROWS as u32, columns };
    Method::Paper(PaperMethod { counters, shares, ..PaperMethod::default() })
}

fn balanced() -> Result<Shares> {
    let shares = [0.8, 0.05, 0.05].map(Ratio::from_decimal);
    Ok(Shares::Explicit(shares.into_iter().collect::<Result<_, _>>()?))
}

/// What the planner chooses, with no guess but Zipf: the structure must not be made for the data.
fn tuned(size: Size) -> Result<Plan> {
    let request = Request {
        window: Window::Items(size.window_len),
        unit: Unit::ReplaceOne,
        epsilon: Epsilon::new(size.epsilon)?,
        delta: None,
        domain: Domain::Public(Keys::Range(size.domain_len as u64)),
        retention: 1,
        bytes: size.bytes,
        expectation: Expectation::zipf(size.domain_len),
    };
    let planned = request.plan().with_context(|| format!("tuned with {} bytes", size.bytes))?;
    Ok(planned.plan)
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
