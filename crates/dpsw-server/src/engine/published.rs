//! What can be seen of a stream.

use dpsw::{DpswSketch, WindowView};

/// What can be seen of a stream: durable before it is here, and never different once it was.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Published {
    /// Answers all questions; its lists are worked out already.
    pub view: WindowView,
    /// Everything before this position or time is sealed; 0 before the first seal.
    pub sealed_until: u64,
    /// How many views of the stream were published before, since the service started; where the service's clock moves the
    /// stream, the step of the clock at which it was published.
    pub number: u64,
}

impl Published {
    /// How many substreams are sealed or were given up.
    #[must_use]
    pub fn substreams(&self) -> u64 {
        self.sealed_until / self.view.plan().substream_len()
    }

    /// What can be seen of a stream that starts, or starts again.
    pub(crate) fn first(sketch: &DpswSketch) -> Self {
        Self { view: sketch.view(), sealed_until: sketch.sealed_until(), number: 0 }
    }
}
