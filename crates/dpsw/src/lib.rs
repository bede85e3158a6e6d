//! Private frequency counts and heavy hitters over a sliding window, with an error bar on every answer.
//!
//! Count a stream of items and ask, as often as you like, about its last w items or its last T seconds: *how often did
//! this item occur*, and *which items are the most frequent*. Everything that is ever answered is differentially private
//! together, for one ε that you choose at the start.
//!
//! ```
//! use dpsw::{Batch, DpswSketch, Settings};
//!
//! let settings = Settings::last_items(10_000, 1.0)?.with_keys(["/", "/cart", "/search"]);
//! let mut sketch = DpswSketch::new(settings.plan()?)?; // the planner chooses the structure; noise from the system
//! for _ in 0..5_000 {
//!     sketch.extend(Batch::text(&["/", "/", "/cart"]))?;
//! }
//! let view = sketch.view(); // a sketch counts, a view answers
//! println!("{}", view.frequency("/cart")?); // 3,333 ± 20 or so
//! for hit in view.heavy_hitters(0.01)? {
//!     println!("{hit}");
//! }
//! # assert!((view.frequency("/cart")?.value - 3_333.0).abs() < 1_000.0);
//! # assert_eq!(view.heavy_hitters(0.01)?.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! A stream is cut into *substreams* of equal length. While a substream runs, its items are counted in a small array
//! of exact *counters*, which nothing can read. When it is complete, noise is added to every counter and the
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
//! sealed. That is why any number of questions costs one ε and no more.
//!
//! # The last T seconds, and beyond one process
//!
//! Time windows are sealed by a clock, also when nothing arrives. A view can be published as bytes and loaded elsewhere.
//!
//! ```
//! use dpsw::{Batch, DpswSketch, Settings, WindowView};
//!
//! // The last 15 minutes, in seconds, with about 100,000 events; an event may come up to 30 seconds late.
//! let settings = Settings::last_ticks(900, 100_000, 1.0)?
//!     .with_lateness(30)
//!     .with_keys(["ok", "not found", "error"]);
//! let mut sketch = DpswSketch::new(settings.plan()?)?;
//! for second in 1_700_000_000..1_700_002_000 {
//!     let taken = sketch.extend(Batch::text(&["ok", "ok", "error"]).at(&[second; 3]))?;
//!     assert_eq!(taken.late, 0);
//! }
//! let bytes = sketch.view().to_bytes();
//! let view = WindowView::from_bytes(&bytes)?;
//! let errors = view.frequency("error")?;
//! println!("{errors} errors in {:?}", errors.window);
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
//! use dpsw::{Batch, DpswSketch, Settings};
//!
//! let settings = Settings::last_items(20_000, 8.0)?.with_found_keys().with_users(1).with_delta(1e-6)?;
//! let plan = settings.plan()?;
//! println!("{plan}"); // which share is found, how likely a key of one user comes out, the contract
//!
//! let mut sketch = DpswSketch::new(plan)?;
//! for user in 0..30_000 {
//!     let page = if user % 2 == 0 { "home" } else { "cart" };
//!     sketch.extend(Batch::text(&[page]).by(&[user]))?;
//! }
//! let view = sketch.view();
//! for key in view.top(10)? {
//!     println!("{key}");
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
//! # use dpsw::{DpswSketch, Settings};
//! # let plan = Settings::last_items(1000, 1.0).unwrap().with_keys(0..5).plan().unwrap();
//! let sketch = DpswSketch::new(plan).unwrap();
//! sketch.view().frequency(3).unwrap();
//! ```
//!
//! and this does not:
//!
//! ```compile_fail,E0599
//! # use dpsw::{DpswSketch, Settings};
//! # let plan = Settings::last_items(1000, 1.0).unwrap().with_keys(0..5).plan().unwrap();
//! let sketch = DpswSketch::new(plan).unwrap();
//! sketch.frequency(3).unwrap();
//! ```
//!
//! Nor can a sketch be copied, which would seal the same items twice with different noise:
//!
//! ```compile_fail,E0599
//! # use dpsw::{DpswSketch, Settings};
//! # let plan = Settings::last_items(1000, 1.0).unwrap().with_keys(0..5).plan().unwrap();
//! let sketch = DpswSketch::new(plan).unwrap();
//! let copy: DpswSketch = sketch.clone();
//! ```
//!
//! # Words
//!
//! | paper | here | |
//! |---|---|---|
//! | S, sₜ, t | stream, item, position | positions count arrivals from 0 |
//! | W, w | window, `window_len` | in items or ticks |
//! | S⁽ˡ⁾ | substream | |
//! | I, I′ | checkpoints | lengths of prefixes and suffixes, longest first |
//! | C, Ĉ | counters, [`SealedSketch`](sealed::SealedSketch) | exact and secret; noisy and frozen |
//! | ε, δ, ρ | [`Epsilon`], [`Delta`], [`Rho`](privacy::Rho) | |
//! | γ | [`Threshold`] | fraction of the window |
//! | f̂ | [`Estimate`] | value and error bound |
//!
//! # Features
//!
//! - `reproducible` adds `Noise::seeded` and `Noise::off` for tests and experiments. Views of such streams claim no
//!   privacy. Do not enable it in a program that serves people.
//! - `files` adds [`store`]`::FileStore`, which remembers in a folder which saved states are fresh. Without it the library
//!   never touches the disk.
//! - `checkpoints` adds `DpswSketch::checkpoint`, for services that keep every event that comes after a saved state. Used
//!   otherwise, a stream could seal twice what was seen.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

/// The seam of a mistake that tests plant; in every other build the line is not there.
macro_rules! planted {
    (let $changed:pat = $module:ident::$($call:tt)*) => {
        #[cfg(test)]
        let $changed = crate::testing::$module::$($call)*;
    };
    ($module:ident::$($call:tt)*) => {
        #[cfg(test)]
        crate::testing::$module::$($call)*;
    };
}

// A folder for each side of the privacy boundary; tests/boundary.rs holds that nothing that answers reaches what counts.
pub mod error;
mod ratio;
mod wipe;
mod words;
pub mod privacy;
pub mod noise;
mod item;
pub mod plan;
pub mod sealed;
mod decide;
mod view;
mod bytes;
mod secret;
mod stream;
pub mod store;
pub mod audit;
pub mod worker;
#[cfg(test)]
mod testing;

pub use item::batch::Batch;
pub use item::domain::{Domain, SearchCounts, SearchSettings};
pub use item::hash::StreamKey;
pub use item::keys::{Keys, Strings};
pub use item::value::{Item, Kind};
pub use noise::generator::Noise;
pub use plan::settings::{Clock, Settings, TimeWindow, Unit, Window};
pub use plan::structure::Plan;
pub use privacy::parameters::{Claim, Delta, Epsilon, Threshold};
pub use ratio::Ratio;
pub use stream::finish::FinishError;
pub use stream::freshness::{FreshnessStore, StateId};
pub use stream::sketch::{DpswSketch, Taken};
pub use stream::state::{SavedState, StateKey};
pub use view::estimate::{CONFIDENCE, Certainty, Deviations, Estimate, Ranked, Shown};
pub use view::list::List;
pub use view::list_request::ListRequest;
pub use view::succession::SuccessionError;
pub use view::trend::{Direction, Trend};
pub use view::window_view::WindowView;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
