//! Settings → plan: structure, noise, cost, bytes and predicted error.

pub(crate) mod budget;
pub(crate) mod layout;
pub(crate) mod levels;
pub(crate) mod limits;
pub(crate) mod mapper;
pub(crate) mod memory;
pub mod paper;
pub(crate) mod predict;
pub(crate) mod range;
pub(crate) mod reach;
pub(crate) mod release;
pub(crate) mod search;
pub(crate) mod settings;
pub(crate) mod structure;
pub(crate) mod text;
pub(crate) mod tuned;

pub use paper::bounds::PaperBounds;
pub use predict::errors::{Expectation, ExpectedDrift, Prediction, Prior, RankError};
pub use predict::planner::{Group, Planned, Request, Target};
pub use range::PlannedRange;
pub use search::SearchPlan;
pub use settings::{
    CounterLayout, Grid, Method, NoiseChoice, PaperMethod, Shares, SubstreamLen, TunedMethod,
};
