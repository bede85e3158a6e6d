//! The hash keys of a stream, substream by substream.

use std::convert::Infallible;

use crate::item::hash::StreamKey;
use crate::item::mapping::Mapping;
use crate::plan::mapper::Mapper;
use crate::plan::structure::Plan;
use crate::sealed::horizon::Decided;

/// The hash keys of a stream, from which the mappings of its substreams are made.
#[derive(Debug)]
pub(crate) struct HashKeys {
    pub(crate) stream: StreamKey,
    pub(crate) mapper: Mapper,
}

impl HashKeys {
    pub(crate) fn new(plan: &Plan, stream: StreamKey) -> Self {
        let mapper = Mapper::new(plan, stream.fingerprint_key());
        Self { stream, mapper }
    }

    /// How items fall on the hashed counters of a substream in which it is decided which ones do not.
    pub(crate) fn mapping_for(&self, plan: &Plan, substream: Decided) -> Mapping {
        let number = plan.hash_number(substream.number());
        // Views carry the row keys of released substreams, never the stream key that they come from (PRIVACY.md: rule 25).
        let row_keys = |rows| Ok::<_, Infallible>(self.stream.row_keys(number, rows));
        self.mapper.make_mapping(plan, row_keys).unwrap_or_else(|never| match never {})
    }
}
