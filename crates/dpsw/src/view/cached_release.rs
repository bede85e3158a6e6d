//! What is released at some moment, and what was computed from it: shared by all views of that moment.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::item::index::Index;
use crate::item::keys::Keys;
use crate::item::mapping::Columns;
use crate::item::value::Item;
use crate::plan::limits::CACHED_COVERS_MAX;
use crate::sealed::found::FoundKeys;
use crate::sealed::pins::Pins;
use crate::sealed::released::Released;
use crate::sealed::substream::SealedSubstream;
use crate::view::paper::cover::Cover;
use crate::view::tuned::fit_cache::FitCache;

/// A release and its caches. What they hold is a pure function of the release and the plan.
#[derive(Debug)]
pub(crate) struct CachedRelease {
    pub(crate) released: Released,
    covers: Mutex<Vec<(Cover, Arc<[f64]>)>>,
    fits: FitCache,
    /// Indices of the keys of a list, where items are hashed.
    key_index: OnceLock<Index>,
}

impl CachedRelease {
    pub(crate) fn new(released: Released) -> Self {
        Self { released, covers: Mutex::default(), fits: FitCache::default(), key_index: OnceLock::new() }
    }

    /// What is readable after these substreams were sealed or have left.
    pub(crate) fn after_seal(
        &self,
        substreams: Vec<Arc<SealedSubstream>>,
        found: Arc<FoundKeys>,
        pins: Arc<Pins>,
    ) -> Self {
        let first = substreams.first().map_or(u64::MAX, |substream| substream.number);
        // Sums over keys can only be carried on for the same keys.
        let fits = if found.keys() == self.released.found().keys() {
            self.fits.after_seal(first)
        } else {
            FitCache::default()
        };
        let released = Released::new(substreams, self.released.mapping().clone()).with_found(found);
        let released = released.with_pins(pins);
        Self { fits, ..Self::new(released) }
    }

    pub(crate) fn fits(&self) -> &FitCache {
        &self.fits
    }

    /// The index of an item in a list.
    pub(crate) fn key_index(&self, keys: &Keys, item: Item<'_>) -> Option<usize> {
        if let (Keys::Range(end), Item::Integer(value)) = (keys, item) {
            return (value < *end).then_some(value as usize);
        }
        let key = self.released.mapping().fingerprint_key;
        match &self.released.mapping().columns {
            Columns::Listed(index) => index.find_key(key.hash_item(item)),
            _ => self.key_index.get_or_init(|| Index::new(keys, key)).find_key(key.hash_item(item)),
        }
    }

    /// The estimates of all keys for a cover, computed once.
    pub(crate) fn estimate_keys(&self, cover: &Cover, keys: &Keys) -> Arc<[f64]> {
        // A panic while a cover was made leaves the cache whole: entries are pushed when they are done.
        let mut cache = self.covers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = cache.iter().find(|(known, _)| known == cover) {
            return Arc::clone(known);
        }
        let estimates: Arc<[f64]> =
            (0..keys.len()).map(|i| self.released.sum_minima(cover, keys.get(i))).collect();
        if cache.len() == CACHED_COVERS_MAX {
            cache.remove(0);
        }
        cache.push((cover.clone(), Arc::clone(&estimates)));
        estimates
    }
}
