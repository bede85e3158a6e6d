//! Partial counters of trusted workers: nothing that one event brings decides whether others count.

use dpsw::error::*;
use dpsw::plan::{CounterLayout, Method, PaperMethod, SubstreamLen, TunedMethod};
use dpsw::store::MemoryStore;
use dpsw::worker::{Absorbed, Counted, Outside, PartialCounters, PartialId, Worker};
use dpsw::*;

const SUBSTREAM: u64 = 20;

fn settings(unit: Unit) -> Settings {
    let window = TimeWindow { len: 100, lateness: 30, clock: Clock::Caller, expected_items: 1000 };
    let counters = CounterLayout::Hashed { rows: 1, columns: 64 };
    Settings {
        window: Window::Time(window),
        unit,
        epsilon: Epsilon::new(1.0).expect("in range"),
        delta: Delta::new(1e-9).ok(),
        domain: Domain::Asked(Kind::Integers),
        method: Some(Method::Tuned(TunedMethod { substreams: 5, counters, ..TunedMethod::default() })),
        retention: 1,
    }
}

/// Substreams with segments, some of which close before their substream does.
fn in_segments() -> Settings {
    let counters = CounterLayout::Hashed { rows: 1, columns: 64 };
    let method = PaperMethod { substream: SubstreamLen::PerWindow(5), counters, ..PaperMethod::default() };
    Settings { method: Some(Method::Paper(method)), ..settings(Unit::ReplaceOne) }
}

fn key() -> StreamKey {
    StreamKey::from_bytes([7; 32])
}

fn id(batch: u64) -> PartialId {
    PartialId { source: 1, batch, partition: 0 }
}

fn plan(settings: &Settings) -> Plan {
    Plan::new(settings.clone()).expect("a valid plan")
}

fn sealer(settings: &Settings) -> DpswSketch {
    let mut sealer = DpswSketch::with_key(plan(settings), key(), Noise::off());
    sealer.advance(1000).expect("a clock");
    sealer
}

fn worker(settings: &Settings) -> Worker {
    Worker::new(plan(settings), key()).expect("a time window")
}

/// Everything that these events leave in the sealed counters, by way of a worker.
fn counted(settings: &Settings, clock: u64, events: &[u64]) -> i64 {
    let mut sealer = sealer(settings);
    sealer.advance(clock).expect("a clock");
    let items = vec![5; events.len()];
    let batch = Batch::integers(&items).at(events);
    for partial in worker(settings).count(id(1), 1000..1040, batch).expect("valid").partials {
        let is_late = (partial.substream() + 1) * SUBSTREAM <= clock;
        assert_eq!(sealer.absorb(partial).is_err(), is_late);
    }
    sealer.advance(1080).expect("a clock");
    sealer.view().sealed().filter(|sealed| sealed.range() == 0).map(|sealed| sealed.sketch().total()).sum()
}

#[test]
fn one_event_far_away_leaves_the_others_counted() {
    let crowd = vec![1005; 5000];
    for far in [3, 999, 1040, 1_000_000, u64::MAX] {
        let with_far = [&crowd[..], &[far]].concat();
        for unit in [Unit::AddRemove, Unit::ReplaceOne] {
            let settings = Settings { delta: None, ..settings(unit) };
            assert_eq!(counted(&settings, 1000, &with_far), counted(&settings, 1000, &crowd), "{far}");
        }
    }
}

#[test]
fn one_event_in_a_closed_segment_leaves_the_others_counted() {
    let settings = in_segments();
    // The first segment of the substream from 1000 to 1020 ends at 1002.
    let crowd = vec![1015; 5000];
    let alone = counted(&settings, 1010, &crowd);
    assert_eq!(alone, 5000);
    assert_eq!(counted(&settings, 1010, &[&[1001], &crowd[..]].concat()), alone);
}

#[test]
fn which_partial_counters_there_are_depends_on_the_range_alone() {
    let settings = settings(Unit::AddRemove);
    let worker = worker(&Settings { delta: None, ..settings });
    let ids = |times: &[u64]| -> Vec<(u64, Vec<PartialId>)> {
        let items = vec![5; times.len()];
        let counted = worker.count(id(3), 1010..1075, Batch::integers(&items).at(times)).expect("valid");
        counted.partials.iter().map(|partial| (partial.substream(), partial.ids().collect())).collect()
    };
    let wanted: Vec<_> = (50..54).map(|substream| (substream, vec![id(3)])).collect();
    for times in [&[][..], &[1012], &[1074, 1012], &[4, 1074], &[1_000_000]] {
        assert_eq!(ids(times), wanted, "{times:?}");
    }
}

#[test]
fn events_in_several_batches_count_together_under_one_id() {
    let settings = settings(Unit::ReplaceOne);
    let batches = [
        Batch::integers(&[5; 40]).at(&[1005; 40]),
        Batch::nulls(3).at(&[1005; 3]),
        Batch::integers(&[5; 60]).at(&[1006; 60]),
    ];
    let counted = worker(&settings).count_all(id(1), 1000..1020, &batches).expect("valid");
    let mut sealer = sealer(&settings);
    for partial in counted.partials {
        assert_eq!(sealer.absorb(partial), Ok(new(1)));
    }
    sealer.advance(1080).expect("a clock");
    let view = sealer.view();
    let total: i64 = view.sealed().map(|sealed| sealed.sketch().total()).sum();
    assert_eq!(total, 103, "null items take their places");
    let cells: i32 = view.sealed().flat_map(|sealed| sealed.sketch().cells()).sum();
    assert_eq!(cells, 100, "and count nowhere");
}

#[test]
fn a_worker_reports_what_lies_outside_and_refuses_endless_ranges() {
    let worker = worker(&settings(Unit::ReplaceOne));
    let batch = || Batch::integers(&[5, 5, 5]).at(&[999, 1000, 1040]);
    assert_eq!(
        worker.count(id(1), 1000..1040, batch()).expect("valid").outside,
        Outside { before: 1, after: 1 }
    );
    let long = worker.count(id(1), 100_000..120_000, batch()).expect("the longest range");
    assert_eq!((long.partials.len(), long.outside), (1000, Outside { before: 3, after: 0 }));
    for (start, end) in [(1040, 1040), (1040, 1000), (0, 20_001), (100_000, 120_001)] {
        let error = worker.count(id(1), start..end, batch()).expect_err("refused");
        assert_eq!(error, PartialError::Range { start, end, most: 1000 });
    }
    let error = worker.count(id(1), 0..9, Batch::integers(&[1])).expect_err("no times");
    assert_eq!(error, PartialError::Ingest(IngestError::NoTimes));
    let error = worker.count(id(1), 0..9, Batch::text(&["a"]).at(&[1])).expect_err("text");
    assert!(matches!(error, PartialError::Ingest(IngestError::Kind { .. })));
}

#[test]
fn a_worker_may_follow_times_that_are_public_and_no_others() {
    let public = settings(Unit::ReplaceOne);
    let worker = worker(&public);
    let mut counting = worker.follow(id(1), 1..u64::MAX).expect("times are public");
    let times = [1005, 0, 90_000, 1006, u64::MAX];
    worker.add(&mut counting, &[Batch::integers(&[5; 5]).at(&times)]).expect("valid");
    assert_eq!((counting.arrays(), format!("{counting:?}")), (2, "Counting".to_owned()));
    let counted = worker.finish(counting);
    let substreams: Vec<u64> = counted.partials.iter().map(PartialCounters::substream).collect();
    assert_eq!(substreams, [50, 4500]);
    assert_eq!(counted.outside, Outside { before: 1, after: 1 });
    assert_eq!(counted.times, Some((1005, 90_000)));
    let private = Settings { delta: None, ..settings(Unit::AddRemove) };
    let refused = self::worker(&private).follow(id(1), 1..u64::MAX);
    assert_eq!(refused.expect_err("presence is private"), PartialError::PrivateTimes);
}

#[test]
fn events_count_alike_in_any_order_and_in_any_number_of_batches() {
    let settings = in_segments();
    let worker = worker(&settings);
    let times: Vec<u64> = (0..900).map(|event| 1000 + event * 7919 % 40).collect();
    let items: Vec<u64> = (0..900).map(|event| event % 13).collect();
    let mut sorted: Vec<(u64, u64)> = times.iter().copied().zip(items.iter().copied()).collect();
    sorted.sort_by_key(|(time, _)| *time);
    let (in_order, its_items): (Vec<u64>, Vec<u64>) = sorted.into_iter().unzip();
    let bytes = |counted: Counted| -> Vec<Vec<u8>> {
        assert_eq!(counted.times, Some((1000, 1039)));
        counted.partials.iter().map(PartialCounters::to_bytes).collect()
    };
    let sorted = Batch::integers(&its_items).at(&in_order);
    let wanted = bytes(worker.count(id(1), 1000..1040, sorted).expect("valid"));
    let mixed = Batch::integers(&items).at(&times);
    assert_eq!(bytes(worker.count(id(1), 1000..1040, mixed).expect("valid")), wanted);
    let mut counting = worker.start(id(1), 1000..1040).expect("a short range");
    for (items, times) in items.chunks(77).zip(times.chunks(77)) {
        worker.add(&mut counting, &[Batch::integers(items).at(times)]).expect("valid");
    }
    assert_eq!(bytes(worker.finish(counting)), wanted);
}

#[test]
fn a_batch_that_does_not_fit_adds_nothing() {
    let worker = worker(&settings(Unit::ReplaceOne));
    let mut counting = worker.start(id(1), 1000..1040).expect("a short range");
    let batches = [Batch::integers(&[5]).at(&[1005]), Batch::text(&["a"]).at(&[1005])];
    assert!(worker.add(&mut counting, &batches).is_err());
    assert_eq!((counting.arrays(), worker.finish(counting).times), (0, None));
}

#[test]
fn partial_counters_are_as_long_as_what_was_counted_and_never_longer_than_all_counters() {
    let worker = worker(&settings(Unit::ReplaceOne));
    let len = |events: usize| {
        let items: Vec<u64> = (0..events as u64).collect();
        let counted = worker.count(id(1), 1000..1020, Batch::integers(&items).at(&vec![1001; events]));
        counted.expect("valid").partials[0].to_bytes().len()
    };
    let (none, few, all) = (len(0), len(3), len(5000));
    assert!(none < few && few <= none + 40, "{none}, {few}");
    assert!(all <= none + 30 + 4 * 64, "{all}");
}

/// One event.
fn one(worker: &Worker, batch: u64, time: u64) -> PartialCounters {
    let counted = worker.count(id(batch), time..time + 1, Batch::integers(&[5]).at(&[time]));
    counted.expect("valid").partials.remove(0)
}

fn new(ids: usize) -> Absorbed {
    absorbed(ids, 0)
}

fn absorbed(new: usize, repeated: usize) -> Absorbed {
    let mut absorbed = Absorbed::default();
    (absorbed.new, absorbed.repeated) = (new, repeated);
    absorbed
}

#[test]
fn partial_counters_are_absorbed_once_and_in_time() {
    let settings = settings(Unit::ReplaceOne);
    let worker = worker(&settings);
    let one = |batch, time| one(&worker, batch, time);
    let mut unset = DpswSketch::with_key(plan(&settings), key(), Noise::off());
    assert_eq!(unset.absorb(one(1, 1000)), Err(PartialError::Early { substream: 50 }));
    let mut sealer = sealer(&settings);
    assert_eq!(sealer.absorb(one(1, 1000)), Ok(new(1)));
    assert_eq!(sealer.absorb(one(1, 1001)), Ok(absorbed(0, 1)));
    // The same batch in another substream is another part of it.
    assert_eq!(sealer.absorb(one(1, 1025)), Ok(new(1)));
    sealer.advance(1020).expect("a clock");
    assert_eq!(sealer.absorb(one(4, 1004)), Err(PartialError::Late { substream: 50 }));
    assert_eq!(sealer.absorb(one(5, 5000)), Err(PartialError::Early { substream: 250 }));
    let sealed = sealer.view().sealed().map(|sealed| sealed.sketch().total()).sum::<i64>();
    assert_eq!(sealed, 1);
}

#[test]
fn a_repeated_id_takes_nothing_that_was_merged_with_it_away() {
    let settings = settings(Unit::ReplaceOne);
    let worker = worker(&settings);
    let one = |batch, time| one(&worker, batch, time);
    let mut sealer = sealer(&settings);
    let mut merged = one(2, 1002);
    assert!(matches!(merged.merge(one(2, 1003)), Err(PartialError::Duplicate { .. })));
    assert_eq!(merged.merge(one(3, 1025)), Err(PartialError::Substream(50, 51)));
    merged.merge(one(3, 1003)).expect("the same substream");
    let merged = PartialCounters::from_bytes(&merged.to_bytes(), sealer.plan()).expect("valid bytes");
    assert_eq!(sealer.absorb(one(3, 1003)), Ok(new(1)));
    assert_eq!(sealer.absorb(merged), Ok(absorbed(1, 1)));
    sealer.advance(1020).expect("a clock");
    assert_eq!(sealer.view().sealed().map(|sealed| sealed.sketch().total()).sum::<i64>(), 2);
}

#[test]
fn partial_counters_of_other_plans_and_keys_are_refused() {
    let settings = settings(Unit::ReplaceOne);
    let mut sealer = sealer(&settings);
    let other = worker(&Settings { retention: 2, ..settings.clone() });
    assert_eq!(sealer.absorb(one(&other, 6, 1001)), Err(PartialError::Plan));
    let other = Worker::new(plan(&settings), StreamKey::from_bytes([8; 32])).expect("a time window");
    assert_eq!(sealer.absorb(one(&other, 6, 1001)), Err(PartialError::Keys));
    let refused = |settings| Worker::new(plan(&settings), key()).expect_err("refused");
    let counted = Settings { window: Window::Items(100), ..settings.clone() };
    assert_eq!(refused(counted), PartialError::CountWindow);
    let window = TimeWindow { len: 100, lateness: 30, clock: Clock::Events, expected_items: 1000 };
    let by_events = Settings { window: Window::Time(window), ..settings.clone() };
    assert_eq!(refused(by_events), PartialError::EventsClock);
    let Some(Method::Tuned(method)) = settings.method.clone() else { panic!("a tuned plan") };
    let pinned = Settings {
        domain: Domain::Public(Keys::Range(64)),
        method: Some(Method::Tuned(TunedMethod { pinned: 4, ..method })),
        ..settings.clone()
    };
    let found = Settings { domain: Domain::Found(SearchSettings::new(Kind::Integers)), ..settings };
    for refused in [pinned, found].map(refused) {
        assert_eq!(refused, PartialError::UsersOrKeys);
    }
}

#[test]
fn absorbed_ids_survive_a_restore() {
    let settings = settings(Unit::ReplaceOne);
    let worker = worker(&settings);
    let mut sealer = sealer(&settings);
    sealer.absorb(one(&worker, 1, 1003)).expect("open");
    let (state_key, mut store) = (StateKey::from_bytes([9; 32]), MemoryStore::default());
    let saved = sealer.save(&state_key, &mut store).expect("randomness");
    let mut restored =
        DpswSketch::restore(&saved.bytes, &state_key, Noise::off(), &mut store).expect("fresh");
    assert_eq!(restored.absorb(one(&worker, 1, 1003)), Ok(absorbed(0, 1)));
}
