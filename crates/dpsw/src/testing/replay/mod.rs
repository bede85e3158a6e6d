//! Coupled replay: whatever a stream meets, what it shows is a function of its sealed counters and of the keys that came out,
//! and those have their noise.
//!
//! A stream is run with real noise, and every sealed value and every key that comes out is taped (`tape.rs`). Then a neighbour
//! of it (`neighbour.rs`) is forced to seal exactly those values and to let exactly those keys out. By `judge.rs`
//!
//! - everything that the two show is equal, to the last byte: views after each step, answers, the lengths of states, debug output,
//!   what became of batches, errors, the last view;
//! - the changes of all exact counters, over the scales of their noise, and those of the keys' counts, add up to ε at most;
//! - each sealed counter that is shown came from the sampler, with a draw of its own.
//!
//! Together these are the claim itself for this pair: the likelihood of a transcript changes by the factors of its draws alone. The
//! laws of the draws are held elsewhere: in the tests of `noise/` and of `plan/release.rs`.
//!
//! What is sealed on a line of the stream that is lost before anyone looks is drawn freely on both sides: if any of it comes back
//! later, the two show different bytes.
//!
//! To add a kind of plan, add to `plans.rs`; to add an operation, add a `Step` in `story.rs` and let the compiler name the rest.

mod dice;
mod judge;
mod neighbour;
mod plans;
mod play;
mod story;
pub(crate) mod tape;
mod tests;
