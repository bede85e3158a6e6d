//! Brokers: a source may read its events from a topic instead of being sent them.
//!
//! ```text
//! Connector --records, in the order of offsets--> Batch   what was taken before is dropped
//! Batch     --with where it ends----------------> Engine  one transaction for both
//! Engine    --where the source stands-----------> Connector, after a start or any trouble
//! ```
//!
//! Offsets live in the database and nowhere else: a batch and the offsets that it covers are durable together, and the engine
//! takes a batch only if the source stands where the batch begins. So every record counts once, whatever is killed and whatever
//! the broker sends again. Who may read is written in the broker (`claim`).

pub mod access;
mod batch;
mod claim;
mod connector;
mod error;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "nats")]
mod nats;
mod reader;
#[cfg(feature = "redis")]
mod redis;
mod supervise;
mod values;

pub use supervise::start;
