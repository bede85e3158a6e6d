//! What only tests use: the paper's pseudo-code as an oracle, and mistakes planted in the real path.

pub(crate) mod fault;
mod oracle;
