//! What only tests use: the paper's pseudo-code as an oracle, mistakes planted in the real path, and the coupled replay.

pub(crate) mod fault;
mod oracle;
pub(crate) mod replay;
pub(crate) use replay::tape;
