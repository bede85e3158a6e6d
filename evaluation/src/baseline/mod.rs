//! The methods that dpsw is compared with: private ones in a sound form, and one without privacy.
//!
//! A [`Plan`] holds every derived number of one method with chosen parameters. [`Plan::start`] gives the method
//! itself, a [`Baseline`], which counts in open blocks that nothing reads, draws noise once when a block is sealed,
//! and answers from sealed blocks and public numbers alone. Neighbours differ in one item (replace-one).

use dpsw::error::EntropyError;

mod budget;
mod columns;
mod dyadic;
mod grid;
mod hierarchy;
mod misra_gries;
mod zoom;

#[cfg(test)]
mod audit;
#[cfg(test)]
mod model;

pub mod blmz;
pub mod microscope;
pub mod pcc_mg;
pub mod tumbling;
pub mod u_sketch;

pub use budget::Task;
pub use grid::{Kind, Plan};
pub use hierarchy::Listing;

/// A method that follows a stream and answers about its last `window_len` items.
///
/// Two questions without an item between them get the same answer.
pub trait Baseline: Send {
    /// Takes the next items.
    ///
    /// # Errors
    /// A block is complete and there is no randomness to seal it with. The method is of no use after that.
    ///
    /// # Panics
    /// An item is outside the domain `0..domain_len`.
    fn insert(&mut self, items: &[u64]) -> Result<(), EntropyError>;

    /// How often an item occurs in the window; it may be negative, and is 0 where nothing is known.
    fn frequency(&self, item: u64) -> f64;

    /// The frequency of every item of the domain.
    fn estimates(&self) -> Vec<f64>;

    /// The items that occur at least `least` times, by their estimates unless the method has another rule.
    fn heavy_hitters(&self, least: f64) -> Vec<u64> {
        (0..).zip(self.estimates()).filter(|&(_, estimate)| least <= estimate).map(|(item, _)| item).collect()
    }

    /// Heap bytes that the method holds now, with its samplers and scratch space.
    fn resident_bytes(&self) -> u64;
}
