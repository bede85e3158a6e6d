//! lib
#![forbid(unsafe_code)]

pub mod accounting;
pub mod bound;
pub mod checkpoint;
mod counters;
pub mod error;
mod hash;
mod item;
mod ledger;
mod noise;
#[cfg(test)]
mod oracle;
mod plan;
mod privacy;
mod query;
mod ratio;
mod settings;
mod sketch;
mod stream;
mod substream;
mod table;
mod window;

pub use counters::Shape;
pub use error::{EntropyError, IngestError, OverBudget, ParameterError, PlanError, QueryError};
pub use hash::StreamKey;
pub use item::{Domain, Item, Keys, Kind};
pub use ledger::{Cost, Ledger};
pub use noise::{Generator, Law, Noise};
pub use plan::{PaperBounds, Plan, PlannedRange};
pub use privacy::{Claim, Delta, Epsilon, Rho, Threshold};
pub use query::{CONFIDENCE, Estimate, Ranked, WindowView};
pub use ratio::Ratio;
pub use settings::{
    CounterLayout, Grid, Method, NoiseChoice, PaperMethod, Settings, Shares, SubstreamLen, TunedMethod,
};
pub use sketch::SealedSketch;
pub use stream::DpswSketch;
pub use table::Table;
