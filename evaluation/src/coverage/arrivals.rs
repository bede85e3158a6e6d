//! A stream as it arrives, and how often each item occurs between two positions.

use std::ops::Range;

use crate::dataset::Dataset;

/// Items and the position of each on the axis of the window, which ascend.
#[derive(Debug)]
pub struct Arrivals {
    items: Vec<u64>,
    /// The ticks of a time window; in a count window, positions count items from 0.
    times: Option<Vec<u64>>,
    keys: usize,
}

impl Arrivals {
    /// Items of a count window, all below `keys`.
    pub fn counted(items: Vec<u64>, keys: usize) -> Self {
        Self { items, times: None, keys }
    }

    /// Items of a time window, with their ticks, which ascend.
    pub fn timed(items: Vec<u64>, times: Vec<u64>, keys: usize) -> Self {
        assert!(items.len() == times.len() && times.is_sorted(), "each item has a tick, and ticks ascend");
        Self { items, times: Some(times), keys }
    }

    /// The first items of a stream, numbered by how often they occur: 0 is the most frequent.
    pub fn ranked(dataset: &Dataset, len: usize) -> Self {
        let items = &dataset.items[..len.min(dataset.items.len())];
        let mut counts = vec![0_u64; dataset.domain_len];
        items.iter().for_each(|&item| counts[item as usize] += 1);
        let mut by_count: Vec<usize> = (0..counts.len()).collect();
        by_count.sort_by_key(|&item| std::cmp::Reverse(counts[item]));
        let mut ranks = vec![0; counts.len()];
        (0..).zip(by_count).for_each(|(rank, item)| ranks[item] = rank);
        Self::counted(items.iter().map(|&item| ranks[item as usize]).collect(), dataset.domain_len)
    }

    /// How many different items there can be.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// The position after the last item.
    pub fn end(&self) -> u64 {
        match &self.times {
            None => self.items.len() as u64,
            Some(times) => times.last().map_or(0, |last| last + 1),
        }
    }

    /// How many items lie before a position.
    pub(super) fn before(&self, position: u64) -> usize {
        match &self.times {
            None => usize::try_from(position).map_or(self.items.len(), |len| len.min(self.items.len())),
            Some(times) => times.partition_point(|&time| time < position),
        }
    }

    pub(super) fn items(&self) -> &[u64] {
        &self.items
    }

    pub(super) fn times(&self) -> Option<&[u64]> {
        self.times.as_deref()
    }
}

/// Where each item occurs.
#[derive(Debug)]
pub struct Occurrences {
    /// Where the positions of each item start, and where the last ones end.
    starts: Vec<usize>,
    positions: Vec<u64>,
}

impl Occurrences {
    /// Of all items.
    pub fn of(arrivals: &Arrivals) -> Self {
        let mut starts = vec![0; arrivals.keys + 1];
        arrivals.items.iter().for_each(|&item| starts[item as usize + 1] += 1);
        (0..arrivals.keys).for_each(|key| starts[key + 1] += starts[key]);
        let mut next = starts.clone();
        let mut positions = vec![0; arrivals.items.len()];
        for (index, &item) in arrivals.items.iter().enumerate() {
            let place = &mut next[item as usize];
            positions[*place] = arrivals.times.as_ref().map_or(index as u64, |times| times[index]);
            *place += 1;
        }
        Self { starts, positions }
    }

    /// How often an item occurs; made-up items, beyond the last one, never do.
    pub fn count(&self, item: u64, range: &Range<u64>) -> u64 {
        let item = item as usize;
        let Some(&end) = self.starts.get(item + 1) else { return 0 };
        let own = &self.positions[self.starts[item]..end];
        let before = |position: u64| own.partition_point(|&at| at < position) as u64;
        before(range.end) - before(range.start)
    }

    /// The most frequent of the items below `keys`, the most frequent first, with their counts; of equally frequent ones
    /// those with smaller numbers.
    pub fn top(&self, len: usize, keys: usize, range: &Range<u64>) -> Vec<(u64, u64)> {
        let mut counts: Vec<(u64, u64)> =
            (0..keys as u64).map(|item| (item, self.count(item, range))).collect();
        let by_count = |a: &(u64, u64), b: &(u64, u64)| b.1.cmp(&a.1).then(a.0.cmp(&b.0));
        if 0 < len && len < counts.len() {
            counts.select_nth_unstable_by(len - 1, by_count);
        }
        counts.truncate(len);
        counts.sort_unstable_by(by_count);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_numbered_by_frequency() {
        let dataset =
            Dataset { name: "x".to_owned(), items: vec![2, 0, 2, 1, 2, 0, 1, 1], domain_len: 4, drift: None };
        let arrivals = Arrivals::ranked(&dataset, 6);
        assert_eq!(arrivals.items(), [0, 1, 0, 2, 0, 1]);
        assert_eq!((arrivals.keys(), arrivals.end(), arrivals.before(4)), (4, 6, 4));
    }

    #[test]
    fn occurrences_are_counted_between_positions_and_between_ticks() {
        let items = vec![1, 0, 1, 1, 2];
        let counted = Occurrences::of(&Arrivals::counted(items.clone(), 4));
        let timed = Arrivals::timed(items, vec![5, 5, 8, 9, 9], 4);
        assert_eq!((timed.end(), timed.before(9), timed.before(6)), (10, 3, 2));
        let timed = Occurrences::of(&timed);
        for (item, among, ticks) in [(1, 2, 2), (0, 1, 0), (2, 0, 1), (3, 0, 0), (99, 0, 0)] {
            assert_eq!((counted.count(item, &(1..4)), timed.count(item, &(6..10))), (among, ticks), "{item}");
        }
        assert_eq!(counted.top(2, 4, &(0..5)), [(1, 3), (0, 1)]);
        assert_eq!(counted.top(9, 2, &(0..1)), [(1, 1), (0, 0)]);
    }
}
