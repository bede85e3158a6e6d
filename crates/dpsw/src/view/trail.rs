//! What the nodes of a key hold, one after the other.

use crate::view::weights::Node;

/// What the nodes of a key hold, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trail<'a> {
    pub(crate) nodes: &'a [Node],
    pub(crate) counts: &'a [f64],
    /// What all before each of them hold.
    pub(crate) sums: &'a [f64],
    pub(crate) total: f64,
}

impl Trail<'_> {
    /// What the nodes hold up to a position: of a node that it cuts, a share.
    pub(crate) fn until(&self, position: u64) -> f64 {
        let next = self.nodes.partition_point(|node| node.span.end <= position);
        let Some(cut) = self.nodes.get(next).filter(|node| node.span.start < position) else {
            return self.sums.get(next).copied().unwrap_or(self.total);
        };
        self.sums[next] + self.counts[next] * cut.share(position - cut.span.start)
    }

    /// What the next node will hold, by so many before it.
    pub(crate) fn predicted(&self, span: u32) -> f64 {
        let Some(newest) = self.nodes.last() else { return 0.0 };
        let start = newest.back(span).max(self.nodes[0].span.start);
        (self.total - self.until(start)) / newest.share(newest.span.end - start)
    }
}
