//! Which items are frequent in the recent part of a stream, answered live, for ever, with differential privacy and an
//! error bound on every answer.
//!
//! # The idea
//!
//! A stream is cut into *substreams* of equal length. While a substream runs, its items are counted in a small array
//! of exact *counters*, which nothing can read. When a range of it is complete, noise is added to every counter and the
//! result is *sealed*: from then on it never changes and may be shown. A *window* is covered by sealed sketches, and
//! every answer is computed from those and from public numbers alone:
//!
//! ```text
//! item --hash--> fingerprint
//!      --count--> open substream     exact counters                 secret
//!      --seal---> sealed sketch      + noise, immutable             released
//!      --view---> WindowView         the sealed sketches of the last w items
//!      --ask----> Estimate           value, error bound, covered span
//! ```
//!
//! An event lies in one substream, so it can change only that substream's sketches, and each is noised once, when it is
//! sealed. That is why any number of questions, asked for ever, costs one ε and no more.
//!
//! # Words
//!
//! | paper | here | |
//! |---|---|---|
//! | S, sₜ, t | stream, item, position | positions count arrivals from 0 |
//! | W, w | window, `window_len` | in items |
//! | S⁽ˡ⁾ | substream | |
//! | I, I′ | checkpoints | lengths of prefixes and suffixes, longest first |
//! | C, Ĉ | counters, [`SealedSketch`] | exact and secret; noisy and frozen |
//! | ε, δ, ρ | [`Epsilon`], [`Delta`], [`Rho`] | |
//! | γ | [`Threshold`] | fraction of the window |
//! | f̂ | [`Estimate`] | value and error bound |
//!
//! # Example
//!
//! ```
//! use dpsw::{Domain, DpswSketch, Epsilon, Keys, Method, Noise, Plan, Settings, Threshold, TunedMethod, Unit, Window};
//!
//! let plan = Plan::new(Settings {
//!     window: Window::Items(10_000), unit: Unit::ReplaceOne,
//!     epsilon: Epsilon::new(1.0)?,
//!     delta: None,
//!     domain: Domain::Public(Keys::text(["red", "green", "blue"])),
//!     method: Method::Tuned(TunedMethod::default()),
//!     retention: 1,
//! })?;
//! let mut sketch = DpswSketch::new(plan, Noise::from_system())?;
//! for _ in 0..5_000 {
//!     sketch.extend(Batch::bytes(&["red", "red", "green"]))?;
//! }
//! let view = sketch.view();
//! let red = view.frequency("red")?;
//! println!("red: {} ± {} in {:?}", red.value, red.error_bound, red.covered);
//! for heavy in view.heavy_hitters(Threshold::new(0.5)?)? {
//!     println!("{} is in more than half of the window", heavy.item);
//! }
//! # assert!((red.value - 6_667.0).abs() < 1_000.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The last T seconds, and beyond one process
//!
//! Time windows are sealed by a clock, also when nothing arrives. A view can be published as bytes and loaded elsewhere.
//!
//! ```
//! use dpsw::{Clock, Domain, DpswSketch, Epsilon, Expectation, Keys, Noise, Request, TimeWindow, Unit, Window, WindowView};
//!
//! // The last 15 minutes, in seconds; an event may come up to 30 seconds late. The planner chooses the structure.
//! let window = TimeWindow { len: 900, lateness: 30, clock: Clock::Events, expected_items: 100_000 };
//! let planned = Request {
//!     window: Window::Time(window),
//!     unit: Unit::ReplaceOne,
//!     epsilon: Epsilon::new(1.0)?,
//!     delta: None,
//!     domain: Domain::Public(Keys::text(["ok", "not found", "error"])),
//!     retention: 1,
//!     bytes: 100_000,
//!     expectation: Expectation::zipf(3),
//! }
//! .plan()?;
//! println!("{planned}");
//!
//! let mut sketch = DpswSketch::new(planned.plan, Noise::from_system())?;
//! for second in 1_700_000_000..1_700_002_000 {
//!     let taken = sketch.extend(Batch::bytes(&["ok", "ok", "error"]).at(&[second; 3]))?;
//!     assert_eq!(taken.late, 0);
//! }
//! let bytes = sketch.view().to_bytes();
//! let view = WindowView::from_bytes(&bytes)?;
//! let errors = view.frequency("error")?;
//! println!("{:.0} ± {:.0} errors in {:?}", errors.value, errors.error_bound, errors.window);
//! # assert!((errors.value - 900.0).abs() < 200.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Keys that nobody listed, and whole users
//!
//! Without a public list the frequent keys can be found in the stream itself, for a share of the budget and a delta. With
//! users as the unit, everything that one user sends in a window is protected together.
//!
//! ```
//! use dpsw::{Delta, Discovery, Domain, DpswSketch, Epsilon, Expectation, Kind, Noise, Request, Unit, Window};
//!
//! let planned = Request {
//!     window: Window::Items(20_000),
//!     unit: Unit::Users { per_substream: 1 },
//!     epsilon: Epsilon::new(8.0)?,
//!     delta: Some(Delta::new(1e-6)?),
//!     domain: Domain::Discovered(Discovery { epoch: 0, ..Discovery::new(Kind::Bytes) }), // the planner chooses the epoch
//!     retention: 1,
//!     bytes: 200_000,
//!     expectation: Expectation::zipf(1000),
//! }
//! .plan()?;
//! println!("{planned}"); // which share is found, how likely a key of one user comes out, the contract
//!
//! let mut sketch = DpswSketch::new(planned.plan, Noise::from_system())?;
//! for user in 0..30_000 {
//!     sketch.extend(Batch::bytes(&[if user % 2 == 0 { "home" } else { "cart" }]).by(&[user]))?;
//! }
//! let view = sketch.view();
//! for key in view.top(10)? {
//!     println!("{} {:.0} ± {:.0}", key.item, key.estimate.value, key.estimate.error_bound);
//! }
//! # assert_eq!(view.top(10)?.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What counts cannot be asked
//!
//! A [`DpswSketch`] takes items, a [`WindowView`] answers, and neither can do the other's work. This compiles:
//!
//! ```
//! # use dpsw::{Domain, DpswSketch, Epsilon, Keys, Method, Noise, Plan, Settings, TunedMethod, Unit, Window};
//! # let plan = Plan::new(Settings { window: Window::Items(10), unit: Unit::ReplaceOne, epsilon: Epsilon::new(1.0).unwrap(), delta: None,
//! #     domain: Domain::Public(Keys::Range(5)), method: Method::Tuned(TunedMethod { substreams: 2, ..TunedMethod::default() }), retention: 1 }).unwrap();
//! let sketch = DpswSketch::new(plan, Noise::from_system()).unwrap();
//! sketch.view().frequency(5).unwrap();
//! ```
//!
//! and this does not:
//!
//! ```compile_fail,E0599
//! # use dpsw::{Domain, DpswSketch, Epsilon, Keys, Method, Noise, Plan, Settings, TunedMethod, Unit, Window};
//! # let plan = Plan::new(Settings { window: Window::Items(10), unit: Unit::ReplaceOne, epsilon: Epsilon::new(1.0).unwrap(), delta: None,
//! #     domain: Domain::Public(Keys::Range(5)), method: Method::Tuned(TunedMethod { substreams: 2, ..TunedMethod::default() }), retention: 1 }).unwrap();
//! let sketch = DpswSketch::new(plan, Noise::from_system()).unwrap();
//! sketch.frequency(5).unwrap();
//! ```
//!
//! Nor can a sketch be copied, which would seal the same items twice with different noise:
//!
//! ```compile_fail,E0599
//! # use dpsw::{Domain, DpswSketch, Epsilon, Keys, Method, Noise, Plan, Settings, TunedMethod, Unit, Window};
//! # let plan = Plan::new(Settings { window: Window::Items(10), unit: Unit::ReplaceOne, epsilon: Epsilon::new(1.0).unwrap(), delta: None,
//! #     domain: Domain::Public(Keys::Range(5)), method: Method::Tuned(TunedMethod { substreams: 2, ..TunedMethod::default() }), retention: 1 }).unwrap();
//! let sketch = DpswSketch::new(plan, Noise::from_system()).unwrap();
//! let copy: DpswSketch = sketch.clone();
//! ```
//!
//! # Features
//!
//! `reproducible` adds `Noise::seeded` and `Noise::off` for tests and experiments. Views of such streams claim no
//! privacy. Do not enable it in a program that serves people.

#![forbid(unsafe_code)]

pub mod error;
mod ratio;
pub mod privacy;
pub mod noise;
mod item;
pub mod plan;
pub mod sealed;
mod view;
mod bytes;
mod secret;
mod stream;
pub mod store;
pub mod audit;
mod testing;

pub use error::{
    EntropyError, IngestError, MergeError, OverBudget, ParameterError, PartialError, PlanError, QueryError,
    SnapshotError, StateError, StoreError,
};
pub use item::batch::Batch;
pub use item::domain::{Discovery, Domain, Tracking};
pub use item::hash::StreamKey;
pub use item::keys::{Keys, Strings};
pub use item::mapping::Shape;
pub use item::value::{Item, Kind};
pub use noise::{Generator, Law, Noise, Table};
pub use plan::planner::{Group, Planned, Request, Target};
pub use plan::predict::{Drift, Expectation, Prediction, Prior};
pub use plan::settings::{
    Clock, CounterLayout, Grid, Method, NoiseChoice, PaperMethod, Settings, Shares, SubstreamLen, TimeWindow,
    TunedMethod, Unit, Window,
};
pub use plan::structure::Plan;
pub use plan::{PaperBounds, PlannedDiscovery, PlannedRange};
pub use privacy::{Claim, Cost, Delta, Epsilon, Ledger, Rho, Threshold, accounting};
pub use ratio::Ratio;
pub use sealed::{SealedSketch, Width};
pub use secret::partial::{PartialCounters, PartialId};
pub use stream::absorb::Absorbed;
pub use stream::freshness::{FreshnessStore, StateId};
pub use stream::sketch::{DpswSketch, Taken};
pub use stream::state::{SavedState, StateKey};
pub use stream::worker::{Counted, Worker};
pub use view::estimate::{CONFIDENCE, Certainty, Deviations, Estimate, Ranked};
pub use view::trend::{Direction, Trend};
pub use view::window_view::{Sealed, WindowView};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
