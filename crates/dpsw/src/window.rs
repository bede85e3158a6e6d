//! The sealed substreams that are kept, and which of their ranges cover a window.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::counters::{Columns, Mapping};
use crate::hash::{FingerprintKey, Index};
use crate::interpolate::Fits;
use crate::item::{Domain, Item, Keys};
use crate::plan::{CACHED_COVERS_MAX, Plan};
use crate::sketch::SealedSketch;
use crate::substream::SealedSubstream;
use crate::tracker::collect;

/// One sketch of a cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Number of the substream.
    pub(crate) substream: u64,
    /// Index of the planned range.
    pub(crate) range: usize,
}

/// The sketches whose ranges together come nearest to a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cover {
    pub(crate) parts: Vec<Part>,
    /// The positions that they cover; empty at the window's end if there are none.
    pub(crate) span: Range<u64>,
}

/// Everything that is readable at some moment.
#[derive(Debug)]
pub(crate) struct Released {
    /// Consecutive numbers; the last one may be running, with its complete prefixes alone.
    substreams: Vec<Arc<SealedSubstream>>,
    /// How items fall on counters, whatever is sealed.
    mapping: Mapping,
    cache: Mutex<Vec<(Cover, Arc<[f64]>)>>,
    fits: Fits,
    /// The keys found in epochs that are retained, oldest first.
    found: Vec<Arc<Found>>,
    /// All of them, each once.
    listed: Option<Keys>,
    /// Places of the keys of a public list, where items are hashed.
    places: OnceLock<Index>,
}

impl Released {
    pub(crate) fn new(substreams: Vec<Arc<SealedSubstream>>, mapping: Mapping) -> Self {
        Self {
            substreams,
            mapping,
            cache: Mutex::default(),
            fits: Fits::default(),
            found: Vec::new(),
            listed: None,
            places: OnceLock::new(),
        }
    }

    /// What is readable after these substreams were sealed or have left.
    pub(crate) fn next(&self, substreams: Vec<Arc<SealedSubstream>>, found: Vec<Arc<Found>>) -> Self {
        let first = substreams.first().map_or(u64::MAX, |substream| substream.number);
        let next = Self::new(substreams, self.mapping.clone()).with_found(found);
        // Sums over keys can only be carried on for the same keys.
        let fits =
            if next.listed.is_none() { self.fits.next(&self.substreams, first) } else { Fits::default() };
        Self { fits, ..next }
    }

    /// The same with these keys.
    pub(crate) fn with_found(self, found: Vec<Arc<Found>>) -> Self {
        let listed = union(&found, self.mapping.fingerprint_key);
        Self { found, listed, ..self }
    }

    pub(crate) fn found(&self) -> &[Arc<Found>] {
        &self.found
    }

    /// The keys that may be listed: public ones, or those that were found.
    pub(crate) fn keys<'a>(&'a self, plan: &'a Plan) -> Option<&'a Keys> {
        match &plan.settings().domain {
            Domain::Public(keys) => Some(keys),
            Domain::Asked(_) => None,
            Domain::Discovered(_) => Some(self.listed.as_ref().unwrap_or(&NO_KEYS)),
        }
    }

    /// Whether an item has counters; without a public list every item has.
    pub(crate) fn knows(&self, item: Item<'_>) -> bool {
        self.mapping.cells(item).next().is_some()
    }

    /// The place of an item in a public list.
    pub(crate) fn place(&self, keys: &Keys, item: Item<'_>) -> Option<usize> {
        if let (Keys::Range(end), Item::Integer(value)) = (keys, item) {
            return (value < *end).then_some(value as usize);
        }
        let fingerprint = self.mapping.fingerprint_key.item(item);
        match &self.mapping.columns {
            Columns::Listed(index) => index.place(fingerprint),
            _ => {
                self.places.get_or_init(|| Index::new(keys, self.mapping.fingerprint_key)).place(fingerprint)
            }
        }
    }

    pub(crate) fn fits(&self) -> &Fits {
        &self.fits
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

    /// Algorithm 3, lines 1-2, for any window: the nearest complete checkpoints.
    pub(crate) fn cover(&self, plan: &Plan, window: &Range<u64>) -> Cover {
        let len = plan.substream_len();
        let (first, last) = (window.start / len, window.end / len);
        let mut parts = Vec::new();
        if first < last {
            let oldest = self.substream(first).and_then(|s| s.from(plan, window.start - first * len));
            parts.extend(oldest.map(|range| Part { substream: first, range }));
            // The whole substream is the first planned range.
            let is_sealed = |number: &u64| self.substream(*number).is_some_and(|s| s.sketch(0).is_some());
            let whole = (first + 1..last).take_while(is_sealed);
            parts.extend(whole.map(|substream| Part { substream, range: 0 }));
        }
        let newest = self.substream(last).and_then(|s| s.until(plan, window.end - last * len));
        let newest = newest.map(|range| Part { substream: last, range });
        parts.extend(newest.filter(|part| first < last || is_worth_taking(plan, *part, window)));
        let span = span(plan, &parts, window.end);
        Cover { parts, span }
    }

    /// The sum over the parts of a cover of the smallest counter of an item.
    pub(crate) fn estimate(&self, cover: &Cover, item: Item<'_>) -> f64 {
        let minimum = |part: &Part| {
            let (substream, sketch) = self.sketch(*part);
            sketch.minimum(substream.mapping.cells(item))
        };
        cover.parts.iter().map(minimum).sum::<i64>() as f64
    }

    /// How many items a part holds, exactly where that is public, else by its noisy counters; never negative.
    pub(crate) fn items(&self, part: Part) -> u64 {
        self.sketch(part).1.total().max(0) as u64
    }

    fn sketch(&self, part: Part) -> (&SealedSubstream, &SealedSketch) {
        let substream = self.substream(part.substream).expect("a cover names substreams that are kept");
        (substream, substream.sketch(part.range).expect("a cover names ranges that are readable"))
    }

    /// The estimates of all keys for a cover, computed once.
    pub(crate) fn estimates(&self, cover: &Cover, keys: &Keys) -> Arc<[f64]> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = cache.iter().find(|(known, _)| known == cover) {
            return Arc::clone(known);
        }
        let estimates: Arc<[f64]> = (0..keys.len()).map(|i| self.estimate(cover, keys.get(i))).collect();
        if cache.len() == CACHED_COVERS_MAX {
            cache.remove(0);
        }
        cache.push((cover.clone(), Arc::clone(&estimates)));
        estimates
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
    Some(collect(kind, all.into_iter().map(|(_, item)| item)))
}

/// The positions of a part.
pub(crate) fn positions(plan: &Plan, part: Part) -> Range<u64> {
    let start = part.substream * plan.substream_len();
    let offsets = plan.ranges()[part.range].offsets();
    start + offsets.start..start + offsets.end
}

/// The parts of a cover follow each other without a gap.
fn span(plan: &Plan, parts: &[Part], end: u64) -> Range<u64> {
    match (parts.first(), parts.last()) {
        (Some(&first), Some(&last)) => positions(plan, first).start..positions(plan, last).end,
        _ => end..end,
    }
}

/// Whether to take a prefix of the only substream that a window touches. The paper always does; for a window that was
/// made shorter, a prefix that starts before it must come nearer to it than no sketch at all.
fn is_worth_taking(plan: &Plan, part: Part, window: &Range<u64>) -> bool {
    let len = window.end - window.start;
    len == plan.settings().window.len() || misfit(&positions(plan, part), window) < len
}

/// How many positions lie in one of the spans but not in both.
pub(crate) fn misfit(covered: &Range<u64>, window: &Range<u64>) -> u64 {
    let len = |range: &Range<u64>| range.end.saturating_sub(range.start);
    let both = covered.start.max(window.start)..covered.end.min(window.end);
    len(covered) + len(window) - 2 * len(&both)
}
