//! Streams that are over: sealed once up to a public end, answered without predicting.

use dpsw::error::*;
use dpsw::plan::{CounterLayout, Method, PaperMethod, TunedMethod};
use dpsw::store::MemoryStore;
use dpsw::*;

fn settings(window: Window, method: Method) -> Settings {
    Settings {
        window,
        unit: Unit::ReplaceOne,
        epsilon: Epsilon::new(1.0).expect("in range"),
        delta: Delta::new(1e-9).ok(),
        domain: Domain::Public(Keys::Range(7)),
        method: Some(method),
        retention: 1,
    }
}

fn timed(len: u64, lateness: u64, clock: Clock) -> Window {
    Window::Time(TimeWindow { len, lateness, clock, expected_items: 1000 })
}

fn tuned() -> Method {
    let counters = CounterLayout::Identity;
    Method::Tuned(TunedMethod { substreams: 10, counters, ..TunedMethod::default() })
}

fn paper() -> Method {
    Method::Paper(PaperMethod { counters: CounterLayout::Identity, ..PaperMethod::default() })
}

fn sketch(settings: Settings) -> DpswSketch {
    let plan = Plan::new(settings).expect("a valid plan");
    DpswSketch::with_key(plan, StreamKey::from_bytes([7; 32]), Noise::off())
}

fn value(view: &WindowView, item: u64) -> f64 {
    view.frequency(item).expect("a key").value
}

fn items(len: u64) -> Vec<u64> {
    (0..len).map(|i| i * i % 7).collect()
}

fn count(items: &[u64], item: u64) -> f64 {
    items.iter().filter(|&&one| one == item).count() as f64
}

#[test]
fn a_stream_no_longer_than_its_window_is_answered_exactly_when_it_is_over() {
    for method in [tuned(), paper()] {
        for len in 0..=100 {
            let mut sketch = sketch(settings(Window::Items(100), method.clone()));
            sketch.extend(Batch::integers(&items(len))).expect("valid items");
            let view = sketch.finish().expect("noise is off");
            assert_eq!((view.finished(), view.window()), (Some(len), 0..len));
            assert_eq!(view.covered(), if len == 0 { 0..0 } else { 0..len });
            for item in 0..7 {
                assert_eq!(value(&view, item), count(&items(len), item), "{item} of {len} items");
            }
        }
    }
}

/// The window of 100 items starts 4 items into a substream of 10.
#[test]
fn a_longer_stream_takes_its_oldest_substream_by_the_share_inside_and_predicts_nothing() {
    let items = items(234);
    let mut sketch = sketch(settings(Window::Items(100), tuned()));
    sketch.extend(Batch::integers(&items)).expect("valid items");
    let running = sketch.view();
    let view = sketch.finish().expect("noise is off");
    assert_eq!((running.covered(), view.covered()), (134..230, 134..234));
    for item in 0..7 {
        let wanted = 0.6 * count(&items[130..140], item) + count(&items[140..], item);
        assert!((value(&view, item) - wanted).abs() < 1e-9, "item {item}");
        let misfit = |view: &WindowView| {
            let deviations = view.frequency(item).expect("a key").deviations;
            deviations.expect("the tuned method has them").misfit
        };
        assert!(misfit(&view) < misfit(&running) || misfit(&running) == 0.0, "nothing is predicted");
    }
}

#[test]
fn the_events_clock_ends_just_after_the_newest_event_and_counts_what_was_waited_for() {
    for method in [tuned(), paper()] {
        let mut sketch = sketch(settings(timed(100, 25, Clock::Events), method.clone()));
        let times: Vec<u64> = (1000..1077).chain([1055, 1060]).collect();
        let taken = sketch.extend(Batch::integers(&vec![3; times.len()]).at(&times)).expect("events");
        assert_eq!((taken.counted, taken.late), (79, 0));
        assert_eq!(sketch.position(), 1051);
        let view = sketch.finish().expect("noise is off");
        assert_eq!((view.finished(), view.window()), (Some(1077), 977..1077));
        assert_eq!(value(&view, 3), 79.0, "{}", method.name());
    }
}

#[test]
fn the_callers_clock_names_the_end_whatever_is_open() {
    for unit in [Unit::ReplaceOne, Unit::AddRemove] {
        let finished = |ahead: &[u64]| {
            let mut sketch =
                sketch(Settings { unit, delta: None, ..settings(timed(100, 50, Clock::Caller), tuned()) });
            sketch.advance(1003).expect("a clock");
            sketch.extend(Batch::integers(&[3, 3]).at(&[1004, 1025])).expect("in time");
            sketch.extend(Batch::integers(&vec![3; ahead.len()]).at(ahead)).expect("in time");
            sketch.advance(1027).expect("a clock");
            sketch.finish().expect("noise is off")
        };
        let places =
            |view: &WindowView| -> Vec<u64> { view.sealed().map(|sealed| sealed.substream()).collect() };
        let (quiet, busy) = (finished(&[]), finished(&[1031, 1045, 1062]));
        assert_eq!((quiet.finished(), busy.finished()), (Some(1027), Some(1027)));
        assert_eq!((places(&quiet), places(&busy)), (vec![100, 101, 102], vec![100, 101, 102]));
        assert_eq!((value(&quiet, 3), value(&busy, 3)), (2.0, 2.0));
    }
}

#[test]
fn a_stream_that_never_began_is_finished_with_nothing() {
    for clock in [Clock::Caller, Clock::Events] {
        let view = sketch(settings(timed(100, 20, clock), tuned())).finish().expect("noise is off");
        assert_eq!((view.finished(), view.window(), view.sealed().count()), (Some(0), 0..0, 0));
        assert_eq!(value(&view, 3), 0.0);
    }
}

#[test]
fn empty_substreams_are_sealed_up_to_the_end() {
    let mut sketch = sketch(settings(timed(100, 0, Clock::Caller), tuned()));
    sketch.advance(1000).expect("a clock");
    sketch.advance(1055).expect("a clock");
    let view = sketch.finish().expect("noise is off");
    let places: Vec<u64> = view.sealed().map(|sealed| sealed.substream()).collect();
    assert_eq!(places, [100, 101, 102, 103, 104, 105]);
}

#[test]
fn the_past_of_a_finished_stream_is_answered() {
    let mut sketch = sketch(Settings { retention: 2, ..settings(Window::Items(100), tuned()) });
    let items: Vec<u64> = (0..234).map(|position| u64::from(200 <= position)).collect();
    sketch.extend(Batch::integers(&items)).expect("valid items");
    let view = sketch.finish().expect("noise is off");
    let history = view.history(1).expect("a key");
    let windows: Vec<_> = history.iter().map(|estimate| estimate.window.clone()).collect();
    assert_eq!((windows.len(), &windows[0], &windows[19]), (20, &(40..50), &(230..234)));
    assert_eq!(history[16..].iter().map(|one| one.value).collect::<Vec<_>>(), [10.0, 10.0, 10.0, 4.0]);
    assert_eq!(view.as_of(220).expect("retained").frequency(1).expect("a key").value, 20.0);
    assert_eq!(view.last(34).expect("retained").frequency(1).expect("a key").value, 34.0);
    let inside = view.as_of(232).expect("retained").frequency(1).expect("a key");
    assert_eq!((inside.value, inside.window), (32.0, 132..232));
    let trend = view.trend(1).expect("a key");
    assert_eq!((trend.now.value, trend.before.value), (34.0, 0.0));
}

#[test]
fn a_finished_view_is_the_same_after_a_journey_as_bytes() {
    for (method, window) in [
        (tuned(), Window::Items(100)),
        (paper(), Window::Items(100)),
        (tuned(), timed(100, 25, Clock::Events)),
        (paper(), timed(100, 25, Clock::Events)),
    ] {
        let mut sketch = sketch(settings(window, method));
        let times: Vec<u64> = (1003..1157).collect();
        let batch = items(154);
        let batch = Batch::integers(&batch);
        let batch = if window.time().is_some() { batch.at(&times) } else { batch };
        sketch.extend(batch).expect("valid items");
        let view = sketch.finish().expect("noise is off");
        let loaded = WindowView::from_bytes(&view.to_bytes()).expect("valid bytes");
        assert_eq!((loaded.finished(), loaded.window()), (view.finished(), view.window()));
        for item in 0..7 {
            assert_eq!(loaded.frequency(item), view.frequency(item));
            assert_eq!(loaded.history(item), view.history(item));
        }
    }
}

/// A site with a key of its own, at a clock of the caller's.
fn site(number: u64, from: u64, to: u64) -> DpswSketch {
    let plan = Plan::new(Settings { delta: None, ..settings(timed(100, 0, Clock::Caller), tuned()) });
    let mut sketch =
        DpswSketch::with_key(plan.expect("a plan"), StreamKey::from_bytes([7; 32]), Noise::from_system());
    sketch = sketch.at_site(number);
    for time in from..to {
        sketch.advance(time).expect("a clock");
        sketch.add_at(time, number).expect("in time");
    }
    sketch.advance(to).expect("a clock");
    sketch
}

fn finished_site(number: u64, from: u64, to: u64) -> WindowView {
    site(number, from, to).finish().expect("the system has randomness")
}

#[test]
fn sites_that_are_over_in_the_same_substream_are_over_together() {
    let merged = WindowView::merge(&[
        finished_site(1, 1003, 1055),
        finished_site(2, 1000, 1058),
        finished_site(3, 1001, 1060),
    ]);
    let merged = merged.expect("alike");
    assert_eq!((merged.finished(), merged.window()), (Some(1060), 1000..1060));
    assert_eq!((merged.covered(), merged.sealed().count()), (1000..1060, 6));
    for item in 1..=3 {
        let estimate = merged.frequency(item).expect("a key");
        assert_eq!(estimate.deviations.map(|parts| parts.misfit), Some(0.0), "nothing is cut or predicted");
    }
}

#[test]
fn a_site_that_is_over_before_others_ends_the_merged_view_without_its_last_substream() {
    for other in [finished_site(2, 1000, 1078), site(2, 1000, 1078).view()] {
        let merged = WindowView::merge(&[finished_site(1, 1000, 1055), other]).expect("alike");
        assert_eq!((merged.finished(), merged.window()), (None, 1000..1055));
        assert_eq!((merged.covered(), merged.sealed().count()), (1000..1050, 5));
    }
}

#[test]
fn a_state_from_before_the_end_goes_on_nowhere_but_after_it() {
    let (key, mut store) = (StateKey::from_bytes([1; 32]), MemoryStore::default());
    let mut sketch = sketch(settings(Window::Items(100), tuned()));
    sketch.extend(Batch::integers(&items(55))).expect("valid items");
    let saved = sketch.save(&key, &mut store).expect("saved");
    let restored = DpswSketch::restore(&saved.bytes, &key, Noise::off(), &mut store).expect("fresh");
    let end = restored.finish().expect("noise is off").finished().expect("over");
    let again = DpswSketch::restore(&saved.bytes, &key, Noise::off(), &mut store);
    assert!(matches!(again, Err(StateError::Stale { .. })), "{again:?}");
    let resumed = DpswSketch::resume(&saved.bytes, &key, Noise::off(), end).expect("after the end");
    assert_eq!(resumed.position(), 60, "what is left of the last substream counts nowhere");
}

/// A key of 30 items is found but for a probability far below 1e-9: at ε = 30 the noise has a scale of a fraction of one.
#[test]
fn keys_are_found_when_the_stream_is_over() {
    let search = SearchSettings { search_len: Some(10), ..SearchSettings::new(Kind::Integers) };
    let settings = Settings {
        epsilon: Epsilon::new(30.0).expect("in range"),
        domain: Domain::Found(search),
        ..settings(
            Window::Items(1000),
            Method::Tuned(TunedMethod {
                substreams: 10,
                counters: CounterLayout::Hashed { rows: 2, columns: 100 },
                ..TunedMethod::default()
            }),
        )
    };
    let mut sketch = sketch(settings);
    let items: Vec<u64> = (0..60).map(|position| if position % 2 == 0 { 5 } else { position }).collect();
    sketch.extend(Batch::integers(&items)).expect("valid items");
    assert_eq!(sketch.view().top(10).expect("a list").all().count(), 0);
    let view = sketch.finish().expect("noise is off");
    let top = view.top(10).expect("a list");
    assert_eq!(top.all().map(|ranked| ranked.item).collect::<Vec<_>>(), [Item::Integer(5)]);
    let loaded = WindowView::from_bytes(&view.to_bytes()).expect("valid bytes");
    assert_eq!(loaded.top(10).expect("a list"), top);
}
