//! What the nodes of a key hold, one after the other.

use crate::view::weights::Node;

/// What the nodes of a key hold, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trail<'a> {
    /// All nodes that there are, and which of them the key has, oldest first.
    pub(crate) all: &'a [Node],
    pub(crate) own: &'a [u32],
    /// What all before each of them hold, and what all hold.
    pub(crate) sums: &'a [f64],
}

impl<'a> Trail<'a> {
    pub(crate) fn nodes(&self) -> impl DoubleEndedIterator<Item = &'a Node> + ExactSizeIterator {
        let all = self.all;
        self.own.iter().map(move |&node| &all[node as usize])
    }

    pub(crate) fn newest(&self) -> Option<&'a Node> {
        self.own.last().map(|&node| &self.all[node as usize])
    }

    /// Where the oldest one begins.
    pub(crate) fn start(&self) -> u64 {
        self.own.first().map_or(0, |&node| self.all[node as usize].span.start)
    }

    pub(crate) fn count(&self, index: usize) -> f64 {
        self.sums[index + 1] - self.sums[index]
    }

    pub(crate) fn total(&self) -> f64 {
        self.sums.last().copied().unwrap_or(0.0)
    }

    /// What the nodes hold up to a position: of a node that it cuts, a share.
    pub(crate) fn until(&self, position: u64) -> f64 {
        let next = self.own.partition_point(|&node| self.all[node as usize].span.end <= position);
        let cut = self.own.get(next).map(|&node| &self.all[node as usize]);
        match cut.filter(|node| node.span.start < position) {
            Some(cut) => self.sums[next] + self.count(next) * cut.share(position - cut.span.start),
            None => self.sums.get(next).copied().unwrap_or(0.0),
        }
    }

    /// What the next node will hold, by so many before it.
    pub(crate) fn predicted(&self, span: u32) -> f64 {
        let Some(newest) = self.newest() else { return 0.0 };
        let start = newest.back(span).max(self.start());
        (self.total() - self.until(start)) / newest.share(newest.span.end - start)
    }
}
