//! Keys that are found in the stream itself, and whole users.

use dpsw::error::*;
use dpsw::noise::Law;
use dpsw::plan::{CounterLayout, Method, NoiseChoice, PaperMethod, TunedMethod};
use dpsw::privacy::accounting;
use dpsw::store::MemoryStore;
use dpsw::*;

fn delta(value: f64) -> Option<Delta> {
    Delta::new(value).ok()
}

/// Searches of four substreams with a fifth of epsilon.
fn in_fours(kind: Kind) -> SearchSettings {
    SearchSettings { share: Ratio::new(1, 5).ok(), search_len: Some(4), ..SearchSettings::new(kind) }
}

fn settings(search: SearchSettings) -> Settings {
    Settings {
        window: Window::Items(1000),
        unit: Unit::ReplaceOne,
        epsilon: Epsilon::new(4.0).expect("in range"),
        delta: delta(1e-6),
        domain: Domain::Found(search),
        method: Some(Method::Tuned(TunedMethod {
            substreams: 10,
            counters: CounterLayout::Hashed { rows: 2, columns: 64 },
            ..TunedMethod::default()
        })),
        retention: 1,
    }
}

fn plan(settings: Settings) -> Plan {
    Plan::new(settings).expect("a valid plan")
}

fn sketch(settings: Settings, noise: Noise) -> DpswSketch {
    DpswSketch::with_key(plan(settings), StreamKey::from_bytes([9; 32]), noise)
}

fn found(view: &WindowView) -> Vec<String> {
    let mut keys: Vec<String> =
        view.top(100).expect("found keys").all().map(|r| r.item.to_string()).collect();
    keys.sort();
    keys
}

fn words(len: u64) -> Vec<String> {
    // Half "a", a quarter "b", an eighth "c", the rest each once.
    let word = |i: u64| match i % 8 {
        0..4 => "a".to_owned(),
        4 | 5 => "b".to_owned(),
        6 => "c".to_owned(),
        _ => format!("once {i}"),
    };
    (0..len).map(word).collect()
}

#[test]
fn frequent_keys_are_found_when_a_substream_is_sealed_and_rare_ones_are_not() {
    // Without noise a key is found with this count: 24.
    let least = plan(settings(in_fours(Kind::Bytes))).search_plan().expect("search").threshold() + 3;
    assert_eq!(least, 24);
    let mut sketch = sketch(settings(in_fours(Kind::Bytes)), Noise::off());
    sketch.extend(Batch::bytes(&words(99))).expect("words");
    assert!(found(&sketch.view()).is_empty(), "no substream is sealed");
    sketch.extend(Batch::bytes(&words(100)[99..])).expect("words");
    // 52, 24 and 12 of 100.
    assert_eq!(found(&sketch.view()), ["a", "b"]);
    sketch.extend(Batch::bytes(&words(200)[100..])).expect("words");
    // 25 of 200.
    assert_eq!(found(&sketch.view()), ["a", "b", "c"]);
    sketch.extend(Batch::bytes(&words(400)[200..])).expect("words");
    assert_eq!(found(&sketch.view()), ["a", "b", "c"]);
    let unknown = sketch.view().frequency("once 7").expect("any key can be asked for").value;
    assert!(unknown.abs() < 60.0, "{unknown}");
    let a = sketch.view().frequency("a").expect("a key").value;
    assert!((a - 200.0).abs() < 30.0, "{a}");
}

#[test]
fn a_key_is_counted_over_the_whole_search_and_not_beyond() {
    // Seven in each substream of a hundred: 28 in a search of four, 24 needed.
    let items: Vec<u64> = (0..800).map(|i| if i % 100 < 7 { 7 } else { 1000 + i }).collect();
    for (search_len, is_found) in [(4, true), (3, false)] {
        let search = SearchSettings { search_len: Some(search_len), ..in_fours(Kind::Integers) };
        let mut sketch = sketch(settings(search), Noise::off());
        sketch.extend(Batch::integers(&items)).expect("integers");
        assert_eq!(!found(&sketch.view()).is_empty(), is_found, "{search_len}");
    }
}

#[test]
fn found_keys_stay_listed() {
    let search = SearchSettings { search_len: Some(2), ..in_fours(Kind::Integers) };
    let mut sketch = sketch(settings(search), Noise::off());
    sketch.extend(Batch::integers(&[7; 200])).expect("integers");
    for window in 0..30 {
        assert_eq!(found(&sketch.view()), ["7"], "window {window}");
        sketch.extend(Batch::integers(&(0..1000).collect::<Vec<u64>>())).expect("integers");
    }
    let gone = sketch.view().frequency(7).expect("a key").value;
    assert!(gone.abs() < 10.0, "{gone}");
}

#[test]
fn a_summary_finds_what_the_exact_map_finds_but_for_its_error() {
    let search = SearchSettings { counting: SearchCounts::Summary { keys: 19 }, ..in_fours(Kind::Bytes) };
    let plan = plan(settings(search));
    let planned = plan.search_plan().expect("search");
    let exact = Plan::new(settings(in_fours(Kind::Bytes))).expect("a valid plan");
    // A summary has one check, and so a lower threshold.
    let beyond = |found: &plan::SearchPlan| found.count_found(0.99) - found.threshold() as f64;
    let missing = beyond(planned) - beyond(exact.search_plan().expect("search"));
    assert_eq!(missing, 20.0, "400 items / (19 + 1)");
    assert!(plan.search_bytes() < exact.search_bytes());
    let mut sketch = sketch(settings(search), Noise::off());
    sketch.extend(Batch::bytes(&words(400))).expect("words");
    let keys = found(&sketch.view());
    assert!(keys.contains(&"a".to_owned()) && keys.contains(&"b".to_owned()), "{keys:?}");
    assert!(keys.iter().all(|key| !key.starts_with("once")), "{keys:?}");
}

#[test]
fn the_threshold_is_that_of_the_published_law() {
    // epsilon 1, of which a fifth for keys, delta 10^-10.5, four checks: y = 1/30, x = 1/6.
    let tuned = Settings {
        window: Window::Items(1_000_000),
        epsilon: Epsilon::new(1.0).expect("in range"),
        delta: delta(10_f64.powf(-10.5)),
        ..settings(in_fours(Kind::Integers))
    };
    let plan = plan(tuned);
    let search = plan.search_plan().expect("search");
    // 1 + ceil(6 ln(4 (1 - exp(-1/30)) 10^10.5)) = 1 + ceil(132.88).
    assert_eq!(search.threshold(), 134);
    // 134 + 4 - 2 and the 99 % point of the noise, ceil(30 ln 100) = 139.
    assert_eq!(search.count_found(0.99), 275.0);
    assert!((search.delta() / 10_f64.powf(-10.5) - 1.0).abs() < 1e-8);
    let (epsilon, delta) = plan.ledger().spent();
    assert!(epsilon <= 1.0 + 1e-12 && delta <= 10_f64.powf(-10.5));
    let text = plan.to_string();
    for part in [
        "counted over 400,000 items and looked at 4 times",
        "with 60 % of the items after",
        "and with 99 % probability",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

/// How many items pass until a key is listed that suddenly takes a share of the stream. The moment is any of a search, and
/// items come at random. 600 runs: the share of those that are listed in time lies 5 deviations below what the plan says with
/// probability 3e-7, in each of four cases; and the plan is not too careful.
#[test]
fn keys_that_come_up_are_listed_as_soon_as_the_plan_says() {
    let search = SearchSettings::new(Kind::Integers);
    let found = Settings { window: Window::Items(2000), ..settings(search) };
    let plan = plan(found);
    let planned = plan.search_plan().expect("search");
    let search = (planned.search_len() * plan.substream_len()) as usize;
    let mut state = 7_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / 2_f64.powi(53)
    };
    for share in [0.6, 0.1] {
        let until = |probability| planned.items_until_listed(share, probability).expect("listed");
        let mut took: Vec<f64> = Vec::new();
        for seed in 0..600 {
            let mut sketch = DpswSketch::with_noise(plan.clone(), Noise::seeded(seed)).expect("seeded");
            let start = (random() * search as f64) as usize;
            sketch.extend(Batch::nulls(start)).expect("nulls");
            let mut items = 0;
            while sketch.view().top(1).expect("a list").all().count() == 0 {
                let room = plan.substream_len() - sketch.position() % plan.substream_len();
                let batch: Vec<u64> =
                    (0..room).map(|i| if random() < share { 7 } else { 1000 + i }).collect();
                sketch.extend(Batch::integers(&batch)).expect("items");
                items += room;
            }
            took.push(items as f64);
        }
        took.sort_by(f64::total_cmp);
        for probability in [0.5, 0.99] {
            let items = until(probability);
            let in_time = took.iter().filter(|took| **took <= items).count() as f64 / took.len() as f64;
            let deviation = (probability * (1.0 - probability) / took.len() as f64).sqrt();
            println!("{share}: {in_time:.3} within {items}; median {}, 99 % {}", took[300], took[594]);
            assert!(probability - 5.0 * deviation <= in_time, "{share}: {in_time} within {items}");
        }
        assert!(0.6 * until(0.5) < took[300] && 0.5 * until(0.99) < took[594], "{share}: {took:?}");
    }
}

#[test]
fn found_keys_travel_with_views_and_states() {
    for counting in [SearchCounts::Exact, SearchCounts::Summary { keys: 30 }] {
        let search = SearchSettings { counting, ..in_fours(Kind::Bytes) };
        let mut sketch = sketch(settings(search), Noise::seeded(4));
        sketch.extend(Batch::bytes(&words(550))).expect("words");
        let view = sketch.view();
        assert_eq!(found(&view)[..2], ["a", "b"]);
        let loaded = WindowView::from_bytes(&view.to_bytes()).expect("valid bytes");
        assert_eq!(loaded.top(10), view.top(10));
        let key = StateKey::from_bytes([1; 32]);
        let mut store = MemoryStore::default();
        let saved = sketch.save(&key, &mut store).expect("randomness");
        let mut restored =
            DpswSketch::restore(&saved.bytes, &key, Noise::seeded(5), &mut store).expect("a state");
        assert_eq!(restored.view().top(10), view.top(10));
        // 150 of the 400 items of the second search were in the state.
        restored.extend(Batch::bytes(&vec!["d"; 250])).expect("words");
        assert!(found(&restored.view()).contains(&"d".to_owned()));
        assert!(found(&restored.view()).contains(&"a".to_owned()));
        let text = String::from_utf8_lossy(&saved.bytes);
        assert!(!text.contains("once"), "keys are encrypted");
        assert!(!format!("{restored:?}").contains("once"));
    }
}

#[test]
fn time_windows_find_keys_too() {
    let window = TimeWindow { len: 1000, lateness: 50, clock: Clock::Events, expected_items: 1000 };
    let mut sketch =
        sketch(Settings { window: Window::Time(window), ..settings(in_fours(Kind::Bytes)) }, Noise::off());
    let times: Vec<u64> = (0..1000).collect();
    sketch.extend(Batch::bytes(&words(150)).at(&times[..150])).expect("in time");
    assert!(found(&sketch.view()).is_empty());
    sketch.extend(Batch::bytes(&words(1000)[150..]).at(&times[150..])).expect("in time");
    assert!(found(&sketch.view()).starts_with(&["a".to_owned(), "b".to_owned()]));
}

#[test]
fn keys_that_are_too_long_are_counted_but_not_found() {
    let mut sketch =
        sketch(settings(SearchSettings { key_len_max: 3, ..in_fours(Kind::Bytes) }), Noise::off());
    let items: Vec<&str> = (0..400).map(|i| if i % 2 == 0 { "abc" } else { "abcd" }).collect();
    sketch.extend(Batch::bytes(&items)).expect("words");
    assert_eq!(found(&sketch.view()), ["abc"]);
    let long = sketch.view().frequency("abcd").expect("any key").value;
    assert!((long - 200.0).abs() < 20.0, "{long}");
}

#[test]
fn discoveries_that_cannot_be_are_refused() {
    let search = in_fours(Kind::Bytes);
    let without_delta = Settings { delta: None, ..settings(search) };
    let ratio = |n, d| Ratio::new(n, d).ok();
    for (settings, message) in [
        (without_delta, "finding keys needs a delta"),
        (settings(SearchSettings { search_len: Some(0), ..search }), "substreams of a search"),
        (settings(SearchSettings { search_len: Some(1 << 21), ..search }), "substreams of a search"),
        (settings(SearchSettings { share: ratio(1, 1), ..search }), "the share of epsilon"),
        (settings(SearchSettings { share: ratio(0, 1), ..search }), "the share of epsilon"),
        (settings(SearchSettings { key_len_max: 0, ..search }), "length of a key"),
        (
            settings(SearchSettings { counting: SearchCounts::Summary { keys: 0 }, ..search }),
            "keys of a summary",
        ),
    ] {
        let error = Plan::new(settings).expect_err(message).to_string();
        assert!(error.contains(message), "{error}");
    }
}

fn users(per_substream: u32) -> Settings {
    Settings {
        unit: Unit::Users { per_substream },
        domain: Domain::Public(Keys::Range(20)),
        method: Some(Method::Tuned(TunedMethod {
            substreams: 4,
            counters: CounterLayout::Identity,
            ..TunedMethod::default()
        })),
        ..settings(in_fours(Kind::Integers))
    }
}

#[test]
fn the_noise_for_users_covers_a_window() {
    // A window of four substreams touches five.
    let law = |settings| plan(settings).ranges()[0].law();
    let scale = |n, d| Law::Laplace { scale: Ratio::new(n, d).expect("a ratio") };
    assert_eq!(law(users(1)), scale(2 * 5, 4));
    assert_eq!(law(users(3)), scale(2 * 5 * 3, 4));
    let gaussian = |per_substream| {
        let method = TunedMethod {
            substreams: 4,
            counters: CounterLayout::Identity,
            noise: NoiseChoice::Gaussian,
            ..TunedMethod::default()
        };
        law(Settings { method: Some(Method::Tuned(method)), ..users(per_substream) }).variance()
    };
    let epsilon = Epsilon::new(4.0).expect("in range");
    let delta = Delta::new(1e-6).expect("in range");
    assert_eq!(gaussian(1), accounting::gaussian_variance(epsilon, delta, 10) as f64);
    // 2 x 5 x 3 x 3 squares, by zCDP.
    let zcdp = 90.0 / (2.0 * accounting::zcdp_rho(epsilon, delta).get());
    assert!((gaussian(3) - zcdp).abs() <= 1.0, "{} {zcdp}", gaussian(3));
    let contract = plan(users(1)).contract();
    assert!(contract.contains("one user inside any one window"), "{contract}");
    let paper = Settings { method: Some(Method::Paper(PaperMethod::default())), ..users(1) };
    assert!(Plan::new(paper).is_err());
    assert!(Plan::new(users(0)).is_err());
}

#[test]
fn items_over_the_cap_take_their_position_and_count_nowhere() {
    let mut sketch = sketch(users(2), Noise::off());
    // Each of 50 users sends five items in each substream of 250.
    let senders: Vec<u64> = (0..1000).map(|i| i % 50).collect();
    sketch.extend(Batch::integers(&vec![3; 1000]).by(&senders)).expect("items");
    assert_eq!(sketch.position(), 1000);
    assert_eq!(sketch.view().frequency(3).expect("a key").value, 4.0 * 50.0 * 2.0);
    // What was sent decides nothing: nulls use up the allowance as well.
    let items: Vec<u64> = (0..1000).map(|i| if i % 250 < 100 { 99 } else { 3 }).collect();
    sketch.extend(Batch::integers(&items).by(&senders)).expect("items");
    assert_eq!(sketch.view().frequency(3).expect("a key").value, 0.0);
}

#[test]
fn users_and_events_are_not_mixed_up() {
    let mut by_user = sketch(users(1), Noise::off());
    assert!(matches!(
        by_user.extend(Batch::integers(&[1])),
        Err(IngestError::NoUsers | IngestError::UnwantedUsers)
    ));
    assert_eq!(
        by_user.extend(Batch::integers(&[1, 2]).by(&[1])),
        Err(IngestError::UserCount { users: 1, items: 2 })
    );
    let events = Settings { unit: Unit::ReplaceOne, ..users(1) };
    assert!(matches!(
        sketch(events, Noise::off()).extend(Batch::integers(&[1]).by(&[1])),
        Err(IngestError::NoUsers | IngestError::UnwantedUsers)
    ));
    assert_eq!(by_user.position(), 0);
}

#[test]
fn the_cap_survives_a_restore() {
    let mut sketch = sketch(users(1), Noise::off());
    sketch.extend(Batch::integers(&[3; 100]).by(&[5; 100])).expect("items");
    let key = StateKey::from_bytes([1; 32]);
    let mut store = MemoryStore::default();
    let saved = sketch.save(&key, &mut store).expect("randomness");
    let mut restored = DpswSketch::restore(&saved.bytes, &key, Noise::off(), &mut store).expect("a state");
    restored.extend(Batch::integers(&[3; 150]).by(&[5; 150])).expect("items");
    assert_eq!(restored.view().frequency(3).expect("a key").value, 1.0);
}

#[test]
fn users_have_found_keys_as_well() {
    let settings = Settings {
        unit: Unit::Users { per_substream: 1 },
        epsilon: Epsilon::new(50.0).expect("in range"),
        ..settings(in_fours(Kind::Bytes))
    };
    let plan = plan(settings.clone());
    // c = 11 for ten substreams; four checks.
    let (epsilon, epsilon_s, c) = (50.0_f64, 10.0, 11.0);
    let (y, x) = (epsilon_s / (6.0 * c), 5.0 * epsilon_s / (6.0 * c));
    let delta_t = 1e-6 * (epsilon / c).exp_m1() / epsilon.exp_m1() * (1.0 - 1e-9);
    let excess = |threshold: u64| 4.0 * (1.0 - f64::exp(-y)) * f64::exp(-x * (threshold - 1) as f64);
    let threshold = (1..).find(|&threshold| excess(threshold) <= delta_t).expect("some");
    assert_eq!(plan.search_plan().expect("search").threshold(), threshold);
    let mut sketch = sketch(settings, Noise::off());
    let senders: Vec<u64> = (0..400).collect();
    sketch.extend(Batch::bytes(&vec!["a"; 400]).by(&senders)).expect("items");
    assert_eq!(found(&sketch.view()), ["a"]);
}

#[test]
fn null_items_take_positions() {
    let mut sketch = sketch(Settings { unit: Unit::ReplaceOne, ..users(1) }, Noise::off());
    sketch.extend(Batch::integers(&[3; 100])).expect("items");
    sketch.extend(Batch::nulls(700)).expect("nulls");
    sketch.extend(Batch::integers(&[3; 200])).expect("items");
    assert_eq!(sketch.position(), 1000);
    assert_eq!(sketch.view().frequency(3).expect("a key").value, 300.0);
}

#[test]
fn null_items_have_times_and_use_up_the_cap_of_their_user() {
    let window = TimeWindow { len: 1000, lateness: 0, clock: Clock::Events, expected_items: 1000 };
    let mut events =
        sketch(Settings { window: Window::Time(window), unit: Unit::ReplaceOne, ..users(1) }, Noise::off());
    events.extend(Batch::integers(&[3, 3]).at(&[5000, 5100])).expect("items");
    let taken = events.extend(Batch::nulls(3).at(&[5200, 4000, 6000])).expect("nulls");
    assert_eq!((taken.counted, taken.late, taken.early), (2, 1, 0));
    assert_eq!((events.position(), events.late_events()), (6000, Some(1)), "null items move the clock");
    assert_eq!(events.view().frequency(3).expect("a key").value, 2.0);
    assert_eq!(events.view().items(), Some(3), "the last null item is not sealed");

    let mut by_user = sketch(users(1), Noise::off());
    by_user.extend(Batch::nulls(100).by(&[5; 100])).expect("nulls");
    by_user.extend(Batch::integers(&[3; 50]).by(&[5; 50])).expect("over the cap");
    by_user.extend(Batch::integers(&[3; 100]).by(&[6; 100])).expect("one counts");
    assert_eq!((by_user.position(), by_user.view().items()), (250, Some(250)));
    assert_eq!(by_user.view().frequency(3).expect("a key").value, 1.0);
    assert!(matches!(
        by_user.extend(Batch::nulls(1)),
        Err(IngestError::NoUsers | IngestError::UnwantedUsers)
    ));
    assert!(matches!(by_user.extend(Batch::nulls(1).at(&[1]).by(&[5])), Err(IngestError::CountWindow)));

    let mut timed = sketch(Settings { window: Window::Time(window), ..users(1) }, Noise::off());
    let mut events = |user: u64, item: Option<u64>, times: &[u64]| {
        let users = vec![user; times.len()];
        match item {
            Some(item) => {
                timed.extend(Batch::integers(&vec![item; times.len()]).at(times).by(&users)).expect("items")
            }
            None => timed.extend(Batch::nulls(times.len()).at(times).by(&users)).expect("nulls"),
        };
    };
    events(5, None, &[5000, 5001]);
    events(5, Some(3), &[5002, 5003]);
    events(6, Some(3), &[5004, 5005, 6000]);
    assert_eq!(timed.view().frequency(3).expect("a key").value, 1.0);
}

#[test]
fn a_state_that_is_not_the_newest_searches_again_from_the_next_search_on() {
    let mut old = sketch(settings(in_fours(Kind::Integers)), Noise::off());
    old.extend(Batch::integers(&[6; 100])).expect("integers");
    old.extend(Batch::integers(&[7; 20])).expect("integers");
    let key = StateKey::from_bytes([1; 32]);
    let saved = old.save(&key, &mut MemoryStore::default()).expect("randomness");
    let mut resumed = DpswSketch::resume(&saved.bytes, &key, Noise::off(), 190).expect("a state");
    assert_eq!(resumed.position(), 200);
    assert!(found(&resumed.view()).is_empty(), "what was found is given up");
    // The search runs up to 400, and some of its events may have been counted elsewhere; also after another restore.
    resumed.extend(Batch::integers(&[8; 100])).expect("integers");
    let mut store = MemoryStore::default();
    let saved = resumed.save(&key, &mut store).expect("randomness");
    let mut restored = DpswSketch::restore(&saved.bytes, &key, Noise::off(), &mut store).expect("a state");
    restored.extend(Batch::integers(&[8; 100])).expect("integers");
    assert!(found(&restored.view()).is_empty());
    restored.extend(Batch::integers(&[9; 100])).expect("integers");
    assert_eq!(found(&restored.view()), ["9"]);
    let on_time = DpswSketch::resume(&saved.bytes, &key, Noise::off(), 400).expect("a state");
    let mut on_time = on_time;
    on_time.extend(Batch::integers(&[5; 100])).expect("integers");
    assert_eq!(found(&on_time.view()), ["5"], "a search that begins at the named start");
}

#[test]
fn shares_too_small_for_any_threshold_are_refused() {
    for exponent in 9..=18 {
        let share = Ratio::new(1, 10_u64.pow(exponent)).ok();
        let by_user = Settings {
            unit: Unit::Users { per_substream: 1 },
            epsilon: Epsilon::new(1.0).expect("in range"),
            ..settings(SearchSettings { share, ..in_fours(Kind::Integers) })
        };
        assert!(Plan::new(by_user).is_err(), "10^-{exponent}");
    }
}

#[test]
fn views_of_users_are_not_merged() {
    let window = TimeWindow { len: 1000, lateness: 0, clock: Clock::Caller, expected_items: 1000 };
    let site = |number| {
        let settings = Settings { window: Window::Time(window), ..users(1) };
        sketch(settings, Noise::from_system()).at_site(number).view()
    };
    assert_eq!(WindowView::merge(&[site(0), site(1)]).expect_err("users"), MergeError::Users);
}

/// Each site finds its own key, but with probability below 1e-6: the noise of scale 6/10 leaves 200 below 60.
#[test]
fn merged_views_list_what_any_site_found() {
    let window = TimeWindow { len: 1000, lateness: 0, clock: Clock::Caller, expected_items: 1000 };
    let settings = Settings {
        window: Window::Time(window),
        epsilon: Epsilon::new(50.0).expect("in range"),
        ..settings(in_fours(Kind::Bytes))
    };
    let site = |number: u64, keys: [&str; 2]| {
        let mut sketch = sketch(settings.clone(), Noise::from_system()).at_site(number);
        sketch.advance(0).expect("a clock");
        for key in keys {
            sketch.extend(Batch::bytes(&[key; 100]).at(&[5; 100])).expect("events");
        }
        sketch.advance(100).expect("a clock");
        sketch.view()
    };
    let merged = WindowView::merge(&[site(0, ["a", "b"]), site(1, ["b", "c"])]).expect("mergeable");
    assert_eq!(found(&merged), ["a", "b", "c"]);
    assert!((merged.frequency("b").expect("a key").value - 200.0).abs() < 20.0);
    let loaded = WindowView::from_bytes(&merged.to_bytes()).expect("valid bytes");
    assert_eq!(loaded.top(9), merged.top(9));
}
