//! The sealed substreams that are kept, and the keys that may be listed.

use std::sync::Arc;

use crate::item::domain::Domain;
use crate::item::hash::FingerprintKey;
use crate::item::keys::Keys;
use crate::item::mapping::Mapping;
use crate::item::value::Item;
use crate::plan::structure::Plan;
use crate::sealed::substream::SealedSubstream;

/// Everything that is released and kept at some moment.
#[derive(Debug)]
pub(crate) struct Released {
    /// Consecutive numbers; the last one may be running, with its complete prefixes alone.
    substreams: Vec<Arc<SealedSubstream>>,
    /// How items fall on counters, whatever is sealed.
    mapping: Mapping,
    /// The keys found in epochs that are retained, oldest first.
    found: Vec<Arc<Found>>,
    /// All of them, each once.
    listed: Option<Keys>,
}

impl Released {
    pub(crate) fn new(substreams: Vec<Arc<SealedSubstream>>, mapping: Mapping) -> Self {
        Self { substreams, mapping, found: Vec::new(), listed: None }
    }

    /// The same with these keys.
    pub(crate) fn with_found(self, found: Vec<Arc<Found>>) -> Self {
        let listed = union(&found, self.mapping.fingerprint_key);
        Self { found, listed, ..self }
    }

    pub(crate) fn found(&self) -> &[Arc<Found>] {
        &self.found
    }

    /// Whether keys were found, even if none came out.
    pub(crate) fn has_found(&self) -> bool {
        self.listed.is_some()
    }

    /// The keys that may be listed: public ones, or those that were found.
    pub(crate) fn keys<'a>(&'a self, plan: &'a Plan) -> Option<&'a Keys> {
        match &plan.settings().domain {
            Domain::Public(keys) => Some(keys),
            Domain::Asked(_) => None,
            Domain::Discovered(_) => Some(self.listed.as_ref().unwrap_or(&NO_KEYS)),
        }
    }

    /// Whether an item has counters. Only identity counters leave out items that are not in the list.
    pub(crate) fn knows(&self, item: Item<'_>) -> bool {
        self.mapping.cells(item).next().is_some()
    }

    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    pub(crate) fn substreams(&self) -> &[Arc<SealedSubstream>] {
        &self.substreams
    }

    pub(crate) fn substream(&self, number: u64) -> Option<&SealedSubstream> {
        let first = self.substreams.first()?.number;
        let index = usize::try_from(number.checked_sub(first)?).ok()?;
        self.substreams.get(index).map(|substream| &**substream)
    }
}

/// The keys released when an epoch ended, in the order of their keyed hashes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) epoch: u64,
    pub(crate) keys: Keys,
}

static NO_KEYS: Keys = Keys::Range(0);

/// All keys that were found, each once, in the order of their keyed hashes; `None` before the first epoch ended.
fn union(found: &[Arc<Found>], key: FingerprintKey) -> Option<Keys> {
    let kind = found.first()?.keys.kind();
    let all = found.iter().flat_map(|found| (0..found.keys.len()).map(|place| found.keys.get(place)));
    let mut all: Vec<(u64, Item<'_>)> = all.map(|item| (key.item(item), item)).collect();
    all.sort_unstable();
    all.dedup();
    Some(Keys::collect(kind, all.into_iter().map(|(_, item)| item)))
}
