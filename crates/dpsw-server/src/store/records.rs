//! What the database keeps beside the journal.

use std::collections::BTreeSet;

use bytes::Bytes;
use dpsw::{SavedState, StateId};
use dpsw_durable::marker::Lineage;
use serde::{Deserialize, Serialize};

use crate::config::{SourceConfig, StreamConfig};
use crate::ledger::Charge;

/// The number of a source. Never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct SourceId(pub(crate) u32);

/// The number of a stream. Never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct StreamId(pub(crate) u64);

/// The database's record about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) lineage: Lineage,
    pub(crate) next_source: SourceId,
    pub(crate) next_stream: StreamId,
}

/// A source, also one that was deleted: its ledger stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SourceRecord {
    /// Without its streams.
    pub(crate) config: SourceConfig,
    pub(crate) is_deleted: bool,
    /// Those of deleted streams stay.
    pub(crate) charges: Vec<Charge>,
}

/// A running stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StreamRecord {
    pub(crate) source: SourceId,
    pub(crate) config: StreamConfig,
    pub(crate) from_ms: u64,
    /// The first of those that it took the place of, or itself: tokens know it by this number.
    pub(crate) origin: StreamId,
}

/// The view of a stream that is sealed elsewhere.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ViewRecord {
    pub(crate) name: String,
    /// As it was sent.
    pub(crate) view: Bytes,
}

impl ViewRecord {
    /// The length of the name, the name, the view.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let len = u8::try_from(self.name.len()).expect("names have at most 64 bytes");
        [&[len], self.name.as_bytes(), &self.view].concat()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (len, rest) = bytes.split_first()?;
        let (name, view) = rest.split_at_checked(usize::from(*len))?;
        Some(Self { name: String::from_utf8(name.to_vec()).ok()?, view: Bytes::copy_from_slice(view) })
    }
}

/// The events of a batch that are null items in a stream, because counting them panicked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Nulls {
    /// The events with these places in the batch.
    Items(BTreeSet<usize>),
    /// All of them: nobody could tell which one it was.
    All,
}

impl Nulls {
    pub(crate) fn has(&self, index: usize) -> bool {
        match self {
            Self::Items(places) => places.contains(&index),
            Self::All => true,
        }
    }
}

/// The progress of a stream when it was saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Saved {
    /// Batches before this number are counted.
    pub(crate) counted: u64,
    /// Everything before this position or time is sealed.
    pub(crate) sealed_until: u64,
    pub(crate) id: StateId,
}

/// A checkpoint of a stream.
#[derive(Debug)]
pub(crate) struct StateRecord {
    pub(crate) saved: Saved,
    pub(crate) state: Vec<u8>,
}

impl StateRecord {
    pub(crate) fn new(counted: u64, sealed_until: u64, state: SavedState) -> Self {
        Self { saved: Saved { counted, sealed_until, id: state.id }, state: state.bytes }
    }
}

impl Saved {
    pub(crate) const LEN: usize = 40;

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&self.counted.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sealed_until.to_le_bytes());
        bytes[16..].copy_from_slice(&self.id.0);
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (counted, rest) = bytes.split_first_chunk()?;
        let (sealed_until, id) = rest.split_first_chunk()?;
        let counted = u64::from_le_bytes(*counted);
        let sealed_until = u64::from_le_bytes(*sealed_until);
        Some(Self { counted, sealed_until, id: StateId(id.try_into().ok()?) })
    }
}
