//! Mistakes that tests plant in the real path, to see that the audit catches them. Each function below is one seam: what
//! becomes of one thing if a mistake is planted on this thread.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use chacha20::ChaCha20Legacy;
use chacha20::cipher::StreamCipherSeek;
use zeroize::Zeroizing;

use crate::item::keys::Keys;
use crate::item::mapping::Mapping;
use crate::item::run::Run;
use crate::item::value::{Item, Kind};
use crate::noise::generator::{Generator, Noise};
use crate::noise::law::Law;
use crate::plan::range::WHOLE;
use crate::plan::search::SearchPlan;
use crate::plan::settings::Unit;
use crate::plan::structure::Plan;
use crate::ratio::Ratio;
use crate::sealed::found::FoundKey;
use crate::sealed::levels::Levels;
use crate::sealed::pins::Pins;
use crate::sealed::released::Released;
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;
use crate::secret::caps::Caps;
use crate::secret::counters::Counters;
use crate::secret::key_counts::KeyState;
use crate::secret::partial::Segments;
use crate::secret::substream::OpenSubstream;
use crate::stream::worker::Outside;
use crate::testing::replay::tape;
use crate::view::cached_release::CachedRelease;
use crate::view::estimate::Estimate;

/// One mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    /// Every draw is halved.
    HalfNoise,
    /// Sealed counters are exact.
    NoNoise,
    /// Replace-one streams get the noise of add/remove streams.
    AddRemoveNoise,
    /// Users get the noise of a window of two substreams, however many it has.
    FewSubstreams,
    /// The sketches spend the whole ε, although keys are found as well.
    WholeTwice,
    /// Two seals in a row use one key.
    SharedNoise,
    /// A key has 16 random bits.
    SmallSeed,
    /// The key of a seal is derived from what a saved state holds: the counters sealed before it.
    SeedInState,
    /// The same random words are used for every 1,024 counters.
    ReusedWords,
    /// Of the items of a batch all but the first count twice.
    CountedTwice,
    /// One event outside the range of a worker has all others refused.
    RefusedPartial,
    /// Answers draw new noise for each question.
    NoisePerQuestion,
    /// Restored streams draw new noise for what was sealed.
    NoiseAfterRestore,
    /// Answers count what is still open.
    OpenAnswers,
    /// Totals are exact where they are private.
    ExactTotals,
    /// Error bounds hold the exact total where it is private.
    ExactBound,
    /// Keys come out from half of the threshold on.
    LowThreshold,
    /// Keys come out one below the threshold.
    ReachedThreshold,
    /// All checks of a search have the lasting noise of a key and no other.
    OneNoise,
    /// A key gets its lasting noise again at every check.
    LastingNoisePerCheck,
    /// A key gets its lasting noise again after a restore.
    LastingNoiseAfterRestore,
    /// A key that came out is looked at again when it has left the list.
    LooksAgain,
    /// Found keys are listed in their own order.
    PlainOrder,
    /// A search looks at the first few keys alone.
    FirstKeysCap,
    /// A map with more than a few keys is taken for a summary.
    SummaryWhenFull,
    /// The rounds in which a summary was lowered are forgotten.
    PlainSummary,
    /// A summary is reduced by the items that were not null.
    SummaryOfKnown,
    /// Who sent an item in the substream before, other than a null item, does not count in this one.
    SlidingCap,
    /// An item over a user's cap takes no position.
    ShiftedPositions,
    /// Which keys are cut finely follows from what their substream has counted so far.
    OpenLevels,
    /// The slices of a substream are sealed again with its end.
    SlicesTwice,
    /// Users may send as much in every slice as in a substream.
    CapPerSlice,
    /// Pinned keys count in the rows as well.
    PinnedTwice,
    /// Who is pinned follows from what was counted, open substreams included, without noise.
    OpenPins,
    /// Nobody is pinned in a substream that an event opens ahead of the clock.
    EarlyPins,
    /// The counters of pinned keys get half of their noise.
    HalfOwnNoise,
    /// A stream that is over seals again what was sealed before.
    FinishedTwice,
    /// A stream is over where the newest substream that is open ends.
    FinishedByOpen,
    /// When a stream is over, the slices that are open get no noise.
    QuietSlicesAtFinish,
    /// When a stream is over, what is left of its last substream gets no noise.
    QuietWholeAtFinish,
    /// A stream that was resumed gets no noise.
    QuietAfterResume,
    /// A stream whose clock jumped gets no noise.
    QuietAfterJump,
    /// A stream that begins inside a substream gets no noise.
    QuietWhereBegun,
    /// A stream that absorbed partial counters gets no noise.
    QuietOnceAbsorbed,
    /// Keys that come out with an odd count are not listed.
    ListedByCounts,
    /// A jump of the clock drops all pins, unless an event opened the substream where it lands.
    JumpedPins,
}

/// Keys of the mistakes with few of them.
pub(crate) const FEW_KEYS: usize = 8;

/// Exact counters and the law of their noise.
type Exact = (Vec<i32>, Law);

/// Users whose items count.
type Users = HashSet<u64>;

thread_local! {
    static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
    static LAST_KEY: Cell<Option<[u8; 32]>> = const { Cell::new(None) };
    static GENERATOR: RefCell<Generator> =
        RefCell::new(Noise::from_system().generator().expect("the system has randomness"));
    /// By the first noisy counters.
    static EXACT: RefCell<HashMap<Vec<i32>, Exact>> = RefCell::default();
    /// By where a sealed sketch lies: what it is known by, and its exact total.
    static TOTALS: RefCell<HashMap<usize, (Vec<i32>, u64)>> = RefCell::default();
    static OPEN: RefCell<Option<(Mapping, Vec<i32>)>> = const { RefCell::new(None) };
    /// The first counters of the newest sealed sketch, and how many keys were derived from them.
    static NEWEST: RefCell<(Vec<i32>, u64)> = RefCell::default();
    /// Of the substream before and of this one.
    static SENT: RefCell<[Users; 2]> = RefCell::default();
    /// What was counted since it was last decided who is pinned, by fingerprint.
    static COUNTED: RefCell<HashMap<u64, u64>> = RefCell::default();
    /// How many items of the last batch count.
    static ADMITTED: Cell<usize> = const { Cell::new(0) };
    /// Whether the stream gets no noise from now on.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

fn is(fault: Fault) -> bool {
    PLANTED.get() == Some(fault)
}

/// Runs something with a mistake planted.
pub(crate) fn planted<T>(fault: Fault, run: impl FnOnce() -> T) -> T {
    PLANTED.set(Some(fault));
    let result = run();
    PLANTED.set(None);
    EXACT.take();
    TOTALS.take();
    OPEN.take();
    NEWEST.take();
    SENT.take();
    COUNTED.take();
    LAST_KEY.take();
    QUIET.take();
    result
}

/// A stream begins, or is read from a state.
pub(crate) fn begins() {
    QUIET.set(false);
}

/// A stream goes where it may get no noise from now on.
fn goes(where_quiet: Fault) {
    if is(where_quiet) {
        QUIET.set(true);
    }
}

/// Partial counters were absorbed.
pub(crate) fn absorbed() {
    goes(Fault::QuietOnceAbsorbed);
}

/// The clock jumped.
pub(crate) fn clock_jumped() {
    goes(Fault::QuietAfterJump);
}

/// A stream was resumed.
pub(crate) fn resumed() {
    goes(Fault::QuietAfterResume);
}

/// A stream begins inside a substream.
pub(crate) fn begun_inside() {
    goes(Fault::QuietWhereBegun);
}

/// Counters before they get their noise.
pub(crate) fn exact(counters: &[i32]) -> Vec<i32> {
    counters.to_vec()
}

/// What becomes of the generator of a seal.
pub(crate) fn generator(generator: Generator) -> Generator {
    if QUIET.get() { generator.silenced() } else { generator }
}

/// What becomes of the generator of a range that is sealed because its stream is over.
pub(crate) fn short(generator: Generator, range: usize) -> Generator {
    let quiet = if range == WHOLE { Fault::QuietWholeAtFinish } else { Fault::QuietSlicesAtFinish };
    if is(quiet) { generator.silenced() } else { generator }
}

/// What becomes of keys that come out with these counts.
pub(crate) fn found(found: Keys, kind: Kind, counts: &tape::Counts) -> Keys {
    if !is(Fault::ListedByCounts) {
        return found;
    }
    let is_odd =
        |item: &Item<'_>| counts.iter().any(|(key, count)| *key == tape::name(*item) && count % 2 == 1);
    Keys::collect_kind(kind, found.iter().filter(|item| !is_odd(item)))
}

/// What a jump of the clock leaves of pins; `is_open` where an event opened the substream in which it lands.
pub(crate) fn jumped(pins: Pins, is_open: bool, plan: &Plan) -> Pins {
    if is(Fault::JumpedPins) && !is_open { Pins::new(plan, pins.horizon().range().start) } else { pins }
}

/// What becomes of a plan.
pub(crate) fn planned(plan: Plan) -> Plan {
    let unit = plan.settings().unit;
    let touched = plan.settings().window.len().div_ceil(plan.substream_len()) + 1;
    match PLANTED.get() {
        Some(Fault::AddRemoveNoise) if unit == Unit::ReplaceOne => plan.with_laws(|_, law| scaled(law, 1, 2)),
        Some(Fault::FewSubstreams) if unit.per_substream().is_some() => {
            plan.with_laws(|_, law| scaled(law, touched.min(3), touched))
        }
        Some(Fault::HalfOwnNoise) if 0 < plan.pinned() => {
            plan.with_laws(|plan, law| if law == plan.own_law() { scaled(law, 1, 2) } else { law })
        }
        Some(Fault::WholeTwice) => match plan.settings().domain.search().and_then(|keys| keys.share) {
            Some(share) => {
                let (taken, of) = (share.numerator(), share.denominator());
                plan.with_laws(|_, law| scaled(law, of - taken, of))
            }
            None => plan,
        },
        _ => plan,
    }
}

/// The noise for a part of the changes.
fn scaled(law: Law, changes: u64, of: u64) -> Law {
    match law {
        Law::Laplace { scale } => {
            let scale = Ratio::new(scale.numerator() * changes, scale.denominator() * of);
            Law::Laplace { scale: scale.expect("not zero") }
        }
        Law::Gaussian { variance } => Law::Gaussian { variance: variance * changes / of },
    }
}

/// What becomes of the key of a generator.
pub(crate) fn key(mut key: Zeroizing<[u8; 32]>) -> Zeroizing<[u8; 32]> {
    match PLANTED.get() {
        Some(Fault::SmallSeed) => key[2..].fill(0),
        Some(Fault::SharedNoise) => match LAST_KEY.take() {
            Some(last) => *key = last,
            None => LAST_KEY.set(Some(*key)),
        },
        Some(Fault::SeedInState) => NEWEST.with_borrow_mut(|(cells, keys)| {
            *keys += 1;
            if !cells.is_empty() {
                key[..8].copy_from_slice(&hash(&(cells, keys)).to_le_bytes());
                key[8..].fill(0);
            }
        }),
        _ => {}
    }
    key
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// What becomes of a generator that is to give more words.
pub(crate) fn rewind(bulk: &mut ChaCha20Legacy) {
    if is(Fault::ReusedWords) {
        bulk.seek(0_u64);
    }
}

/// What becomes of counters after a batch.
pub(crate) fn counted(cells: &mut [i32], kind: Kind, words: &[u64], mapping: &Mapping) {
    let fingerprint = |&word: &u64| match kind {
        Kind::Integers => mapping.fingerprint_key.hash_integer(word),
        Kind::Bytes => word,
    };
    match PLANTED.get() {
        Some(Fault::CountedTwice) => {
            for &word in words.iter().skip(1) {
                match kind {
                    Kind::Integers => mapping.cells(Item::Integer(word)).for_each(|cell| cells[cell] += 1),
                    Kind::Bytes => mapping.hashed_cells(word).for_each(|cell| cells[cell] += 1),
                }
            }
        }
        Some(Fault::PinnedTwice) => {
            let pinned = words.iter().map(fingerprint).filter(|key| mapping.own_cell(*key).is_some());
            pinned.flat_map(|key| mapping.rows().cells_of(key)).for_each(|cell| cells[cell] += 1);
        }
        Some(Fault::OpenPins) => COUNTED.with_borrow_mut(|counted| {
            words.iter().map(fingerprint).for_each(|key| *counted.entry(key).or_default() += 1);
        }),
        _ => {}
    }
}

/// Who is pinned next, after this is decided of the pins before: by the counts of the two keys that came most often.
pub(crate) fn pins(decided: Arc<Pins>, before: &Pins, plan: &Plan) -> Arc<Pins> {
    if !is(Fault::OpenPins) {
        return decided;
    }
    let counted = COUNTED.take();
    let mut frequent: Vec<u64> = counted.keys().copied().collect();
    frequent.sort_unstable_by_key(|key| (Reverse(counted[key]), *key));
    frequent.truncate(2);
    Arc::new(before.clone().with_next_substream(&frequent, plan))
}

/// Who is pinned in a substream that an event opens.
pub(crate) fn opened(cached: &mut Arc<CachedRelease>, number: u64, plan: &Plan) {
    if !is(Fault::EarlyPins) {
        return;
    }
    let released = &cached.released;
    let others = |(fingerprint, slot, range): (u64, u32, Range<u64>)| {
        let parts = [range.start..range.end.min(number), range.start.max(number + 1)..range.end];
        parts.into_iter().filter(|part| !part.is_empty()).map(move |part| (fingerprint, slot, part))
    };
    let pins: Vec<_> = released.pins().iter().flat_map(others).collect();
    if let Some(pins) = Pins::from_parts(plan, released.pins().horizon().range(), &pins) {
        let (substreams, found) = (released.substreams().to_vec(), Arc::clone(released.found()));
        *cached = Arc::new(cached.after_seal(substreams, found, Arc::new(pins)));
    }
}

/// What becomes of the counters of a worker that was given so many events outside its range.
pub(crate) fn worked(mut substreams: BTreeMap<u64, Segments>, outside: Outside) -> BTreeMap<u64, Segments> {
    if is(Fault::RefusedPartial) && outside != Outside::default() {
        substreams.values_mut().for_each(Segments::clear);
    }
    substreams
}

/// What becomes of the places of a batch that count.
pub(crate) fn admitted(mut places: Vec<usize>, run: Run<'_>, is_new: bool) -> Vec<usize> {
    if is(Fault::SlidingCap) {
        SENT.with_borrow_mut(|[before, now]| {
            if is_new {
                *before = std::mem::take(now);
            }
            places.retain(|&place| !before.contains(&run.users[place]));
            let known = places.iter().filter(|_| run.kind.is_some());
            now.extend(known.map(|&place| run.users[place]));
        });
    }
    ADMITTED.set(places.len());
    places
}

/// What becomes of the number of positions that a batch takes.
pub(crate) fn positions(positions: usize) -> usize {
    if is(Fault::ShiftedPositions) { ADMITTED.get() } else { positions }
}

/// What becomes of how often a summary was lowered, and of what is taken off every count.
pub(crate) fn reduced(lowered: u64, reduction: u64, stored: &[u32], plan: &SearchPlan) -> (u64, u64) {
    match (PLANTED.get(), plan.summary_limit()) {
        (Some(Fault::PlainSummary), _) => (0, reduction),
        (Some(Fault::SummaryWhenFull), None) if FEW_KEYS < stored.len() => {
            (lowered, plan.items_max() / (FEW_KEYS as u64 + 1))
        }
        (Some(Fault::SummaryOfKnown), Some(limit)) => {
            let known: u64 = stored.iter().copied().map(u64::from).sum();
            (lowered, known / (limit as u64 + 1) + lowered)
        }
        _ => (lowered, reduction),
    }
}

/// The keys that a search looks at, in order of arrival.
pub(crate) fn looked_at<T>(keys: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    keys.take(if is(Fault::FirstKeysCap) { FEW_KEYS } else { usize::MAX })
}

/// What becomes of the threshold of found keys.
pub(crate) fn threshold(threshold: u64) -> u64 {
    match PLANTED.get() {
        Some(Fault::LowThreshold) => threshold / 2,
        Some(Fault::ReachedThreshold) => threshold - 1,
        _ => threshold,
    }
}

/// What becomes of the noise that a key gets at each check.
pub(crate) fn fresh(fresh: u64) -> u64 {
    if is(Fault::OneNoise) { 0 } else { fresh }
}

/// A key is checked: it may get its lasting noise again.
pub(crate) fn checked(standing: &mut KeyState) {
    if *standing != KeyState::OUT && is(Fault::LastingNoisePerCheck) {
        *standing = KeyState::NEW;
    }
}

/// What becomes of a key after a restore: it may get its lasting noise again.
pub(crate) fn restored(standing: KeyState) -> KeyState {
    if is(Fault::LastingNoiseAfterRestore) { KeyState::NEW } else { standing }
}

/// What is known of a key before it is released.
pub(crate) fn standing(standing: KeyState) -> KeyState {
    standing
}

/// A key was released: it may be looked at again.
pub(crate) fn released_key(standing: &mut KeyState, before: KeyState) {
    if is(Fault::LooksAgain) {
        *standing = before;
    }
}

/// What becomes of the list of found keys.
pub(crate) fn listed(kept: &mut [FoundKey<'_>]) {
    if is(Fault::PlainOrder) {
        kept.sort_unstable_by_key(|kept| kept.item);
    }
}

/// Which keys are cut finely in a substream that has counted this so far: the two that came most often.
pub(crate) fn table(levels: &mut Arc<Levels>, open: Option<&Counters>) {
    let Some(counters) = open.filter(|_| is(Fault::OpenLevels)) else { return };
    let (exact, _) = counters.exact_counts();
    let mut places: Vec<u32> = (0..exact.len() as u32).collect();
    places.sort_by_key(|&place| -exact[place as usize]);
    let mut finer = vec![Vec::new(); levels.finer_lists().len()];
    finer[0] = places[..2].to_vec();
    *levels = Arc::new(Levels::from_lists(finer));
}

/// What becomes of a substream that is released.
pub(crate) fn released(substream: SealedSubstream) -> SealedSubstream {
    let is_complete = substream.sketch(WHOLE).is_some();
    if is(Fault::SlicesTwice) && is_complete { noised_again(&substream) } else { substream }
}

/// A slice ends: the caps of users may start anew.
pub(crate) fn cut(caps: Option<&mut Caps>) {
    if let Some(caps) = caps.filter(|_| is(Fault::CapPerSlice)) {
        caps.turn_over();
    }
}

/// What becomes of the counters of some keys that are sealed in a slice.
pub(crate) fn sealed_keys(sealed: SealedSketch, exact: &[i32], law: Law) -> SealedSketch {
    if is(Fault::ExactTotals) { sealed } else { self::sealed(sealed, exact, 0, law) }
}

/// What becomes of a sketch that is sealed.
pub(crate) fn sealed(sealed: SealedSketch, exact: &[i32], total: u64, law: Law) -> SealedSketch {
    let noisy = sealed.cells();
    let noise = |cell: usize| noisy[cell] - exact[cell];
    let remade =
        |cells: &[i32], items| SealedSketch::of_released(sealed.shape(), cells, items, sealed.width());
    match PLANTED.get() {
        Some(Fault::NoNoise) => return remade(exact, sealed.items()),
        Some(Fault::HalfNoise) => {
            let halved: Vec<i32> = (0..exact.len()).map(|cell| exact[cell] + noise(cell) / 2).collect();
            return remade(&halved, sealed.items());
        }
        Some(Fault::ExactTotals) => return remade(&noisy, Some(total)),
        Some(
            Fault::NoisePerQuestion | Fault::NoiseAfterRestore | Fault::FinishedTwice | Fault::SlicesTwice,
        ) => {
            EXACT.with_borrow_mut(|all| all.insert(first_cells(&noisy).to_vec(), (exact.to_vec(), law)));
        }
        Some(Fault::SeedInState) => NEWEST.set((first_cells(&noisy).to_vec(), 0)),
        Some(Fault::ExactBound) => {
            let known = (first_cells(&noisy).to_vec(), total);
            TOTALS.with_borrow_mut(|all| all.insert(address(&sealed), known));
        }
        _ => {}
    }
    sealed
}

/// Where the counters of a sketch lie.
fn address(sketch: &SealedSketch) -> usize {
    sketch.narrow_cells().map_or(0, |cells| cells.as_ptr().addr())
}

/// What becomes of an answer.
pub(crate) fn answer(released: &Released, item: Item<'_>, mut estimate: Estimate) -> Estimate {
    match PLANTED.get() {
        Some(Fault::NoisePerQuestion) => {
            estimate.value =
                released.substreams().iter().map(|substream| redrawn_minimum(substream, item)).sum();
        }
        Some(Fault::OpenAnswers) => estimate.value += open_minimum(item),
        Some(Fault::ExactBound) => {
            estimate.error_bound +=
                released.substreams().iter().map(|sealed| exact_total(sealed)).sum::<f64>();
        }
        _ => {}
    }
    estimate
}

/// The exact total of a substream that was sealed here; one from bytes has none.
fn exact_total(substream: &SealedSubstream) -> f64 {
    let Some(whole) = substream.sketch(0) else { return 0.0 };
    TOTALS.with_borrow(|all| match all.get(&address(whole)) {
        Some((cells, total)) if *cells == first_cells(&whole.cells()) => *total as f64,
        _ => 0.0,
    })
}

fn redrawn_minimum(substream: &SealedSubstream, item: Item<'_>) -> f64 {
    let Some(whole) = substream.sketch(0) else { return 0.0 };
    let redrawn = |cell: usize| redrawn(&whole.cells(), cell..cell + 1)[0];
    substream.mapping.cells(item).map(redrawn).min().map_or(0.0, f64::from)
}

/// What becomes of everything sealed when a stream is restored.
pub(crate) fn redraw(cached: &mut Arc<CachedRelease>) {
    if is(Fault::SeedInState) {
        let newest = cached.released.substreams().last().and_then(|newest| newest.sketches().last());
        NEWEST.set(
            newest.map_or_else(Default::default, |(_, newest)| (first_cells(&newest.cells()).to_vec(), 0)),
        );
    }
    if is(Fault::NoiseAfterRestore) {
        seal_again(cached);
    }
}

/// What becomes of everything sealed when a stream is over.
pub(crate) fn finished(cached: &mut Arc<CachedRelease>) {
    if is(Fault::FinishedTwice) {
        seal_again(cached);
    }
}

/// Where a stream is over whose open substreams end there.
pub(crate) fn end(end: u64, open: u64) -> u64 {
    if is(Fault::FinishedByOpen) { end.max(open) } else { end }
}

/// Draws new noise for everything that is sealed.
fn seal_again(cached: &mut Arc<CachedRelease>) {
    let released = &cached.released;
    let substreams =
        released.substreams().iter().map(|substream| Arc::new(noised_again(substream))).collect();
    let again = Released::new(substreams, released.mapping().clone());
    *cached = Arc::new(CachedRelease::new(again.with_pins(Arc::clone(released.pins()))));
}

/// A substream with new noise.
fn noised_again(substream: &SealedSubstream) -> SealedSubstream {
    let sketch = |(range, sketch): &(usize, Arc<SealedSketch>)| {
        let cells = redrawn(&sketch.cells(), 0..sketch.shape().cells());
        EXACT.with_borrow_mut(|all| {
            let known = all.get(first_cells(&sketch.cells())).cloned();
            known.map(|known| all.insert(first_cells(&cells).to_vec(), known));
        });
        (*range, Arc::new(SealedSketch::of_released(sketch.shape(), &cells, sketch.items(), sketch.width())))
    };
    let sketches = substream.sketches().iter().map(sketch).collect();
    SealedSubstream::from_parts(substream.number, substream.mapping.clone(), sketches)
        .with_capped(substream.capped())
        .with_levels(Arc::clone(substream.levels()))
}

/// Some of the exact counters behind sealed ones, with new noise.
fn redrawn(noisy: &[i32], cells: Range<usize>) -> Vec<i32> {
    EXACT.with_borrow(|all| {
        let Some((exact, law)) = all.get(first_cells(noisy)) else { return noisy[cells].to_vec() };
        GENERATOR.with_borrow_mut(|generator| {
            exact[cells].iter().map(|cell| cell + law.draw_exactly(generator) as i32).collect()
        })
    })
}

/// What a sealed sketch is known by: enough of its noise to be the only one.
fn first_cells(noisy: &[i32]) -> &[i32] {
    &noisy[..noisy.len().min(32)]
}

/// Shows open counters to the answers of this thread.
pub(crate) fn show(open: Option<&OpenSubstream>) {
    if let Some(open) = open.filter(|_| is(Fault::OpenAnswers)) {
        OPEN.set(
            open.oldest_segment()
                .map(|counters| (open.mapping().clone(), counters.exact_counts().0.to_vec())),
        );
    }
}

fn open_minimum(item: Item<'_>) -> f64 {
    OPEN.with_borrow(|open| {
        let (mapping, cells) = open.as_ref()?;
        mapping.cells(item).map(|cell| f64::from(cells[cell])).reduce(f64::min)
    })
    .unwrap_or(0.0)
}
