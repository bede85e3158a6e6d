//! DpswSketch: takes items, turns substreams over, hands out views.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::decide::decision::{Decider, Decision};
use crate::decide::found::FoundCounter;
use crate::error::{EntropyError, IngestError};
use crate::item::batch::{Batch, ByteStrings, Items};
use crate::item::hash::StreamKey;
use crate::item::keys::Keys;
use crate::item::mapping::Mapping;
use crate::item::run::Run;
use crate::item::value::Item;
use crate::noise::generator::{Generator, Noise};
use crate::plan::search::SearchPlan;
use crate::plan::structure::Plan;
use crate::privacy::parameters::Claim;
use crate::sealed::found::FoundKeys;
use crate::sealed::horizon::Decided;
use crate::sealed::levels::Levels;
use crate::sealed::pins::Pins;
use crate::sealed::released::Released;
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;
use crate::secret::key_search::KeySearch;
use crate::secret::partial::PartialId;
use crate::secret::substream::OpenSubstream;
use crate::stream::keys::HashKeys;
use crate::view::cached_release::CachedRelease;
use crate::view::window_view::WindowView;

/// How many byte strings are hashed before they are counted: taking turns in blocks is faster than item by item.
pub(crate) const HASHED_AT_ONCE: usize = 128;

/// A seal that failed after some items were taken.
pub(crate) struct Unsealed {
    pub(crate) accepted: usize,
    pub(crate) source: EntropyError,
}

impl Unsealed {
    /// The same failure, where this many items were taken before it.
    pub(crate) fn having_taken(self, accepted: usize) -> Self {
        Self { accepted, ..self }
    }

    /// As an error of a call that had taken `before` items earlier.
    pub(crate) fn into_error_after(self, before: usize) -> IngestError {
        IngestError::Entropy { accepted: before + self.accepted, source: self.source }
    }
}

/// The outcome of taking a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Taken {
    /// Events that took their place in the stream and count for their item.
    pub counted: usize,
    /// Events that took their place and count for no item: their user had sent enough in the substream, or there was no
    /// room for further users ([`Plan::user_room`]). That depends on who sends when alone.
    pub capped: usize,
    /// Events left out because their interval is sealed.
    pub late: usize,
    /// Events left out because they lie too far ahead of the clock.
    pub early: usize,
}

impl Taken {
    /// Adds so many events, of which some are capped.
    pub(crate) fn add_events(&mut self, events: usize, capped: usize) {
        self.counted += events - capped;
        self.capped += capped;
    }
}

/// A private sketch of the recent part of a stream, still counting.
///
/// It takes items and answers nothing; [`view`](Self::view) hands out what does. So the exact counters, which are secret, and
/// the answers, which are not, never meet in one type: no question can reach an open counter.
///
/// A stream is cut into substreams. The items of open ones are counted exactly; once the clock passes the end of a range, its
/// counters get noise from a generator with a new key and join what is released. Noise is drawn then and not before, so that
/// no saved state holds noise that two different continuations could share.
///
/// At the end of each substream it is decided which keys are pinned and how finely keys are cut in substreams to come, from
/// what is released and nothing else.
///
/// Three things must stay true. A range is sealed at most once. Whether an event counts depends on its own position or time
/// and, where users are protected, on who sent when, never on items. And when something is sealed follows from plan and
/// clock. Not `Clone`: a copy would seal the same items with other noise, and so would a forked process, which is refused.
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
    /// Of the oldest open substream: which keys are cut more finely. Made when it became the oldest.
    pub(crate) levels: Arc<Levels>,
    pub(crate) time: Time,
    pub(crate) cached: Arc<CachedRelease>,
    /// Makes decisions, which are functions of plan and release.
    decider: Decider,
    /// The keys of running searches, by search.
    pub(crate) searches: BTreeMap<u64, KeySearch>,
    /// An empty one, with its room at hand.
    spare_search: Option<KeySearch>,
    /// The first search whose keys are counted: those of an earlier one may have been counted elsewhere.
    pub(crate) first_search: u64,
    /// Where the events are counted, among sites whose views are merged.
    pub(crate) site: u64,
    /// Which partial counters are in the open substreams, by substream.
    pub(crate) absorbed: BTreeSet<(u64, PartialId)>,
    /// How often the stream was saved.
    pub(crate) generation: u64,
    owner: u32,
}

/// Shows the settings alone: what is open, how late events were and where the stream stands can be private.
impl std::fmt::Debug for DpswSketch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DpswSketch").field("settings", self.plan.settings()).finish_non_exhaustive()
    }
}

/// The position of a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time {
    /// Where it began: position 0, where the clock was first set, or at an earlier event that was counted; unknown before.
    /// The first substream may begin before.
    pub(crate) start: Option<u64>,
    /// The next position, or the watermark.
    pub(crate) now: u64,
    /// Events refused for being late.
    pub(crate) late: u64,
}

impl DpswSketch {
    /// An empty sketch with noise from the system and a hash key of its own.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn new(plan: impl Into<Plan>) -> Result<Self, EntropyError> {
        Self::with_noise(plan, Noise::from_system())
    }

    /// The same with noise that may be reproducible, for tests and experiments.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn with_noise(plan: impl Into<Plan>, mut noise: Noise) -> Result<Self, EntropyError> {
        let key = StreamKey::draw_from(&mut noise)?;
        Ok(Self::with_key(plan, key, noise))
    }

    /// An empty sketch that hashes like all others with this key.
    #[must_use]
    pub fn with_key(plan: impl Into<Plan>, key: StreamKey, noise: Noise) -> Self {
        Self::beginning_with(plan.into(), key, noise, 0)
    }

    /// An empty sketch whose first substream has this number.
    pub(crate) fn beginning_with(plan: Plan, key: StreamKey, noise: Noise, number: u64) -> Self {
        planted!(fault::begins());
        plan.prepare_tables();
        let keys = HashKeys::new(&plan, key);
        let pins = Pins::new(&plan, number);
        let first = pins.horizon().get(number).expect("a stream begins inside its horizon");
        let open =
            OpenSubstream::new(&plan, with_pinned_keys(&pins, keys.mapping_for(&plan, first), first, &plan));
        let cached = nothing_released(pins, open.mapping().without_pins());
        let start = plan.settings().window.time().is_none().then_some(0);
        Self {
            levels: Arc::new(Levels::first(&plan)),
            plan: Arc::new(plan),
            is_private: noise.is_private(),
            noise,
            keys,
            number,
            open: VecDeque::from([open]),
            time: Time { start, now: 0, late: 0 },
            cached,
            decider: Decider::default(),
            searches: BTreeMap::new(),
            spare_search: None,
            first_search: 0,
            site: 0,
            absorbed: BTreeSet::new(),
            generation: 0,
            owner: std::process::id(),
        }
    }

    /// The same plan, keys and place among sites, in a stream that begins with this substream and knows nothing else of this one.
    pub(crate) fn begun_anew(self, number: u64) -> Self {
        // What is taken over follows from no event: another line of this stream may have been shown (PRIVACY.md: rule 38).
        let Self { plan, keys, noise, is_private, site, generation, .. } = self;
        let anew = Self::beginning_with(Plan::clone(&plan), keys.stream, noise, number);
        let start = number * plan.substream_len();
        let time = Time { start: Some(start), now: start, late: 0 };
        // An event of this substream may have been in a search that began before it, elsewhere (PRIVACY.md: rule 32).
        let first_search = number.div_ceil(plan.search_plan().map_or(1, SearchPlan::search_len));
        // Once noise was reproducible the stream never claims privacy again (PRIVACY.md: rule 7).
        Self { is_private: is_private && anew.is_private, site, generation, time, first_search, ..anew }
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

    /// The position of the next item, counted from 0; for a time window, the watermark.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.time.now
    }

    /// What can be seen now: sealed sketches only.
    #[must_use]
    pub fn view(&self) -> WindowView {
        // A view of reproducible noise claims nothing (PRIVACY.md: rule 7).
        let claim = if self.is_private { self.plan.claim() } else { Claim::None };
        planted!(fault::show(self.open.front()));
        let start = self.time.start.unwrap_or(self.time.now);
        WindowView::new(
            Arc::clone(&self.plan),
            Arc::clone(&self.cached),
            claim,
            start..self.time.now,
            vec![self.site],
        )
    }

    /// Takes one item of a count window. [`extend`](Self::extend) is faster for many.
    ///
    /// # Errors
    /// See [`IngestError`].
    pub fn add<'i>(&mut self, item: impl Into<Item<'i>>) -> Result<(), IngestError> {
        match item.into() {
            Item::Integer(value) => self.extend(Batch::integers(&[value])),
            Item::Bytes(value) => self.extend(Batch::bytes(&[value])),
        }
        .map(|_| ())
    }

    /// Takes a batch of items, in order. In a time window events that are late or too far ahead are left out one by one
    /// and reported.
    ///
    /// # Errors
    /// The batch does not fit the plan (nothing was taken), or the system gives no randomness for a seal, in which case
    /// the error says how many items were taken. See [`IngestError`].
    #[expect(clippy::needless_pass_by_value, reason = "a batch is made for one call")]
    pub fn extend(&mut self, batch: Batch<'_>) -> Result<Taken, IngestError> {
        self.check_batch(&batch)?;
        let mut taken = Taken::default();
        match &batch.items {
            Items::Integers(items) => self.take_run(&batch, 0, Run::integers(items), &mut taken)?,
            Items::Nulls(len) => self.take_run(&batch, 0, Run::nulls(*len), &mut taken)?,
            Items::Strings(items) => self.take_strings(&batch, &**items, &mut taken)?,
        }
        Ok(taken)
    }

    fn take_strings(
        &mut self,
        batch: &Batch<'_>,
        items: &dyn ByteStrings,
        taken: &mut Taken,
    ) -> Result<(), IngestError> {
        let key = self.keys.mapper.fingerprint_key;
        let needs_keys = self.plan.search_plan().is_some();
        let (mut words, mut slices) = ([0; HASHED_AT_ONCE], Vec::new());
        for start in (0..items.len()).step_by(HASHED_AT_ONCE) {
            let words = &mut words[..HASHED_AT_ONCE.min(items.len() - start)];
            // The caller's code runs here, before any of these is counted: if it panics, no item counts twice.
            items.hash_into(start, key, words);
            slices.clear();
            if needs_keys {
                items.push_slices(start, words.len(), &mut slices);
            }
            self.take_run(batch, start, Run::strings(words, &slices), taken)?;
        }
        Ok(())
    }

    /// Takes the items of a batch that begin at `start`.
    fn take_run(
        &mut self,
        batch: &Batch<'_>,
        start: usize,
        run: Run<'_>,
        taken: &mut Taken,
    ) -> Result<(), IngestError> {
        let range = start..start + run.len();
        let run = run.with_users(batch.users.map_or(&[], |users| &users[range.clone()]));
        let result = match batch.times {
            Some(times) => self.take_at(&times[range], run, taken),
            None => self.take_next(run, taken),
        };
        result.map_err(|unsealed| unsealed.into_error_after(start))
    }

    /// Takes items at the next positions.
    fn take_next(&mut self, run: Run<'_>, taken: &mut Taken) -> Result<(), Unsealed> {
        let mut done = 0;
        while done < run.len() {
            let room = self.next_boundary() - self.time.now;
            let now = run.part_from(done, usize::try_from(room).unwrap_or(usize::MAX));
            taken.add_events(now.len(), self.take_now(self.number, None, now));
            done += now.len();
            // All items move the position, null and capped ones too: no item shifts the others (PRIVACY.md: rule 13).
            let positions = now.len();
            planted!(let positions = fault::positions(positions));
            self.pass_positions(positions as u64).map_err(|source| Unsealed { accepted: done, source })?;
        }
        Ok(())
    }

    /// Goes on by this many positions, not past the end of the segment.
    pub(crate) fn pass_positions(&mut self, positions: u64) -> Result<(), EntropyError> {
        self.time.now += positions;
        if self.time.now == self.next_boundary() { self.close_segment() } else { Ok(()) }
    }

    /// Counts items of one segment of an open substream, by default the oldest. Says how many do not count because of the
    /// caps of users.
    pub(crate) fn take_now(&mut self, number: u64, segment: Option<usize>, run: Run<'_>) -> usize {
        let plan = Arc::clone(&self.plan);
        let open = self.open_substream(number);
        let segment = segment.unwrap_or_else(|| open.closed_count());
        let admitted = open.take_run(segment, run, &plan);
        // The search takes what the counters took: beyond a user's cap an item is null in both (PRIVACY.md: rule 14).
        self.count_for_search(number, run, admitted.places.as_deref());
        admitted.capped
    }

    fn count_for_search(&mut self, number: u64, run: Run<'_>, admitted: Option<&[usize]>) {
        let plan = Arc::clone(&self.plan);
        if let (Some(search_plan), Some(search)) = (plan.search_plan(), self.running_search(number)) {
            search.take_run(run, admitted, search_plan);
        }
    }

    /// The keys of the search of a substream, if they are counted.
    fn running_search(&mut self, number: u64) -> Option<&mut KeySearch> {
        let search_plan = self.plan.search_plan()?;
        let (search_number, key) = (search_plan.number_at(number), self.keys.mapper.fingerprint_key);
        // Another line of this stream may have looked at its events (PRIVACY.md: rule 32).
        if search_number < self.first_search {
            return None;
        }
        let spare = &mut self.spare_search;
        let empty = || spare.take().unwrap_or_else(|| KeySearch::new(search_plan, key));
        Some(self.searches.entry(search_number).or_insert_with(empty))
    }

    /// A number for the user with this name, for [`Batch::by`].
    #[must_use]
    pub fn user(&self, name: &[u8]) -> u64 {
        self.keys.mapper.fingerprint_key.hash_bytes(name)
    }

    /// The position or time at which the next range is sealed: plan and clock alone say where it is.
    #[must_use]
    pub fn next_boundary(&self) -> u64 {
        let boundary = self.open.front().and_then(|open| open.next_boundary(&self.plan));
        self.number * self.plan.substream_len() + boundary.expect("an open substream is not complete")
    }

    fn check_batch(&self, batch: &Batch<'_>) -> Result<(), IngestError> {
        // A batch is refused for its form, never for an item in it (PRIVACY.md: rule 13).
        self.check_owner()?;
        let settings = self.plan.settings();
        batch.check_kind(settings.domain.kind())?;
        match (settings.unit.per_substream(), batch.users.map(<[u64]>::len)) {
            (None, Some(_)) => return Err(IngestError::UnwantedUsers),
            (Some(_), None) => return Err(IngestError::NoUsers),
            (Some(_), Some(users)) if users != batch.len() => {
                return Err(IngestError::UserCount { users, items: batch.len() });
            }
            _ => {}
        }
        match (settings.window.time(), batch.times.map(<[u64]>::len)) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(IngestError::CountWindow),
            (Some(_), None) => Err(IngestError::NoTimes),
            (Some(_), Some(times)) if times != batch.len() => {
                Err(IngestError::TimeCount { times, items: batch.len() })
            }
            (Some(window), Some(_)) => self.check_clock(window),
        }
    }

    pub(crate) fn check_owner(&self) -> Result<(), IngestError> {
        // After a fork parent and child would seal the same counters, each with other noise (PRIVACY.md: rule 5).
        if std::process::id() == self.owner { Ok(()) } else { Err(IngestError::Forked { owner: self.owner }) }
    }

    #[cfg(test)]
    pub(crate) fn set_noise(&mut self, noise: Noise) {
        self.noise = noise;
    }

    #[cfg(test)]
    pub(crate) fn owned_by(self, owner: u32) -> Self {
        Self { owner, ..self }
    }

    /// Seals the ranges that end with the oldest open segment and makes them readable.
    pub(crate) fn close_segment(&mut self) -> Result<(), EntropyError> {
        let open = self.open.front().expect("a substream is always open");
        planted!(fault::table(&mut self.levels, open.oldest_segment().filter(|_| open.closed_count() == 0)));
        let seals = open.ranges_ending(&self.plan, &self.levels).len() + usize::from(self.checks_keys());
        // All draws come before the first seal: if one fails, every range is as it was (PRIVACY.md: rule 1).
        let generators = (0..seals).map(|_| self.draw_generator()).collect::<Result<Vec<_>, _>>()?;
        self.seal_segment(&mut generators.into_iter());
        Ok(())
    }

    /// A newly keyed generator, for one seal.
    pub(crate) fn draw_generator(&mut self) -> Result<Generator, EntropyError> {
        // The only draw of noise for counters, in the call that seals them (PRIVACY.md: rule 1).
        let generator = self.noise.generator()?;
        planted!(let generator = fault::generator(generator));
        Ok(generator)
    }

    /// The same with generators that were drawn for it: that of the keys first.
    pub(crate) fn seal_segment(&mut self, generators: &mut impl Iterator<Item = Generator>) {
        let of_keys = self.checks_keys().then(|| generators.next().expect("one was drawn for the keys"));
        let open = self.open.front_mut().expect("a substream is always open");
        let sealed = open.close_segment(&self.plan, &self.levels, generators);
        let is_complete = open.next_boundary(&self.plan).is_none();
        let found = of_keys.map(|generator| self.find_keys(generator));
        if !sealed.is_empty() {
            self.release_sealed(sealed, found);
        }
        if is_complete {
            self.turn_over();
        }
    }

    /// Whether keys are looked at when the oldest open segment ends: with its substream.
    fn checks_keys(&self) -> bool {
        let Some(search_plan) = self.plan.search_plan() else { return false };
        let open = self.open.front().expect("a substream is always open");
        let is_last = open.next_boundary(&self.plan) == Some(self.plan.substream_len());
        is_last && search_plan.checks_at(self.number)
    }

    /// Looks at the keys of the oldest open substream's search: those that come out. At its end the search is wiped.
    pub(crate) fn find_keys(&mut self, mut generator: Generator) -> Keys {
        let search_plan = self.plan.search_plan().expect("keys are looked at");
        let (search_number, listed) = (search_plan.number_at(self.number), self.cached.released.found());
        let search = self.searches.get_mut(&search_number);
        planted!(let counts = tape::counts(search.as_deref(), search_plan));
        let found = search.map(|search| search.check_keys(search_plan, listed, &mut generator));
        let found = found.unwrap_or(Keys::Range(0));
        planted!(let found = tape::found(found, search_number, search_plan.kind(), &counts));
        planted!(let found = fault::found(found, search_plan.kind(), &counts));
        // After the last check counts and lasting noise are wiped (PRIVACY.md: rule 32).
        if search_plan.ends_with(self.number) {
            self.spare_search = self.searches.remove(&search_number).map(KeySearch::into_empty);
        }
        found
    }

    /// Goes on with the next substream.
    fn turn_over(&mut self) {
        self.number += 1;
        // At turn-over and at no event, whether the next substream is open or not (PRIVACY.md: rule 33).
        self.decide_next();
        let mut complete = self.open.pop_front().expect("a substream is always open");
        if self.open.is_empty() {
            complete.turn_over(self.mapping_for(self.decided_substream(self.number)));
            self.open.push_back(complete);
        }
    }

    /// Decides how finely keys are cut in the oldest open substream, and which are pinned in the next one that no event can
    /// have reached: by what is sealed, and when the clock says so.
    fn decide_next(&mut self) {
        let released = &self.cached.released;
        let Decision { pins, levels } = self.decider.decide(&self.plan, released);
        // Those of the substream that has just become the oldest: none of its slices is sealed yet (PRIVACY.md: rule 33).
        self.levels = Arc::new(levels);
        if self.plan.pinned() == 0 {
            return;
        }
        planted!(let pins = fault::pins(pins, released.pins(), &self.plan));
        let (substreams, found) = (released.substreams().to_vec(), Arc::clone(released.found()));
        self.cached = Arc::new(self.cached.after_seal(substreams, found, pins));
    }

    /// A substream that can be open: who is pinned there was decided before any event could reach it.
    pub(crate) fn decided_substream(&self, number: u64) -> Decided {
        let horizon = self.cached.released.pins().horizon();
        horizon.get(number).expect("every substream that can be open is decided")
    }

    /// How items fall on the counters of a substream.
    pub(crate) fn mapping_for(&self, substream: Decided) -> Mapping {
        let hashed = self.keys.mapping_for(&self.plan, substream);
        with_pinned_keys(self.cached.released.pins(), hashed, substream, &self.plan)
    }

    /// The open substream of this number, not before the oldest.
    pub(crate) fn open_substream(&mut self, number: u64) -> &mut OpenSubstream {
        let index = (number - self.number) as usize;
        while self.open.len() <= index {
            // An event may come ahead of the clock; who is pinned there was decided before (PRIVACY.md: rule 33).
            let next = self.number + self.open.len() as u64;
            planted!(fault::opened(&mut self.cached, next, &self.plan));
            self.open
                .push_back(OpenSubstream::new(&self.plan, self.mapping_for(self.decided_substream(next))));
        }
        &mut self.open[index]
    }

    /// The first word of the clock: the stream begins in the substream of this time. Before it nothing was counted and nothing
    /// released, so there is nothing to give up.
    pub(crate) fn begin_at(&mut self, watermark: u64) {
        self.number = watermark / self.plan.substream_len();
        let reference = self.cached.released.mapping().clone();
        self.cached = nothing_released(Pins::new(&self.plan, self.number), reference);
        let first = self.mapping_for(self.decided_substream(self.number));
        self.open = VecDeque::from([OpenSubstream::new(&self.plan, first)]);
        (self.time.start, self.time.now) = (Some(watermark), watermark);
    }

    /// A jump of the clock: everything before the substream of this number has left what is retained, and is given up unsealed.
    /// What this stream decided and found before goes on: events may be counted by those decisions, and all of it follows from
    /// what this stream itself released.
    pub(crate) fn jump_to(&mut self, number: u64) {
        // Never sealed: the clock alone says what a jump passes over, and nobody would see it (PRIVACY.md: rule 6).
        let given_up = (number - self.number).min(self.open.len() as u64);
        self.open.drain(..given_up as usize);
        self.number = number;
        if let Some(search_plan) = self.plan.search_plan() {
            self.searches = self.searches.split_off(&search_plan.number_at(number));
        }
        let released = &self.cached.released;
        // Sums of counters that are no longer kept decide nothing (PRIVACY.md: rule 38).
        let found = Arc::new(released.found().without_substreams());
        let pins = released.pins().kept_since(number, &self.plan);
        planted!(let pins = fault::jumped(pins, !self.open.is_empty(), &self.plan));
        let pins = Arc::new(pins);
        let nothing = Released::new(Vec::new(), released.mapping().clone()).with_found(found);
        self.cached = Arc::new(CachedRelease::new(nothing.with_pins(pins)));
        self.levels = Arc::new(Levels::first(&self.plan));
        if self.open.is_empty() {
            self.open
                .push_back(OpenSubstream::new(&self.plan, self.mapping_for(self.decided_substream(number))));
        }
    }

    pub(crate) fn release_sealed(&mut self, sealed: Vec<(usize, SealedSketch)>, found: Option<Keys>) {
        let open = self.open.front().expect("a substream is always open");
        let (mapping, capped) = (open.mapping(), open.capped_events(&self.plan));
        let running = match self.cached.released.substream(self.number) {
            Some(substream) => substream.with_sketches(sealed, &self.plan),
            None => {
                SealedSubstream::new(self.number, mapping.without_pins()).with_sketches(sealed, &self.plan)
            }
        };
        let running = running.with_capped(capped).with_levels(Arc::clone(&self.levels));
        planted!(let running = fault::released(running));
        // What has left the retention goes now, so that the list below follows from what is kept (PRIVACY.md: rule 38).
        let oldest = self.time.now.saturating_sub(self.plan.retained_len());
        let is_kept = |number: u64| oldest < (number + 1) * self.plan.substream_len();
        let before =
            self.cached.released.substreams().iter().filter(|s| s.number != self.number && is_kept(s.number));
        let mut substreams: Vec<_> = before.cloned().collect();
        substreams.push(Arc::new(running));
        let listed = self.list_after_seal(&substreams, found);
        let pins = self.cached.released.pins();
        let pins = match self.plan.pinned() {
            0 => Arc::clone(pins),
            _ => Arc::new(pins.kept_since(substreams[0].number, &self.plan)),
        };
        self.cached = Arc::new(self.cached.after_seal(substreams, listed, pins));
    }

    /// Makes found keys readable where nothing is sealed with them.
    pub(crate) fn list_found(&mut self, found: &Keys) {
        let (released, by) = (&self.cached.released, self.keys.mapper.fingerprint_key);
        let counter = FoundCounter { plan: &self.plan, pins: released.pins() };
        let listed = Arc::new(released.found().with_counted(found, released.substreams(), counter, by));
        let (substreams, pins) = (released.substreams().to_vec(), Arc::clone(released.pins()));
        self.cached = Arc::new(self.cached.after_seal(substreams, listed, pins));
    }

    /// The list of found keys after these substreams were sealed and these keys came out.
    fn list_after_seal(&self, substreams: &[Arc<SealedSubstream>], found: Option<Keys>) -> Arc<FoundKeys> {
        let (released, found) = (&self.cached.released, found.unwrap_or(Keys::Range(0)));
        if self.plan.search_plan().is_none() {
            return Arc::clone(released.found());
        }
        let counter = FoundCounter { plan: &self.plan, pins: released.pins() };
        Arc::new(released.found().after_seal(&found, released.substreams(), substreams, counter))
    }
}

/// What a stream shows that begins with these pins: nothing is sealed or found.
fn nothing_released(pins: Pins, mapping: Mapping) -> Arc<CachedRelease> {
    Arc::new(CachedRelease::new(Released::new(Vec::new(), mapping).with_pins(Arc::new(pins))))
}

/// The mapping of a substream with counters of their own for the keys that are pinned there.
fn with_pinned_keys(pins: &Pins, hashed: Mapping, substream: Decided, plan: &Plan) -> Mapping {
    let slots = || Arc::new(pins.index_slots(substream));
    Mapping { pinned: (0 < plan.pinned()).then(slots), ..hashed }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::bytes::codec::Writer;
    use crate::decide::decision::decide;
    use crate::item::domain::{Domain, SearchSettings};
    use crate::item::keys::Keys;
    use crate::item::value::Kind;
    use crate::plan::search::ListLimits;
    use crate::plan::settings::{
        Clock, CounterLayout, Method, PaperMethod, Settings, SubstreamLen, TimeWindow, TunedMethod, Unit,
        Window,
    };
    use crate::privacy::parameters::{Delta, Epsilon};
    use crate::store::memory::MemoryStore;

    fn sketch() -> DpswSketch {
        let method =
            TunedMethod { substreams: 5, counters: CounterLayout::Identity, ..TunedMethod::default() };
        let settings = Settings {
            window: Window::Items(50),
            unit: Unit::ReplaceOne,
            epsilon: Epsilon::new(1.0).expect("in range"),
            delta: None,
            domain: Domain::Public(Keys::Range(4)),
            method: Some(Method::Tuned(method)),
            retention: 1,
        };
        DpswSketch::with_noise(Plan::new(settings).expect("a valid plan"), Noise::off())
            .expect("noise is off")
    }

    #[test]
    fn without_randomness_nothing_is_sealed_and_no_item_is_lost() {
        let mut sketch = sketch();
        sketch.noise = Noise::failing();
        for accepted in [10, 0] {
            let error = sketch.extend(Batch::integers(&[1; 14])).expect_err("no randomness");
            let IngestError::Entropy { accepted: got, .. } = error else { panic!("{error}") };
            assert_eq!(got, accepted);
            assert_eq!(sketch.position(), 10);
            assert_eq!(sketch.view().covered(), 10..10);
        }
        sketch.noise = Noise::off();
        sketch.extend(Batch::integers(&[1; 4])).expect("randomness is back");
        assert_eq!(sketch.position(), 14);
        assert_eq!(sketch.view().covered(), 0..10);
        // Ten are sealed, four are predicted.
        assert_eq!(sketch.view().frequency(1).expect("a key").value, 14.0);
        assert!(DpswSketch::with_noise(sketch.plan().clone(), Noise::failing()).is_err());
    }

    #[test]
    fn a_failed_seal_leaves_the_older_substreams_answering() {
        let mut sketch = sketch();
        sketch.extend(Batch::integers(&[1; 19])).expect("valid items");
        sketch.noise = Noise::failing();
        assert!(sketch.extend(Batch::integers(&[1])).is_err());
        assert_eq!(sketch.view().covered(), 0..10);
        assert_eq!(sketch.view().frequency(1).expect("a key").value, 20.0);
    }

    /// Substreams of ten items, searches of four; without noise a key is found from this count on: nine.
    fn finding(list: usize) -> (DpswSketch, usize) {
        let counters = CounterLayout::Hashed { rows: 2, columns: 32 };
        let search_plan = SearchSettings { search_len: Some(4), ..SearchSettings::new(Kind::Integers) };
        let settings = Settings {
            epsilon: Epsilon::new(30.0).expect("in range"),
            delta: Delta::new(1e-9).ok(),
            domain: Domain::Found(search_plan),
            method: Some(Method::Tuned(TunedMethod { substreams: 5, counters, ..TunedMethod::default() })),
            ..sketch().plan().settings().clone()
        };
        let plan = Plan::new(settings).expect("a valid plan");
        let plan = plan.with_list(ListLimits { keys: list, bytes: 1000 });
        let least = plan.search_plan().expect("keys are found").threshold() as usize + 3;
        (DpswSketch::with_noise(plan, Noise::off()).expect("noise is off"), least)
    }

    fn found(sketch: &DpswSketch) -> Vec<String> {
        let mut keys: Vec<String> =
            sketch.cached.released.found().keys().iter().map(|key| key.to_string()).collect();
        keys.sort();
        keys
    }

    #[test]
    fn without_randomness_no_key_is_looked_at() {
        let (mut sketch, least) = finding(9);
        let secret = |sketch: &DpswSketch| {
            let mut writer = Writer::new(b"TESTTEST", 1);
            sketch.searches.values().for_each(|search| search.write_to(&mut writer));
            writer.finish()
        };
        sketch.extend(Batch::integers(&[7; 10])).expect("valid items");
        sketch.extend(Batch::integers(&[7; 9])).expect("valid items");
        let before = (found(&sketch), sketch.view().covered());
        sketch.noise = Noise::failing();
        assert!(sketch.extend(Batch::integers(&[8])).is_err());
        let counted = secret(&sketch);
        for _ in 0..3 {
            assert!(sketch.extend(Batch::integers(&[8])).is_err());
            assert_eq!((found(&sketch), sketch.view().covered()), before);
            assert!(secret(&sketch) == counted, "no noise was drawn");
        }
        sketch.noise = Noise::off();
        sketch.extend(Batch::integers(&[])).expect("nothing");
        sketch.extend(Batch::integers(&[9])).expect("randomness is back");
        assert!(least <= 19);
        assert_eq!((found(&sketch), sketch.view().covered()), (vec!["7".to_owned()], 0..20));
    }

    #[test]
    fn the_list_keeps_the_largest_and_what_left_it_is_found_again_in_a_later_search() {
        let (mut sketch, least) = finding(1);
        assert!(least <= 10, "{least}");
        sketch.extend(Batch::integers(&[7; 10])).expect("valid items");
        assert_eq!(found(&sketch), ["7"]);
        sketch.extend(Batch::integers(&[8; 20])).expect("valid items");
        assert_eq!(found(&sketch), ["8"], "twenty against ten");
        sketch.extend(Batch::integers(&[7; 10])).expect("valid items");
        assert_eq!(found(&sketch), ["8"], "7 came out in this search");
        sketch.extend(Batch::integers(&[7; 40])).expect("valid items");
        assert_eq!(found(&sketch), ["7"]);
    }

    /// The same with this many keys pinned.
    fn pinning(list: usize, pinned: u32, levels: u32) -> DpswSketch {
        let counters = CounterLayout::Hashed { rows: 2, columns: 32 };
        let method = TunedMethod { substreams: 5, counters, pinned, levels, ..TunedMethod::default() };
        let settings = Settings {
            method: Some(Method::Tuned(method)),
            window: Window::Items(200),
            ..finding(list).0.plan().settings().clone()
        };
        let plan =
            Plan::new(settings).expect("a valid plan").with_list(ListLimits { keys: list, bytes: 1000 });
        DpswSketch::with_key(plan, StreamKey::from_bytes([3; 32]), Noise::off())
    }

    /// A key with counters of its own is seen in no hashed ones: without those of its own a rare key would take its place in the
    /// list.
    #[test]
    fn a_found_key_stays_listed_while_it_is_pinned() {
        for levels in [1, 3] {
            let mut sketch = pinning(1, 2, levels);
            let by = sketch.keys.mapper.fingerprint_key;
            let item = |i: u64| if i % 10 < 6 { 7 } else { 100 + i / 40 };
            for step in 0..80_u64 {
                let items: Vec<u64> = (40 * step..40 * (step + 1)).map(item).collect();
                sketch.extend(Batch::integers(&items)).expect("valid items");
                assert_eq!(found(&sketch), ["7"], "step {step}");
                let sums = sketch.cached.released.found().sums();
                assert!(step < 5 || (100..180).contains(&sums[0]), "step {step}: {sums:?}");
            }
            assert!(sketch.cached.released.pins().slot_at(by.hash_integer(7), 80).is_some());
        }
    }

    /// Keys come and go so fast that all pins are in use.
    #[test]
    fn a_sketch_with_pinned_keys_holds_no_more_than_planned() {
        for (levels, pinned) in [(1, 8), (3, 8), (3, 40)] {
            let mut sketch = pinning(20, pinned, levels);
            let mut pins_most = 0;
            for step in 0..200_u64 {
                let items: Vec<u64> = (0..13).map(|i| step / 6 * 2 + i % 3).collect();
                sketch.extend(Batch::integers(&items)).expect("valid items");
                let released = &sketch.cached.released;
                let places = |s: &Arc<SealedSubstream>| 4 * s.levels().listed_keys().count();
                let cells = |s: &Arc<SealedSubstream>| -> usize {
                    s.sketches().iter().map(|(_, sketch)| 2 * sketch.cells().len()).sum()
                };
                let sealed: usize = released.substreams().iter().map(|s| cells(s) + places(s)).sum();
                let arrays = sketch
                    .open
                    .iter()
                    .map(|open| open.open_segments().count() + open.running_ranges().count());
                let open = 4 * arrays.sum::<usize>() * sketch.plan.counters_len();
                let pins = released.pins().iter().len();
                let found = released.found().keys().len() * 16;
                let held = sealed + open + 16 * pins + found;
                assert!(
                    held as u64 <= sketch.plan.sketch_bytes(),
                    "{held} of {}",
                    sketch.plan.sketch_bytes()
                );
                assert!(pins <= sketch.plan.pins_max());
                pins_most = pins_most.max(pins);
            }
            assert!(pinned != 8 || pins_most == sketch.plan.pins_max(), "{pins_most}");
        }
    }

    /// What is pinned next does not depend on when the list got its keys, which a restored stream does not know.
    #[test]
    fn a_stream_that_forgets_what_it_worked_out_pins_the_same_keys() {
        for (list, levels) in [(3, 1), (5, 3)] {
            let [mut one, mut other] = [pinning(list, 2, levels), pinning(list, 2, levels)];
            let mut seen = BTreeSet::new();
            for step in 0..120_u64 {
                let item = |i: u64| (i * i + step / 6) % 11 % 5 + (step / 17) % 3;
                let items: Vec<u64> = (20 * step..20 * (step + 1)).map(item).collect();
                for sketch in [&mut one, &mut other] {
                    sketch.extend(Batch::integers(&items)).expect("valid items");
                }
                other.decider = Decider::default();
                assert!(one.view().to_bytes() == other.view().to_bytes(), "step {step}");
                seen.extend(one.cached.released.pins().iter().map(|(key, _, _)| key));
            }
            assert!(2 < seen.len(), "{seen:?}");
        }
    }

    /// Plan and release decide, and nothing that was decided or worked out before: not even of another stream.
    #[test]
    fn decisions_follow_from_plan_and_release_alone() {
        let window = TimeWindow { len: 256, lateness: 20, clock: Clock::Caller, expected_items: 256 };
        let levels = levels(Window::Time(window)).0.plan().settings().clone();
        let counters = CounterLayout::Hashed { rows: 2, columns: 32 };
        let method = TunedMethod { substreams: 4, counters, pinned: 4, levels: 3, ..TunedMethod::default() };
        let pinned = levels.clone().with_method(method);
        for settings in [levels, pinned] {
            let plan = Plan::new(settings).expect("a plan");
            let (mut decider, mut decisions) = (Decider::default(), Vec::new());
            for first in [1, 7] {
                let noise = Noise::seeded(first);
                let mut sketch = DpswSketch::with_key(plan.clone(), StreamKey::from_bytes([3; 32]), noise);
                sketch.advance(0).expect("a clock");
                for step in 0..40_u64 {
                    // Once, the clock jumps over all that is kept.
                    let now = 32 * step + if step < 20 { 0 } else { 5000 };
                    sketch.advance(now).expect("a clock");
                    let item = first + step / 9;
                    sketch.extend(Batch::integers(&[item; 150]).at(&[now; 150])).expect("in time");
                    let released = &sketch.cached.released;
                    let decision = decide(&plan, released);
                    assert_eq!(decider.decide(&plan, released), decision, "step {step}");
                    decisions.push(decision);
                }
            }
            decisions.dedup();
            assert!(10 < decisions.len(), "{}", decisions.len());
        }
    }

    /// Sums are carried on from seal to seal, and added up anew when a view is loaded.
    #[test]
    fn the_sums_of_a_loaded_list_are_those_of_the_live_one() {
        let (paper, _) = finding(9);
        let paper = |retention| Settings {
            method: Some(Method::Paper(PaperMethod {
                substream: SubstreamLen::PerWindow(5),
                counters: CounterLayout::Hashed { rows: 2, columns: 32 },
                ..PaperMethod::default()
            })),
            retention,
            ..paper.plan().settings().clone()
        };
        // A window that is no multiple of a substream leaves one while the next is running.
        let pinning = [1, 3].map(|levels| pinning(9, 2, levels).plan().settings().clone());
        let pinning = pinning.map(|settings| Settings { window: Window::Items(45), ..settings });
        let plans = [paper(1), paper(2)].into_iter().chain(pinning).map(Plan::new);
        let plans: Vec<Plan> = plans.collect::<Result<_, _>>().expect("valid plans");
        for plan in [finding(9).0.plan().clone()].into_iter().chain(plans) {
            let mut sketch = DpswSketch::with_noise(plan, Noise::seeded(2)).expect("seeded");
            for step in 0..40_u64 {
                let items: Vec<u64> = (0..7).map(|i| (step / 9 + i / 5) % 6).collect();
                sketch.extend(Batch::integers(&items)).expect("valid items");
                let loaded = WindowView::from_bytes(&sketch.view().to_bytes()).expect("valid bytes");
                assert_eq!(loaded.cached.released.found(), sketch.cached.released.found(), "{step}");
            }
            assert!(1 < found(&sketch).len());
        }
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
            DpswSketch::with_noise(Plan::new(settings).expect("a valid plan"), Noise::off()).expect("off");
        let items: Vec<Trap> = (0..300).map(Trap).collect();
        let caught =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sketch.extend(Batch::bytes(&items))));
        assert!(caught.is_err());
        let taken = sketch.position();
        sketch.extend(Batch::bytes(&vec!["b"; (1000 - taken) as usize])).expect("valid items");
        assert_eq!(sketch.view().frequency("a").expect("a key").value, taken as f64);
    }

    #[test]
    fn a_sketch_in_another_process_takes_nothing() {
        let mut sketch = sketch();
        sketch.owner += 1;
        let forked = IngestError::Forked { owner: sketch.owner };
        assert_eq!(sketch.extend(Batch::integers(&[1; 14])), Err(forked.clone()));
        assert_eq!(sketch.advance(5), Err(forked.clone()));
        assert_eq!(sketch.position(), 0);
        let saved =
            sketch.save(&crate::stream::state::StateKey::from_bytes([1; 32]), &mut MemoryStore::default());
        assert_eq!(saved, Err(crate::error::StateError::Ingest(forked)));
    }

    #[test]
    fn debug_output_shows_no_counts_and_no_keys() {
        let mut sketch = sketch();
        sketch.extend(Batch::integers(&[3; 9])).expect("valid items");
        let text = format!("{:?} {:?} {:?}", sketch.open, sketch.keys, sketch.noise);
        let wanted = "[OpenSubstream] HashKeys { stream: StreamKey, mapper: Mapper { fingerprint_key: FingerprintKey, \
            index: None } } Noise(Reproducible)";
        assert_eq!(text, wanted);
        let before = format!("{sketch:?}");
        assert!(before.starts_with("DpswSketch { settings: Settings {"), "{before}");
        sketch.extend(Batch::integers(&[3; 5])).expect("valid items");
        assert_eq!(format!("{sketch:?}"), before);
    }

    #[test]
    fn a_seal_that_failed_is_made_up_for_when_the_clock_says_the_same_time_again() {
        let mut settings = sketch().plan().settings().clone();
        settings.window =
            Window::Time(TimeWindow { len: 100, lateness: 0, clock: Clock::Caller, expected_items: 1000 });
        let mut sketch =
            DpswSketch::with_noise(Plan::new(settings).expect("a valid plan"), Noise::off()).expect("off");
        sketch.advance(1000).expect("a clock");
        sketch.extend(Batch::integers(&[1; 3]).at(&[1005; 3])).expect("in time");
        sketch.noise = Noise::failing();
        assert!(sketch.advance(1020).is_err());
        assert_eq!((sketch.position(), sketch.view().covered()), (1020, 1020..1020));
        sketch.noise = Noise::off();
        sketch.advance(1020).expect("randomness is back");
        assert_eq!((sketch.position(), sketch.view().covered()), (1020, 1000..1020));
        assert_eq!(sketch.view().frequency(1).expect("a key").value, 3.0);
    }

    #[test]
    fn a_jump_of_the_clock_gives_up_the_searches_that_it_passes_and_no_others() {
        let mut settings = sketch().plan().settings().clone();
        settings.window =
            Window::Time(TimeWindow { len: 100, lateness: 100, clock: Clock::Caller, expected_items: 1000 });
        settings.delta = Delta::new(1e-9).ok();
        settings.domain =
            Domain::Found(SearchSettings { search_len: Some(2), ..SearchSettings::new(Kind::Integers) });
        let counters = CounterLayout::Hashed { rows: 2, columns: 8 };
        settings.method =
            Some(Method::Tuned(TunedMethod { substreams: 5, counters, ..TunedMethod::default() }));
        let mut sketch =
            DpswSketch::with_noise(Plan::new(settings).expect("a valid plan"), Noise::off()).expect("off");
        sketch.advance(1000).expect("a clock");
        // Substreams of twenty ticks, in pairs: 50 and 51, then 54 and 55.
        sketch.extend(Batch::integers(&[1, 1]).at(&[1000, 1100])).expect("in time");
        assert!(sketch.searches.keys().eq(&[25, 27]));
        sketch.jump_to(54);
        assert!(sketch.searches.keys().eq(&[27]));
    }

    #[test]
    fn a_batch_says_how_many_items_were_counted() {
        let taken = sketch().extend(Batch::integers(&[1; 14])).expect("valid items");
        assert_eq!(taken, Taken { counted: 14, ..Taken::default() });
        let mut settings = sketch().plan().settings().clone();
        settings.domain = Domain::Public(Keys::text(["a", "b"]));
        let mut sketch =
            DpswSketch::with_noise(Plan::new(settings).expect("a valid plan"), Noise::off()).expect("off");
        let taken = sketch.extend(Batch::bytes(&["a"; 2 * HASHED_AT_ONCE + 1])).expect("valid items");
        assert_eq!(taken.counted, 2 * HASHED_AT_ONCE + 1);
    }

    #[test]
    fn a_name_has_one_number_in_all_sketches_of_a_key() {
        let with_key = |key: u8| {
            DpswSketch::with_key(sketch().plan().clone(), StreamKey::from_bytes([key; 32]), Noise::off())
        };
        let number = |key, name: &str| with_key(key).user(name.as_bytes());
        assert_eq!(number(1, "ann"), number(1, "ann"));
        assert_ne!(number(1, "ann"), number(1, "bob"));
        assert_ne!(number(1, "ann"), number(2, "ann"));
    }

    #[test]
    fn each_seal_has_noise_of_its_own() {
        // Two substreams with the same items: 4,000 counters agree in all noise with probability below 0.3^4000.
        let mut settings = sketch().plan().settings().clone();
        settings.domain = Domain::Public(Keys::Range(4000));
        let plan = Plan::new(settings).expect("a valid plan");
        let mut sketch = DpswSketch::new(plan).expect("the system has randomness");
        sketch.extend(Batch::integers(&[3; 20])).expect("valid items");
        let cells = |number| {
            sketch.cached.released.substream(number).and_then(|s| s.sketch(0)).map(SealedSketch::cells)
        };
        assert!(cells(0).is_some());
        assert_ne!(cells(0), cells(1));
    }

    /// Substreams of 64 items, in up to eight slices; 0 comes most of the time, 1 in every second substream.
    fn levels(window: Window) -> (DpswSketch, Vec<u64>) {
        let method = TunedMethod {
            substreams: 4,
            counters: CounterLayout::Identity,
            levels: 4,
            ..TunedMethod::default()
        };
        let settings = Settings {
            epsilon: Epsilon::new(4.0).expect("in range"),
            domain: Domain::Public(Keys::Range(40)),
            method: Some(Method::Tuned(method)),
            retention: 3,
            window,
            ..sketch().plan().settings().clone()
        };
        let plan = Plan::new(settings).expect("a valid plan");
        assert_eq!(plan.substream_len(), 64);
        let item = |i: u64| match i * i % 7 {
            0..3 => 0,
            _ if i / 64 % 2 == 1 => 1,
            _ => 2 + i * i * i % 38,
        };
        (DpswSketch::with_noise(plan, Noise::off()).expect("noise is off"), (0..1024).map(item).collect())
    }

    fn check_slices(sketch: &DpswSketch, items: &[u64], end: u64) {
        for substream in sketch.cached.released.substreams() {
            for place in 0..40 {
                let level = substream.levels().level_of(place);
                let mut slices = 0;
                for (range, planned) in sketch.plan.ranges().iter().enumerate() {
                    let slice = substream.count_in_slice(place, range, &sketch.plan);
                    let Range { start, end: planned_end } = planned.offsets();
                    let origin = substream.number * 64;
                    let span = (origin + start).min(end)..(origin + planned_end).min(end);
                    let exact =
                        span.clone().filter(|&i| items[i as usize] == u64::from(place)).count() as i64;
                    if sketch.plan.levels().level_of(range) == level {
                        slices += u32::from(slice.is_some());
                        assert_eq!(slice.unwrap_or(exact), exact, "{place} in {span:?}");
                        assert_eq!(slice.is_some(), !span.is_empty(), "{place} in {span:?}");
                    } else {
                        assert!(slice.is_none_or(|slice| slice == 0), "{place} counts twice in {span:?}");
                    }
                }
                assert!(0 < slices);
            }
        }
    }

    #[test]
    fn every_item_counts_in_one_slice_of_its_key() {
        let (mut sketch, items) = levels(Window::Items(256));
        sketch.extend(Batch::integers(&items)).expect("valid items");
        check_slices(&sketch, &items, 1024);
        let last = sketch.cached.released.substreams().last().expect("sealed").levels();
        assert!(1 < last.level_of(0) && last.level_of(4) == 0, "{last:?}");
        let first = Levels::first(&sketch.plan);
        assert_eq!((first.level_of(0), first.level_of(3)), (1, 1), "nothing is known at first");
    }

    #[test]
    fn a_stream_that_is_over_inside_a_slice_seals_what_is_open_of_each_key() {
        for end in [1, 3, 8, 15, 16, 40, 64, 65, 100, 511, 700, 705, 1000] {
            let (mut sketch, items) = levels(Window::Items(256));
            sketch.extend(Batch::integers(&items[..end])).expect("valid items");
            let cached = sketch.finish().expect("noise is off").cached;
            let (mut sketch, _) = levels(Window::Items(256));
            sketch.cached = cached;
            check_slices(&sketch, &items, end as u64);
        }
    }

    #[test]
    fn late_and_early_events_end_in_one_slice_of_their_key() {
        let window =
            Window::Time(TimeWindow { len: 256, lateness: 20, clock: Clock::Caller, expected_items: 256 });
        let (mut sketch, items) = levels(window);
        sketch.advance(0).expect("a clock");
        for (now, block) in items.chunks(20).enumerate() {
            // The newest of a block first, and two blocks ahead of the clock.
            let start = 20 * now as u64;
            let mut order: Vec<u64> = (start..start + block.len() as u64).collect();
            order.reverse();
            let batch: Vec<u64> = order.iter().map(|&i| items[i as usize]).collect();
            let taken = sketch.extend(Batch::integers(&batch).at(&order)).expect("in time");
            assert_eq!(taken.counted, block.len());
            sketch.advance(start.saturating_sub(20)).expect("a clock");
        }
        sketch.advance(1024).expect("a clock");
        check_slices(&sketch, &items, 1024);
    }
}
