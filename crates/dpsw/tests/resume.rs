//! A state that goes on in two lines: what a resumed stream shows follows from its plan, its keys and where it starts, and
//! from nothing that any of the lines counted, found, scored or decided.

use dpsw::error::StoreError;
use dpsw::plan::{CounterLayout, PaperMethod, SubstreamLen, TunedMethod};
use dpsw::*;

const SUBSTREAM: u64 = 64;
const WINDOW: u64 = 4 * SUBSTREAM;

/// Lets every state go on as often as one likes, as if its notes came back with a backup.
struct Backup;

impl FreshnessStore for Backup {
    fn note(&mut self, _id: StateId) -> Result<(), StoreError> {
        Ok(())
    }

    fn consume(&mut self, _id: StateId) -> Result<bool, StoreError> {
        Ok(true)
    }
}

fn method(pinned: u32, levels: u32) -> TunedMethod {
    let counters = CounterLayout::Hashed { rows: 2, columns: 32 };
    TunedMethod { substreams: 4, counters, pinned, levels, ..TunedMethod::default() }
}

fn items() -> Settings {
    Settings::last_items(WINDOW, 30.0).expect("in range").with_keys(0..60)
}

fn ticks() -> Settings {
    let settings = Settings::last_ticks(WINDOW, 1000, 30.0).expect("in range");
    settings.with_clock(Clock::Caller).with_lateness(70).with_keys(0..60)
}

fn finding(settings: Settings) -> Settings {
    let search = SearchSettings { search_len: Some(2), ..SearchSettings::new(Kind::Integers) };
    settings.with_domain(Domain::Found(search)).with_delta(1e-9).expect("in range")
}

/// Found keys with and without pins, pins of a public list, levels of all keys, users, private presence, prefixes.
fn kinds() -> Vec<(&'static str, Settings)> {
    let levels = TunedMethod { counters: CounterLayout::Identity, ..method(0, 3) };
    let paper = PaperMethod { substream: SubstreamLen::PerWindow(4), ..PaperMethod::default() };
    let paper = Settings { delta: Delta::new(1e-9).ok(), ..items() }.with_method(paper);
    vec![
        ("found", finding(items().with_method(method(0, 1)))),
        ("found and pinned", finding(items().with_method(method(4, 3)))),
        ("found, by the clock", finding(ticks().with_method(method(4, 1)))),
        ("pinned", items().with_method(method(4, 3))),
        ("pinned, by the clock", ticks().with_method(method(4, 3))),
        ("pinned, presence", ticks().with_method(method(4, 1)).with_unit(Unit::AddRemove)),
        ("levels", ticks().with_method(levels)),
        ("users", finding(ticks().with_method(method(4, 1))).with_users(30)),
        ("paper", paper),
    ]
}

fn key() -> StateKey {
    StateKey::from_bytes([1; 32])
}

fn save(sketch: DpswSketch) -> SavedState {
    sketch.save(&key(), &mut Backup).expect("randomness")
}

fn restore(state: &SavedState) -> DpswSketch {
    DpswSketch::restore(&state.bytes, &key(), Noise::off(), &mut Backup).expect("a state")
}

/// Sends this many events from a position on, of which most have one of three keys. With a clock, some come a substream early.
fn send(sketch: &mut DpswSketch, from: u64, count: u64, first_key: u64) -> String {
    let settings = sketch.plan().settings().clone();
    let mut said = String::new();
    for place in 0..count {
        let item = if place % 5 == 4 { 20 + place % 40 } else { first_key + place % 3 };
        let (items, users) = ([item], [place % 4]);
        let early = if place % 3 == 0 { SUBSTREAM } else { 0 };
        let times = [from + place + early];
        let mut batch = Batch::integers(&items);
        if settings.window.time().is_some() {
            sketch.advance(from + place).expect("a clock");
            batch = batch.at(&times);
        }
        if let Unit::Users { .. } = settings.unit {
            batch = batch.by(&users);
        }
        said += &format!("{:?} ", sketch.extend(batch));
    }
    said
}

/// One line of a state: it goes on with other keys, to another list, other pins and other caps.
fn line(state: &SavedState, first_key: u64) -> SavedState {
    let mut sketch = restore(state);
    let position = sketch.position();
    send(&mut sketch, position, 5 * SUBSTREAM, first_key);
    save(sketch)
}

/// All that a resumed stream shows while the same tail is fed to it.
fn shown(state: &SavedState, resume_at: u64) -> (Vec<Vec<u8>>, String, usize) {
    let mut sketch = DpswSketch::resume(&state.bytes, &key(), Noise::off(), resume_at).expect("resumed");
    let mut views = vec![sketch.view().to_bytes()];
    let mut said = String::new();
    for _ in 0..12 {
        let position = sketch.position();
        said += &send(&mut sketch, position, SUBSTREAM / 2, 7);
        said += &format!("{:?} {:?} ", sketch.position(), sketch.late_events());
        views.push(sketch.view().to_bytes());
    }
    (views, said, save(sketch).bytes.len())
}

#[test]
fn nothing_of_a_line_that_was_lost_comes_back_when_its_state_is_resumed() {
    for (name, settings) in kinds() {
        let plan = settings.plan().expect("a plan");
        assert_eq!(plan.substream_len(), SUBSTREAM, "{name}");
        let mut sketch = DpswSketch::with_key(plan, StreamKey::from_bytes([7; 32]), Noise::off());
        send(&mut sketch, 0, 6 * SUBSTREAM, 1);
        let state = save(sketch);
        let lines = [line(&state, 10), line(&state, 13)];
        let views = [&lines[0], &lines[1]].map(|line| restore(line).view());
        assert!(views[0].to_bytes() != views[1].to_bytes(), "{name}: the lines differ");
        // Users share the budget of a search among so many items that none is found here.
        if plan_finds(&views[0]) && name != "users" {
            assert!(!views[0].top(9).expect("found keys").is_empty(), "{name}: keys were found");
        }
        let position = views[0].window().end;
        // On the boundary where the lines stand, inside the next substream, and far away.
        for later in [0, 10, SUBSTREAM, 40 * SUBSTREAM] {
            let [one, other] = [&lines[0], &lines[1]].map(|line| shown(line, position + later));
            assert!(one == other, "{name}: resumed {later} later");
            assert!(one == shown(&state, position + later), "{name}: resumed from the common state");
        }
    }
}

fn plan_finds(view: &WindowView) -> bool {
    matches!(view.plan().settings().domain, Domain::Found(_))
}
