//! The audit of the service: whole conversations over HTTP on two neighbouring sources, with kills and restarts between, must
//! not tell the neighbours apart better than the plans promise; and services with a planted leak must fail.
//!
//! Two services take the same batches and are asked the same at the same times. They differ in one event of each stream: by
//! a coin, one has it as one item and the other as another one, or one has it and the other does not. Where presence is
//! private, batches come at other milliseconds to one than to the other, one batch may not come at all, and nobody is asked
//! to look at the clock: its own thread moves it. Then
//!
//! - whatever is said that is not about sealed counters must be the same, byte for byte;
//! - what was seen of a sealed substream must stay the same, whatever happens to the service;
//! - answers must be those of the view, as bytes, so that counters say all that can be learnt;
//! - nobody who guesses the coins from the counters is right more often than the claim lets them be.

#[path = "../crash/client.rs"]
mod client;
mod conversation;
mod judge;
mod leaks;
#[path = "../crash/random.rs"]
mod random;
mod world;
