//! Views as bytes, views of several sites, partial counters and secret states.

use dpsw::error::*;
use dpsw::plan::{CounterLayout, Method, NoiseChoice, PaperMethod, Shares, SubstreamLen, TunedMethod};
use dpsw::store::{FileStore, MemoryStore};
use dpsw::worker::{PartialCounters, PartialId, Worker};
use dpsw::*;
use proptest::prelude::*;

fn base(window: Window, method: Method) -> Settings {
    Settings {
        window,
        unit: Unit::ReplaceOne,
        epsilon: Epsilon::new(1.0).expect("in range"),
        delta: Delta::new(1e-9).ok(),
        domain: Domain::Public(Keys::Range(50)),
        method: Some(method),
        retention: 1,
    }
}

fn timed(clock: Clock) -> Window {
    Window::Time(TimeWindow { len: 100, lateness: 20, clock, expected_items: 1000 })
}

fn tuned(counters: CounterLayout, noise: NoiseChoice) -> Method {
    Method::Tuned(TunedMethod { substreams: 5, counters, noise, ..TunedMethod::default() })
}

const HASHED: CounterLayout = CounterLayout::Hashed { rows: 2, columns: 16 };

fn paper() -> Method {
    Method::Paper(PaperMethod {
        counters: CounterLayout::Hashed { rows: 3, columns: 8 },
        ..PaperMethod::default()
    })
}

/// Settings with one level and without pinned keys.
fn plain_kinds() -> Vec<Settings> {
    let share = |value| Ratio::from_decimal(value).expect("a ratio");
    let explicit = PaperMethod {
        substream: SubstreamLen::Exponent(0.7),
        shares: Shares::Explicit([0.8, 0.05, 0.05].map(share).to_vec()),
        counters: CounterLayout::Accuracy { relative_error: 0.3, failure_probability: 0.2 },
        ..PaperMethod::default()
    };
    vec![
        base(Window::Items(100), paper()),
        base(Window::Items(100), Method::Paper(explicit)),
        base(Window::Items(103), tuned(HASHED, NoiseChoice::Gaussian)),
        base(timed(Clock::Caller), tuned(CounterLayout::Identity, NoiseChoice::Laplace)),
        Settings {
            unit: Unit::AddRemove,
            delta: None,
            ..base(timed(Clock::Caller), tuned(HASHED, NoiseChoice::Laplace))
        },
        Settings { retention: 2, ..base(timed(Clock::Events), paper()) },
        Settings {
            domain: Domain::Public(Keys::integers(0..50)),
            ..base(Window::Items(100), tuned(CounterLayout::Identity, NoiseChoice::Laplace))
        },
        Settings { domain: Domain::Asked(Kind::Integers), ..base(Window::Items(100), paper()) },
        Settings {
            epsilon: Epsilon::new(30.0).expect("in range"),
            domain: Domain::Found(SearchSettings {
                share: Ratio::new(1, 5).ok(),
                search_len: Some(2),
                ..SearchSettings::new(Kind::Integers)
            }),
            ..base(Window::Items(100), tuned(HASHED, NoiseChoice::Laplace))
        },
        Settings {
            unit: Unit::Users { per_substream: 2 },
            ..base(Window::Items(100), tuned(CounterLayout::Identity, NoiseChoice::Gaussian))
        },
    ]
}

/// Settings with several levels.
fn level_kinds() -> Vec<Settings> {
    let method =
        TunedMethod { substreams: 4, counters: CounterLayout::Identity, levels: 3, ..TunedMethod::default() };
    let levels = |window| Settings {
        epsilon: Epsilon::new(8.0).expect("in range"),
        delta: None,
        ..base(window, Method::Tuned(method.clone()))
    };
    let added = Settings { unit: Unit::AddRemove, retention: 2, ..levels(timed(Clock::Caller)) };
    let users = Settings { unit: Unit::Users { per_substream: 3 }, ..levels(Window::Items(100)) };
    vec![levels(Window::Items(100)), added, users]
}

/// Settings with pinned keys: public and found, on one and several levels.
fn pinned_kinds() -> Vec<Settings> {
    let pinned = |window, levels| {
        let method =
            TunedMethod { substreams: 4, counters: HASHED, pinned: 3, levels, ..TunedMethod::default() };
        let epsilon = Epsilon::new(30.0).expect("in range");
        Settings { epsilon, delta: None, ..base(window, Method::Tuned(method)) }
    };
    let found = |settings: Settings| Settings {
        delta: Delta::new(1e-9).ok(),
        domain: Domain::Found(SearchSettings {
            share: Ratio::new(1, 5).ok(),
            search_len: Some(2),
            ..SearchSettings::new(Kind::Integers)
        }),
        ..settings
    };
    let added = Settings { unit: Unit::AddRemove, retention: 2, ..pinned(timed(Clock::Caller), 3) };
    let users = Settings { unit: Unit::Users { per_substream: 20 }, ..pinned(Window::Items(100), 3) };
    let counted = pinned(Window::Items(100), 1);
    let found = [1, 3].map(|levels| found(pinned(timed(Clock::Caller), levels)));
    [counted, added, users].into_iter().chain(found).collect()
}

/// One of each kind of settings.
fn kinds() -> Vec<Settings> {
    [plain_kinds(), level_kinds(), pinned_kinds()].concat()
}

/// The kinds of pinned and found keys of time windows, with one level and with three.
const PINNED: [usize; 2] = [16, 17];

fn items(len: u64) -> Vec<u64> {
    (0..len).map(|i| i * i % 53).collect()
}

fn is_pinning(plan: &Plan) -> bool {
    matches!(plan.method(), Method::Tuned(method) if 0 < method.pinned)
}

fn fill(sketch: &mut DpswSketch, from: u64, to: u64) {
    let mut items: Vec<u64> = items(to)[from as usize..].to_vec();
    if is_pinning(sketch.plan()) {
        let often = (from..to).zip(&mut items).filter(|(position, _)| position % 3 != 0);
        often.for_each(|(position, item)| *item = 1 + position % 2);
    }
    if let Unit::Users { .. } = sketch.plan().settings().unit {
        let users: Vec<u64> = (from..to).map(|position| position % 7).collect();
        sketch.extend(Batch::integers(&items).by(&users)).expect("valid items");
        return;
    }
    match sketch.plan().settings().window.time() {
        None => {
            sketch.extend(Batch::integers(&items)).expect("valid items");
        }
        Some(time) => {
            for (position, &item) in (from..to).zip(&items) {
                if time.clock == Clock::Caller {
                    sketch.advance(1000 + position).expect("a clock");
                }
                sketch.add_at(1000 + position, item).expect("in time");
            }
        }
    }
}

fn sketch(settings: &Settings, noise: Noise) -> DpswSketch {
    let plan = Plan::new(settings.clone()).expect("a valid plan");
    DpswSketch::with_key(plan, StreamKey::from_bytes([7; 32]), noise)
}

fn filled(settings: &Settings, noise: Noise) -> DpswSketch {
    let mut sketch = sketch(settings, noise);
    fill(&mut sketch, 0, 257);
    sketch
}

fn answers(view: &WindowView) -> Vec<Result<Estimate, QueryError>> {
    (0..60).map(|item| view.frequency(item)).collect()
}

#[test]
fn a_loaded_view_answers_like_the_live_one() {
    for settings in kinds() {
        let view = filled(&settings, Noise::seeded(3)).view();
        let bytes = view.to_bytes();
        let loaded = WindowView::from_bytes(&bytes).expect("valid bytes");
        assert_eq!(loaded.plan().settings(), &settings);
        assert_eq!(loaded.claim(), Claim::None);
        assert_eq!(answers(&loaded), answers(&view));
        assert_eq!(loaded.top(5), view.top(5));
        let shorter = |view: &WindowView| view.last(30).map(|view| answers(&view));
        assert_eq!(shorter(&loaded), shorter(&view));
        assert_eq!(loaded.to_bytes(), bytes);
    }
}

/// A fit starts from the totals of the one before it, whose substreams leave while nobody asks.
#[test]
fn what_was_asked_before_changes_no_answer() {
    let settings = Settings {
        epsilon: Epsilon::new(8.0).expect("a budget"),
        ..base(Window::Items(2000), tuned(HASHED, NoiseChoice::Laplace))
    };
    let mut sketch = sketch(&settings, Noise::seeded(5));
    for (step, seals) in [1, 1, 2, 3, 1, 4, 1, 2, 1, 1, 3, 2].into_iter().enumerate() {
        let items: Vec<u64> = (0..seals * 500).map(|i| (i * i + step as u64) % 53 % 7 * 5).collect();
        sketch.extend(Batch::integers(&items)).expect("valid items");
        let view = sketch.view();
        let loaded = WindowView::from_bytes(&view.to_bytes()).expect("valid bytes");
        assert!(answers(&loaded) == answers(&view), "step {step}");
    }
}

fn golden(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The bytes of a golden file; `DPSW_BLESS=1` writes it anew.
fn blessed(name: &str, bytes: &[u8]) -> Vec<u8> {
    if std::env::var_os("DPSW_BLESS").is_some() {
        std::fs::write(golden(name), bytes).expect("writable");
    }
    std::fs::read(golden(name)).expect("a golden file")
}

/// Views of streams that are over: the bytes of the kind that has the most fields, and the checksums of all kinds.
/// `DPSW_BLESS=1` writes both.
#[test]
fn the_format_is_that_of_the_golden_files() {
    let views: Vec<WindowView> =
        kinds().iter().map(|settings| filled(settings, Noise::seeded(3)).finish().expect("seeded")).collect();
    let mut checksums = String::new();
    for (kind, view) in views.iter().enumerate() {
        checksums += &format!("{kind} {:08x}\n", crc32fast::hash(&view.to_bytes()));
    }
    let wanted = String::from_utf8(blessed("views.txt", checksums.as_bytes())).expect("text");
    assert_eq!(checksums, wanted);
    let richest = &views[PINNED[1]];
    let golden = blessed("view.bin", &richest.to_bytes());
    assert!(golden == richest.to_bytes());
    let loaded = WindowView::from_bytes(&golden).expect("a golden view");
    assert_eq!(answers(&loaded), answers(richest));
}

fn state(name: &str, noise: Noise) -> DpswSketch {
    let bytes = std::fs::read(golden(name)).expect("a golden file");
    let mut store = MemoryStore::default();
    store.note(StateId(bytes[18..42].try_into().expect("24 bytes"))).expect("memory");
    DpswSketch::restore(&bytes, &state_key(), noise, &mut store).expect("a state")
}

#[test]
fn damaged_bytes_are_refused_with_the_reason() {
    let bytes = filled(&kinds()[0], Noise::seeded(3)).view().to_bytes();
    let message = |bytes: &[u8]| WindowView::from_bytes(bytes).expect_err("damaged").to_string();
    assert_eq!(message(b"{}"), "these bytes do not begin like a saved one; is it the right file?");
    assert_eq!(message(&bytes[..11]), "the bytes end too early");
    assert!(message(&bytes[..bytes.len() - 1]).contains("checksum"));
    let mut other = bytes.clone();
    other[8] = 9;
    assert_eq!(message(&other), "these bytes are of version 9, and this program reads version 1");
    for position in 10..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[position] ^= 1 << (position % 8);
        assert_eq!(WindowView::from_bytes(&flipped).err(), Some(SnapshotError::Checksum), "byte {position}");
    }
}

/// The private claim is needed to merge, so the noise comes from the system; sums are compared counter by counter. With one
/// level and with several.
#[test]
fn views_of_several_sites_add_up() {
    [3, 11].into_iter().for_each(check_sites);
}

/// Each site is fitted with what the others have found: what they hold is what all of them hold.
#[test]
fn views_of_several_sites_that_pin_keys_add_up() {
    for settings in PINNED.map(|kind| kinds()[kind].clone()) {
        let sites: Vec<WindowView> =
            (0..3).map(|site| filled(&settings, Noise::from_system()).at_site(site).view()).collect();
        let merged = WindowView::merge(&sites).expect("mergeable");
        assert_eq!((merged.sites(), merged.claim()), (&[0, 1, 2][..], sites[0].claim()));
        assert_eq!(merged.sealed().count(), sites.iter().flat_map(WindowView::sealed).count());
        for (key, count) in [(1, 100.0), (2, 100.0)] {
            let estimate = merged.frequency(key).expect("a key");
            assert!((estimate.value - count).abs() < 15.0, "{key}: {estimate}");
        }
        let loaded = WindowView::from_bytes(&merged.to_bytes()).expect("valid bytes");
        assert_eq!((answers(&loaded), loaded.top(9)), (answers(&merged), merged.top(9)));
        assert!(loaded.to_bytes() == merged.to_bytes());
    }
}

/// A state with pinned keys, open substreams ahead of the clock and a running search.
#[test]
fn states_with_pinned_keys_go_on() {
    let mut sketch = filled(&kinds()[PINNED[1]], Noise::seeded(3));
    sketch.extend(Batch::integers(&[1, 2, 7]).at(&[1260, 1270, 1280])).expect("in time");
    if std::env::var_os("DPSW_BLESS").is_some() {
        let saved = save(sketch);
        blessed("state.bin", &saved.bytes);
        sketch = restore(&saved, Noise::off());
    } else {
        sketch = restore(&save(sketch), Noise::off());
    }
    let mut golden = state("state.bin", Noise::off());
    for sketch in [&mut sketch, &mut golden] {
        sketch.advance(1400).expect("a clock");
    }
    assert!(golden.view().to_bytes() == sketch.view().to_bytes());
}

fn check_sites(kind: usize) {
    let settings = &kinds()[kind];
    let sites: Vec<WindowView> =
        (0..3).map(|site| filled(settings, Noise::from_system()).at_site(site).view()).collect();
    let merged = WindowView::merge(&sites).expect("mergeable");
    assert_eq!(merged.sites(), [0, 1, 2]);
    assert_eq!(merged.claim(), sites[0].claim());
    // Of what is sealed: what is not is predicted from spans that each view chooses for itself.
    let sealed = |view: &WindowView| view.last(60).and_then(|view| view.as_of(1240)).expect("retained");
    let of = |view: &WindowView, item: u64| sealed(view).frequency(item).expect("a key");
    let sum = |item: u64| sites.iter().map(|view| of(view, item).value).sum::<f64>();
    let noise = |estimate: &Estimate| estimate.deviations.expect("tuned").noise;
    for item in 0..50 {
        let estimate = of(&merged, item);
        assert!((estimate.value - sum(item)).abs() < 1e-9);
        assert!(noise(&of(&sites[0], item)) < noise(&estimate));
    }
    let loaded = WindowView::from_bytes(&merged.to_bytes()).expect("valid bytes");
    assert_eq!(answers(&loaded), answers(&merged));
}

/// The noise of sites that merge is the system's, so their bytes differ from run to run: the golden ones are read and written.
#[test]
fn the_format_of_sites_that_are_kept_apart_is_that_of_the_golden_file() {
    let site = |number: u64| {
        let mut sketch = sketch(&kinds()[PINNED[1]], Noise::from_system()).at_site(number);
        fill(&mut sketch, 130 * number, 257);
        sketch.finish().expect("the system has randomness")
    };
    let merged = WindowView::merge(&[site(0), site(1)]).expect("mergeable");
    let golden = blessed("view-sites.bin", &merged.to_bytes());
    let loaded = WindowView::from_bytes(&golden).expect("a golden view");
    assert!(loaded.to_bytes() == golden);
    assert_eq!((loaded.sites(), loaded.window()), (merged.sites(), merged.window()));
    assert!(loaded.sealed().any(|sealed| 2 < sealed.range()), "some keys are cut into four");
}

#[test]
fn the_format_of_partial_counters_is_that_of_the_golden_file() {
    let plan = Plan::new(kinds()[3].clone()).expect("a valid plan");
    let worker = Worker::new(plan.clone(), StreamKey::from_bytes([7; 32])).expect("a time window");
    let id = PartialId { source: 1, batch: 2, partition: 3 };
    let batch = Batch::integers(&[3, 1, 4, 1]).at(&[1000, 1004, 1004, 1013]);
    let counted = worker.count(id, 1000..1020, batch).expect("valid items");
    let bytes = counted.partials[0].to_bytes();
    let golden = blessed("partial.bin", &bytes);
    assert!(golden == bytes);
    assert!(PartialCounters::from_bytes(&golden, &plan).expect("golden counters").to_bytes() == bytes);
}

#[test]
fn views_that_do_not_belong_together_are_not_merged() {
    let settings = &kinds()[3];
    let view = |site| filled(settings, Noise::from_system()).at_site(site).view();
    let refused =
        |a: &WindowView, b: &WindowView| WindowView::merge(&[a.clone(), b.clone()]).expect_err("refused");
    assert_eq!(refused(&view(1), &view(1)), MergeError::Duplicate { site: 1 });
    let other_plan = Settings { retention: 2, ..settings.clone() };
    assert_eq!(refused(&view(1), &filled(&other_plan, Noise::from_system()).view()), MergeError::Plan);
    assert_eq!(refused(&view(1), &filled(settings, Noise::seeded(1)).view()), MergeError::NoClaim);
    let plan = Plan::new(settings.clone()).expect("a valid plan");
    let mut other_key = DpswSketch::with_key(plan, StreamKey::from_bytes([8; 32]), Noise::from_system());
    fill(&mut other_key, 0, 257);
    assert_eq!(refused(&view(1), &other_key.view()), MergeError::Keys);
    let counted = |site| filled(&kinds()[2], Noise::from_system()).at_site(site).view();
    assert_eq!(refused(&counted(1), &counted(2)), MergeError::CountWindow);
    assert_eq!(WindowView::merge(&[]).expect_err("nothing"), MergeError::Nothing);
}

/// Views of one stream at several times, the last of them finished.
fn shown(settings: &Settings, site: u64) -> Vec<WindowView> {
    let mut sketch = sketch(settings, Noise::from_system()).at_site(site);
    let mut views = vec![sketch.view()];
    for (from, to) in [(0, 90), (90, 91), (91, 150), (150, 257)] {
        fill(&mut sketch, from, to);
        views.push(sketch.view());
    }
    views.push(sketch.finish().expect("the system has randomness"));
    views
}

fn check_order(views: &[WindowView]) {
    for (earlier, one) in views.iter().enumerate() {
        for later in &views[earlier..] {
            let is_later = one.window().end < later.window().end
                || one.finished().is_none() && later.finished().is_some();
            assert_eq!(later.check_succeeds(one).is_ok(), is_later, "{:?}", later.check_succeeds(one));
            assert!(one.check_succeeds(later).is_err());
        }
    }
}

#[test]
fn later_views_succeed_earlier_ones_and_no_others() {
    kinds().iter().for_each(|settings| check_order(&shown(settings, 0)));
    for settings in [3, 11, 16, 17].map(|kind| kinds()[kind].clone()) {
        let pairs = shown(&settings, 1).into_iter().zip(shown(&settings, 2));
        let merged = pairs.map(|(one, other)| WindowView::merge(&[one, other]).expect("mergeable"));
        check_order(&merged.collect::<Vec<_>>());
    }
}

#[test]
fn a_view_of_another_stream_or_that_was_sealed_twice_succeeds_none() {
    for settings in [0, 2, 3, 4].map(|kind| kinds()[kind].clone()) {
        let views = shown(&settings, 0);
        let last = views.last().expect("a view");
        let refused = |view: &WindowView, earlier| view.check_succeeds(earlier).expect_err("refused");
        // The same events and keys, with noise of their own.
        let again = shown(&settings, 0);
        assert!(matches!(refused(&again[3], &views[2]), SuccessionError::SealedTwice { .. }));
        assert_eq!(refused(&shown(&settings, 1)[4], &views[3]), SuccessionError::Sites);
        let longer = Settings { retention: 3, ..settings.clone() };
        assert_eq!(refused(&shown(&longer, 0)[4], &views[3]), SuccessionError::Plan);
        let plan = Plan::new(settings.clone()).expect("a valid plan");
        let mut other = DpswSketch::with_key(plan, StreamKey::from_bytes([8; 32]), Noise::from_system());
        fill(&mut other, 0, 257);
        assert_eq!(refused(&other.view(), &views[3]), SuccessionError::Keys);
        assert!(matches!(refused(&views[3], &views[4]), SuccessionError::NotLater { .. }));
        assert!(matches!(refused(last, last), SuccessionError::Over { .. }));
    }
}

fn id(batch: u64, partition: u64) -> PartialId {
    PartialId { source: 1, batch, partition }
}

fn worker(settings: &Settings) -> Worker {
    let plan = Plan::new(settings.clone()).expect("a valid plan");
    Worker::new(plan, StreamKey::from_bytes([7; 32])).expect("a time window")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counting_in_parts_equals_counting_in_one(
        parts in 1_usize..6,
        merged in any::<bool>(),
        use_paper in any::<bool>(),
        offsets in prop::collection::vec(0_u64..40, 1..300),
    ) {
        let method = if use_paper { paper() } else { tuned(HASHED, NoiseChoice::Laplace) };
        let settings = base(timed(Clock::Caller), method);
        let times: Vec<u64> = offsets.iter().map(|offset| 1000 + offset).collect();
        let items = items(times.len() as u64);
        let mut whole = sketch(&settings, Noise::seeded(5));
        let mut sealer = sketch(&settings, Noise::seeded(5));
        for sketch in [&mut whole, &mut sealer] {
            sketch.advance(1000).expect("a clock");
        }
        whole.extend(Batch::integers(&items).at(&times)).expect("in time");
        let worker = worker(&settings);
        let mut partials: Vec<PartialCounters> = Vec::new();
        for part in 0..parts {
            let of = |values: &[u64]| values.iter().skip(part).step_by(parts).copied().collect::<Vec<_>>();
            let (times, items) = (of(&times), of(&items));
            let batch = Batch::integers(&items).at(&times);
            partials.extend(worker.count(id(9, part as u64), 1000..1040, batch).expect("valid items").partials);
        }
        let plan = sealer.plan().clone();
        let mut by_substream: Vec<PartialCounters> = Vec::new();
        for partial in partials {
            let partial = PartialCounters::from_bytes(&partial.to_bytes(), &plan).expect("valid bytes");
            let known = by_substream.iter_mut().find(|known| known.substream() == partial.substream());
            match known.filter(|_| merged) {
                Some(known) => known.merge(partial).expect("the same substream"),
                None => by_substream.push(partial),
            }
        }
        for partial in by_substream {
            sealer.absorb(partial).expect("open");
        }
        for sketch in [&mut whole, &mut sealer] {
            sketch.advance(1100).expect("a clock");
        }
        prop_assert_eq!(whole.view().to_bytes(), sealer.view().to_bytes());
    }
}

fn state_key() -> StateKey {
    StateKey::from_bytes([9; 32])
}

fn save(sketch: DpswSketch) -> SavedState {
    sketch.save(&state_key(), &mut MemoryStore::default()).expect("randomness")
}

/// As if nothing were known of earlier restores.
fn restore(saved: &SavedState, noise: Noise) -> DpswSketch {
    let mut store = MemoryStore::default();
    store.note(saved.id).expect("memory");
    DpswSketch::restore(&saved.bytes, &state_key(), noise, &mut store).expect("the newest state")
}

/// Saved at every few positions, a stream goes on as if it had not been: with the noise off the counts are the same,
/// and what was sealed before is the same to the bit, also with noise.
#[test]
fn a_restored_stream_goes_on_where_it_stood() {
    for settings in kinds() {
        let mut noisy = sketch(&settings, Noise::seeded(11));
        for step in 0..12 {
            fill(&mut noisy, step * 23, (step + 1) * 23);
            let before = noisy.view().to_bytes();
            let state = save(noisy);
            assert_eq!(state.generation, step + 1);
            noisy = restore(&state, Noise::seeded(step));
            assert_eq!(noisy.view().to_bytes(), before);
        }
        let mut saved = sketch(&settings, Noise::off());
        let mut unsaved = sketch(&settings, Noise::off());
        for step in 0..12 {
            fill(&mut saved, step * 23, (step + 1) * 23);
            fill(&mut unsaved, step * 23, (step + 1) * 23);
            saved = restore(&save(saved), Noise::off());
        }
        assert!(saved.view().to_bytes() == unsaved.view().to_bytes(), "{settings:?}");
    }
}

#[test]
fn a_state_that_is_not_the_newest_gives_up_what_was_open() {
    for settings in kinds() {
        let old = save(filled(&settings, Noise::off()));
        let position = restore(&old, Noise::off()).position();
        let mut empty = MemoryStore::default();
        let error =
            DpswSketch::restore(&old.bytes, &state_key(), Noise::off(), &mut empty).expect_err("stale");
        assert_eq!(error, StateError::Stale { generation: 1 });
        let resume = |at| DpswSketch::resume(&old.bytes, &state_key(), Noise::off(), at);
        let error = resume(position - 1).expect_err("before the end");
        assert_eq!(error, StateError::Resume { resume_at: position - 1, saved: position });

        let mut resumed = resume(position + 40).expect("resumed");
        let len = resumed.plan().substream_len();
        assert!(position + 40 <= resumed.position() && resumed.position() % len == 0);
        assert_eq!(resumed.view().sealed().count(), 0);
        // What was open is never sealed: after a whole window of other items nothing of it shows.
        match settings.window.time() {
            None if settings.unit == Unit::ReplaceOne => {
                resumed.extend(Batch::integers(&vec![49; 2 * len as usize])).expect("valid items");
            }
            None => {
                let users = vec![7; 2 * len as usize];
                resumed.extend(Batch::nulls(users.len()).by(&users)).expect("null items");
            }
            Some(time) => {
                let start = resumed.position();
                assert!(resumed.add_at(start - 1, 49).is_err());
                if time.clock == Clock::Caller {
                    resumed.advance(start + 3 * len).expect("a clock");
                } else {
                    resumed.add_at(start + 3 * len + time.lateness, 49).expect("in time");
                }
            }
        }
        let view = resumed.view();
        assert!(view.sealed().all(|sealed| resumed.position() <= (sealed.substream() + 4) * len + 100));
        let total: i64 = view.sealed().filter(|s| s.range() == 0).map(|s| s.sketch().total()).sum();
        let wanted = if settings.window.time().is_none() { 2 * len as i64 } else { 0 };
        assert_eq!(total, wanted);
    }
}

#[test]
fn a_state_opens_with_its_key_alone_and_shows_nothing_without() {
    let settings = Settings {
        domain: Domain::Asked(Kind::Bytes),
        ..base(Window::Items(100), tuned(HASHED, NoiseChoice::Laplace))
    };
    let plan = Plan::new(settings).expect("a valid plan");
    let mut sketch = DpswSketch::new(plan).expect("randomness");
    sketch.extend(Batch::bytes(&["secret"; 15])).expect("valid items");
    let saved = save(sketch);
    let open = |bytes: &[u8], key: [u8; 32]| {
        let mut store = MemoryStore::default();
        store.note(saved.id).expect("memory");
        DpswSketch::restore(bytes, &StateKey::from_bytes(key), Noise::from_system(), &mut store).map(|_| ())
    };
    assert_eq!(open(&saved.bytes, [9; 32]), Ok(()));
    assert_eq!(open(&saved.bytes, [8; 32]), Err(StateError::Key));
    for position in [10, 17, 20, 41, 42, 60, saved.bytes.len() - 1] {
        let mut changed = saved.bytes.clone();
        changed[position] ^= 1;
        assert_eq!(open(&changed, [9; 32]), Err(StateError::Key), "byte {position}");
    }
    assert_eq!(open(&saved.bytes[..30], [9; 32]), Err(StateError::Snapshot(SnapshotError::Truncated)));
    assert_eq!(open(b"something else", [9; 32]), Err(StateError::Snapshot(SnapshotError::Foreign)));
    // A full counter of 15 would stand in clear bytes; ciphertext shows 0f 00 00 00 by chance with probability 1e-6.
    assert!(!saved.bytes.windows(4).any(|window| window == [15, 0, 0, 0]));
}

#[test]
fn a_stream_saved_with_reproducible_noise_never_claims_privacy_again() {
    let saved = save(filled(&kinds()[0], Noise::seeded(1)));
    assert_eq!(restore(&saved, Noise::from_system()).view().claim(), Claim::None);
}

fn private_presence() -> Settings {
    Settings {
        unit: Unit::AddRemove,
        delta: None,
        ..base(timed(Clock::Caller), tuned(HASHED, NoiseChoice::Laplace))
    }
}

/// Under add/remove one event ahead of the clock must not show in where a resumed stream starts.
#[test]
fn where_a_resumed_stream_starts_does_not_depend_on_events() {
    let start = |times: &[u64]| {
        let mut sketch = sketch(&private_presence(), Noise::off());
        sketch.advance(1005).expect("a clock");
        sketch.extend(Batch::integers(&vec![1; times.len()]).at(times)).expect("in time");
        let saved = save(sketch);
        let resumed = DpswSketch::resume(&saved.bytes, &state_key(), Noise::off(), 1005).expect("resumed");
        resumed.view().window()
    };
    assert_eq!(start(&[]), start(&[1025]));
}

/// Two states of one generation, on two lines of descent, are told apart: each has its own note, consumed once.
#[test]
fn a_state_goes_on_once() {
    let settings = base(timed(Clock::Caller), tuned(HASHED, NoiseChoice::Laplace));
    let folder = tempfile::tempdir().expect("a folder");
    let mut files = FileStore::new(folder.path().join("fresh")).expect("a folder");
    let mut memory = MemoryStore::default();
    let stores: [&mut dyn FreshnessStore; 2] = [&mut memory, &mut files];
    for store in stores {
        let first = save(
            DpswSketch::resume(&save_bytes(&settings), &state_key(), Noise::off(), 1000).expect("valid"),
        );
        store.note(first.id).expect("a store");
        let restore = |state: &SavedState, store: &mut dyn FreshnessStore| {
            DpswSketch::restore(&state.bytes, &state_key(), Noise::from_system(), store)
        };
        let again = restore(&first, store).expect("fresh");
        let second = again.save(&state_key(), store).expect("randomness");
        let resumed = DpswSketch::resume(&first.bytes, &state_key(), Noise::off(), 1000).expect("valid");
        let other = resumed.save(&state_key(), store).expect("randomness");
        assert_eq!(other.generation, second.generation);
        assert_eq!(restore(&first, store).expect_err("consumed"), StateError::Stale { generation: 2 });
        for state in [&second, &other] {
            assert!(restore(state, store).is_ok());
            let error = restore(state, store).expect_err("consumed");
            assert_eq!(error, StateError::Stale { generation: state.generation });
        }
    }
    // What is damaged leaves its note.
    let state = sketch(&settings, Noise::off()).save(&state_key(), &mut files).expect("randomness");
    let mut damaged = state.bytes.clone();
    damaged[60] ^= 1;
    assert!(DpswSketch::restore(&damaged, &state_key(), Noise::off(), &mut files).is_err());
    let mut later = FileStore::new(folder.path().join("fresh")).expect("a folder");
    assert!(DpswSketch::restore(&state.bytes, &state_key(), Noise::off(), &mut later).is_ok());
    let error =
        DpswSketch::restore(&state.bytes, &state_key(), Noise::off(), &mut files).expect_err("elsewhere");
    assert_eq!(error, StateError::Stale { generation: 1 });
}

fn save_bytes(settings: &Settings) -> Vec<u8> {
    save(sketch(settings, Noise::off())).bytes
}

/// The state after these arrivals: (time, item), at a clock that stands at 1005.
fn state_len(settings: &Settings, events: &[(u64, &str)]) -> usize {
    let plan = Plan::new(settings.clone()).expect("a valid plan");
    let mut sketch = DpswSketch::with_noise(plan, Noise::off()).expect("noise is off");
    let (times, items): (Vec<u64>, Vec<&str>) = events.iter().copied().unzip();
    if settings.window.time().is_some() {
        sketch.advance(1005).expect("a clock");
        assert_eq!(sketch.extend(Batch::text(&items).at(&times)).expect("events").counted, events.len());
    } else {
        sketch.extend(Batch::text(&items)).expect("items");
    }
    save(sketch).bytes.len()
}

#[test]
fn the_length_of_a_state_does_not_show_which_items_came() {
    let long = "x".repeat(200);
    let few = vec![(1005, "a"); 300];
    let many: Vec<String> = (0..300).map(|number| format!("key {number}")).collect();
    let many: Vec<(u64, &str)> = many.iter().map(|key| (1005, key.as_str())).collect();
    let mut other = few.clone();
    other[7].1 = &long;
    for counting in [SearchCounts::Exact, SearchCounts::Summary { keys: 50 }] {
        let search = SearchSettings { counting, ..SearchSettings::new(Kind::Bytes) };
        let settings = Settings {
            domain: Domain::Found(search),
            ..base(Window::Items(2000), tuned(HASHED, NoiseChoice::Laplace))
        };
        let [few, many, other] = [&few, &many, &other].map(|events| state_len(&settings, events));
        assert_eq!(few, many, "distinct keys");
        assert_eq!(few, other, "the length of one key");
    }
}

#[test]
fn where_presence_is_private_the_length_of_a_state_does_not_show_how_many_events_came() {
    let found = Domain::Found(SearchSettings::new(Kind::Bytes));
    for (domain, delta) in [(Domain::Asked(Kind::Bytes), None), (found, Delta::new(1e-9).ok())] {
        let settings = Settings { domain, delta, ..private_presence() };
        let none = state_len(&settings, &[]);
        // In the open substream, and in one that lies ahead of the clock.
        assert_eq!(none, state_len(&settings, &[(1005, "a")]));
        assert_eq!(none, state_len(&settings, &[(1025, "a")]));
        let crowd: Vec<(u64, &str)> = (0..400).map(|number| (1005 + number % 10, "a")).collect();
        assert_eq!(none, state_len(&settings, &crowd));
    }
}

#[test]
fn sites_that_stand_at_different_times_are_merged_where_both_are_known() {
    let settings = &kinds()[3];
    let site = |number, until| {
        let mut sketch = sketch(settings, Noise::from_system()).at_site(number);
        sketch.advance(1000).expect("a clock");
        for time in 1000..until {
            sketch.advance(time).expect("a clock");
            sketch.add_at(time, 1).expect("in time");
        }
        sketch.advance(until).expect("a clock");
        sketch.view()
    };
    let merged = WindowView::merge(&[site(0, 1100), site(1, 1140)]).expect("mergeable");
    let estimate = merged.frequency(1).expect("a key");
    assert_eq!(merged.window(), 1040..1100);
    assert!((estimate.value - 120.0).abs() < 60.0, "{}", estimate.value);
    let lone = filled(settings, Noise::seeded(1)).view();
    assert_eq!(WindowView::merge(&[lone]).expect_err("no claim"), MergeError::NoClaim);
}

/// All keys of this list have the same low bits of their fingerprints under the key in the bytes.
#[test]
fn keys_that_crowd_do_not_slow_the_reader() {
    // fold(x ^ k) with small x ^ k: products below 2^64 have their high half 0, so the fingerprint is x·FOLD mod 2^64,
    // and multiples of 2^40 share all their low bits.
    let keys: Vec<u64> = (1..30_000_u64).map(|i| i << 40).collect();
    let settings = Settings {
        domain: Domain::Public(Keys::integers(keys)),
        ..base(Window::Items(100), tuned(CounterLayout::Identity, NoiseChoice::Laplace))
    };
    let bytes = sketch(&settings, Noise::off()).view().to_bytes();
    let view = WindowView::from_bytes(&bytes).expect("valid bytes");
    assert!(view.frequency(7 << 40).is_ok() && view.frequency(7).is_err());
}
