//! How often the items of a stream occur.

use std::cmp::Reverse;

use serde::Serialize;

use super::numbering::Loaded;
use super::report::Report;

/// How many of the most frequent items are named.
const TOP_LEN: usize = 5;

/// The size of a stream and the frequencies of its items.
#[derive(Debug, Clone, Serialize)]
pub struct Statistics {
    /// n: the items of the stream.
    pub len: u64,
    /// m: the items of the domain, including those that never occur.
    pub domain_len: usize,
    /// The most frequent items by name, with their counts.
    pub top: Vec<(String, u64)>,
    /// The count of every item of the domain, the largest first: frequency by rank.
    #[serde(skip)]
    pub by_rank: Vec<u64>,
    /// What was left out of the stream.
    pub report: Report,
}

impl Statistics {
    /// From the count and the name of each item.
    pub(crate) fn new(mut counts: Vec<u64>, names: Vec<String>, report: Report) -> Self {
        let mut top: Vec<(String, u64)> = names.into_iter().zip(counts.iter().copied()).collect();
        top.sort_by_key(|&(_, count)| Reverse(count));
        top.truncate(TOP_LEN);
        counts.sort_unstable_by_key(|&count| Reverse(count));
        Self { len: counts.iter().sum(), domain_len: counts.len(), top, by_rank: counts, report }
    }

    /// Of a stream that is at hand.
    pub fn of(loaded: &Loaded) -> Self {
        Self::new(loaded.dataset.counts(), loaded.names.clone(), loaded.report.clone())
    }

    /// The points of the paper's figure, for every frequency x that occurs: the share of the domain with a
    /// frequency of at least x.
    pub fn share_at_least(&self) -> Vec<(u64, f64)> {
        let mut points: Vec<(u64, f64)> = Vec::new();
        for (rank, &count) in self.by_rank.iter().enumerate() {
            let share = (rank + 1) as f64 / self.by_rank.len() as f64;
            match points.last_mut() {
                Some(last) if last.0 == count => last.1 = share,
                _ => points.push((count, share)),
            }
        }
        points.reverse();
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_become_ranks_and_shares() {
        let names = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let statistics = Statistics::new(vec![2, 5, 0, 2], names, Report::default());
        assert_eq!((statistics.len, statistics.domain_len), (9, 4));
        assert_eq!(statistics.by_rank, [5, 2, 2, 0]);
        assert_eq!(statistics.top[..2], [("b".to_owned(), 5), ("a".to_owned(), 2)]);
        assert_eq!(statistics.share_at_least(), [(0, 1.0), (2, 0.75), (5, 0.25)]);
    }
}
