//! Keys that are found in the stream itself, and whole users.

use dpsw::error::*;
use dpsw::noise::Law;
use dpsw::privacy::accounting;
use dpsw::store::MemoryStore;
use dpsw::*;

fn delta(value: f64) -> Option<Delta> {
    Delta::new(value).ok()
}

/// Epochs of four substreams.
fn in_fours(kind: Kind) -> Discovery {
    Discovery { epoch: Some(4), ..Discovery::new(kind) }
}

fn settings(discovery: Discovery) -> Settings {
    Settings {
        window: Window::Items(1000),
        unit: Unit::ReplaceOne,
        epsilon: Epsilon::new(4.0).expect("in range"),
        delta: delta(1e-6),
        domain: Domain::Discovered(discovery),
        method: Some(Method::Tuned(TunedMethod {
            substreams: 10,
            counters: CounterLayout::Hashed { rows: 2, columns: 64 },
            noise: NoiseChoice::Laplace,
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
        view.top(100).expect("found keys").iter().map(|r| r.item.to_string()).collect();
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
fn frequent_keys_are_found_when_their_epoch_ends_and_rare_ones_are_not() {
    let threshold = plan(settings(in_fours(Kind::Bytes))).discovery().expect("discovery").threshold();
    assert!((20..100).contains(&threshold), "{threshold}");
    let mut sketch = sketch(settings(in_fours(Kind::Bytes)), Noise::off());
    sketch.extend(Batch::bytes(&words(399))).expect("words");
    assert!(found(&sketch.view()).is_empty(), "the epoch of four substreams is not complete");
    sketch.extend(Batch::bytes(&words(1))).expect("words");
    // 200, 100 and 50 of 400 against the threshold.
    let wanted: Vec<&str> = [("a", 200), ("b", 100), ("c", 50)]
        .iter()
        .filter(|(_, n)| threshold < *n)
        .map(|(key, _)| *key)
        .collect();
    assert_eq!(found(&sketch.view()), wanted);
    let unknown = sketch.view().frequency("once 7").expect("any key can be asked for").value;
    assert!(unknown.abs() < 60.0, "{unknown}");
    let a = sketch.view().frequency("a").expect("a key").value;
    assert!((a - 200.0).abs() < 30.0, "{a}");
}

#[test]
fn found_keys_live_until_their_epoch_leaves_the_window() {
    let mut sketch = sketch(settings(Discovery { epoch: Some(2), ..in_fours(Kind::Integers) }), Noise::off());
    sketch.extend(Batch::integers(&[7; 200])).expect("integers");
    assert_eq!(found(&sketch.view()), ["7"]);
    sketch.extend(Batch::integers(&(0..900).collect::<Vec<u64>>())).expect("integers");
    assert_eq!(found(&sketch.view()), ["7"], "its epoch ends at 200 and the window starts at 100");
    sketch.extend(Batch::integers(&(0..100).collect::<Vec<u64>>())).expect("integers");
    assert!(found(&sketch.view()).is_empty());
}

#[test]
fn a_summary_finds_what_the_exact_map_finds_but_for_its_error() {
    let discovery = Discovery { tracking: Tracking::Summary { keys: 19 }, ..in_fours(Kind::Bytes) };
    let plan = plan(settings(discovery));
    let planned = plan.discovery().expect("discovery");
    let exact = Plan::new(settings(in_fours(Kind::Bytes))).expect("a valid plan");
    let missing = planned.count_found(0.99) - exact.discovery().expect("discovery").count_found(0.99);
    assert_eq!(missing, 20.0, "400 items / (19 + 1)");
    assert!(plan.resident_bytes() < exact.resident_bytes());
    let mut sketch = sketch(settings(discovery), Noise::off());
    sketch.extend(Batch::bytes(&words(400))).expect("words");
    let keys = found(&sketch.view());
    assert!(keys.contains(&"a".to_owned()) && keys.contains(&"b".to_owned()), "{keys:?}");
    assert!(keys.iter().all(|key| !key.starts_with("once")), "{keys:?}");
}

#[test]
fn the_threshold_is_that_of_the_published_vector() {
    // epsilon 1, of which a fifth for keys, delta 10^-10.5: 249.
    let tuned = Settings {
        window: Window::Items(1_000_000),
        epsilon: Epsilon::new(1.0).expect("in range"),
        delta: delta(10_f64.powf(-10.5)),
        ..settings(in_fours(Kind::Integers))
    };
    let plan = plan(tuned);
    let discovery = plan.discovery().expect("discovery");
    assert_eq!(discovery.threshold(), 249);
    assert_eq!(discovery.law().variance().sqrt().round(), 14.0);
    let delta_t = 10_f64.powf(-10.5) / (1.0 + 1_f64.exp());
    assert!(discovery.seen_once() <= delta_t && 0.9 * delta_t < discovery.seen_once());
    // About 0.0014 of an epoch of 400,000 items would be 280/400,000; here an epoch has 4 x 100,000.
    assert!((discovery.count_found(0.99) - 288.0).abs() < 10.0, "{}", discovery.count_found(0.99));
    let (epsilon, delta) = plan.ledger().spent();
    assert!(epsilon <= 1.0 + 1e-12 && delta <= 10_f64.powf(-10.5));
    assert!(plan.to_string().contains("found in epochs of 4 substreams"), "{plan}");
}

#[test]
fn found_keys_travel_with_views_and_states() {
    for tracking in [Tracking::Exact, Tracking::Summary { keys: 30 }] {
        let discovery = Discovery { tracking, ..in_fours(Kind::Bytes) };
        let mut sketch = sketch(settings(discovery), Noise::seeded(4));
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
        // 150 of the 400 items of the second epoch were in the state.
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
    sketch.extend(Batch::bytes(&words(449)).at(&times[..449])).expect("in time");
    assert!(found(&sketch.view()).is_empty());
    sketch.extend(Batch::bytes(&words(1000)[449..]).at(&times[449..])).expect("in time");
    assert!(found(&sketch.view()).starts_with(&["a".to_owned(), "b".to_owned()]));
}

#[test]
fn keys_that_are_too_long_are_counted_but_not_found() {
    let mut sketch = sketch(settings(Discovery { key_len_max: 3, ..in_fours(Kind::Bytes) }), Noise::off());
    let items: Vec<&str> = (0..400).map(|i| if i % 2 == 0 { "abc" } else { "abcd" }).collect();
    sketch.extend(Batch::bytes(&items)).expect("words");
    assert_eq!(found(&sketch.view()), ["abc"]);
    let long = sketch.view().frequency("abcd").expect("any key").value;
    assert!((long - 200.0).abs() < 20.0, "{long}");
}

#[test]
fn discoveries_that_cannot_be_are_refused() {
    let discovery = in_fours(Kind::Bytes);
    let without_delta = Settings { delta: None, ..settings(discovery) };
    let ratio = |n, d| Ratio::new(n, d).expect("a ratio");
    for (settings, message) in [
        (without_delta, "finding keys needs a delta"),
        (settings(Discovery { epoch: Some(0), ..discovery }), "substreams of an epoch"),
        (settings(Discovery { epoch: Some(11), ..discovery }), "substreams of an epoch"),
        (settings(Discovery { share: ratio(1, 1), ..discovery }), "the share of epsilon"),
        (settings(Discovery { share: ratio(0, 1), ..discovery }), "the share of epsilon"),
        (settings(Discovery { key_len_max: 0, ..discovery }), "length of a key"),
        (settings(Discovery { tracking: Tracking::Summary { keys: 0 }, ..discovery }), "keys of a summary"),
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
            noise: NoiseChoice::Laplace,
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
        let method =
            TunedMethod { substreams: 4, counters: CounterLayout::Identity, noise: NoiseChoice::Gaussian };
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
    // c = 11 for ten substreams, 4 of them in an epoch: 4 - 1 + the steps for 11 keys at once.
    let (epsilon_s, c) = (10.0, 11.0);
    let q = f64::exp(-epsilon_s / (2.0 * c));
    let delta_t = 1e-6 / (1.0 + 50_f64.exp());
    let steps = (0..).find(|&z| c * q.powi(z) / (1.0 + q) <= delta_t).expect("some");
    assert_eq!(plan.discovery().expect("discovery").threshold(), 3 + i64::from(steps));
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
fn a_state_that_is_not_the_newest_gives_up_the_keys_of_its_epoch() {
    let mut old = sketch(settings(in_fours(Kind::Integers)), Noise::off());
    old.extend(Batch::integers(&[7; 190])).expect("integers");
    let key = StateKey::from_bytes([1; 32]);
    let saved = old.save(&key, &mut MemoryStore::default()).expect("randomness");
    let mut resumed = DpswSketch::resume(&saved.bytes, &key, Noise::off(), 190).expect("a state");
    assert_eq!(resumed.position(), 200);
    resumed.extend(Batch::integers(&[8; 200])).expect("integers");
    assert_eq!(found(&resumed.view()), ["8"], "190 times 7 would be found");
}

#[test]
fn shares_too_small_for_any_threshold_are_refused() {
    for exponent in 9..=18 {
        let share = Ratio::new(1, 10_u64.pow(exponent)).expect("a ratio");
        let by_user = Settings {
            unit: Unit::Users { per_substream: 1 },
            epsilon: Epsilon::new(1.0).expect("in range"),
            ..settings(Discovery { share, ..in_fours(Kind::Integers) })
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
