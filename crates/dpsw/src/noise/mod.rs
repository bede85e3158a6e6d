//! Exact noise on integers: the laws, how far their sums reach, the table sampler and its certified boundaries, and the only
//! users of the generator.

pub(crate) mod certified;
pub(crate) mod generator;
pub(crate) mod law;
pub(crate) mod noised;
pub(crate) mod one_sided;
pub(crate) mod table;
pub(crate) mod tail;

pub use generator::{Generator, Noise};
pub use law::Law;
pub use table::Table;
