//! The inside of the service: takes events, makes them durable, counts them, and publishes what is sealed.
//!
//! A *source* is where events come from. It has one unit of privacy, columns of items, and a budget that all its *streams*
//! share. A stream counts one column in one window.
//!
//! ```text
//! Events --ingest--> journal          encrypted, one commit for all that wait     SECRET
//!        --ack-----> client           when the commit has returned
//!        --count---> sketches         one thread for each source                  SECRET
//!        --seal----> checkpoint       the saved state, committed                  SECRET
//!        --release-> marker           outside the data folder, moved on
//!        --publish-> Published        read back, worked out, for all to see       RELEASED
//! ```
//!
//! For whoever speaks a protocol with the outside:
//!
//! - [`Engine::open`] blocks until every stream is restored. Share the engine in an `Arc`.
//! - [`Engine::ingest`] returns at once, with an error if too much is waiting ("try later"), else with a [`Pending`], which is a
//!   future: `engine.ingest(source, batch_id, events)?.await?`. It is ready when the batch is durable. It needs no runtime.
//! - [`Events`] has one column of items for each name that a stream may ask for: [`Strings`] in one buffer with the end of each
//!   (an Arrow array's values go in without a copy, by `Bytes::from_owner`) or [`Integers`]; bits say which are there. An item
//!   that is missing, too long or of another kind is a null item in its place: never refuse a batch for it. Times and users
//!   are columns of their own. Columns that no stream takes cost time and room: leave them out. [`SourceConfig`] says which
//!   columns there are.
//! - A source with a broker is read by [`broker`]; [`Engine::ingest_read`] takes what was read together with where it ends.
//! - [`Engine::view`] and [`Engine::subscribe`] hand out an [`Arc`](std::sync::Arc) of [`Published`], whose `WindowView` answers everything. Clone
//!   the `Arc`, drop the borrow, then ask.
//! - [`Engine::source`], [`Engine::stream`], [`Engine::contract`] and [`Engine::health`] have public numbers alone. Nothing
//!   else may be shown.
//! - [`Engine::create_stream`] and its like wait for the disk (and the planner): call them where a thread may block.
//! - [`Engine::settle`] waits until all that was handed over can be seen; [`clock::SetClock`] lets tests set the time.

#![deny(unsafe_code)]

pub mod auth;
pub mod broker;
pub mod budget;
pub mod clock;
pub mod column;
pub mod config;
pub mod engine;
pub mod error;
pub mod events;
pub mod http;
mod input;
pub mod key;
mod ledger;
pub mod limits;
mod metrics;
pub mod quantity;
pub mod settings;
mod store;
mod sync;
pub mod tls;
mod wire;

pub use column::{Integers, Present, Strings, StringsBuilder};
pub use config::{SourceConfig, StreamConfig};
pub use dpsw_durable::disk::Disk;
pub use engine::publish::Published;
pub use engine::report::{ChargeReport, Contract, HealthReport, LedgerReport, SourceReport, StreamReport};
pub use engine::{BatchId, Engine, EngineSettings, Pending, Receipt};
pub use error::{ChangeError, IngestError, OpenError, Unavailable, Unknown};
pub use events::{Column, Events};
pub use key::Key;
pub use store::position::{Position, Step};
