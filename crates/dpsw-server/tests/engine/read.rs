//! What is read of a broker and how far it was read are durable together, on disks that crash, fail, and lie about failing.

use std::collections::VecDeque;

use dpsw_server::{Engine, Events, IngestError, Pending, Position, Step};

use crate::disk::{Random, SimDisk, Unsynced};
use crate::support::{COUNT_STREAM, Rig, SOURCE, Seen, create, noisy_stream, pages, view};

const PARTITIONS: u32 = 3;
/// Records of each partition; its number is their key.
const RECORDS: u128 = 200;
/// Batches that are on their way at a time.
const PENDING_MAX: usize = 3;

fn source() -> String {
    let broker = "kind = 'redis', address = '127.0.0.1:1', topic = 'visits', routing = 'independent'";
    format!("{SOURCE}\nbroker = {{ {broker} }}")
}

fn key(partition: u32) -> &'static str {
    ["a", "b", "c"][partition as usize]
}

/// Some records of some partitions after a position; `None` at the end of the topic.
fn next(from: &Position, random: &mut Random) -> Option<(Events, Step)> {
    let (mut to, mut items) = (from.clone(), Vec::new());
    let mut partitions: Vec<u32> = (0..PARTITIONS).collect();
    partitions.rotate_left(random.below(PARTITIONS.into()) as usize);
    for partition in partitions {
        let first = to.taken.get(&partition).map_or(0, |last| last + 1);
        let end = RECORDS.min(first + u128::from(random.below(9)) + 1);
        items.extend((first..end).map(|_| key(partition)));
        to.taken.extend((first < end).then_some((partition, end - 1)));
    }
    (!items.is_empty()).then(|| (pages(items), Step { from: from.clone(), to }))
}

/// Reads from where the source stands until there is trouble, or no more.
fn read(engine: &Engine, random: &mut Random) -> Result<(), IngestError> {
    let mut position = engine.position("web")?;
    let mut pending: VecDeque<Pending> = VecDeque::new();
    while let Some((events, step)) = next(&position, random) {
        position = step.to.clone();
        pending.push_back(engine.ingest_read("web", events, step)?);
        if PENDING_MAX <= pending.len() {
            pending.pop_front().map_or(Ok(()), |first| first.wait().map(drop))?;
        }
    }
    pending.into_iter().try_for_each(|pending| pending.wait().map(drop))
}

/// Holds that every record was counted once, after filling up the last substream.
#[track_caller]
fn finish(engine: &Engine, random: &mut Random, seed: u64) {
    read(engine, random).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let events = u64::from(PARTITIONS) * RECORDS as u64;
    let len = engine.stream("pages").expect("a stream").plan.substream_len();
    let filler = vec!["not listed"; (events.next_multiple_of(len) - events) as usize];
    let position = engine.position("web").expect("a source");
    let step = Step { from: position.clone(), to: position };
    engine.ingest_read("web", pages(filler), step).expect("room").wait().expect("durable");
    let published = view(engine, "pages");
    assert_eq!(published.sealed_until, events.next_multiple_of(len), "seed {seed}");
    let whole = published.view.last(published.sealed_until).expect("all is kept");
    let shown = [0, 1, 2].map(|partition| whole.frequency(key(partition)).expect("a key").value);
    assert_eq!(shown, [RECORDS as f64; 3], "seed {seed}");
}

fn new_engine(rig: &Rig, disk: &SimDisk) -> Engine {
    let engine = rig.open_on(disk);
    create(&engine, &source(), &[COUNT_STREAM, &noisy_stream("window = 100")]);
    engine
}

fn check_crashes(unsynced: Unsynced, seed: u64) -> usize {
    let (rig, disk, mut random) = (Rig::new(), SimDisk::default(), Random(seed));
    let (mut engine, mut seen, mut crashes) = (Some(new_engine(&rig, &disk)), Seen::default(), 0);
    for _ in 0..3 {
        disk.crash_after(random.below(250));
        if let Some(engine) = engine.take() {
            // A crash is an error, and so is what comes after it.
            let _ = read(&engine, &mut random);
            seen.look(&engine.view("noisy").expect("a stream").view);
        }
        crashes += usize::from(disk.is_crashed());
        disk.restart(unsynced, &mut random);
        disk.crash_after(random.below(100));
        engine = rig.try_open_on(&disk).ok();
    }
    drop(engine);
    disk.restart(unsynced, &mut random);
    let engine = rig.open_on(&disk);
    finish(&engine, &mut random, seed);
    seen.look(&view(&engine, "noisy").view);
    crashes
}

#[test]
fn every_record_counts_once_where_unsynced_writes_are_lost_or_mixed_up() {
    let lost = (0..30).map(|seed| check_crashes(Unsynced::Dropped, seed)).sum::<usize>();
    let mixed = (100..130).map(|seed| check_crashes(Unsynced::Reordered, seed)).sum::<usize>();
    assert!(30 < lost && 30 < mixed, "{lost} and {mixed} crashes");
}

/// A write that fails may be done all the same: how far the source has read must not be further than what it has.
#[test]
fn every_record_counts_once_where_a_commit_is_refused_and_is_there_all_the_same() {
    let mut failures = 0;
    for seed in 0..60 {
        let (rig, disk, mut random) = (Rig::new(), SimDisk::default(), Random(seed));
        let engine = new_engine(&rig, &disk);
        disk.do_and_fail(random.below(120));
        failures += usize::from(read(&engine, &mut random).is_err());
        disk.fail(0, 0);
        while !engine.health().is_ready() {
            std::thread::yield_now();
        }
        // Nothing was taken since: what a crash finds is what the disk was left with.
        drop(engine);
        finish(&rig.open_on(&disk), &mut random, seed);
    }
    assert!(20 < failures, "{failures} failures");
}

#[test]
fn a_batch_is_taken_only_where_the_source_stands() {
    let rig = Rig::new();
    let engine = rig.with(&source(), &[COUNT_STREAM]);
    let start = engine.position("web").expect("a source");
    assert_eq!(start, Position::default());
    let at = |offset| Position { taken: [(0, offset)].into(), ..Position::default() };
    let take = |from: &Position, to: &Position| {
        let step = Step { from: from.clone(), to: to.clone() };
        engine.ingest_read("web", pages(["a"; 20]), step).expect("room").wait()
    };
    take(&start, &at(19)).expect("it begins where the source stands");
    let elsewhere = Err(IngestError::OtherPosition("web".to_owned()));
    assert_eq!(take(&start, &at(19)), elsewhere, "it was taken before");
    assert_eq!(take(&at(39), &at(59)), elsewhere, "one is missing");
    assert_eq!(engine.position("web"), Ok(at(19)));
    let sent = engine.ingest("web", None, pages(["a"; 20]));
    assert!(matches!(sent, Err(IngestError::Brokered(name)) if name == "web"));
    assert_eq!(view(&engine, "pages").view.window().end, 20, "one batch was taken");
    drop(engine);
    assert_eq!(rig.open().position("web"), Ok(at(19)));
}

#[test]
fn data_that_may_be_old_is_read_on_after_the_end_of_the_topic() {
    let (rig, disk, mut random) = (Rig::new(), SimDisk::default(), Random(1));
    let engine = new_engine(&rig, &disk);
    let (events, step) = next(&Position::default(), &mut random).expect("records");
    engine.ingest_read("web", events, step.clone()).expect("room").wait().expect("durable");
    engine.shutdown().expect("healthy");
    drop(engine);
    let backup = disk.backup();
    let engine = rig.open_on(&disk);
    assert!(!engine.position("web").expect("a source").begins_at_end, "the data is the newest");
    read(&engine, &mut random).expect("healthy");
    engine.settle().expect("healthy");
    drop(engine);
    disk.restore(&backup);
    let engine = rig.open_on(&disk);
    assert_eq!(engine.position("web"), Ok(Position { begins_at_end: true, ..step.to }));
}
