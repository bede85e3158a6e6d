//! What is decided at a seal, from sealed data alone: who is pinned, who is cut finely, which found keys stay listed.

pub(crate) mod decision;
pub(crate) mod drift;
pub(crate) mod found;
pub(crate) mod levels;
pub(crate) mod pins;
pub(crate) mod sums;
