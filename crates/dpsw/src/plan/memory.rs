//! The bytes of a plan.

use crate::item::index::Index;
use crate::item::keys::Keys;
use crate::item::pins::PinIndex;
use crate::item::value::Kind;
use crate::noise::law::Law;
use crate::noise::table::Table;
use crate::plan::limits::{
    CACHED_COVERS_MAX, CANDIDATE_LEN, CANDIDATE_SHARE, KEY_SUMS_LEN, LEFT_MAX, LEFT_SHARE, OVERFLOW_LEN,
    PIN_LEN, USER_LEN, Width,
};
use crate::plan::paper::checkpoint::Role;
use crate::plan::range::PlannedRange;
use crate::plan::search::{ListLimits, SearchPlan};
use crate::plan::structure::Plan;

/// Bytes of a slice in a view, of a key's series, of each slice in it, of a key that is cut finely and of a pinned one in what
/// is carried on from seal to seal.
const SLICE_LEN: u64 = 96;
const SERIES_LEN: u64 = 64;
const SERIES_SLICE_LEN: u64 = 12;
const FINER_LEN: u64 = 24;
const SLOT_LEN: u64 = 16;

impl Plan {
    /// Bytes of the counters, of the kept substreams and the most that open ones take, and of the list of found keys.
    #[must_use]
    pub fn sketch_bytes(&self) -> u64 {
        let is_kept = |range: &&PlannedRange| matches!(range.role(), Role::Whole | Role::Suffix);
        let kept = self.ranges().iter().filter(is_kept).count() as u64;
        // Each further open substream holds at most one array per segment.
        let further = (self.open_substreams_max() - 1) * self.boundaries().len() as u64;
        let cells = self.counters_len() as u64;
        let sealed = kept * self.substreams_kept();
        let open = self.open_arrays_max() + further;
        let counters = match self.width() {
            Width::Wide => (sealed + open) * cells * size_of::<i32>() as u64,
            Width::Narrow => {
                let rows = self.shape().rows + u32::from(0 < self.pinned());
                let reserve = sealed * overflow_bytes(rows, self.substream_items());
                Self::flat_cell_bytes(sealed, open) * cells + reserve
            }
        };
        let slices =
            self.levels().slice_bytes(self.substreams_kept(), if 0 < self.pinned() { 0 } else { cells });
        counters + slices + self.pin_bytes() + self.found_bytes()
    }

    /// The most keys that are or were pinned lately.
    pub(crate) fn pins_max(&self) -> usize {
        pins_max(self.pinned()) as usize
    }

    fn pin_bytes(&self) -> u64 {
        self.pins_max() as u64 * PIN_LEN
    }

    /// The most bytes of the keys that were found: their names, and for each its end in the list and its sum.
    pub(crate) fn found_bytes(&self) -> u64 {
        self.search_plan().map_or(0, |search_plan| {
            let ListLimits { keys, bytes } = search_plan.list_limits();
            let names = match search_plan.kind() {
                Kind::Integers => keys * size_of::<u64>(),
                Kind::Bytes => keys * size_of::<usize>() + bytes,
            };
            (names + keys * size_of::<i64>()) as u64
        })
    }

    /// Bytes of what views keep for each key that was found, and of the noise of a search.
    fn found_view_bytes(&self) -> u64 {
        self.search_plan().map_or(0, |search_plan| {
            let keys = search_plan.list_limits().keys;
            let cached = keys * self.key_cache_bytes() + Index::heap_bytes(keys);
            // The newest view has a list of its own beside the one that the next is made from.
            self.found_bytes() + cached as u64 + search_plan.table_bytes()
        })
    }

    /// The most bytes that the search for keys takes beside [`resident_bytes`](Self::resident_bytes): where keys are counted
    /// exactly, as if each item brought in another key of the greatest length.
    #[must_use]
    pub fn search_bytes(&self) -> u64 {
        self.search_plan().map_or(0, SearchPlan::search_bytes)
    }

    /// Bytes of the users of open substreams.
    fn user_bytes(&self) -> u64 {
        if self.settings().unit.per_substream().is_none() {
            return 0;
        }
        // Maps are full at 7/8, double, and have one more byte per slot.
        let slots = (self.users_max() * 8 / 7 + 1).next_power_of_two();
        self.open_substreams_max() * slots * (USER_LEN as u64 + 1)
    }

    /// Bytes of one counter in all the sketches of a plan with one range per substream.
    pub(crate) fn flat_cell_bytes(kept: u64, open: u64) -> u64 {
        kept * size_of::<i16>() as u64 + open * size_of::<i32>() as u64
    }

    /// Bytes of everything that a sketch and its newest view hold, but for the [search for keys](Self::search_bytes).
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let keys = self.settings().domain.keys();
        let listed = keys.map_or(0, Keys::heap_bytes);
        let has_places = self.is_identity() || (self.is_tuned());
        let indexed = keys.filter(|keys| has_places && !matches!(keys, Keys::Range(_)));
        let index = indexed.map_or(0, |keys| Index::heap_bytes(keys.len()));
        let cached = keys.map_or(0, |keys| self.key_cache_bytes() * keys.len());
        let fitted = if self.is_tuned() && !self.is_identity() { self.fit_bytes() } else { 0 };
        let mut laws: Vec<Law> = self.ranges().iter().map(PlannedRange::law).collect();
        // Ranges of the same law stand side by side and share its table.
        laws.dedup();
        let tables: usize = laws.into_iter().map(Table::bytes).sum();
        let fixed = (listed + index + cached + tables) as u64;
        self.sketch_bytes()
            + fitted
            + fixed
            + self.series_bytes()
            + self.found_view_bytes()
            + self.user_bytes()
    }

    /// Bytes of what is computed of keys with slices of their own: their series of slices, of which they have at least one
    /// in each substream, and the counts by which it is decided who has them next.
    fn series_bytes(&self) -> u64 {
        if !self.has_slices() {
            return 0;
        }
        let (levels, kept) = (self.levels(), self.substreams_kept() + 1);
        let finer: u64 = (1..levels.count()).map(|level| levels.keys_max(level) as u64).sum();
        let finer_slices: u64 =
            (1..levels.count()).map(|level| (levels.keys_max(level) as u64) << level).sum();
        let slices = kept * self.ranges().len() as u64 * SLICE_LEN;
        let series = |keys: u64| {
            keys * (SERIES_LEN + kept * SERIES_SLICE_LEN) + kept * finer_slices * SERIES_SLICE_LEN
        };
        if self.is_identity() {
            // Keys near the first level go up and down.
            let totals = u64::from(self.own_len()) * size_of::<i64>() as u64;
            return slices + series(2 * finer) + totals + kept * finer * FINER_LEN;
        }
        let keys = self.settings().domain.keys().map_or(0, Keys::len) as u64;
        let index = 2 * PinIndex::heap_bytes(self.pinned() as usize) as u64;
        let seen =
            self.shape().cells() as u64 * size_of::<i32>() as u64 + u64::from(self.pinned()) * SLOT_LEN;
        slices + series(self.pins_max() as u64) + 2 * self.pin_bytes() + index + keys * 16 + kept * seen
    }

    /// Bytes of what a view caches for each key.
    fn key_cache_bytes(&self) -> usize {
        if self.is_tuned() { KEY_SUMS_LEN } else { CACHED_COVERS_MAX * size_of::<f64>() }
    }

    /// Bytes of the residuals, of the fitted counts, of the map of candidates, and of the totals and the substreams that
    /// the next fit starts from.
    fn fit_bytes(&self) -> u64 {
        let cells = self.shape().cells() as u64;
        let candidates = (CANDIDATE_SHARE * cells as f64) as u64;
        let each = (cells + candidates) * size_of::<f32>() as u64;
        let keys = self.settings().domain.keys().map_or(0, Keys::len) as u64;
        let earlier = keys * size_of::<i64>() as u64 + LEFT_MAX as u64 * cells * size_of::<i16>() as u64;
        self.substreams_kept() * each + candidates * CANDIDATE_LEN + earlier
    }

    /// The most arrays that the running substream holds at a time: the segment, the ranges that started before it
    /// and are not complete, and the sealed prefixes.
    fn open_arrays_max(&self) -> u64 {
        if self.has_slices() {
            // What is open runs on from segment to segment; those ahead of it have their own where a clock is waited for.
            return if self.settings().window.time().is_some() { self.boundaries().len() as u64 } else { 1 };
        }
        let starts = [0].into_iter().chain(self.boundaries().iter().copied());
        let arrays = starts.filter(|&start| start < self.substream_len()).map(|start| self.arrays_at(start));
        arrays.max().unwrap_or(1)
    }

    /// The arrays that the running substream holds while the segment that starts here fills.
    fn arrays_at(&self, segment: u64) -> u64 {
        let held = self.ranges().iter().filter(|range| {
            let is_open = range.offsets().start < segment && segment < range.offsets().end;
            let is_sealed_prefix = range.role() == Role::Prefix && range.offsets().end <= segment;
            is_open || is_sealed_prefix
        });
        1 + held.count() as u64
    }
}

/// The most keys that are or were pinned lately, where so many can be pinned at a time.
pub(crate) fn pins_max(pinned: u32) -> u32 {
    pinned + pinned.div_ceil(LEFT_SHARE)
}

/// Bytes reserved for the counters of one sealed sketch that do not fit in 16 bits: its items suffice for no more of them.
pub(crate) fn overflow_bytes(rows: u32, items: u64) -> u64 {
    u64::from(rows) * (items / i16::MAX as u64 + 1) * OVERFLOW_LEN
}
