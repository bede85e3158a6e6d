//! Notes that end with the process.

use std::collections::BTreeSet;

use crate::error::StoreError;
use crate::stream::freshness::{FreshnessStore, StateId};

/// Keeps its notes in memory: states can be restored by the process that saved them, and by no other.
#[derive(Debug, Default)]
pub struct MemoryStore(BTreeSet<StateId>);

impl FreshnessStore for MemoryStore {
    fn note(&mut self, id: StateId) -> Result<(), StoreError> {
        self.0.insert(id);
        Ok(())
    }

    fn consume(&mut self, id: StateId) -> Result<bool, StoreError> {
        // True once (PRIVACY.md: rule 30).
        Ok(self.0.remove(&id))
    }
}
