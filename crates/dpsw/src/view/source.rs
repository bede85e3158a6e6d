//! What estimates are made from.

use std::ops::Range;
use std::sync::Arc;

use crate::item::keys::Keys;
use crate::plan::structure::Plan;
use crate::sealed::leases::Leases;
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;
use crate::view::weights::Node;

/// What an estimate is made from.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) substreams: &'a [Arc<SealedSubstream>],
    /// Where the stream began and how far it has come.
    pub(crate) stream: &'a Range<u64>,
    /// The keys that may be listed.
    pub(crate) keys: Option<&'a Keys>,
    /// Which keys are tracked.
    pub(crate) leases: &'a Leases,
    /// How many independent noises are in each counter.
    pub(crate) noises: f64,
}

impl<'a> Source<'a> {
    /// The counters of a node.
    pub(crate) fn sketch(&self, node: &Node) -> &'a SealedSketch {
        self.substreams[node.substream].sketch(node.range).expect("nodes are sealed")
    }

    /// The sealed nodes of most keys.
    pub(crate) fn nodes(&self) -> Vec<Node> {
        Node::all(self.substreams, self.plan, self.stream)
    }
}
