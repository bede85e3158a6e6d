//! The bytes of a plan.

use crate::item::index::Index;
use crate::item::keys::Keys;
use crate::item::value::Kind;
use crate::noise::law::Law;
use crate::noise::table::Table;
use crate::plan::checkpoint::Role;
use crate::plan::limits::{
    CACHED_COVERS_MAX, CANDIDATE_LEN, CANDIDATE_SHARE, FOUND_KEY_LEN, KEY_SUMS_LEN, LEFT_MAX, OVERFLOW_LEN,
    USER_LEN, Width,
};
use crate::plan::range::PlannedRange;
use crate::plan::settings::Window;
use crate::plan::structure::{Covering, Plan};

impl Plan {
    /// Bytes of the counters, of the kept substreams and the most that open ones take, and of the keys that were found.
    #[must_use]
    pub fn sketch_bytes(&self) -> u64 {
        let kept = self.ranges().iter().filter(|range| range.role() != Role::Prefix).count() as u64;
        // Each further open substream holds at most one array per segment.
        let further = (self.open_substreams_max() - 1) * self.boundaries().len() as u64;
        let cells = self.shape().cells() as u64;
        let sealed = kept * self.substreams_kept();
        let open = self.open_arrays_max() + further;
        let counters = match self.width() {
            Width::Wide => (sealed + open) * cells * size_of::<i32>() as u64,
            Width::Narrow => {
                let reserve = sealed * overflow_bytes(self.shape().rows, self.substream_items());
                Self::flat_cell_bytes(sealed, open) * cells + reserve
            }
        };
        counters + self.found_bytes()
    }

    /// The most epochs that are retained at a time.
    fn epochs_kept_max(&self, epoch: u64) -> u64 {
        self.substreams_kept().div_ceil(epoch) + 1
    }

    /// The most epochs that run at a time.
    pub(crate) fn epochs_running_max(&self, epoch: u64) -> u64 {
        self.open_substreams_max().div_ceil(epoch) + 1
    }

    /// Bytes of released keys.
    pub(crate) fn found_bytes(&self) -> u64 {
        self.discovery().map_or(0, |discovery| {
            let len = match discovery.kind() {
                Kind::Integers => size_of::<u64>() as u64,
                Kind::Bytes => size_of::<Box<[u8]>>() as u64 + FOUND_KEY_LEN,
            };
            self.epochs_kept_max(discovery.epoch()) * discovery.found_max() * len
        })
    }

    /// Bytes of the keys of running epochs, and of what views keep for each key that was found.
    fn discovery_bytes(&self) -> u64 {
        self.discovery().map_or(0, |discovery| {
            let retained = self.epochs_kept_max(discovery.epoch());
            let found = retained * discovery.found_max();
            let running = match self.settings().window {
                Window::Items(_) => 1,
                Window::Time(_) => self.epochs_running_max(discovery.epoch()),
            };
            let listed = self.found_bytes() + found * self.key_cache_bytes() as u64;
            let table = Table::bytes(discovery.law()) + Index::bytes(found as usize);
            running * discovery.tracker_bytes() + listed + table as u64
        })
    }

    /// Bytes of the users of open substreams.
    fn user_bytes(&self) -> u64 {
        if self.settings().unit.per_substream().is_none() {
            return 0;
        }
        let slots = (self.users_max() * 8 / 7 + 1).next_power_of_two();
        self.open_substreams_max() * slots * (USER_LEN as u64 + 1)
    }

    /// Bytes of one counter in all the sketches of a plan with one range per substream.
    pub(crate) fn flat_cell_bytes(kept: u64, open: u64) -> u64 {
        kept * size_of::<i16>() as u64 + open * size_of::<i32>() as u64
    }

    /// Bytes of everything that a sketch and its newest view hold.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let keys = self.settings().domain.keys();
        let listed = keys.map_or(0, Keys::heap_bytes);
        let has_places = self.is_identity() || (self.covering() == Covering::Interpolated);
        let indexed = keys.filter(|keys| has_places && !matches!(keys, Keys::Range(_)));
        let index = indexed.map_or(0, |keys| Index::bytes(keys.len()));
        let cached = keys.map_or(0, |keys| self.key_cache_bytes() * keys.len());
        let fitted = if (self.covering() == Covering::Interpolated) && !self.is_identity() {
            self.fit_bytes()
        } else {
            0
        };
        let mut laws: Vec<Law> = self.ranges().iter().map(PlannedRange::law).collect();
        laws.dedup();
        let tables: usize = laws.into_iter().map(Table::bytes).sum();
        let fixed = (listed + index + cached + tables) as u64;
        self.sketch_bytes() + fitted + fixed + self.discovery_bytes() + self.user_bytes()
    }

    /// Bytes of what a view caches for each key.
    fn key_cache_bytes(&self) -> usize {
        if self.covering() == Covering::Interpolated {
            KEY_SUMS_LEN
        } else {
            CACHED_COVERS_MAX * size_of::<f64>()
        }
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
        let starts = [0].into_iter().chain(self.boundaries().iter().copied());
        let live = |segment: u64| {
            let held = |range: &&PlannedRange| {
                let open = range.offsets().start < segment && segment < range.offsets().end;
                let sealed_prefix = range.role() == Role::Prefix && range.offsets().end <= segment;
                open || sealed_prefix
            };
            1 + self.ranges().iter().filter(held).count() as u64
        };
        starts.filter(|&start| start < self.substream_len()).map(live).max().unwrap_or(1)
    }
}

/// Bytes reserved for the counters of one sealed sketch that do not fit in 16 bits: its items suffice for no more of them.
pub(crate) fn overflow_bytes(rows: u32, items: u64) -> u64 {
    u64::from(rows) * (items / i16::MAX as u64 + 1) * OVERFLOW_LEN
}
