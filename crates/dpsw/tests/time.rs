//! Time windows: sealed by the clock, also when empty; late events; add/remove neighbours.

use std::ops::Range;

use dpsw::error::*;
use dpsw::noise::Law;
use dpsw::plan::{CounterLayout, Grid, Method, PaperMethod, SubstreamLen, TunedMethod};
use dpsw::*;
use proptest::prelude::*;

fn window(len: u64, lateness: u64, clock: Clock) -> Window {
    Window::Time(TimeWindow { len, lateness, clock, expected_items: 1000 })
}

fn settings(window: Window, method: Method) -> Settings {
    Settings {
        window,
        unit: Unit::ReplaceOne,
        epsilon: Epsilon::new(1.0).expect("in range"),
        delta: Delta::new(1e-9).ok(),
        domain: Domain::Public(Keys::Range(8)),
        method: Some(method),
        retention: 1,
    }
}

/// The oldest substream by its share inside the window, the newest sealed one again for what runs since.
fn interpolated(estimate: &Estimate, len: u64, start: u64, count: impl Fn(&Range<u64>) -> f64) -> f64 {
    let window = &estimate.window;
    let sealed = window.end / len;
    if sealed <= start / len {
        return 0.0;
    }
    let span = |k: u64| start.max(k * len)..(k + 1) * len;
    let share = |k: u64, ticks: u64| ticks as f64 / (span(k).end - span(k).start) as f64;
    let inside =
        |k: u64| share(k, (window.end.min(span(k).end)).saturating_sub(window.start.max(span(k).start)));
    let whole = |k: u64| count(&span(k));
    let sum: f64 = (start / len..sealed).map(|k| inside(k) * whole(k)).sum();
    let ahead = share(sealed - 1, window.end - window.start.max(sealed * len));
    sum + ahead * whole(sealed - 1)
}

fn tuned(substreams: u64) -> Method {
    Method::Tuned(TunedMethod { substreams, counters: CounterLayout::Identity, ..TunedMethod::default() })
}

fn paper() -> Method {
    Method::Paper(PaperMethod { counters: CounterLayout::Identity, ..PaperMethod::default() })
}

fn sketch(settings: Settings) -> DpswSketch {
    DpswSketch::with_noise(Plan::new(settings).expect("a valid plan"), Noise::off()).expect("noise is off")
}

fn value(sketch: &DpswSketch, item: u64) -> f64 {
    sketch.view().frequency(item).expect("a key").value
}

#[test]
fn intervals_are_sealed_by_the_clock_and_not_by_arrivals() {
    let mut sketch = sketch(settings(window(100, 0, Clock::Caller), tuned(10)));
    sketch.advance(1000).expect("a clock");
    sketch.extend(Batch::integers(&[3, 3, 3]).at(&[1000, 1001, 1009])).expect("in time");
    assert_eq!(value(&sketch, 3), 0.0);
    // An event of the next interval seals nothing.
    sketch.add_at(1012, 3).expect("in time");
    assert_eq!(value(&sketch, 3), 0.0);
    sketch.advance(1009).expect("a clock");
    assert_eq!(value(&sketch, 3), 0.0);
    sketch.advance(1010).expect("a clock");
    assert_eq!(value(&sketch, 3), 3.0);
    // Empty intervals are sealed too, and the window moves on.
    sketch.advance(1090).expect("a clock");
    assert_eq!(sketch.view().covered(), 1000..1090);
    assert_eq!(value(&sketch, 3), 4.0);
    sketch.advance(1110).expect("a clock");
    assert_eq!((sketch.view().covered(), value(&sketch, 3)), (1010..1110, 1.0));
    sketch.advance(1120).expect("a clock");
    assert_eq!(value(&sketch, 3), 0.0);
}

#[test]
fn a_clock_that_jumps_back_never_opens_an_interval_again() {
    let mut sketch = sketch(settings(window(100, 0, Clock::Caller), tuned(10)));
    sketch.advance(1000).expect("a clock");
    sketch.add_at(1005, 1).expect("in time");
    sketch.advance(1010).expect("a clock");
    let before = sketch.view().frequency(1);
    sketch.advance(1000).expect("it changes nothing");
    assert_eq!(sketch.position(), 1010);
    let error = sketch.add_at(1005, 1).expect_err("sealed");
    assert_eq!(error, IngestError::Late { by: 5, sealed: 1010 });
    assert!(error.to_string().starts_with("the event is 5 ticks late"));
    assert_eq!(sketch.view().frequency(1), before);
    assert_eq!(sketch.late_events(), Some(1));
}

#[test]
fn a_jump_far_ahead_gives_up_what_it_passes_and_goes_on() {
    // Two keys make too few predictions to judge longer spans by.
    let mut sketch = sketch(settings(window(100, 0, Clock::Caller), tuned(10)).with_keys(0..2));
    sketch.advance(1000).expect("a clock");
    sketch.extend(Batch::integers(&[1, 1]).at(&[1001, 1002])).expect("in time");
    sketch.advance(1 << 40).expect("a clock");
    assert_eq!(value(&sketch, 1), 0.0);
    assert_eq!(sketch.view().window(), (1 << 40) - 100..1 << 40);
    sketch.add_at((1 << 40) + 1, 1).expect("in time");
    sketch.advance((1 << 40) + 20).expect("a clock");
    assert_eq!(value(&sketch, 1), 1.0);
}

#[test]
fn late_events_within_the_lateness_are_counted_in_their_own_interval() {
    for method in [tuned(10), paper()] {
        let mut sketch = sketch(settings(window(1000, 150, Clock::Events), method));
        let taken = sketch
            .extend(Batch::integers(&[0, 1, 2, 3, 4]).at(&[5000, 5220, 5090, 5101, 4999]))
            .expect("events");
        assert_eq!((taken.counted, taken.late, taken.early), (4, 1, 0));
        assert_eq!(sketch.position(), 5070);
        sketch.add_at(5450, 5).expect("in time");
        let view = sketch.view().as_of(5300).expect("retained");
        for (item, wanted) in [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0), (4, 0.0), (5, 0.0)] {
            assert_eq!(view.frequency(item).expect("a key").value, wanted, "item {item}");
        }
    }
}

#[test]
fn events_too_far_ahead_of_the_callers_clock_are_refused() {
    let mut sketch = sketch(settings(window(100, 0, Clock::Caller), tuned(10)));
    let error = sketch.add_at(5, 1).expect_err("no clock yet");
    assert_eq!(error, IngestError::ClockUnset);
    sketch.advance(1000).expect("a clock");
    sketch.add_at(1019, 1).expect("the next interval is open");
    assert_eq!(sketch.add_at(1025, 1), Err(IngestError::Early { by: 6 }));
    let taken = sketch.extend(Batch::integers(&[1, 1, 1]).at(&[999, 1003, 4000])).expect("a batch");
    assert_eq!((taken.counted, taken.late, taken.early), (1, 1, 1));
}

#[test]
fn times_and_items_must_fit_the_window() {
    let mut timed = sketch(settings(window(100, 0, Clock::Events), tuned(10)));
    assert!(matches!(timed.extend(Batch::integers(&[1])), Err(IngestError::NoTimes)));
    assert!(matches!(timed.advance(5), Err(IngestError::EventsClock)));
    assert_eq!(
        timed.extend(Batch::integers(&[1]).at(&[1, 2])),
        Err(IngestError::TimeCount { times: 2, items: 1 })
    );
    let mut counted = sketch(settings(Window::Items(100), tuned(10)));
    assert!(matches!(counted.extend(Batch::integers(&[1]).at(&[1])), Err(IngestError::CountWindow)));
    assert!(matches!(counted.advance(5), Err(IngestError::CountWindow)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    /// Against a list of all events: every answer counts exactly the events of the span that it names, but for those
    /// that were refused. Four keys make too few predictions to judge longer spans by.
    #[test]
    fn an_answer_counts_exactly_the_interval_that_it_names(
        len in 10_u64..80,
        lateness in 0_u64..30,
        by_events in any::<bool>(),
        flat in any::<bool>(),
        steps in prop::collection::vec((0_u64..12, 0_u64..40, 0_u64..4), 1..120),
    ) {
        let lateness = lateness.min(len);
        let clock = if by_events { Clock::Events } else { Clock::Caller };
        let method = if flat { tuned(5) } else { Method::Paper(PaperMethod {
            substream: SubstreamLen::PerWindow(3),
            grid: Grid::Units(3),
            counters: CounterLayout::Identity,
            ..PaperMethod::default()
        }) };
        let settings = settings(window(len, lateness, clock), method).with_keys(0..4);
        let mut sketch = sketch(settings);
        let mut now = 1000;
        let mut start = (!by_events).then_some(now);
        let mut counted: Vec<(u64, u64)> = Vec::new();
        if !by_events {
            sketch.advance(now).expect("a clock");
        }
        for (step, back, item) in steps {
            now += step;
            let time = now - back.min(lateness + 5);
            start = start.or(Some(time - lateness));
            match sketch.add_at(time, item) {
                Ok(()) => {
                    start = start.map(|start| start.min(time));
                    counted.push((time, item));
                }
                Err(IngestError::Late { by, sealed }) => prop_assert_eq!(time + by, sealed),
                Err(IngestError::Early { .. }) => prop_assert!(!by_events),
                Err(error) => prop_assert!(false, "{}", error),
            }
            if !by_events {
                sketch.advance(now.saturating_sub(lateness)).expect("a clock");
            }
            let view = sketch.view();
            for item in 0..4 {
                let estimate = view.frequency(item).expect("a key");
                prop_assert!(estimate.covered.end <= sketch.position());
                let count = |span: &Range<u64>| {
                    counted.iter().filter(|(t, i)| span.contains(t) && *i == item).count() as f64
                };
                if flat {
                    let wanted = interpolated(&estimate, sketch.plan().substream_len(), start.expect("set"), count);
                    prop_assert!((estimate.value - wanted).abs() < 1e-6, "{} for {}", estimate.value, wanted);
                } else {
                    prop_assert_eq!(estimate.value, count(&estimate.covered));
                }
            }
        }
    }
}

#[test]
fn batches_and_single_events_are_counted_alike() {
    let text: Vec<String> = (0..400_u64).map(|i| format!("key {}", i * i % 8)).collect();
    let times: Vec<u64> = (0..400).map(|i| 10_000 + i * 3 - (i % 7) * 5).collect();
    let domain = Domain::Public(Keys::text((0..8).map(|i| format!("key {i}"))));
    let plan = Plan::new(Settings { domain, ..settings(window(300, 40, Clock::Events), tuned(6)) });
    let plan = plan.expect("a valid plan");
    let [mut once, mut many] =
        [(); 2].map(|()| DpswSketch::with_noise(plan.clone(), Noise::seeded(1)).expect("seeded"));
    let taken = once.extend(Batch::bytes(&text).at(&times)).expect("events");
    let mut late = 0;
    for (&time, item) in times.iter().zip(&text) {
        late += usize::from(many.add_at(time, item.as_str()).is_err());
    }
    assert_eq!(taken.late, late);
    assert_eq!(once.view().top(8), many.view().top(8));
    assert_eq!(once.position(), many.position());
}

/// A stream of the last hours of a day, with an event a minute, in substreams of a day and a half.
#[test]
fn a_window_longer_than_the_life_of_a_stream_is_answered_by_what_there_was() {
    const MINUTE: u64 = 60_000;
    const DAY: u64 = 24 * 60 * MINUTE;
    let method = Method::Tuned(TunedMethod {
        substreams: 20,
        counters: CounterLayout::Identity,
        ..TunedMethod::default()
    });
    // A substream ends after 3.1 of 5.5 hours.
    let start = 13_000 * 36 * 60 * MINUTE - 186 * MINUTE;
    let times: Vec<u64> = (0..330).map(|minute| start + minute * MINUTE).collect();
    for clock in [Clock::Events, Clock::Caller] {
        let mut sketch = sketch(settings(window(30 * DAY, 0, clock), method.clone()));
        if clock == Clock::Caller {
            sketch.advance(start).expect("a clock");
        }
        sketch.extend(Batch::integers(&[3; 330]).at(&times)).expect("events");
        if clock == Clock::Caller {
            sketch.advance(start + 330 * MINUTE).expect("a clock");
        }
        let estimate = sketch.view().frequency(3).expect("a key");
        assert_eq!(estimate.covered, start..13_000 * 36 * 60 * MINUTE);
        assert!((estimate.value - 330.0).abs() <= 1.0, "{estimate:?}");
        if clock == Clock::Caller {
            assert_eq!(sketch.finish().expect("noise is off").frequency(3).expect("a key").value, 330.0);
        }
    }
}

#[test]
fn a_stream_that_begins_inside_a_substream_leaves_it_by_the_share_that_it_has_there() {
    let mut sketch = sketch(settings(window(100, 0, Clock::Caller), tuned(10)));
    sketch.advance(1006).expect("a clock");
    sketch.extend(Batch::integers(&[3; 4]).at(&[1006, 1007, 1008, 1009])).expect("in time");
    assert_eq!(sketch.add_at(1004, 3), Err(IngestError::Late { by: 2, sealed: 1006 }));
    sketch.advance(1012).expect("a clock");
    // Four ticks hold four events, so two more ticks are expected to hold two.
    assert_eq!((sketch.view().covered(), value(&sketch, 3)), (1006..1010, 6.0));
    sketch.advance(1107).expect("a clock");
    assert_eq!((sketch.view().covered(), value(&sketch, 3)), (1007..1100, 3.0));
    let history = sketch.view().history(3).expect("a key");
    assert_eq!(history[0].window, 1010..1020, "the first substream is no longer retained");
}

#[test]
fn a_stream_that_follows_its_events_began_with_the_earliest_of_them() {
    let mut sketch = sketch(settings(window(100, 0, Clock::Events), tuned(10)));
    let taken = sketch.extend(Batch::integers(&[3; 4]).at(&[1006, 1004, 1008, 1010])).expect("events");
    assert_eq!((taken.counted, taken.late), (4, 0));
    assert_eq!((sketch.view().covered(), value(&sketch, 3)), (1004..1010, 3.0));
}

#[test]
fn windows_of_years_are_planned_and_longer_ones_are_refused_with_their_limit() {
    const DAY: u64 = 24 * 60 * 60 * 1000;
    for days in [364, 365, 3652, 12_000] {
        let settings = Settings::last_ticks(days * DAY, 1_000_000, 1.0).expect("in range").with_keys(0..100);
        let plan = settings.plan().expect("a plan");
        assert_eq!(plan.settings().window.len(), days * DAY);
    }
    let settings = Settings::last_ticks(13_000 * DAY, 1_000_000, 1.0).expect("in range").with_keys(0..100);
    let wanted = "window length must lie between 1 and 1099511627776, got 1123200000000";
    assert_eq!(settings.plan().expect_err("too long").to_string(), wanted);
}

/// A plan for 100 arrivals in a substream, and ten times as many, each of another user.
#[test]
fn what_the_caps_of_users_leave_out_is_told() {
    let settings = Settings {
        unit: Unit::Users { per_substream: 1 },
        ..settings(window(100, 0, Clock::Events), tuned(10))
    };
    let mut sketch = sketch(settings);
    assert_eq!(sketch.plan().user_room(), Some(200));
    let text = sketch.plan().to_string();
    assert!(text.contains("1 item of each count per substream, of the first 200 users"), "{text}");
    let users: Vec<u64> = (0..10_000).collect();
    let times: Vec<u64> = users.iter().map(|user| 1000 + user / 100).collect();
    let taken = sketch.extend(Batch::integers(&[3; 10_000]).at(&times).by(&users)).expect("events");
    assert_eq!((taken.counted, taken.capped, taken.late), (2000, 8000, 0));
    let taken = sketch.extend(Batch::nulls(2).at(&[1099; 2]).by(&[5, 5])).expect("events");
    assert_eq!((taken.counted, taken.capped), (0, 2), "null items are capped like others");
    let view = sketch.finish().expect("noise is off");
    let estimate = view.frequency(3).expect("a key");
    assert_eq!((estimate.value, estimate.capped), (2000.0, Some(8002)));
    let half = view.as_of(1050).expect("retained").frequency(3).expect("a key");
    assert_eq!((half.value, half.capped), (1000.0, Some(4000)));
    let loaded = WindowView::from_bytes(&view.to_bytes()).expect("valid bytes");
    assert_eq!(loaded.frequency(3), view.frequency(3));
}

#[test]
fn where_events_are_protected_nothing_is_capped() {
    for unit in [Unit::ReplaceOne, Unit::AddRemove] {
        let mut sketch = sketch(Settings { unit, ..settings(window(100, 0, Clock::Caller), tuned(10)) });
        sketch.advance(1000).expect("a clock");
        let taken = sketch.extend(Batch::integers(&[3; 50]).at(&[1001; 50])).expect("in time");
        assert_eq!((taken.counted, taken.capped, sketch.plan().user_room()), (50, 0, None));
        sketch.advance(1010).expect("a clock");
        assert_eq!(sketch.view().frequency(3).expect("a key").capped, None);
    }
}

fn add_remove(method: Method) -> Settings {
    Settings { unit: Unit::AddRemove, ..settings(window(100, 0, Clock::Caller), method) }
}

#[test]
fn add_remove_halves_the_sensitivity_and_needs_an_independent_clock() {
    let law = |settings| Plan::new(settings).expect("a valid plan").ranges()[0].law();
    assert_eq!(law(add_remove(tuned(10))), Law::Laplace { scale: Ratio::ONE });
    let replace = law(settings(window(100, 0, Clock::Caller), paper())).variance();
    assert!((law(add_remove(paper())).variance() / replace - 0.5).abs() < 0.01);
    let refused = |window| Plan::new(Settings { window, ..add_remove(tuned(10)) }).expect_err("refused");
    assert_eq!(refused(Window::Items(100)), PlanError::AddRemoveItems);
    assert_eq!(refused(window(100, 0, Clock::Events)), PlanError::AddRemoveEvents);
}

/// Under add/remove the number of events is private: with the noise on, a threshold slid over the answers must not
/// give it away. Two streams that differ by one event in the number of items but agree in the noisy counters of all
/// keys must agree in every answer, so here the extra event is a null item, which only the exact total would show.
#[test]
fn under_add_remove_no_answer_depends_on_the_exact_number_of_events() {
    let plan = Plan::new(add_remove(tuned(10))).expect("a valid plan");
    let views: Vec<WindowView> = [vec![3; 50], [vec![3; 50], vec![999]].concat()]
        .into_iter()
        .map(|items| {
            let mut sketch = DpswSketch::with_noise(plan.clone(), Noise::seeded(4)).expect("seeded");
            sketch.advance(1000).expect("a clock");
            sketch.extend(Batch::integers(&items).at(&vec![1005; items.len()])).expect("in time");
            sketch.advance(1100).expect("a clock");
            assert_eq!(sketch.late_events(), None);
            sketch.view()
        })
        .collect();
    for view in &views {
        assert_eq!(view.frequency(3), views[0].frequency(3));
        assert_eq!(view.top(8), views[0].top(8));
    }
    for percent in 1..=100 {
        let threshold = Threshold::new(f64::from(percent) / 100.0).expect("in range");
        assert_eq!(views[0].heavy_hitters(threshold), views[1].heavy_hitters(threshold), "{percent} %");
    }
}

#[test]
fn thresholds_of_time_windows_are_shares_of_the_covered_items() {
    let mut sketch = sketch(settings(window(100, 0, Clock::Caller), tuned(10)));
    sketch.advance(1000).expect("a clock");
    let items: Vec<u64> = [1, 1, 1, 1, 1, 1, 2, 2, 2, 99].repeat(100);
    sketch.extend(Batch::integers(&items).at(&[1003; 1000])).expect("in time");
    sketch.advance(1050).expect("a clock");
    let keys = |share| {
        let view = sketch.view();
        let ranked = view.heavy_hitters(Threshold::new(share).expect("in range")).expect("public");
        ranked.iter().map(|r| r.item.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(keys(0.6), ["1"]);
    assert_eq!(keys(0.3), ["1", "2"]);
    assert_eq!(keys(0.61), [] as [&str; 0]);
}

#[test]
fn times_beyond_all_clocks_are_refused_and_change_nothing() {
    let mut timed = sketch(settings(window(100, 0, Clock::Caller), tuned(10)));
    timed.advance(1000).expect("a clock");
    assert_eq!(timed.advance(u64::MAX), Err(IngestError::FarFuture(u64::MAX)));
    assert_eq!(timed.add_at(u64::MAX, 1), Err(IngestError::FarFuture(u64::MAX)));
    assert_eq!(timed.position(), 1000);
    let mut by_events = sketch(settings(window(100, 0, Clock::Events), tuned(10)));
    let taken = by_events.extend(Batch::integers(&[1, 1, 1]).at(&[1000, u64::MAX, 1001])).expect("a batch");
    assert_eq!((taken.counted, taken.late, taken.early), (2, 0, 1));
    assert_eq!(by_events.position(), 1001);
}

#[test]
fn an_idle_window_lists_nothing_and_an_unsealed_one_claims_nothing() {
    for method in [tuned(10), paper()] {
        let mut sketch = sketch(settings(window(100, 0, Clock::Caller), method));
        sketch.advance(1000).expect("a clock");
        sketch.extend(Batch::integers(&[1; 9]).at(&[1003; 9])).expect("in time");
        assert_eq!(sketch.view().frequency(1).expect("a key").error_bound, f64::INFINITY);
        let line = Threshold::new(0.01).expect("in range");
        assert!(sketch.view().heavy_hitters(line).expect("public").is_empty());
        sketch.advance(5000).expect("a clock");
        assert!(sketch.view().heavy_hitters(line).expect("public").is_empty());
    }
}

/// A window that ended inside a sealed substream takes a share of it, and its error bar says so.
#[test]
fn a_past_window_is_unsure_at_both_edges() {
    let plan =
        Plan::new(Settings { retention: 2, ..settings(Window::Items(400), tuned(4)) }).expect("a valid plan");
    let mut sketch = DpswSketch::with_noise(plan, Noise::off()).expect("off");
    let items: Vec<u64> = (0..900).map(|place| 1 + place % 2).collect();
    sketch.extend(Batch::integers(&items)).expect("valid items");
    let misfit = |position: u64| {
        let view = sketch.view().last(300).expect("kept").as_of(position).expect("kept");
        view.frequency(1).expect("a key").deviations.expect("tuned").misfit
    };
    assert_eq!(misfit(800), 0.0);
    assert!(0.0 < misfit(750));
}

/// Under add/remove the total is known by its noise alone; an idle window must not list the keys that noise favours.
#[test]
fn an_idle_window_lists_nothing_where_totals_are_private() {
    let domain = Domain::Public(Keys::Range(1000));
    let plan = Plan::new(Settings { domain, ..add_remove(tuned(10)) }).expect("a valid plan");
    let line = Threshold::new(0.01).expect("in range");
    let mut busy = 0;
    // The noisy total of 1,000 keys passes its 95 % bound by chance in 2.5 % of the seeds.
    for seed in 0..40 {
        let mut sketch = DpswSketch::with_noise(plan.clone(), Noise::seeded(seed)).expect("seeded");
        sketch.advance(1000).expect("a clock");
        sketch.advance(1200).expect("a clock");
        busy += usize::from(!sketch.view().heavy_hitters(line).expect("public").is_empty());
        sketch.extend(Batch::integers(&[7; 3000]).at(&[1205; 3000])).expect("in time");
        sketch.advance(1210).expect("a clock");
        let view = sketch.view();
        assert!(
            view.heavy_hitters(line).expect("public").iter().any(|ranked| ranked.item == Item::Integer(7))
        );
    }
    assert!(busy <= 5, "{busy} of 40");
}
