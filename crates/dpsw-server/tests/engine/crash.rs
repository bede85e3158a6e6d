//! Crashes at random moments, on disks that lose or mix up what was not synced.

use std::sync::atomic::{AtomicBool, Ordering};

use dpsw_server::{Engine, IngestError};

use crate::disk::{Random, SimDisk, Unsynced};
use crate::support::{COUNT_STREAM, Rig, SOURCE, Seen, create, id_of, noisy_stream, pages, view};

/// Producers that send at the same time, each waiting for its own batch.
const PRODUCERS: usize = 3;
const BATCHES: usize = 24;
const EVENTS: usize = 13;

/// What a producer sends: its own key, so that its events can be told from those of others.
fn key(producer: usize) -> &'static str {
    ["a", "b", "c"][producer]
}

fn send_from(engine: &Engine, producer: usize, batch: usize) -> Result<bool, IngestError> {
    let events = pages(vec![key(producer); EVENTS]);
    let pending = engine.ingest("web", id_of("owner", &format!("{producer}/{batch}")), events)?;
    pending.wait().map(|receipt| receipt.is_repeated)
}

/// How far each producer knows to have come.
type Acknowledged = [usize; PRODUCERS];

/// Lets all producers send until they are done, or an error is not worth another try, while somebody looks.
fn run(
    engine: &Engine,
    acknowledged: &mut Acknowledged,
    seen: &mut Seen,
    mut goes_on: impl FnMut() -> bool + Send + Copy,
) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let engine = &engine;
        let producers = acknowledged.iter_mut().enumerate().map(|(producer, done)| {
            scope.spawn(move || {
                while *done < BATCHES {
                    match send_from(engine, producer, *done) {
                        Ok(_) => *done += 1,
                        Err(_) if goes_on() => std::thread::yield_now(),
                        Err(_) => break,
                    }
                }
            })
        });
        let producers: Vec<_> = producers.collect();
        let is_over = &is_over;
        scope.spawn(move || {
            while !is_over.load(Ordering::SeqCst) {
                seen.look(&engine.view("noisy").expect("a stream").view);
                std::thread::yield_now();
            }
        });
        producers.into_iter().for_each(|producer| producer.join().expect("no panic"));
        is_over.store(true, Ordering::SeqCst);
    });
}

/// A whole life with crashes, of which it says how many there were. Everything that a producer was told is durable counts once, whatever it sent again; what was ever
/// seen is never seen otherwise.
fn check_schedule(unsynced: Unsynced, seed: u64) -> usize {
    let (rig, disk, mut random) = (Rig::new(), SimDisk::default(), Random(seed));
    let engine = rig.open_on(&disk);
    create(&engine, SOURCE, &[COUNT_STREAM, &noisy_stream("window = 100")]);
    let (mut acknowledged, mut seen) = (Acknowledged::default(), Seen::default());
    let mut engine = Some(engine);
    let mut crashes = 0;
    for _ in 0..3 {
        disk.crash_after(random.below(250));
        if let Some(engine) = engine.take() {
            run(&engine, &mut acknowledged, &mut seen, || false);
        }
        crashes += usize::from(disk.is_crashed());
        disk.restart(unsynced, &mut random);
        // A crash while it starts is a crash as well.
        disk.crash_after(random.below(100));
        engine = rig.try_open_on(&disk).ok();
        if let Some(engine) = &engine {
            seen.look(&engine.view("noisy").expect("a stream").view);
        }
        assert!(engine.is_some() || disk.is_crashed(), "seed {seed}");
    }
    crashes += usize::from(disk.is_crashed());
    drop(engine);
    disk.restart(unsynced, &mut random);
    let engine = rig.open_on(&disk);
    finish(&engine, acknowledged, &mut seen, seed);
    crashes
}

/// Sends the rest, fills up the last substream, and counts.
fn finish(engine: &Engine, mut acknowledged: Acknowledged, seen: &mut Seen, seed: u64) {
    run(engine, &mut acknowledged, seen, || false);
    assert_eq!(acknowledged, [BATCHES; PRODUCERS], "seed {seed}: {:?}", engine.health());
    for (producer, batch) in (0..PRODUCERS).flat_map(|producer| [(producer, 0), (producer, BATCHES - 1)]) {
        assert_eq!(send_from(engine, producer, batch), Ok(true), "seed {seed}: it was taken before");
    }
    let len = engine.stream("pages").expect("a stream").plan.substream_len();
    let events = (PRODUCERS * BATCHES * EVENTS) as u64;
    let filler = vec!["not listed"; (events.next_multiple_of(len) - events) as usize];
    engine.ingest("web", None, pages(filler)).expect("room").wait().expect("durable");
    let published = view(engine, "pages");
    assert_eq!(published.sealed_until, events.next_multiple_of(len), "seed {seed}");
    for producer in 0..PRODUCERS {
        let whole = published.view.last(published.sealed_until).expect("all is kept");
        let shown = whole.frequency(key(producer)).expect("a key").value;
        assert_eq!(shown, (BATCHES * EVENTS) as f64, "seed {seed}, producer {producer}");
    }
    seen.look(&view(engine, "noisy").view);
    assert!(seen.last().is_some_and(|last| 20 < last), "seed {seed}: something was seen");
}

#[test]
fn nothing_is_lost_doubled_or_redrawn_where_unsynced_writes_are_lost() {
    let crashes = (0..60).map(|seed| check_schedule(Unsynced::Dropped, seed)).sum::<usize>();
    assert!(90 < crashes, "{crashes} crashes");
}

#[test]
fn nothing_is_lost_doubled_or_redrawn_where_unsynced_writes_are_mixed_up() {
    let crashes = (100..160).map(|seed| check_schedule(Unsynced::Reordered, seed)).sum::<usize>();
    assert!(90 < crashes, "{crashes} crashes");
}

#[test]
fn nothing_is_lost_doubled_or_redrawn_where_writes_fail_for_a_while() {
    let mut failures = 0;
    for seed in 200..210 {
        let (rig, disk, mut random) = (Rig::new(), SimDisk::default(), Random(seed));
        let engine = rig.open_on(&disk);
        create(&engine, SOURCE, &[COUNT_STREAM, &noisy_stream("window = 100")]);
        let (mut acknowledged, mut seen) = (Acknowledged::default(), Seen::default());
        disk.fail(random.below(150), 1 + random.below(4));
        run(&engine, &mut acknowledged, &mut seen, || true);
        failures += usize::from(!disk.is_failing());
        disk.fail(0, 0);
        while !engine.health().is_ready() {
            std::thread::yield_now();
        }
        finish(&engine, acknowledged, &mut seen, seed);
    }
    assert!(5 < failures, "{failures} failures");
}
