//! The keys of a stream and how its items fall on counters, substream by substream.

use std::convert::Infallible;
use std::sync::Arc;

use crate::counters::{Columns, Mapping};
use crate::hash::{FingerprintKey, Index, StreamKey};
use crate::item::Keys;
use crate::plan::Plan;

/// Makes the mappings of a stream's substreams.
#[derive(Debug)]
pub(crate) struct Mapper {
    pub(crate) fingerprint_key: FingerprintKey,
    index: Option<Arc<Index>>,
}

impl Mapper {
    pub(crate) fn new(plan: &Plan, fingerprint_key: FingerprintKey) -> Self {
        let listed = plan.settings().domain.keys().filter(|_| plan.is_identity());
        let listed = listed.filter(|keys| !matches!(keys, Keys::Range(_)));
        let index = listed.map(|keys| Arc::new(Index::new(keys, fingerprint_key)));
        Self { fingerprint_key, index }
    }

    /// The mapping with these keys of the rows, which only hashed counters need.
    pub(crate) fn mapping<E>(
        &self,
        plan: &Plan,
        row_keys: impl FnOnce(usize) -> Result<Vec<u64>, E>,
    ) -> Result<Mapping, E> {
        let columns = match &self.index {
            Some(index) => Columns::Listed(Arc::clone(index)),
            None if plan.is_identity() => Columns::Range,
            None => Columns::Hashed(row_keys(plan.shape().rows as usize)?.into()),
        };
        Ok(Mapping { shape: plan.shape(), fingerprint_key: self.fingerprint_key, columns })
    }
}

/// Where the mappings of the substreams come from.
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

    pub(crate) fn mapping(&self, plan: &Plan, number: u64) -> Mapping {
        let hash_number = if plan.has_one_hash() { 0 } else { number };
        let row_keys = |rows| Ok::<_, Infallible>(self.stream.row_keys(hash_number, rows));
        self.mapper.mapping(plan, row_keys).unwrap_or_else(|never| match never {})
    }

    /// Hashes items. The caller's code runs here, before any of them is counted: if it panics, positions stay right.
    pub(crate) fn fingerprints<'b, T: AsRef<[u8]>>(&self, items: &[T], buffer: &'b mut [u64]) -> &'b [u64] {
        for (fingerprint, item) in buffer.iter_mut().zip(items) {
            *fingerprint = self.mapper.fingerprint_key.bytes(item.as_ref());
        }
        &buffer[..items.len()]
    }
}
