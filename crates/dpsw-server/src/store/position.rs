//! How far a source has read its broker, which is committed together with what was read.

use std::collections::BTreeMap;

/// The position of a source in the topic of its broker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position {
    /// The last record that was taken of each partition.
    pub taken: BTreeMap<u32, u128>,
    /// Nothing that the topic has now may be read: reading begins after it.
    pub begins_at_end: bool,
    /// How often somebody has begun to read for this source.
    pub term: u64,
}

/// The move that one batch makes: it is taken if the source stands where the batch begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Where the source must stand.
    pub from: Position,
    /// Where it stands when the batch is durable.
    pub to: Position,
}

const HEAD_LEN: usize = 9;
const PARTITION_LEN: usize = 20;

impl Position {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.begins_at_end)];
        bytes.extend_from_slice(&self.term.to_le_bytes());
        for (partition, offset) in &self.taken {
            bytes.extend_from_slice(&partition.to_le_bytes());
            bytes.extend_from_slice(&offset.to_le_bytes());
        }
        bytes
    }

    /// `None` if the bytes are none of [`to_bytes`](Self::to_bytes).
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(HEAD_LEN)?;
        let (partitions, []) = rest.as_chunks::<PARTITION_LEN>() else { return None };
        let mut taken = BTreeMap::new();
        for bytes in partitions {
            let (partition, offset) = bytes.split_first_chunk()?;
            taken.insert(u32::from_le_bytes(*partition), u128::from_le_bytes(offset.try_into().ok()?));
        }
        Some(Self {
            taken,
            begins_at_end: head[0] != 0,
            term: u64::from_le_bytes(head[1..].try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written_and_a_cut_one_is_none() {
        let taken = BTreeMap::from([(0, 7), (3, u128::MAX), (u32::MAX, 1 << 64)]);
        for position in [Position::default(), Position { taken, begins_at_end: true, term: 1 << 40 }] {
            let bytes = position.to_bytes();
            assert_eq!(Position::from_bytes(&bytes), Some(position));
            assert_eq!(Position::from_bytes(&bytes[..bytes.len() - 1]), None);
        }
    }
}
