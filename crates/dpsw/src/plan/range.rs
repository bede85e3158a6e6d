//! The ranges of a substream that are sealed, each with its noise.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::item::mapping::Shape;
use crate::noise::law::Law;
use crate::noise::table::Table;
use crate::plan::paper::checkpoint::{Role, Span};
use crate::privacy::ledger::Ledger;

/// The ranges and the structure that a method makes of the settings.
pub(crate) struct Sketches {
    pub(crate) substream_len: u64,
    pub(crate) shape: Shape,
    /// The whole substream first.
    pub(crate) ranges: Vec<PlannedRange>,
    /// With what the sketches cost.
    pub(crate) ledger: Ledger,
}

/// One range of a substream that is sealed with its own noise.
#[derive(Debug, Clone)]
pub struct PlannedRange {
    role: Role,
    offsets: Range<u64>,
    law: Law,
    table: LazyTable,
}

/// A table of noise that is made when it is first needed; views never do.
pub(crate) type LazyTable = Arc<OnceLock<Table>>;

impl PlannedRange {
    /// Whole, prefix or suffix.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// The positions it covers, counted from the start of its substream.
    #[must_use]
    pub fn offsets(&self) -> Range<u64> {
        self.offsets.clone()
    }

    /// The law of its noise.
    #[must_use]
    pub fn law(&self) -> Law {
        self.law
    }

    pub(crate) fn table(&self) -> &Table {
        self.table.get_or_init(|| Table::new(self.law))
    }

    #[cfg(test)]
    pub(crate) fn with_law(&self, law: Law) -> Self {
        Self { law, table: LazyTable::default(), ..self.clone() }
    }

    /// Spans with their laws; equal laws share a table.
    pub(crate) fn from_spans(spans: impl IntoIterator<Item = (Span, Law)>) -> Vec<Self> {
        let mut ranges: Vec<Self> = Vec::new();
        for (Span { role, offsets, .. }, law) in spans {
            let known = ranges.iter().find(|range| range.law == law);
            let table = known.map(|range| Arc::clone(&range.table)).unwrap_or_default();
            ranges.push(Self { role, offsets, law, table });
        }
        ranges
    }
}

/// The index of the whole substream among the planned ranges.
pub(crate) const WHOLE: usize = 0;

/// The offsets at which a segment ends, ascending; the last is the substream's length.
pub(crate) fn find_boundaries(ranges: &[PlannedRange]) -> Vec<u64> {
    let mut boundaries: Vec<u64> = ranges
        .iter()
        .flat_map(|range| [range.offsets.start, range.offsets.end])
        // No segment ends where the substream begins.
        .filter(|&at| at != 0)
        .collect();
    boundaries.sort_unstable();
    boundaries.dedup();
    boundaries
}
