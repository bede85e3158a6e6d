//! Which batches were taken, so that one that is sent again counts once.

use std::collections::{HashSet, VecDeque};

use crate::engine::BatchId;

/// So many batch ids of a source are remembered; older ones are forgotten, oldest first.
pub const BATCH_IDS_MAX: usize = 1 << 16;

/// The ids of a source's newest batches.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    known: HashSet<BatchId>,
    /// By the last batch of their commit, in order.
    commits: VecDeque<(u64, Vec<BatchId>)>,
}

impl Ids {
    pub(crate) fn knows(&self, id: &BatchId) -> bool {
        self.known.contains(id)
    }

    /// Remembers the ids of a commit.
    pub(crate) fn remember(&mut self, last: u64, ids: Vec<BatchId>) {
        if !ids.is_empty() {
            self.known.extend(ids.iter().cloned());
            self.commits.push_back((last, ids));
        }
    }

    /// The last batch of the commits that are too old to be remembered, if so many further ids come.
    pub(crate) fn forgettable(&self, further: usize) -> Option<u64> {
        let (mut left, mut last) = (self.known.len() + further, None);
        for (commit, ids) in &self.commits {
            if left <= BATCH_IDS_MAX {
                break;
            }
            left -= ids.len();
            last = Some(*commit);
        }
        last
    }

    pub(crate) fn forget(&mut self, last: u64) {
        while self.commits.front().is_some_and(|(commit, _)| *commit <= last) {
            let (_, ids) = self.commits.pop_front().expect("there is a first one");
            ids.iter().for_each(|id| {
                self.known.remove(id);
            });
        }
    }

    /// The last batch of the newest commit.
    pub(crate) fn last(&self) -> Option<u64> {
        self.commits.back().map(|(last, _)| *last)
    }
}

/// Ids as they stand in the database.
pub(crate) fn encode(ids: &[BatchId]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for id in ids {
        bytes.push(u8::try_from(id.0.len()).expect("ids are short"));
        bytes.extend_from_slice(&id.0);
    }
    bytes
}

/// The ids in these bytes; `None` if they are cut.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<Vec<BatchId>> {
    let mut ids = Vec::new();
    while let Some((&len, rest)) = bytes.split_first() {
        let (id, rest) = rest.split_at_checked(len.into())?;
        ids.push(BatchId(id.into()));
        bytes = rest;
    }
    Some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> BatchId {
        BatchId::new(format!("batch {number}")).expect("short")
    }

    #[test]
    fn the_newest_ids_are_remembered_and_whole_commits_are_forgotten() {
        let mut ids = Ids::default();
        for commit in 0..BATCH_IDS_MAX / 4 {
            ids.remember(4 * commit as u64 + 3, (4 * commit..4 * commit + 4).map(id).collect());
        }
        assert_eq!((ids.forgettable(0), ids.forgettable(1), ids.forgettable(5)), (None, Some(3), Some(7)));
        ids.forget(7);
        assert!(!ids.knows(&id(7)) && ids.knows(&id(8)));
        assert_eq!(ids.last(), Some(BATCH_IDS_MAX as u64 - 1));
    }

    #[test]
    fn ids_are_read_as_they_were_written() {
        let ids: Vec<BatchId> = (0..5).map(id).collect();
        assert_eq!(decode(&encode(&ids)), Some(ids.clone()));
        assert_eq!(decode(&encode(&ids)[..20]), None);
        assert_eq!(decode(&[]), Some(Vec::new()));
    }
}
