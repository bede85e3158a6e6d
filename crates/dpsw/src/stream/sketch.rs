//! DpswSketch: takes items, turns substreams over, hands out views.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::error::{EntropyError, IngestError};
use crate::item::batch::Batch;
use crate::item::hash::StreamKey;
use crate::item::value::{Item, Kind};
use crate::noise::generator::{Generator, Noise};
use crate::plan::discovery::PlannedDiscovery;
use crate::plan::settings::Unit;
use crate::plan::structure::Plan;
use crate::privacy::parameters::Claim;
use crate::sealed::released::{Found, Released};
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;
use crate::secret::partial::PartialId;
use crate::secret::substream::OpenSubstream;
use crate::secret::tracker::Tracker;
use crate::stream::keys::HashKeys;
use crate::testing::fault::{self, Fault};
use crate::view::readable::Readable;
use crate::view::window_view::WindowView;

/// Byte strings hashed before they are counted: hashing and counting in turns is faster than item by item.
pub(crate) const HASHED_AT_ONCE: usize = 128;

/// A seal that failed after some items were taken.
pub(crate) struct Unsealed {
    pub(crate) accepted: usize,
    pub(crate) source: EntropyError,
}

impl Unsealed {
    /// As an error of a call that had taken `before` items earlier.
    pub(crate) fn after(self, before: usize) -> IngestError {
        IngestError::Entropy { accepted: before + self.accepted, source: self.source }
    }
}

/// A private sketch of the recent part of a stream, still counting.
///
/// It takes items and cannot be asked; [`view`](Self::view) hands out what can. Not `Clone`: a copy would seal the same
/// items with other noise.
pub struct DpswSketch {
    pub(crate) plan: Arc<Plan>,
    noise: Noise,
    /// Whether all noise so far supports the claim.
    pub(crate) is_private: bool,
    pub(crate) keys: HashKeys,
    /// Number of the oldest open substream.
    pub(crate) number: u64,
    /// At least one; more where late events are waited for.
    pub(crate) open: VecDeque<OpenSubstream>,
    pub(crate) time: Time,
    pub(crate) readable: Arc<Readable>,
    /// The keys of running epochs, by epoch.
    pub(crate) trackers: BTreeMap<u64, Tracker>,
    /// An empty one, with its room at hand.
    spare_tracker: Option<Tracker>,
    /// Where the events are counted, among sites whose views are merged.
    pub(crate) site: u64,
    /// Which partial counters are in the open substreams, by substream.
    pub(crate) absorbed: BTreeSet<(u64, PartialId)>,
    /// How often the stream was saved.
    pub(crate) generation: u64,
    owner: u32,
}

/// Shows the plan alone: what is open, how late events were and where the stream stands can be private.
impl std::fmt::Debug for DpswSketch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DpswSketch").field("settings", self.plan.settings()).finish_non_exhaustive()
    }
}

/// Where the stream stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time {
    /// Where the first substream starts: position 0, or unknown before the clock is first set.
    pub(crate) start: Option<u64>,
    /// The next position, or the watermark.
    pub(crate) now: u64,
    /// Events refused for being late.
    pub(crate) late: u64,
}

impl DpswSketch {
    /// An empty sketch with its own hash key.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn new(plan: Plan, mut noise: Noise) -> Result<Self, EntropyError> {
        let key = StreamKey::draw(&mut noise)?;
        Ok(Self::with_key(plan, key, noise))
    }

    /// An empty sketch that hashes like all others with this key.
    #[must_use]
    pub fn with_key(plan: Plan, key: StreamKey, noise: Noise) -> Self {
        plan.prepare();
        let keys = HashKeys::new(&plan, key);
        let open = OpenSubstream::new(keys.mapping(&plan, 0));
        let readable = Arc::new(Readable::new(Released::new(Vec::new(), open.mapping().clone())));
        let start = plan.settings().window.time().is_none().then_some(0);
        Self {
            plan: Arc::new(plan),
            is_private: noise.is_private(),
            noise,
            keys,
            number: 0,
            open: VecDeque::from([open]),
            time: Time { start, now: 0, late: 0 },
            readable,
            trackers: BTreeMap::new(),
            spare_tracker: None,
            site: 0,
            absorbed: BTreeSet::new(),
            generation: 0,
            owner: std::process::id(),
        }
    }

    /// The same sketch as one of several sites, each with its number, whose views are to be merged. The default is 0.
    #[must_use]
    pub fn at_site(self, site: u64) -> Self {
        Self { site, ..self }
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How many items have arrived; for a time window, the watermark.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.time.now
    }

    /// What can be seen now: sealed sketches only.
    #[must_use]
    pub fn view(&self) -> WindowView {
        let claim = if self.is_private { self.plan.claim() } else { Claim::None };
        #[cfg(test)]
        self.open.front().inspect(|open| open.show());
        let start = self.time.start.unwrap_or(self.time.now);
        WindowView::new(
            Arc::clone(&self.plan),
            Arc::clone(&self.readable),
            claim,
            start..self.time.now,
            vec![self.site],
        )
    }

    /// Takes one item. For many, [`extend`](Self::extend) and [`extend_bytes`](Self::extend_bytes) are faster.
    ///
    /// # Errors
    /// See [`IngestError`].
    pub fn add<'i>(&mut self, item: impl Into<Item<'i>>) -> Result<(), IngestError> {
        match item.into() {
            Item::Integer(value) => self.extend(&[value]),
            Item::Bytes(value) => self.extend_bytes(&[value]),
        }
    }

    /// Takes integers, in order.
    ///
    /// # Errors
    /// See [`IngestError`].
    pub fn extend(&mut self, items: &[u64]) -> Result<(), IngestError> {
        self.check_events()?;
        self.extend_integers(&[], items)
    }

    /// Takes integers of users, in order, where whole users are protected. A user is any number that stands for them.
    ///
    /// # Errors
    /// See [`IngestError`].
    pub fn extend_by(&mut self, users: &[u64], items: &[u64]) -> Result<(), IngestError> {
        self.check_users(users.len(), items.len())?;
        self.extend_integers(users, items)
    }

    fn extend_integers(&mut self, users: &[u64], items: &[u64]) -> Result<(), IngestError> {
        self.check(Kind::Integers)?;
        self.check_counted()?;
        self.take(Batch::integers(items, users)).map_err(|unsealed| unsealed.after(0))
    }

    /// Takes byte strings or texts, in order.
    ///
    /// # Errors
    /// See [`IngestError`].
    pub fn extend_bytes<T: AsRef<[u8]>>(&mut self, items: &[T]) -> Result<(), IngestError> {
        self.check_events()?;
        self.extend_strings(&[], items)
    }

    /// Takes byte strings or texts of users, like [`extend_by`](Self::extend_by).
    ///
    /// # Errors
    /// See [`IngestError`].
    pub fn extend_bytes_by<T: AsRef<[u8]>>(&mut self, users: &[u64], items: &[T]) -> Result<(), IngestError> {
        self.check_users(users.len(), items.len())?;
        self.extend_strings(users, items)
    }

    fn extend_strings<T: AsRef<[u8]>>(&mut self, users: &[u64], items: &[T]) -> Result<(), IngestError> {
        self.check(Kind::Bytes)?;
        self.check_counted()?;
        let (mut words, mut bytes) = ([0; HASHED_AT_ONCE], Vec::new());
        for (number, chunk) in items.chunks(HASHED_AT_ONCE).enumerate() {
            let before = number * HASHED_AT_ONCE;
            let users = users.get(before..before + chunk.len()).unwrap_or_default();
            self.key_bytes(chunk, &mut bytes);
            let words = self.keys.fingerprints(chunk, &mut words);
            self.take(Batch::bytes(words, &bytes, users)).map_err(|unsealed| unsealed.after(before))?;
        }
        Ok(())
    }

    /// The items themselves, where keys are found. The caller's code runs here, before any of them is counted.
    pub(crate) fn key_bytes<'i, T: AsRef<[u8]>>(&self, items: &'i [T], bytes: &mut Vec<&'i [u8]>) {
        bytes.clear();
        if self.plan.discovery().is_some() {
            bytes.extend(items.iter().map(AsRef::as_ref));
        }
    }

    /// Takes so many null items: each has its position and counts nowhere, like an item that was refused for its content.
    ///
    /// # Errors
    /// See [`IngestError`].
    pub fn extend_nulls(&mut self, items: usize) -> Result<(), IngestError> {
        self.check_events()?;
        self.take_nulls(items, &[])
    }

    /// Takes null items of users, where whole users are protected: each is one of those that its user may send.
    ///
    /// # Errors
    /// See [`IngestError`].
    pub fn extend_nulls_by(&mut self, users: &[u64]) -> Result<(), IngestError> {
        self.check_users(users.len(), users.len())?;
        self.take_nulls(users.len(), users)
    }

    fn take_nulls(&mut self, items: usize, users: &[u64]) -> Result<(), IngestError> {
        self.check_owner()?;
        self.check_counted()?;
        self.take(Batch::nulls(items, users)).map_err(|unsealed| unsealed.after(0))
    }

    fn take(&mut self, batch: Batch<'_>) -> Result<(), Unsealed> {
        let mut done = 0;
        while done < batch.len() {
            let room = self.next_boundary() - self.time.now;
            let now = batch.part(done, usize::try_from(room).unwrap_or(usize::MAX));
            let admitted = self.take_now(self.number, None, now);
            done += now.len();
            let positions = if fault::is(Fault::ShiftedPositions) { admitted } else { now.len() };
            self.pass(positions).map_err(|source| Unsealed { accepted: done, source })?;
        }
        Ok(())
    }

    /// Goes on by so many positions, not past the end of the segment.
    fn pass(&mut self, positions: usize) -> Result<(), EntropyError> {
        self.time.now += positions as u64;
        if self.time.now == self.next_boundary() { self.close_segment() } else { Ok(()) }
    }

    /// Counts items of one segment of an open substream, by default the oldest, and says how many count.
    pub(crate) fn take_now(&mut self, number: u64, segment: Option<usize>, batch: Batch<'_>) -> usize {
        let plan = Arc::clone(&self.plan);
        let open = self.open_substream(number);
        let segment = segment.unwrap_or_else(|| open.closed());
        let admitted = open.take(segment, batch, &plan);
        self.track(number, batch, admitted.as_deref());
        admitted.map_or(batch.len(), |places| places.len())
    }

    fn track(&mut self, number: u64, batch: Batch<'_>, admitted: Option<&[usize]>) {
        let plan = Arc::clone(&self.plan);
        if let (Some(discovery), Some(tracker)) = (plan.discovery(), self.tracker(number)) {
            tracker.take(batch, admitted, discovery);
        }
    }

    /// The keys of the epoch of a substream, if keys are found.
    fn tracker(&mut self, number: u64) -> Option<&mut Tracker> {
        let discovery = self.plan.discovery()?;
        let (epoch, key) = (number / discovery.epoch(), self.keys.mapper.fingerprint_key);
        let spare = &mut self.spare_tracker;
        let empty = || spare.take().unwrap_or_else(|| Tracker::new(discovery, key));
        Some(self.trackers.entry(epoch).or_insert_with(empty))
    }

    /// The smallest number that stands for a user with this name in [`extend_by`](Self::extend_by).
    #[must_use]
    pub fn user(&self, name: &[u8]) -> u64 {
        self.keys.mapper.fingerprint_key.bytes(name)
    }

    /// The position at which the oldest open segment ends.
    pub(crate) fn next_boundary(&self) -> u64 {
        let boundary = self.open.front().and_then(|open| open.next_boundary(&self.plan));
        self.number * self.plan.substream_len() + boundary.expect("an open substream is not complete")
    }

    fn check_counted(&self) -> Result<(), IngestError> {
        match self.plan.settings().window.time() {
            None => Ok(()),
            Some(_) => Err(IngestError::Times("a time window needs the time of each event: use extend_at")),
        }
    }

    pub(crate) fn check_events(&self) -> Result<(), IngestError> {
        match self.plan.settings().unit {
            Unit::Users { .. } => {
                Err(IngestError::Users("this plan protects whole users: use extend_by and its like"))
            }
            Unit::ReplaceOne | Unit::AddRemove => Ok(()),
        }
    }

    pub(crate) fn check_users(&self, users: usize, items: usize) -> Result<(), IngestError> {
        if self.plan.settings().unit.per_substream().is_none() {
            return Err(IngestError::Users("this plan protects single events: use extend and its like"));
        }
        if users == items { Ok(()) } else { Err(IngestError::UserCount { users, items }) }
    }

    pub(crate) fn check(&self, got: Kind) -> Result<(), IngestError> {
        let wanted = self.plan.settings().domain.kind();
        if got != wanted {
            return Err(IngestError::Kind { wanted, got });
        }
        self.check_owner()
    }

    pub(crate) fn check_owner(&self) -> Result<(), IngestError> {
        if std::process::id() == self.owner { Ok(()) } else { Err(IngestError::Forked { owner: self.owner }) }
    }

    /// Seals the ranges that end with the oldest open segment and makes them readable.
    pub(crate) fn close_segment(&mut self) -> Result<(), EntropyError> {
        let of_keys = self.ends_epoch().then(|| self.noise.generator()).transpose()?;
        let open = self.open.front_mut().expect("a substream is always open");
        let sealed = open.close_segment(&self.plan, &mut self.noise)?;
        let is_complete = open.next_boundary(&self.plan).is_none();
        let found = of_keys.map(|generator| self.find(generator));
        if !sealed.is_empty() {
            self.release(sealed, found);
        }
        if is_complete {
            self.turn_over();
        }
        Ok(())
    }

    /// Whether an epoch ends with the oldest open segment.
    fn ends_epoch(&self) -> bool {
        let Some(discovery) = self.plan.discovery() else { return false };
        let open = self.open.front().expect("a substream is always open");
        let is_last = open.next_boundary(&self.plan) == Some(self.plan.substream_len());
        is_last && (self.number + 1).is_multiple_of(discovery.epoch())
    }

    /// Ends the epoch of the oldest open substream.
    fn find(&mut self, mut generator: Generator) -> Found {
        let discovery = self.plan.discovery().expect("an epoch has ended");
        let (epoch, key) = (self.number / discovery.epoch(), self.keys.mapper.fingerprint_key);
        let mut tracker = self.trackers.remove(&epoch).unwrap_or_else(|| Tracker::new(discovery, key));
        let keys = tracker.release(discovery, &mut generator);
        tracker.clear();
        self.spare_tracker = Some(tracker);
        Found { epoch, keys }
    }

    /// Goes on with the next substream.
    fn turn_over(&mut self) {
        self.number += 1;
        let mut complete = self.open.pop_front().expect("a substream is always open");
        if self.open.is_empty() {
            complete.turn_over(self.keys.mapping(&self.plan, self.number));
            self.open.push_back(complete);
        }
    }

    /// The open substream of this number, not before the oldest.
    pub(crate) fn open_substream(&mut self, number: u64) -> &mut OpenSubstream {
        let index = (number - self.number) as usize;
        while self.open.len() <= index {
            let next = self.number + self.open.len() as u64;
            self.open.push_back(OpenSubstream::new(self.keys.mapping(&self.plan, next)));
        }
        &mut self.open[index]
    }

    /// Gives up everything before the substream of this number: all of it has left what is retained.
    pub(crate) fn skip_to(&mut self, number: u64) {
        let given_up = (number - self.number).min(self.open.len() as u64);
        self.open.drain(..given_up as usize);
        self.number = number;
        if self.open.is_empty() {
            self.open.push_back(OpenSubstream::new(self.keys.mapping(&self.plan, number)));
        }
        if let Some(discovery) = self.plan.discovery() {
            self.trackers = self.trackers.split_off(&(number / discovery.epoch()));
        }
        let nothing = Released::new(Vec::new(), self.readable.released.mapping().clone());
        self.readable = Arc::new(Readable::new(nothing));
    }

    fn release(&mut self, sealed: Vec<(usize, SealedSketch)>, found: Option<Found>) {
        let mapping = self.open.front().expect("a substream is always open").mapping();
        let running = match self.readable.released.substream(self.number) {
            Some(substream) => substream.with(sealed, &self.plan),
            None => SealedSubstream::new(self.number, mapping.clone()).with(sealed, &self.plan),
        };
        let oldest = self.time.now.saturating_sub(self.plan.retained_len());
        let is_kept = |number: u64| oldest < (number + 1) * self.plan.substream_len();
        let before = self
            .readable
            .released
            .substreams()
            .iter()
            .filter(|s| s.number != self.number && is_kept(s.number));
        let mut substreams: Vec<_> = before.cloned().collect();
        substreams.push(Arc::new(running));
        let epoch = self.plan.discovery().map_or(1, PlannedDiscovery::epoch);
        let is_live = |found: &&Arc<Found>| is_kept((found.epoch + 1) * epoch - 1);
        let before = self.readable.released.found().iter().filter(is_live).cloned();
        let found = before.chain(found.map(Arc::new)).collect();
        self.readable = Arc::new(self.readable.next(substreams, found));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::domain::Domain;
    use crate::item::keys::Keys;
    use crate::plan::settings::{CounterLayout, Method, Settings, TunedMethod, Unit, Window};
    use crate::privacy::parameters::Epsilon;

    fn sketch() -> DpswSketch {
        let method =
            TunedMethod { substreams: 5, counters: CounterLayout::Identity, ..TunedMethod::default() };
        let settings = Settings {
            window: Window::Items(50),
            unit: Unit::ReplaceOne,
            epsilon: Epsilon::new(1.0).expect("in range"),
            delta: None,
            domain: Domain::Public(Keys::Range(4)),
            method: Method::Tuned(method),
            retention: 1,
        };
        DpswSketch::new(Plan::new(settings).expect("a valid plan"), Noise::off()).expect("noise is off")
    }

    #[test]
    fn without_randomness_nothing_is_sealed_and_no_item_is_lost() {
        let mut sketch = sketch();
        sketch.noise = Noise::failing();
        for accepted in [10, 0] {
            let error = sketch.extend(&[1; 14]).expect_err("no randomness");
            let IngestError::Entropy { accepted: got, .. } = error else { panic!("{error}") };
            assert_eq!(got, accepted);
            assert_eq!(sketch.position(), 10);
            assert_eq!(sketch.view().covered(), 10..10);
        }
        sketch.noise = Noise::off();
        sketch.extend(&[1; 4]).expect("randomness is back");
        assert_eq!(sketch.position(), 14);
        assert_eq!(sketch.view().covered(), 0..10);
        // Ten are sealed, four are predicted.
        assert_eq!(sketch.view().frequency(1).expect("a key").value, 14.0);
        assert!(DpswSketch::new(sketch.plan().clone(), Noise::failing()).is_err());
    }

    #[test]
    fn a_failed_seal_leaves_the_older_substreams_answering() {
        let mut sketch = sketch();
        sketch.extend(&[1; 19]).expect("valid items");
        sketch.noise = Noise::failing();
        assert!(sketch.extend(&[1]).is_err());
        assert_eq!(sketch.view().covered(), 0..10);
        assert_eq!(sketch.view().frequency(1).expect("a key").value, 20.0);
    }

    #[test]
    fn a_panic_in_the_callers_items_counts_nothing_twice() {
        struct Trap(u32);
        impl AsRef<[u8]> for Trap {
            fn as_ref(&self) -> &[u8] {
                assert!(self.0 < 299, "trap");
                b"a"
            }
        }
        let mut settings = sketch().plan().settings().clone();
        settings.domain = Domain::Public(Keys::text(["a", "b"]));
        settings.window = Window::Items(5000);
        let mut sketch =
            DpswSketch::new(Plan::new(settings).expect("a valid plan"), Noise::off()).expect("off");
        let items: Vec<Trap> = (0..300).map(Trap).collect();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sketch.extend_bytes(&items)));
        assert!(caught.is_err());
        let taken = sketch.position();
        sketch.extend_bytes(&vec!["b"; (1000 - taken) as usize]).expect("valid items");
        assert_eq!(sketch.view().frequency("a").expect("a key").value, taken as f64);
    }

    #[test]
    fn a_sketch_in_another_process_takes_nothing() {
        let mut sketch = sketch();
        sketch.owner += 1;
        let forked = IngestError::Forked { owner: sketch.owner };
        assert_eq!(sketch.extend(&[1; 14]), Err(forked.clone()));
        assert_eq!(sketch.advance(5), Err(forked.clone()));
        assert_eq!(sketch.position(), 0);
        let saved = sketch.save(&crate::stream::state::StateKey::from_bytes([1; 32]));
        assert_eq!(saved, Err(crate::error::StateError::Ingest(forked)));
    }

    #[test]
    fn debug_output_shows_no_counts_and_no_keys() {
        let mut sketch = sketch();
        sketch.extend(&[3; 9]).expect("valid items");
        let text = format!("{:?} {:?} {:?}", sketch.open, sketch.keys, sketch.noise);
        let wanted = "[OpenSubstream] HashKeys { stream: StreamKey, mapper: Mapper { fingerprint_key: FingerprintKey, \
            index: None } } Noise(Reproducible)";
        assert_eq!(text, wanted);
        let before = format!("{sketch:?}");
        sketch.extend(&[3; 5]).expect("valid items");
        assert_eq!(format!("{sketch:?}"), before);
    }

    #[test]
    fn each_seal_has_noise_of_its_own() {
        // Two substreams with the same items: 4,000 counters agree in all noise with probability below 0.3^4000.
        let mut settings = sketch().plan().settings().clone();
        settings.domain = Domain::Public(Keys::Range(4000));
        let plan = Plan::new(settings).expect("a valid plan");
        let mut sketch = DpswSketch::new(plan, Noise::from_system()).expect("the system has randomness");
        sketch.extend(&[3; 20]).expect("valid items");
        let cells = |number| {
            sketch.readable.released.substream(number).and_then(|s| s.sketch(0)).map(SealedSketch::cells)
        };
        assert!(cells(0).is_some());
        assert_ne!(cells(0), cells(1));
    }
}
