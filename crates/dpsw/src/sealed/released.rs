//! The sealed substreams that are kept, and the keys that may be listed.

use std::sync::Arc;

use crate::item::domain::Domain;
use crate::item::keys::Keys;
use crate::item::mapping::Mapping;
use crate::item::value::Item;
use crate::plan::structure::Plan;
use crate::sealed::found::FoundKeys;
use crate::sealed::pins::Pins;
use crate::sealed::substream::SealedSubstream;

/// Everything that is released and kept at some moment.
#[derive(Debug, Clone)]
pub(crate) struct Released {
    /// Consecutive numbers; the last one may be running, with its complete prefixes alone.
    substreams: Vec<Arc<SealedSubstream>>,
    /// How items fall on counters, whatever is sealed.
    mapping: Mapping,
    /// The keys that were found and are kept.
    found: Arc<FoundKeys>,
    /// Which keys are or were pinned.
    pins: Arc<Pins>,
}

impl Released {
    pub(crate) fn new(substreams: Vec<Arc<SealedSubstream>>, mapping: Mapping) -> Self {
        Self { substreams, mapping, found: Arc::default(), pins: Arc::default() }
    }

    /// The same with these keys.
    pub(crate) fn with_found(self, found: Arc<FoundKeys>) -> Self {
        Self { found, ..self }
    }

    /// The same with these keys pinned.
    pub(crate) fn with_pins(self, pins: Arc<Pins>) -> Self {
        Self { pins, ..self }
    }

    pub(crate) fn pins(&self) -> &Arc<Pins> {
        &self.pins
    }

    pub(crate) fn found(&self) -> &Arc<FoundKeys> {
        &self.found
    }

    /// The keys that may be listed: public ones, or those that were found.
    pub(crate) fn keys<'a>(&'a self, plan: &'a Plan) -> Option<&'a Keys> {
        match &plan.settings().domain {
            Domain::Public(keys) => Some(keys),
            // Keys that were merely seen are never named (PRIVACY.md: rule 41).
            Domain::Asked(_) => None,
            Domain::Found(_) => Some(self.found.keys()),
        }
    }

    /// Whether an item has counters. Only identity counters leave out items that are not in the list.
    pub(crate) fn has_counters_for(&self, item: Item<'_>) -> bool {
        self.mapping.cells(item).next().is_some()
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    pub(crate) fn substreams(&self) -> &[Arc<SealedSubstream>] {
        &self.substreams
    }

    pub(crate) fn substream(&self, number: u64) -> Option<&SealedSubstream> {
        // Numbers are consecutive: a gap would be a substream that was never sealed.
        let first = self.substreams.first()?.number;
        let index = usize::try_from(number.checked_sub(first)?).ok()?;
        self.substreams.get(index).map(|substream| &**substream)
    }
}
