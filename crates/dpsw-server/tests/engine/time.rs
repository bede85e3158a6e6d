//! The service's clock drives time windows, also when nothing arrives, and however it jumps.

use dpsw_server::Engine;

use crate::disk::SimDisk;
use crate::support::{Rig, START_MS, create, frequency, pages, send, view};

const ARRIVAL_SOURCE: &str =
    "name = 'web'\nprotects = 'presence'\nepsilon = 1e6\ncolumns = { page = 'text' }";
const EVENT_SOURCE: &str =
    "name = 'web'\nprotects = 'event'\nepsilon = 1e6\ntime_column = 'time'\ncolumns = { page = 'text' }";
const ARRIVAL_STREAM: &str =
    "name = 'pages'\nitem = 'page'\nwindow = '1h'\nexpected = 1000\nepsilon = 100_000
    retention = 2\nkeys = { list = ['a', 'b', 'c'] }";
const EVENT_STREAM: &str = "name = 'pages'\nitem = 'page'\nwindow = '1h'\nexpected = 1000\nepsilon = 100_000
    retention = 2\nlateness = '10m'\nkeys = { list = ['a', 'b', 'c'] }";
const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

fn at(engine: &Engine, times: &[u64]) {
    let events = pages(vec!["a"; times.len()]).with_times(times.to_vec()).expect("as many");
    send(engine, None, events);
}

fn all(engine: &Engine, start: u64) -> f64 {
    let published = view(engine, "pages");
    let len = published.view.plan().substream_len();
    frequency(&published, "a", start / len * len..published.sealed_until / len * len)
}

#[test]
fn intervals_are_sealed_by_the_clock_also_when_they_are_empty() {
    let rig = Rig::new();
    let engine = rig.with(ARRIVAL_SOURCE, &[ARRIVAL_STREAM]);
    let len = engine.stream("pages").expect("a stream").plan.substream_len();
    send(&engine, None, pages(["a", "b"]));
    let mut sealed = Vec::new();
    for minutes in [0, 30, 60, 90] {
        rig.clock.set(START_MS + minutes * MINUTE);
        let published = view(&engine, "pages");
        sealed.push(published.sealed_until);
        assert!(published.sealed_until + len > START_MS + minutes * MINUTE, "after {minutes} minutes");
        assert_eq!(published.view.window().end, START_MS + minutes * MINUTE);
    }
    assert!(sealed.is_sorted() && sealed[0] < sealed[1], "{sealed:?}");
    assert_eq!(all(&engine, START_MS), 1.0);
}

/// With many streams each look at the clock seals something, which has to be saved: a shutdown would never be done.
#[test]
fn a_shutdown_stops_the_clock_before_it_saves() {
    let (rig, disk) = (Rig::new(), SimDisk::default());
    let engine = rig.open_on(&disk);
    create(&engine, ARRIVAL_SOURCE, &[ARRIVAL_STREAM]);
    let sealed_until = view(&engine, "pages").sealed_until;
    disk.hold(true);
    let _sent = engine.ingest("web", None, pages(["a"])).expect("room");
    std::thread::scope(|scope| {
        let shutdown = scope.spawn(|| engine.shutdown());
        while engine.health().is_ready() {
            std::thread::yield_now();
        }
        rig.clock.set(START_MS + HOUR);
        // Long enough for the clock to be looked at, once the disk goes on.
        std::thread::sleep(std::time::Duration::from_millis(300));
        disk.hold(false);
        shutdown.join().expect("no panic").expect("all is saved");
    });
    drop(engine);
    rig.clock.set(START_MS);
    let engine = rig.open_on(&disk);
    assert_eq!(engine.view("pages").expect("a stream").sealed_until, sealed_until, "the clock went on");
}

#[test]
fn a_clock_that_jumps_back_opens_nothing_again_and_loses_no_event() {
    let rig = Rig::new();
    let engine = rig.with(ARRIVAL_SOURCE, &[ARRIVAL_STREAM]);
    send(&engine, None, pages(["a"; 3]));
    rig.clock.set(START_MS + 30 * MINUTE);
    let sealed_until = view(&engine, "pages").sealed_until;
    rig.clock.set(START_MS - 5 * HOUR);
    send(&engine, None, pages(["a"; 4]));
    assert_eq!(view(&engine, "pages").sealed_until, sealed_until);
    drop(engine);
    let engine = rig.open();
    send(&engine, None, pages(["a"; 5]));
    assert_eq!(view(&engine, "pages").sealed_until, sealed_until, "not after a crash either");
    rig.clock.set(START_MS + HOUR);
    assert_eq!(all(&engine, START_MS), 12.0);
}

#[test]
fn a_clock_that_jumps_far_ahead_goes_on_from_there() {
    let rig = Rig::new();
    let engine = rig.with(ARRIVAL_SOURCE, &[ARRIVAL_STREAM]);
    send(&engine, None, pages(["a"; 3]));
    let later = START_MS + 1000 * HOUR;
    rig.clock.set(later);
    send(&engine, None, pages(["a"; 4]));
    rig.clock.set(later + HOUR);
    assert_eq!(all(&engine, later), 4.0);
    assert!(view(&engine, "pages").view.last(3 * HOUR).is_err(), "what was before is not retained");
}

#[test]
fn late_and_far_events_are_left_out_one_by_one() {
    let rig = Rig::new();
    let engine = rig.with(EVENT_SOURCE, &[EVENT_STREAM]);
    at(&engine, &[START_MS; 2]);
    // More than a window ahead of the service's clock, beyond all times, and without a time: each by itself.
    at(&engine, &[START_MS + 2 * HOUR, u64::MAX, START_MS, 1 << 62]);
    rig.clock.set(START_MS + 30 * MINUTE);
    at(&engine, &[START_MS + 30 * MINUTE; 2]);
    // Up to ten minutes late; further back lie sealed intervals.
    at(&engine, &[START_MS + 21 * MINUTE, START_MS - 2 * HOUR]);
    rig.clock.set(START_MS + HOUR);
    at(&engine, &[START_MS + 59 * MINUTE]);
    assert_eq!(all(&engine, START_MS), 6.0);
}

#[test]
fn a_shutdown_seals_nothing_early_and_the_stream_goes_on() {
    let rig = Rig::new();
    let engine = rig.with(ARRIVAL_SOURCE, &[ARRIVAL_STREAM]);
    send(&engine, None, pages(["a"; 3]));
    let before = view(&engine, "pages");
    engine.shutdown().expect("room");
    assert!(engine.ingest("web", None, pages(["a"])).is_err());
    assert!(engine.create_stream("web", crate::support::stream_config(ARRIVAL_STREAM)).is_err());
    assert!(!engine.health().is_ready());
    assert_eq!(engine.view("pages").expect("a stream").sealed_until, before.sealed_until, "it still answers");
    drop(engine);
    let engine = rig.open();
    assert_eq!(view(&engine, "pages").sealed_until, before.sealed_until);
    send(&engine, None, pages(["a"; 2]));
    rig.clock.set(START_MS + 30 * MINUTE);
    assert_eq!(all(&engine, START_MS), 5.0);
}
