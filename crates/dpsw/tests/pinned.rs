//! Pinned keys: counters of their own for frequent keys beside hashed ones.

use std::collections::BTreeMap;

use dpsw::error::*;
use dpsw::plan::{CounterLayout, NoiseChoice, TunedMethod};
use dpsw::store::MemoryStore;
use dpsw::worker::Worker;
use dpsw::*;

const KEYS: u64 = 60;
const SUBSTREAM: u64 = 64;
const WINDOW: u64 = 4 * SUBSTREAM;
const ROWS: usize = 2;

fn method(levels: u32) -> TunedMethod {
    let counters = CounterLayout::Hashed { rows: ROWS as u32, columns: 32 };
    TunedMethod { substreams: 4, counters, pinned: 6, levels, ..TunedMethod::default() }
}

fn items(levels: u32) -> Settings {
    Settings::last_items(WINDOW, 8.0).expect("in range").with_keys(0..KEYS).with_method(method(levels))
}

/// Events may be late or early by more than a substream.
fn ticks(levels: u32, clock: Clock) -> Settings {
    let settings = Settings::last_ticks(WINDOW, 2000, 8.0).expect("in range").with_clock(clock);
    settings.with_lateness(100).with_keys(0..KEYS).with_method(method(levels))
}

fn finding(settings: Settings) -> Settings {
    let search = SearchSettings { search_len: Some(4), ..SearchSettings::new(Kind::Integers) };
    let settings = Settings { epsilon: Epsilon::new(30.0).expect("in range"), ..settings };
    settings.with_domain(Domain::Found(search)).with_delta(1e-9).expect("in range")
}

fn kinds() -> Vec<Settings> {
    let both = [1, 3].into_iter().flat_map(|levels| {
        [
            items(levels),
            items(levels).with_retention(3),
            items(levels).with_users(40),
            finding(items(levels)),
            ticks(levels, Clock::Caller).with_retention(2),
            ticks(levels, Clock::Caller).with_unit(Unit::AddRemove),
            ticks(levels, Clock::Events),
            finding(ticks(levels, Clock::Caller)),
        ]
    });
    both.collect()
}

fn sketch(settings: &Settings, noise: Noise) -> DpswSketch {
    let plan = Plan::new(settings.clone()).expect("a valid plan");
    assert_eq!(plan.substream_len(), SUBSTREAM);
    DpswSketch::with_key(plan, StreamKey::from_bytes([7; 32]), noise)
}

/// Numbers that look random.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ (z >> 27)) >> 20
}

/// Two keys are frequent for good, and others in turns.
fn item(number: u64) -> u64 {
    match mixed(number) % 20 {
        0..6 => 1,
        6..9 => 2,
        9..14 => 3 + number / 900 % 9,
        other => mixed(number * other) % KEYS,
    }
}

/// A stream and what it has counted, by substream and item.
struct Run {
    sketch: DpswSketch,
    counted: BTreeMap<(u64, u64), i64>,
    next: u64,
}

impl Run {
    fn new(settings: &Settings, noise: Noise) -> Self {
        Self { sketch: sketch(settings, noise), counted: BTreeMap::new(), next: 0 }
    }

    fn count(&mut self, position: u64, item: u64) {
        *self.counted.entry((position / SUBSTREAM, item)).or_default() += 1;
    }

    fn take(&mut self, position: u64, item: u64) {
        let settings = self.sketch.plan().settings().clone();
        let taken = match (settings.window.time(), settings.unit) {
            (None, Unit::Users { .. }) => {
                let users = [mixed(position) % 3];
                self.sketch.extend(Batch::integers(&[item]).by(&users)).expect("an item").counted
            }
            (None, _) => self.sketch.extend(Batch::integers(&[item])).expect("an item").counted,
            (Some(_), _) => {
                self.sketch.extend(Batch::integers(&[item]).at(&[position])).expect("an event").counted
            }
        };
        if taken == 1 {
            self.count(position, item);
        }
    }

    /// Goes on to a position. Events of a time window come too early, in order or late.
    fn go(&mut self, to: u64) {
        for number in self.next..to {
            let Some(time) = self.sketch.plan().settings().window.time() else {
                self.take(number, item(number));
                continue;
            };
            if time.clock == Clock::Caller {
                self.sketch.advance(1000 + number).expect("a clock");
            }
            for (event, shift) in [(0, 0), (1, 0), (2, 90), (3, 180)] {
                let number = 4 * number + event;
                let time = 1000 + number / 4 + 60 - mixed(number) % (1 + shift);
                self.take(time, item(number));
            }
        }
        self.next = to;
    }

    /// Checks what is sealed and complete: `own` counts how many counts come from counters of their own.
    #[track_caller]
    fn check(&self, view: &WindowView, own: &mut usize) {
        let settings = view.plan().settings();
        let numbers: std::collections::BTreeSet<u64> =
            view.sealed().filter(|sealed| sealed.range() == 0).map(|sealed| sealed.substream()).collect();
        for &number in &numbers {
            let of = || view.sealed().filter(|sealed| sealed.substream() == number);
            let rows = of().find(|sealed| sealed.range() == 0).expect("it is complete").sketch().cells();
            let others: Vec<i64> =
                rows.chunks(rows.len() / ROWS).map(|row| row.iter().map(|&c| i64::from(c)).sum()).collect();
            let slices: i64 = of()
                .filter(|sealed| 0 < sealed.range())
                .flat_map(|sealed| sealed.sketch().cells())
                .map(i64::from)
                .sum();
            let exact = |key: u64| self.counted.get(&(number, key)).copied().unwrap_or(0);
            let all: i64 = (0..KEYS).map(exact).sum();
            assert!(
                others.iter().all(|row| row + slices == all),
                "{settings:?}: {others:?} and {slices} of {all}"
            );
            for key in 0..KEYS {
                let hashed = of().filter(|sealed| sealed.range() == 0).flat_map(|s| s.cells(key)).count();
                let mut slices =
                    of().filter(|sealed| 0 < sealed.range() && !sealed.cells(key).is_empty()).peekable();
                if slices.peek().is_none() {
                    assert_eq!(hashed, ROWS);
                    continue;
                }
                assert_eq!(hashed, 0, "a pinned key is in no rows");
                let counts = slices.flat_map(|slice| {
                    slice.cells(key).into_iter().map(move |cell| slice.sketch().cell(cell))
                });
                assert_eq!(counts.map(i64::from).sum::<i64>(), exact(key), "key {key} in {number}");
                *own += 1;
            }
        }
        assert!(!numbers.is_empty());
    }
}

#[test]
fn every_event_counts_once_in_its_own_counter_or_in_the_rows() {
    for settings in kinds() {
        let mut run = Run::new(&settings, Noise::off());
        let mut own = 0;
        for to in [300, 600, 801, 1100, 1471] {
            run.go(to);
            run.check(&run.sketch.view(), &mut own);
        }
        assert!(20 < own, "{settings:?}: {own}");
        let Run { sketch, counted, next } = run;
        // What lies ahead of the clock counts if it shares a segment with the end.
        if settings.window.time().is_none() {
            let view = sketch.finish().expect("noise is off");
            assert_eq!(view.finished(), Some(next));
            let over = Run { sketch: self::sketch(&settings, Noise::off()), counted, next };
            over.check(&view, &mut own);
            assert_eq!(view.covered().end, next);
        }
    }
}

/// What is open ahead of the clock stays, and who is pinned there; what was never sealed is given up.
#[test]
fn a_clock_that_jumps_leaves_what_is_open_ahead() {
    for settings in [1, 3].map(|levels| ticks(levels, Clock::Caller)) {
        for jump in [WINDOW + 40, WINDOW + SUBSTREAM, WINDOW + SUBSTREAM + 30, 3 * WINDOW, 1 << 40] {
            let mut run = Run::new(&settings, Noise::off());
            run.go(700);
            let now = 1000 + 699;
            run.sketch.advance(now + jump).expect("a clock");
            let mut own = 0;
            let view = run.sketch.view();
            if view.sealed().count() != 0 {
                run.check(&view, &mut own);
            }
            run.next += jump;
            run.go(run.next + 600);
            run.check(&run.sketch.view(), &mut own);
            assert!(5 < own, "{own} after a jump by {jump}");
        }
    }
}

/// Windows that begin and end with substreams: nothing is cut and nothing predicted.
#[test]
fn without_noise_a_pinned_key_is_answered_exactly() {
    for settings in [items(1).with_retention(2), items(3).with_retention(2)] {
        let mut run = Run::new(&settings, Noise::off());
        let mut exact = 0;
        for substreams in 1..30_u64 {
            run.go(SUBSTREAM * substreams);
            let view = run.sketch.view();
            for (before, len) in [(0, 4), (0, 1), (1, 3), (2, 4), (3, 2)] {
                let Some(end) = substreams.checked_sub(before) else { continue };
                let asked = view.last(len * SUBSTREAM).and_then(|view| view.as_of(end * SUBSTREAM));
                let Ok(asked) = asked else { continue };
                let numbers = asked.window().start / SUBSTREAM..asked.window().end / SUBSTREAM;
                for key in 0..KEYS {
                    let is_hashed = |sealed: &sealed::Sealed<'_>| {
                        numbers.contains(&sealed.substream())
                            && sealed.range() == 0
                            && !sealed.cells(key).is_empty()
                    };
                    if numbers.is_empty() || view.sealed().any(|sealed| is_hashed(&sealed)) {
                        continue;
                    }
                    let truth: i64 = numbers.clone().filter_map(|n| run.counted.get(&(n, key))).sum();
                    let estimate = asked.frequency(key).expect("a key");
                    assert!((estimate.value - truth as f64).abs() < 1e-9, "{key} in {numbers:?}: {estimate}");
                    exact += 1;
                }
            }
        }
        assert!(100 < exact, "{exact}");
    }
}

fn state_key() -> StateKey {
    StateKey::from_bytes([9; 32])
}

fn restored(sketch: DpswSketch, noise: Noise) -> DpswSketch {
    let mut store = MemoryStore::default();
    let saved = sketch.save(&state_key(), &mut store).expect("randomness");
    DpswSketch::restore(&saved.bytes, &state_key(), noise, &mut store).expect("the newest state")
}

/// In the middle of substreams, with others open ahead, and where both end.
#[test]
fn a_restored_stream_goes_on_as_if_it_had_not_been_saved() {
    for settings in kinds() {
        let [mut saved, mut unsaved] = [(); 2].map(|()| Run::new(&settings, Noise::off()));
        for step in 1..50 {
            for run in [&mut saved, &mut unsaved] {
                run.go(37 * step);
            }
            saved.sketch = restored(saved.sketch, Noise::off());
            assert!(
                saved.sketch.view().to_bytes() == unsaved.sketch.view().to_bytes(),
                "{step}: {settings:?}"
            );
        }
        assert_eq!(saved.counted, unsaved.counted);
        let [saved, unsaved] = [saved, unsaved].map(|run| run.sketch.finish().expect("noise is off"));
        assert!(saved.to_bytes() == unsaved.to_bytes());
    }
}

fn answers(view: &WindowView) -> Vec<Result<Estimate, QueryError>> {
    (0..KEYS + 3).map(|item| view.frequency(item)).collect()
}

#[test]
fn a_loaded_view_answers_like_the_live_one() {
    for settings in kinds() {
        let mut run = Run::new(&settings, Noise::seeded(3));
        let mut listed = 0;
        for step in 1..25 {
            run.go(53 * step);
            let view = run.sketch.view();
            let bytes = view.to_bytes();
            let loaded = WindowView::from_bytes(&bytes).expect("valid bytes");
            assert!(loaded.to_bytes() == bytes);
            assert_eq!((answers(&loaded), loaded.top(9)), (answers(&view), view.top(9)));
            let earlier = |view: &WindowView| {
                let end = view.window().end.saturating_sub(21);
                view.last(90).and_then(|view| view.as_of(end)).map(|view| (answers(&view), view.items()))
            };
            assert_eq!(earlier(&loaded), earlier(&view));
            listed += view.top(3).expect("keys").all().count();
        }
        assert!(30 < listed, "{settings:?}: {listed}");
    }
}

/// The list of a view shows what its questions answer, also of keys that are pinned in some substreams alone.
#[test]
fn lists_show_what_questions_answer() {
    for settings in kinds() {
        let mut run = Run::new(&settings, Noise::seeded(5));
        run.go(1333);
        let view = run.sketch.view();
        let shorter = view.last(100).expect("retained");
        let earlier = shorter.as_of(view.window().end - 9).expect("retained");
        for view in [view, shorter, earlier] {
            for row in view.top(60).expect("keys").all() {
                assert_eq!(
                    Ok(&row.estimate),
                    view.frequency(row.item).as_ref(),
                    "{settings:?}: {}",
                    row.item
                );
            }
        }
    }
}

#[test]
fn a_resumed_stream_pins_anew() {
    for settings in kinds().into_iter().filter(|settings| settings.unit != Unit::Users { per_substream: 40 })
    {
        let mut run = Run::new(&settings, Noise::off());
        run.go(1000);
        let saved = run.sketch.save(&state_key(), &mut MemoryStore::default()).expect("randomness");
        let is_timed = settings.window.time().is_some();
        let now = if is_timed { 2100 } else { 1000 };
        for skipped in [0, 60, 3 * WINDOW] {
            let sketch = DpswSketch::resume(&saved.bytes, &state_key(), Noise::off(), now + skipped);
            let sketch = sketch.expect("resumed");
            assert_eq!(sketch.view().sealed().count(), 0);
            let start = sketch.position();
            let mut run =
                Run { sketch, counted: BTreeMap::new(), next: if is_timed { start - 1000 } else { start } };
            run.go(run.next + 900);
            let mut own = 0;
            run.check(&run.sketch.view(), &mut own);
            assert!(5 < own, "{own}");
        }
    }
}

fn refused(settings: Settings) -> String {
    Plan::new(settings).expect_err("no such plan").to_string()
}

#[test]
fn plans_without_a_list_hashed_counters_or_laplace_noise_pin_no_keys() {
    let text =
        "pinned keys need hashed counters, a list of keys, public or found, and Laplace noise; pin none";
    let identity = TunedMethod { counters: CounterLayout::Identity, ..method(1) };
    assert_eq!(refused(items(1).with_method(identity)), text);
    let gaussian = TunedMethod { noise: NoiseChoice::Gaussian, ..method(1) };
    assert_eq!(refused(items(1).with_method(gaussian).with_delta(1e-9).expect("in range")), text);
    assert_eq!(refused(items(1).with_domain(Domain::Asked(Kind::Integers))), text);
    let many = TunedMethod { pinned: 65_537, ..method(1) };
    let error = refused(items(1).with_method(many));
    assert!(error.contains("number of pinned keys") && error.contains("65537"), "{error}");
    let levels = TunedMethod { pinned: 0, ..method(3) };
    let error = refused(items(3).with_method(levels));
    assert_eq!(
        error,
        "several levels need a counter for each key, or pinned keys, and Laplace noise; take one level"
    );
    assert!(
        Worker::new(Plan::new(ticks(1, Clock::Caller)).expect("a plan"), StreamKey::from_bytes([7; 32]))
            .is_err()
    );
}
