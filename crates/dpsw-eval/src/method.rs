//! The methods that are compared, at a given size.

use anyhow::{Context, Result};
use dpsw::{
    Claim, CounterLayout, Delta, Domain, Epsilon, Keys, Method, NoiseChoice, PaperMethod, Plan, Ratio,
    Settings, Shares, TunedMethod, Unit, Window,
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
/// Substreams of the tuned method, and rows of its sketches.
const TUNED_SUBSTREAMS: u64 = 20;
const TUNED_ROWS: u64 = 2;
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
        let (method, needs_delta) = match self {
            Self::Paper => (paper(size, Shares::Printed), true),
            Self::PaperBalanced => (paper(size, balanced()?), true),
            Self::Tuned => (tuned(size), false),
        };
        let delta = needs_delta.then(|| Delta::new(size.delta)).transpose()?;
        let settings = Settings {
            window: Window::Items(size.window_len),
            unit: Unit::ReplaceOne,
            epsilon: Epsilon::new(size.epsilon)?,
            delta,
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

fn tuned(size: Size) -> Method {
    let counters = size.bytes / (COUNTER_LEN * (TUNED_SUBSTREAMS + 1));
    let counters = if size.domain_len as u64 <= counters {
        CounterLayout::Identity
    } else {
        CounterLayout::Hashed { rows: TUNED_ROWS as u32, columns: (counters / TUNED_ROWS) as u32 }
    };
    Method::Tuned(TunedMethod { substreams: TUNED_SUBSTREAMS, counters, noise: NoiseChoice::Laplace })
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
