//! Items, lists of keys, and how items fall on counters.

pub(crate) mod batch;
pub(crate) mod domain;
pub(crate) mod hash;
pub(crate) mod index;
pub(crate) mod keys;
pub(crate) mod mapping;
pub(crate) mod run;
pub(crate) mod pins;
pub(crate) mod value;
