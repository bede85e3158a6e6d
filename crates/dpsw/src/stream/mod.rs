//! A running stream: it takes items, seals substreams, hands out views, and is saved.

pub(crate) mod absorb;
pub(crate) mod clock;
pub(crate) mod finish;
pub(crate) mod freshness;
pub(crate) mod keys;
pub(crate) mod sketch;
pub(crate) mod state;
pub(crate) mod worker;
