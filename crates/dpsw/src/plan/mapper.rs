//! How items fall on the counters of each substream of a plan.

use std::sync::Arc;

use crate::item::hash::FingerprintKey;
use crate::item::index::Index;
use crate::item::keys::Keys;
use crate::item::mapping::{Columns, Mapping};
use crate::plan::structure::Plan;

/// Makes the mappings of a stream's substreams.
#[derive(Debug)]
pub(crate) struct Mapper {
    pub(crate) fingerprint_key: FingerprintKey,
    index: Option<Arc<Index>>,
}

impl Mapper {
    pub(crate) fn new(plan: &Plan, fingerprint_key: FingerprintKey) -> Self {
        let listed = plan.settings().domain.keys().filter(|_| plan.is_identity());
        // Numbers from 0 on are their own indices.
        let listed = listed.filter(|keys| !matches!(keys, Keys::Range(_)));
        let index = listed.map(|keys| Arc::new(Index::new(keys, fingerprint_key)));
        Self { fingerprint_key, index }
    }

    /// The mapping with these keys of the rows, which only hashed counters need.
    pub(crate) fn make_mapping<E>(
        &self,
        plan: &Plan,
        row_keys: impl FnOnce(usize) -> Result<Vec<u64>, E>,
    ) -> Result<Mapping, E> {
        let columns = match &self.index {
            Some(index) => Columns::Listed(Arc::clone(index)),
            None if plan.is_identity() => Columns::Range,
            None => Columns::Hashed(row_keys(plan.shape().rows as usize)?.into()),
        };
        Ok(Mapping { shape: plan.shape(), fingerprint_key: self.fingerprint_key, columns, pinned: None })
    }
}
