//! The secret state of a running stream: saved by consuming the sketch, sealed with the caller's key.
//!
//! ```text
//! 0            8         10           18      42                                  len - 16
//! +------------+---------+------------+-------+--------------- ... ---------------+-----+
//! | "DPSWSECR" | version | generation | nonce | encrypted                         | tag |
//! +------------+---------+------------+-------+--------------- ... ---------------+-----+
//!   8 bytes      u16       u64          24 bytes, the id of the state
//!   in the clear, and authenticated     |
//!                                       v
//! +--------+--------------------------- ... ---------------------------+----- ... -----+
//! | length | frame: "DPSWOPEN", version u16, body, checksum u32        | zeros         |
//! +--------+--------------------------- ... ---------------------------+----- ... -----+
//!   u64      that many bytes                                            up to a power of two; none in a checkpoint
//!
//! body        view                 the body of bytes/view.rs: what is released
//!             stream key           bytes: 32 of them
//!             number u64           of the oldest open substream
//!             start option  now u64  late u64
//!             absorbed             count, then of each: substream u64, id of partial counters (3 x u64)
//!             [levels]             of the oldest open substream, as in a view, if the plan has several
//!             open substreams      count, then of each:
//!               closed u64           how many segments are
//!               segments             count, then of each: segment u64, items u64, cells i32
//!               ranges               count, then of each: range u64, items u64, cells i32
//!               users u8             if 1: capped u64; count, then of each: user u64, items u32
//!             first search u64     whose keys are counted
//!             searches             count, then of each:
//!               number u64  arrivals u64  lowered u64
//!               keys                 count, then of each: count u32, state u32 (lasting noise), key u64 or bytes
//! ```
//!
//! How long a saved state is with its zeros follows from public numbers alone (PRIVACY.md: rule 29). Cells end with those of
//! pinned keys.

use std::collections::BTreeSet;
use std::sync::Arc;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use crate::bytes::codec::{Reader, Writer};
use crate::bytes::view::{read_levels, read_view, write_levels, write_view};
use crate::error::{SnapshotError, StateError};
use crate::item::hash::StreamKey;
use crate::item::mapping::Mapping;
use crate::noise::generator::Noise;
use crate::plan::structure::Plan;
use crate::privacy::parameters::Claim;
use crate::secret::counters::Counters;
use crate::secret::key_search::KeySearch;
use crate::secret::partial::PartialId;
use crate::secret::substream::OpenSubstream;
use crate::stream::clock::TIME_MAX;
use crate::stream::freshness::{FreshnessStore, ID_LEN, StateId};
use crate::stream::sketch::{DpswSketch, Time};
use crate::view::window_view::{Sealed, WindowView};

const MAGIC: &[u8; 8] = b"DPSWSECR";
const INNER_MAGIC: &[u8; 8] = b"DPSWOPEN";
const VERSION: u16 = 1;

/// The key under which states are saved; the caller keeps it apart from them. Wiped when dropped.
pub struct StateKey(Zeroizing<[u8; 32]>);

impl StateKey {
    /// The key with these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Key::from(*self.0))
    }
}

impl std::fmt::Debug for StateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateKey")
    }
}

/// Bytes of the length before the padded secret part.
const LENGTH_LEN: usize = 8;
/// The secret part without views, ids, open substreams and keys takes at most this many bytes.
const FIXED_LEN: u64 = 256;
/// Bytes of the keys of a search beside the keys themselves.
const SEARCH_FIXED_LEN: u64 = 32;
/// Bytes before the encrypted part: magic word, version, generation, nonce.
const HEADER_LEN: usize = 18 + ID_LEN;

/// A saved state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedState {
    /// Which state it is; also the nonce of its encryption.
    pub id: StateId,
    /// How often the stream was saved along this line of states.
    pub generation: u64,
    /// The sealed state.
    pub bytes: Vec<u8>,
}

impl DpswSketch {
    /// Saves the stream and ends it here: only a restored one can continue. The store notes that the state may be restored,
    /// once.
    ///
    /// How long the bytes are depends on public numbers alone: not on which items came, nor, where presence is private, on
    /// how many.
    ///
    /// # Errors
    /// The sketch belongs to another process, the system gives no randomness, or the store fails. The sketch is gone all the
    /// same.
    pub fn save(
        mut self,
        key: &StateKey,
        store: &mut (impl FreshnessStore + ?Sized),
    ) -> Result<SavedState, StateError> {
        // The sketch ends here: two lines of one stream would seal the same events twice (PRIVACY.md: rule 10).
        let saved = self.save_padded(key, Some(self.padded_len()))?;
        store.note(saved.id)?;
        Ok(saved)
    }

    /// Saves the stream and goes on with it: for whoever keeps the events that come after it, to count them again after a
    /// crash.
    ///
    /// No store has a note of the state. Let it be restored by a [`FreshnessStore`] that can tell that nothing was ever seen
    /// of what was sealed after it, and by no other: what was seen would be sealed again with other noise.
    ///
    /// Unlike that of a [`save`](Self::save), the length of the bytes follows what was counted, as the length of the kept events
    /// does: both stay inside the boundary.
    ///
    /// # Errors
    /// The sketch belongs to another process, or the system gives no randomness.
    #[cfg(any(test, feature = "checkpoints"))]
    pub fn checkpoint(&mut self, key: &StateKey) -> Result<SavedState, StateError> {
        self.save_padded(key, None)
    }

    /// The state, with zeros up to this many bytes, if a length is given.
    fn save_padded(&mut self, key: &StateKey, padded_len: Option<usize>) -> Result<SavedState, StateError> {
        self.check_owner()?;
        self.generation += 1;
        // A reproducible stream is saved under a nonce of the system as well: a nonce must never repeat.
        let nonce = Noise::from_system().draw_key()?;
        let nonce: [u8; ID_LEN] = nonce[..ID_LEN].try_into().expect("24 of 32 bytes");
        let mut header = Vec::from(MAGIC);
        header.extend_from_slice(&VERSION.to_le_bytes());
        header.extend_from_slice(&self.generation.to_le_bytes());
        header.extend_from_slice(&nonce);
        let secret = pad_secret(&Zeroizing::new(self.to_secret()), padded_len);
        // With the header, so that nobody gives a state another generation.
        let payload = Payload { msg: &secret, aad: &header };
        let sealed = key.cipher().encrypt(&XNonce::from(nonce), payload).map_err(|_| StateError::Key)?;
        Ok(SavedState { id: StateId(nonce), generation: self.generation, bytes: [header, sealed].concat() })
    }

    /// The stream that was saved, exactly as it was. The store's note of the state is consumed, so that no state goes on
    /// twice.
    ///
    /// # Errors
    /// The bytes are no state, are damaged, or do not open with the key; or the store has no note of them, because they were
    /// restored before or noted elsewhere.
    pub fn restore(
        bytes: &[u8],
        key: &StateKey,
        noise: Noise,
        store: &mut (impl FreshnessStore + ?Sized),
    ) -> Result<Self, StateError> {
        let (sketch, id) = Self::open_state(bytes, key, noise)?;
        // Consumed before the stream goes on: no state goes on twice (PRIVACY.md: rule 30).
        if store.consume(id)? { Ok(sketch) } else { Err(StateError::Stale { generation: sketch.generation }) }
    }

    /// A stream that goes on after one that was saved, where no store knows whether that one continued elsewhere. What another
    /// process sealed since is unknown, so this one gives up all that the state holds: what is open, what was released, which
    /// keys were found or are pinned, which users have sent enough. The plan, the hash keys, the site and the number of the
    /// generation are left. It starts anew at the first substream that begins at or after this position or time; nothing after
    /// it may ever have been released.
    ///
    /// # Errors
    /// The bytes are no state, are damaged, or do not open with the key; or the saved stream was already past this position.
    pub fn resume(bytes: &[u8], key: &StateKey, noise: Noise, resume_at: u64) -> Result<Self, StateError> {
        Self::open_state(bytes, key, noise)?.0.resume_at(resume_at)
    }

    fn open_state(bytes: &[u8], key: &StateKey, noise: Noise) -> Result<(Self, StateId), StateError> {
        let (generation, id, secret) = decrypt_state(bytes, key)?;
        let mut sketch = Self::from_secret(&secret, noise)?;
        sketch.generation = generation;
        Ok((sketch, id))
    }

    /// Goes on without anything that followed from what was counted. Another line of the same state may have been shown: what
    /// this one found, scored or decided came from noise that was drawn for the same events.
    fn resume_at(self, resume_at: u64) -> Result<Self, StateError> {
        // What lies before may have been released (PRIVACY.md: rule 10).
        if resume_at < self.time.now || TIME_MAX < resume_at {
            return Err(StateError::Resume { resume_at, saved: self.time.now });
        }
        // How many substreams are open depends on events, so where the stream goes on must not depend on it
        // (PRIVACY.md: rule 10).
        let number = resume_at.div_ceil(self.plan.substream_len());
        // Nothing that the state found or decided comes along (PRIVACY.md: rule 38).
        let sketch = self.begun_anew(number);
        planted!(fault::resumed());
        Ok(sketch)
    }

    /// How long the secret part of a saved state is: a power of two that public numbers decide.
    fn padded_len(&self) -> usize {
        // From public numbers, not from the bytes that there are (PRIVACY.md: rule 29).
        let len = LENGTH_LEN as u64 + self.secret_len_max();
        usize::try_from(len.next_power_of_two()).expect("a state fits in memory")
    }

    /// The most bytes of the secret part that public numbers allow: the plan, what is released, the ids that were absorbed,
    /// and where arrivals are public, how many there were.
    fn secret_len_max(&self) -> u64 {
        let view = self.view().to_bytes().len() as u64;
        let ids = self.absorbed.len() as u64 * (8 + PartialId::LEN as u64);
        let open = self.plan.open_substreams_max() * OpenSubstream::len_max(&self.plan);
        let levels: u64 = self.levels.finer_lists().iter().map(|places| 8 + 4 * places.len() as u64).sum();
        FIXED_LEN + levels + view + ids + open + self.searches_len_max()
    }

    fn searches_len_max(&self) -> u64 {
        let Some(search_plan) = self.plan.search_plan() else { return 0 };
        let running = search_plan.running_max();
        // Where presence is private every search is taken as full (PRIVACY.md: rule 29).
        let all = if self.plan.has_public_totals() {
            let arrivals = self.searches.values().map(KeySearch::arrivals);
            arrivals.map(|arrivals| KeySearch::len_max(search_plan, arrivals)).sum()
        } else {
            running * KeySearch::len_max(search_plan, search_plan.items_max())
        };
        running * SEARCH_FIXED_LEN + all
    }

    fn to_secret(&self) -> Vec<u8> {
        let mut writer = Writer::new(INNER_MAGIC, VERSION);
        // No field holds noise for counters that are open: two tails of one state must not share it (PRIVACY.md: rule 31).
        write_view(&mut writer, &self.view());
        writer.put_bytes(self.keys.stream.expose_bytes());
        writer.put_u64(self.number);
        writer.put_option(self.time.start);
        writer.put_u64(self.time.now);
        writer.put_u64(self.time.late);
        // With the counts: a part that comes again after a restore is known (PRIVACY.md: rule 11).
        writer.put_len(self.absorbed.len());
        for (substream, id) in &self.absorbed {
            writer.put_u64(*substream);
            id.write_to(&mut writer);
        }
        // A restored stream decides nothing again (PRIVACY.md: rule 33).
        if 1 < self.plan.levels().count() {
            write_levels(&mut writer, &self.levels);
        }
        writer.put_len(self.open.len());
        self.open.iter().for_each(|open| open.write_to(&mut writer));
        // With the lasting noise of each key, which must not be drawn again (PRIVACY.md: rule 32).
        writer.put_u64(self.first_search);
        writer.put_len(self.searches.len());
        for (search_number, search) in &self.searches {
            writer.put_u64(*search_number);
            search.write_to(&mut writer);
        }
        writer.finish()
    }

    fn from_secret(secret: &[u8], noise: Noise) -> Result<Self, SnapshotError> {
        let mut reader = Reader::new(secret, INNER_MAGIC, VERSION)?;
        let view = read_view(&mut reader)?;
        let key = reader
            .read_bytes()?
            .try_into()
            .map_err(|_| SnapshotError::invalid("its stream key is not 32 bytes"))?;
        let mut sketch = Self::with_key(Plan::clone(&view.plan), StreamKey::from_bytes(key), noise);
        sketch.number = reader.read_u64()?;
        sketch.time =
            Time { start: reader.read_option()?, now: reader.read_u64()?, late: reader.read_u64()? };
        let ids = reader.read_len(8 + PartialId::LEN)?;
        sketch.absorbed = (0..ids)
            .map(|_| Ok((reader.read_u64()?, PartialId::read_from(&mut reader)?)))
            .collect::<Result<BTreeSet<_>, SnapshotError>>()?;
        sketch.levels = Arc::new(read_levels(&mut reader, &sketch.plan)?);
        // Before the open substreams, whose mappings need its pins.
        sketch.cached = Arc::clone(&view.cached);
        let count = reader.read_len(8)?;
        sketch.read_open(&mut reader, count)?;
        sketch.read_searches(&mut reader)?;
        reader.finish()?;
        sketch.take_view(&view)?;
        Ok(sketch)
    }

    fn read_open(&mut self, reader: &mut Reader<'_>, count: usize) -> Result<(), SnapshotError> {
        if count == 0 || self.plan.open_substreams_max() < count as u64 {
            return Err(SnapshotError::invalid("its open substreams are missing or too many"));
        }
        self.open.clear();
        for index in 0..count as u64 {
            let number = self.number.checked_add(index).ok_or(SnapshotError::Truncated)?;
            // No item may fall on counters that are still to be decided (PRIVACY.md: rule 33).
            let decided = self.cached.released.pins().horizon().get(number);
            let decided =
                decided.ok_or(SnapshotError::invalid("an open substream lies beyond what is decided"))?;
            let mapping = self.mapping_for(decided);
            self.open.push_back(OpenSubstream::read_from(reader, &self.plan, mapping)?);
        }
        Ok(())
    }

    fn read_searches(&mut self, reader: &mut Reader<'_>) -> Result<(), SnapshotError> {
        self.first_search = reader.read_u64()?;
        let count = reader.read_len(8)?;
        let plan = Arc::clone(&self.plan);
        let key = self.keys.mapper.fingerprint_key;
        for _ in 0..count {
            let search_number = reader.read_u64()?;
            let search_plan = plan.search_plan().filter(|search_plan| {
                // A search that has ended was wiped: its keys would be looked at once more than planned (PRIVACY.md: rule 32).
                let last = self.number.saturating_add(self.open.len() as u64 - 1);
                let running = search_plan.number_at(self.number)..=search_plan.number_at(last);
                self.first_search <= search_number && running.contains(&search_number)
            });
            let search_plan =
                search_plan.ok_or(SnapshotError::invalid("a search for keys is not running"))?;
            let search = KeySearch::read_from(reader, search_plan, key)?;
            if self.searches.insert(search_number, search).is_some() {
                return Err(SnapshotError::invalid("a search occurs twice"));
            }
        }
        Ok(())
    }

    /// Whether the open substreams, the clock and the released view belong together, so that nothing that is released can be
    /// sealed again from what is open.
    fn continues_view(&self, start: u64, view: &WindowView) -> bool {
        self.ends_with(view)
            && self.has_clock_within_segment(start)
            && self.has_closed_only_first()
            && self.has_decided(view)
            && view.sealed().all(|sealed| self.is_past(&sealed))
    }

    /// Whether the view stops at this moment of the stream, and the stream goes on.
    fn ends_with(&self, view: &WindowView) -> bool {
        view.stream.end == self.time.now && view.finished().is_none()
    }

    /// Whether the clock is in the oldest segment that is not sealed, if the stream has begun.
    fn has_clock_within_segment(&self, start: u64) -> bool {
        let Some(begin) = self.time.start else { return true };
        let now = self.time.now;
        begin <= now && start + self.sealed_offset() <= now && now <= self.next_boundary()
    }

    /// Segments are closed in order, so those of later substreams are all open.
    fn has_closed_only_first(&self) -> bool {
        self.open.iter().skip(1).all(|open| open.closed_count() == 0)
    }

    /// Whether a released range was sealed before what is open.
    fn is_past(&self, sealed: &Sealed<'_>) -> bool {
        let offsets = self.plan.ranges()[sealed.range()].offsets();
        sealed.substream() < self.number
            || (sealed.substream() == self.number && offsets.end <= self.sealed_offset())
    }

    fn sealed_offset(&self) -> u64 {
        self.open.front().expect("a substream is always open").sealed_until(&self.plan)
    }

    /// Whether it is decided for each substream that can be open which keys are pinned there, and for no other.
    fn has_decided(&self, view: &WindowView) -> bool {
        view.cached.released.pins().horizon().ends_for(self.number, &self.plan)
    }

    fn take_view(&mut self, view: &WindowView) -> Result<(), SnapshotError> {
        let start = self.number.checked_mul(self.plan.substream_len());
        let is_right = start.is_some_and(|start| self.continues_view(start, view)) && view.sites.len() == 1;
        let fingerprint = view.cached.released.mapping().fingerprint_key == self.keys.mapper.fingerprint_key;
        // PRIVACY.md: rule 10. A state whose parts disagree could release a range a second time, with other noise.
        if !(is_right && fingerprint) {
            return Err(SnapshotError::invalid("its parts do not fit together"));
        }
        self.site = view.sites[0];
        // Reproducible before or from now on: either way the stream claims nothing (PRIVACY.md: rule 7).
        self.is_private = self.is_private && view.claim != Claim::None;
        self.cached = Arc::clone(&view.cached);
        planted!(fault::redraw(&mut self.cached));
        Ok(())
    }
}

/// The secret bytes with their length before them and zeros after them.
fn pad_secret(secret: &[u8], padded_len: Option<usize>) -> Zeroizing<Vec<u8>> {
    let needed = LENGTH_LEN + secret.len();
    let len = padded_len.unwrap_or(needed);
    assert!(needed <= len, "a state is at most as long as its plan allows");
    let mut padded = Zeroizing::new(Vec::with_capacity(len));
    padded.extend_from_slice(&(secret.len() as u64).to_le_bytes());
    padded.extend_from_slice(secret);
    padded.resize(len, 0);
    padded
}

/// Checks the header and decrypts.
fn decrypt_state(bytes: &[u8], key: &StateKey) -> Result<(u64, StateId, Zeroizing<Vec<u8>>), StateError> {
    if bytes.get(..8) != Some(MAGIC.as_slice()) {
        return Err(SnapshotError::Foreign.into());
    }
    let (header, sealed) = bytes.split_at_checked(HEADER_LEN).ok_or(SnapshotError::Truncated)?;
    let found = u16::from_le_bytes([header[8], header[9]]);
    if found != VERSION {
        return Err(SnapshotError::Version { found, known: VERSION }.into());
    }
    let generation = u64::from_le_bytes(header[10..18].try_into().expect("eight bytes"));
    let nonce: [u8; ID_LEN] = header[18..].try_into().expect("24 bytes");
    let payload = Payload { msg: sealed, aad: header };
    let secret = key.cipher().decrypt(&XNonce::from(nonce), payload).map_err(|_| StateError::Key)?;
    let mut secret = Zeroizing::new(secret);
    unpad_secret(&mut secret)?;
    Ok((generation, StateId(nonce), secret))
}

fn unpad_secret(padded: &mut Vec<u8>) -> Result<(), SnapshotError> {
    let len = padded.first_chunk::<LENGTH_LEN>().ok_or(SnapshotError::Truncated)?;
    let end = usize::try_from(u64::from_le_bytes(*len)).ok().and_then(|len| len.checked_add(LENGTH_LEN));
    let end = end.filter(|&end| end <= padded.len()).ok_or(SnapshotError::Truncated)?;
    padded.copy_within(LENGTH_LEN..end, 0);
    padded.truncate(end - LENGTH_LEN);
    Ok(())
}

impl OpenSubstream {
    /// The most bytes of an open substream.
    fn len_max(plan: &Plan) -> u64 {
        let counters = (plan.boundaries().len() + plan.ranges().len()) as u64;
        // An index, the number of items, and the cells.
        let each = 16 + 4 * plan.counters_len() as u64;
        // How many items were capped, how many users there are, and of each 12 bytes.
        let users = plan.settings().unit.per_substream().map_or(0, |_| 16 + 12 * plan.users_max());
        32 + counters * each + users
    }

    fn write_to(&self, writer: &mut Writer) {
        writer.put_len(self.closed_count());
        let segments: Vec<_> = self.open_segments().collect();
        for list in [segments, self.running_ranges().collect()] {
            writer.put_len(list.len());
            for (index, counters) in list {
                writer.put_len(index);
                counters.write_to(writer);
            }
        }
        writer.put_u8(self.caps.is_some().into());
        if let Some(caps) = &self.caps {
            caps.write_to(writer);
        }
    }

    fn read_from(reader: &mut Reader<'_>, plan: &Plan, mapping: Mapping) -> Result<Self, SnapshotError> {
        let boundaries = plan.boundaries().len();
        let closed = reader.read_index(boundaries, "an open substream is complete")?;
        let segments = read_counters(reader, plan, boundaries)?;
        let ranges = read_counters(reader, plan, plan.ranges().len())?;
        let key = mapping.fingerprint_key;
        let mut open = Self::from_parts(plan, mapping, closed, segments, ranges)
            .ok_or(SnapshotError::invalid("an open substream's parts do not fit together"))?;
        if reader.read_flag()? {
            let mut caps = open
                .empty_caps(plan)
                .ok_or(SnapshotError::invalid("it has users that its plan does not protect"))?;
            caps.read_from(reader, key)?;
            open.caps = Some(caps);
        }
        Ok(open)
    }
}

fn read_counters(
    reader: &mut Reader<'_>,
    plan: &Plan,
    limit: usize,
) -> Result<Vec<(usize, Counters)>, SnapshotError> {
    let count = reader.read_len(8)?;
    let one = |_| {
        let index = reader.read_index(limit, "an index is not in its plan")?;
        Ok((index, Counters::read_from(reader, plan.shape(), plan.pinned())?))
    };
    (0..count).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::StoreError;
    use crate::item::batch::Batch;
    use crate::item::domain::{Domain, SearchSettings};
    use crate::item::keys::Keys;
    use crate::item::run::Run;
    use crate::item::value::Kind;
    use crate::plan::settings::{
        Clock, CounterLayout, Method, PaperMethod, Settings, SubstreamLen, TimeWindow, TunedMethod, Unit,
        Window,
    };
    use crate::privacy::parameters::{Delta, Epsilon};
    use crate::sealed::levels::Levels;
    use crate::store::memory::MemoryStore;

    fn running() -> DpswSketch {
        let time = TimeWindow { len: 100, lateness: 30, clock: Clock::Events, expected_items: 1000 };
        let counters = CounterLayout::Hashed { rows: 2, columns: 4 };
        let settings = Settings {
            window: Window::Time(time),
            unit: Unit::ReplaceOne,
            epsilon: Epsilon::new(1.0).expect("in range"),
            delta: Delta::new(1e-9).ok(),
            domain: Domain::Public(Keys::Range(5)),
            method: Some(Method::Paper(PaperMethod {
                counters,
                substream: SubstreamLen::PerWindow(4),
                ..PaperMethod::default()
            })),
            retention: 1,
        };
        let plan = Plan::new(settings).expect("a valid plan");
        let mut sketch = DpswSketch::with_noise(plan, Noise::seeded(1)).expect("seeded");
        sketch.extend(Batch::integers(&[1, 2, 3, 4, 0]).at(&[1000, 1012, 1049, 1031, 1060])).expect("events");
        sketch
    }

    fn running_users() -> DpswSketch {
        let counters = CounterLayout::Hashed { rows: 2, columns: 4 };
        let settings = Settings {
            window: Window::Items(100),
            unit: Unit::Users { per_substream: 3 },
            epsilon: Epsilon::new(20.0).expect("in range"),
            delta: Delta::new(1e-9).ok(),
            domain: Domain::Found(SearchSettings { search_len: Some(2), ..SearchSettings::new(Kind::Bytes) }),
            method: Some(Method::Tuned(TunedMethod { substreams: 5, counters, ..TunedMethod::default() })),
            retention: 1,
        };
        let plan = Plan::new(settings).expect("a valid plan");
        let mut sketch = DpswSketch::with_noise(plan, Noise::seeded(1)).expect("seeded");
        let users: Vec<u64> = (0..70).map(|i| i % 9).collect();
        sketch
            .extend(Batch::bytes(&["a", "bc", "a", "", "def", "a", "g"].repeat(10)).by(&users))
            .expect("items");
        sketch
    }

    /// The secret part of one sketch with the view of another before it.
    fn spliced(shown: &DpswSketch, open: &DpswSketch) -> Vec<u8> {
        let of_view = |sketch: &DpswSketch| {
            let mut writer = Writer::new(INNER_MAGIC, VERSION);
            write_view(&mut writer, &sketch.view());
            let mut bytes = writer.finish();
            bytes.truncate(bytes.len() - 4);
            bytes
        };
        let mut bytes = of_view(shown);
        let rest = open.to_secret();
        bytes.extend_from_slice(&rest[of_view(open).len()..rest.len() - 4]);
        let checksum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn is_taken(shown: &DpswSketch, open: &DpswSketch) -> bool {
        DpswSketch::from_secret(&spliced(shown, open), Noise::off()).is_ok()
    }

    fn later(events: &[u64]) -> DpswSketch {
        let mut sketch = running();
        sketch.extend(Batch::integers(&vec![2; events.len()]).at(events)).expect("events");
        sketch
    }

    #[test]
    fn what_was_released_cannot_be_sealed_again_from_an_older_state() {
        assert!(is_taken(&running(), &running()));
        // The watermark is 30 behind: 1030, then 1033 and 1034 (a segment more), then 1051 (a substream more).
        for events in [&[1063][..], &[1064], &[1081]] {
            let (older, newer) = (running(), later(events));
            assert!(newer.view().sealed().count() != older.view().sealed().count());
            assert!(!is_taken(&newer, &older), "{events:?}: an older rest");
            assert!(!is_taken(&older, &newer), "{events:?}: an older view");
            let mut disguised = running();
            disguised.time = newer.time;
            assert!(!is_taken(&newer, &disguised), "{events:?}: an older rest with the newer time");
        }
    }

    #[test]
    fn a_state_that_stands_nowhere_is_refused() {
        type Change = fn(&mut DpswSketch);
        let changes: [(&str, Change); 9] = [
            ("starts after now", |sketch| sketch.time.start = Some(sketch.time.now + 1)),
            ("a sealed segment lies ahead", |sketch| sketch.time.now = 1027),
            ("an open segment lies behind", |sketch| sketch.time.now = 1034),
            ("a substream that is not the oldest has sealed parts", |sketch| {
                let plan = Arc::clone(&sketch.plan);
                let mut noise = Noise::off();
                let mut generators = std::iter::repeat_with(|| noise.generator().expect("off"));
                sketch.open[1].close_segment(&plan, &Levels::default(), &mut generators);
            }),
            ("no substream is open", |sketch| sketch.open.clear()),
            ("more are open than the plan allows", |sketch| {
                sketch.open_substream(sketch.number + sketch.plan.open_substreams_max());
            }),
            ("an older substream goes on", |sketch| sketch.number -= 1),
            ("an open substream is complete", |sketch| {
                let plan = Arc::clone(&sketch.plan);
                let mut noise = Noise::off();
                let mut generators = std::iter::repeat_with(|| noise.generator().expect("off"));
                while sketch.open[0].next_boundary(&plan).is_some() {
                    sketch.open[0].close_segment(&plan, &Levels::default(), &mut generators);
                }
                sketch.time.now = 1050;
            }),
            ("a segment is not in the plan", |sketch| {
                let segment = sketch.plan.boundaries().len();
                sketch.open[0].count_in_segment(segment, |counters, _| counters.count_nulls(1));
            }),
        ];
        for (what, change) in changes {
            let shown = running();
            let mut changed = running();
            change(&mut changed);
            assert!(!is_taken(&shown, &changed), "{what}");
            if !changed.open.is_empty() {
                assert!(!is_taken(&changed, &changed), "{what}, also in its view");
            }
        }
        let mut latest = running();
        latest.time.now = 1033;
        assert!(is_taken(&latest, &latest), "up to the next boundary");
    }

    #[test]
    fn a_state_with_the_view_of_another_stream_is_refused() {
        let other = DpswSketch::with_key(
            Plan::clone(&running().plan),
            StreamKey::from_bytes([9; 32]),
            Noise::seeded(1),
        );
        let mut here = DpswSketch::with_key(
            Plan::clone(&running().plan),
            StreamKey::from_bytes([8; 32]),
            Noise::seeded(1),
        );
        assert!(is_taken(&here, &here) && !is_taken(&other, &here));
        here.site = 7;
        let restored = DpswSketch::from_secret(&here.to_secret(), Noise::from_system()).expect("a state");
        assert_eq!((restored.site, restored.is_private), (7, false));
    }

    #[test]
    fn keys_of_a_search_that_is_over_are_refused() {
        // Seventy items: substreams of twenty, searches of two; the fourth substream runs, in the second search.
        let sketch = running_users();
        assert_eq!((sketch.number, sketch.searches.keys().copied().collect::<Vec<_>>()), (3, vec![1]));
        assert!(is_taken(&sketch, &sketch));
        for search_number in [0, 2] {
            let mut changed = running_users();
            let search = changed.searches.remove(&1).expect("the running search");
            changed.searches.insert(search_number, search);
            assert!(!is_taken(&sketch, &changed), "search {search_number}");
        }
        let mut given_up = running_users();
        given_up.first_search = 2;
        assert!(!is_taken(&sketch, &given_up), "a search that was given up goes on");
    }

    #[test]
    fn a_stream_resumes_at_the_next_substream_between_where_it_stood_and_the_latest_time() {
        // It stands at 1030; substreams have length 25.
        let last = TIME_MAX.div_ceil(25) * 25;
        for (resume_at, start) in [
            (1029, None),
            (1030, Some(1050)),
            (1050, Some(1050)),
            (TIME_MAX, Some(last)),
            (TIME_MAX + 1, None),
        ] {
            let resumed = running().resume_at(resume_at).ok();
            let got = resumed.map(|sketch| (sketch.time.start, sketch.time.now, sketch.number * 25));
            assert_eq!(got, start.map(|start| (Some(start), start, start)), "{resume_at}");
        }
    }

    #[test]
    fn absorbed_ids_are_saved_however_many_there_are() {
        let id = |batch| (42, PartialId { batch, ..PartialId::FIRST });
        let mut sketch = running();
        let before = sketch.secret_len_max();
        sketch.absorbed = (0..1000).map(id).collect();
        assert_eq!(sketch.secret_len_max() - before, 1000 * 32);
        let restored = DpswSketch::from_secret(&sketch.to_secret(), Noise::off()).expect("a state");
        assert_eq!(restored.absorbed, sketch.absorbed);
    }

    fn written_len(write: impl FnOnce(&mut Writer)) -> u64 {
        let frame = Writer::new(INNER_MAGIC, VERSION).finish().len();
        let mut writer = Writer::new(INNER_MAGIC, VERSION);
        write(&mut writer);
        (writer.finish().len() - frame) as u64
    }

    #[test]
    fn an_open_substream_has_room_for_all_its_counters_and_users_and_hardly_more() {
        for sketch in [running(), running_users()] {
            let plan = &sketch.plan;
            let mut open =
                OpenSubstream::new(plan, sketch.mapping_for(sketch.decided_substream(sketch.number)));
            let empty = written_len(|writer| open.write_to(writer));
            open.count_in_segment(0, |counters, _| counters.count_nulls(1));
            let counters = (plan.boundaries().len() + plan.ranges().len()) as u64;
            let mut wanted = empty + counters * (written_len(|writer| open.write_to(writer)) - empty);
            if let Some(mut caps) = open.empty_caps(plan) {
                let before = written_len(|writer| open.write_to(writer));
                (0..2 * plan.users_max()).for_each(|user| {
                    caps.admit(user, sketch.keys.mapper.fingerprint_key);
                });
                open.caps = Some(caps);
                wanted += written_len(|writer| open.write_to(writer)) - before;
            }
            let spare = OpenSubstream::len_max(plan).checked_sub(wanted).expect("room for all of it");
            assert!(spare < 8, "{spare} bytes to spare");
        }
    }

    #[test]
    fn where_presence_is_private_there_is_room_for_the_longest_searches_that_can_run() {
        let mut settings = running_users().plan.settings().clone();
        settings.unit = Unit::AddRemove;
        settings.window =
            Window::Time(TimeWindow { len: 100, lateness: 30, clock: Clock::Caller, expected_items: 100 });
        settings.domain =
            Domain::Found(SearchSettings { search_len: Some(2), ..SearchSettings::new(Kind::Integers) });
        let plan = Plan::new(settings).expect("a valid plan");
        let sketch = DpswSketch::with_noise(plan, Noise::off()).expect("off");
        let search_plan = sketch.plan.search_plan().expect("keys are found");
        assert!(1 < search_plan.running_max());
        let items: Vec<u64> = (0..2 * search_plan.items_max()).collect();
        let mut search = KeySearch::new(search_plan, sketch.keys.mapper.fingerprint_key);
        search.take_run(Run::integers(&items), None, search_plan);
        let longest = written_len(|writer| {
            writer.put_u64(0);
            search.write_to(writer);
        });
        assert_eq!(sketch.searches_len_max(), search_plan.running_max() * longest);
    }

    #[test]
    fn the_longest_state_has_room_in_less_than_twice_what_the_plan_allows() {
        let mut sketch = running();
        let segments = sketch.plan.boundaries().len();
        for number in sketch.number..sketch.number + sketch.plan.open_substreams_max() {
            let open = sketch.open_substream(number);
            (open.closed_count()..segments)
                .for_each(|segment| open.count_in_segment(segment, |counters, _| counters.count_nulls(1)));
        }
        let (needed, allowed) = (sketch.to_secret().len() as u64, sketch.secret_len_max());
        assert!(needed <= allowed, "{needed} of {allowed}");
        let padded = sketch.padded_len() as u64;
        assert!((allowed..2 * (allowed + 8)).contains(&padded), "{padded} for {allowed}");
    }

    #[test]
    fn a_stream_goes_on_after_its_checkpoint_and_so_does_what_is_restored_from_it() {
        /// Lets everything be restored, like a journal that knows that nothing was seen since.
        struct Journal;
        impl FreshnessStore for Journal {
            fn note(&mut self, _: StateId) -> Result<(), StoreError> {
                panic!("a checkpoint is noted nowhere")
            }
            fn consume(&mut self, _: StateId) -> Result<bool, StoreError> {
                Ok(true)
            }
        }
        let key = StateKey::from_bytes([7; 32]);
        for mut live in [running(), running_users()] {
            let saved = live.checkpoint(&key).expect("randomness");
            assert!(saved.bytes.len() < live.padded_len(), "no zeros");
            let mut restored =
                DpswSketch::restore(&saved.bytes, &key, Noise::off(), &mut Journal).expect("a state");
            let again = live.checkpoint(&key).expect("randomness");
            assert_ne!(saved.id, again.id);
            assert_eq!((saved.generation + 1, saved.generation), (again.generation, restored.generation));
            live.set_noise(Noise::off());
            let before = live.view().to_bytes();
            assert_eq!(before, restored.view().to_bytes());
            for sketch in [&mut live, &mut restored] {
                let (integers, strings, users) = ([1; 30], ["a"; 30], [9; 30]);
                let times = [sketch.position() + 60; 30];
                let is_timed = sketch.plan.settings().window.time().is_some();
                let timed = || Batch::integers(&integers).at(&times);
                let batch = if is_timed { timed() } else { Batch::text(&strings).by(&users) };
                sketch.extend(batch).expect("in time");
            }
            let after = live.view().to_bytes();
            assert!(before != after, "something was sealed");
            assert_eq!(after, restored.view().to_bytes());
        }
    }

    #[test]
    fn no_store_knows_of_a_checkpoint() {
        let key = StateKey::from_bytes([7; 32]);
        let (mut store, mut sketch) = (MemoryStore::default(), running());
        let saved = sketch.checkpoint(&key).expect("randomness");
        let restored = DpswSketch::restore(&saved.bytes, &key, Noise::off(), &mut store);
        assert_eq!(restored.map(|_| ()), Err(StateError::Stale { generation: saved.generation }));
        let saved = sketch.owned_by(std::process::id() + 1).checkpoint(&key);
        assert!(matches!(saved, Err(StateError::Ingest(_))), "{saved:?}");
    }

    #[test]
    fn the_debug_output_of_a_key_shows_no_bytes() {
        assert_eq!(format!("{:?}", StateKey::from_bytes([7; 32])), "StateKey");
    }

    /// Behind the encryption sits a decoder that the wrong key of a right owner can reach; a fuzzer reaches it here.
    #[test]
    fn secret_states_from_changed_bytes() {
        let bases = [running(), running_users()].map(|sketch| {
            let mut base = sketch.to_secret();
            base.truncate(base.len() - 4);
            base
        });
        bolero::check!().with_test_time(std::time::Duration::from_secs(4)).with_max_len(30).for_each(
            |input: &[u8]| {
                let mut bytes = bases[usize::from(input.first().is_some_and(|first| first % 2 == 0))].clone();
                for edit in input.chunks_exact(3) {
                    let position = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % bytes.len();
                    bytes[position] = edit[2];
                }
                let checksum = crc32fast::hash(&bytes);
                bytes.extend_from_slice(&checksum.to_le_bytes());
                let Ok(mut sketch) = DpswSketch::from_secret(&bytes, Noise::off()) else { return };
                let _ = sketch.view().top(3);
                let _ = sketch.extend(Batch::integers(&[1]).at(&[sketch.position() + 20]));
                let _ = sketch.extend(Batch::bytes(&["a"; 30]).by(&[3; 30]));
                let _ = sketch.view().frequency(1);
            },
        );
    }
}
