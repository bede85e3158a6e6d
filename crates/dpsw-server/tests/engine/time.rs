//! The service's clock drives time windows, also when nothing arrives, and however it jumps.

use dpsw_server::Engine;

use crate::disk::SimDisk;
use crate::support::{Rig, START_MS, STEP_MS, create, frequency, pages, send, stream_config, view};

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
        // Longer than a step, or a clock that goes on would not look at the time before the disk does.
        std::thread::sleep(std::time::Duration::from_millis(STEP_MS + 300));
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
    engine.rest().expect("healthy");
    send(&engine, None, pages(["a"; 4]));
    rig.clock.set(later + HOUR);
    assert_eq!(all(&engine, later), 4.0);
    assert!(view(&engine, "pages").view.last(3 * HOUR).is_err(), "what was before is not retained");
}

/// Where a stream stands, as it is shown.
fn shown(engine: &Engine) -> [u64; 4] {
    let published = engine.view("pages").expect("a stream");
    let window = published.view.window();
    [published.number, window.start, window.end, published.sealed_until]
}

/// Three engines have the same clock. One gets no event, one gets them at one millisecond of each step, one at another.
#[test]
fn whatever_arrives_and_when_the_same_is_shown_at_the_same_steps() {
    let rigs = [Rig::new(), Rig::new(), Rig::new()];
    let mut engines: Vec<_> = rigs.iter().map(|rig| rig.with(ARRIVAL_SOURCE, &[ARRIVAL_STREAM])).collect();
    let mut followers: Vec<_> =
        engines.iter().map(|engine| engine.subscribe("pages").expect("a stream")).collect();
    let mut at_ms = START_MS;
    // A few steps, more than a substream, back and forth, and a jump.
    for (number, minutes) in [0, 0, 0, 10, 30, 29, 30, 90, 90, 5000, 5000, 5001].into_iter().enumerate() {
        at_ms = if minutes == 0 {
            at_ms + STEP_MS
        } else {
            START_MS + minutes * MINUTE + number as u64 * STEP_MS
        };
        let seen = [0, 1, 2].map(|side| {
            let (rig, engine) = (&rigs[side], &engines[side]);
            rig.clock.set(at_ms);
            engine.rest().expect("healthy");
            if side != 0 {
                rig.clock.set(at_ms + 137 * side as u64);
                send(engine, None, pages(vec!["a"; side]));
            }
            rig.clock.set(at_ms + STEP_MS - 1);
            engine.rest().expect("healthy");
            let messages = followers[side].has_changed().expect("it goes on");
            followers[side].mark_unchanged();
            (shown(engine), messages)
        });
        assert_eq!((seen[0], seen[0]), (seen[1], seen[2]), "step {number}");
        let [step, _, end, _] = seen[0].0;
        assert_eq!((end % STEP_MS, step <= at_ms / STEP_MS), (0, true), "{end} is an instant of the grid");
        // The number of a step, not of views; nothing was shown yet after a start.
        assert!(step == 0 || end / STEP_MS <= step || minutes == 29, "step {step} shows what ends at {end}");
        if number % 3 == 2 {
            // Shut down or not: what is saved depends on what came, what is shown after the next start does not.
            for side in 0..3 {
                let engine = engines.remove(side);
                if number % 2 == 0 {
                    engine.shutdown().expect("room");
                }
                drop(engine);
                engines.insert(side, rigs[side].open());
                followers[side] = engines[side].subscribe("pages").expect("a stream");
            }
            let seen: Vec<_> = engines.iter().map(shown).collect();
            assert!(seen.iter().all(|one| *one == seen[0]), "after a start: {seen:?}");
        }
    }
}

#[test]
fn events_between_two_steps_count_once_and_are_neither_late_nor_early() {
    let rig = Rig::new();
    let engine = rig.with(ARRIVAL_SOURCE, &[ARRIVAL_STREAM]);
    let len = engine.stream("pages").expect("a stream").plan.substream_len();
    // Before, at and after the end of a substream, while the clock of the service has not come there.
    let end = (START_MS / len + 1) * len;
    for at_ms in [end - STEP_MS, end - 1, end, end + 1, end + STEP_MS] {
        rig.clock.set(at_ms);
        send(&engine, None, pages(["a"; 2]));
    }
    rig.clock.set(end + HOUR);
    assert_eq!(all(&engine, START_MS), 10.0);
}

#[test]
fn a_clock_that_was_far_ahead_is_noticed_and_a_stream_that_begins_anew_goes_on() {
    let rig = Rig::new();
    let engine = rig.with(ARRIVAL_SOURCE, &[ARRIVAL_STREAM]);
    send(&engine, None, pages(["a"; 3]));
    let trouble =
        |engine: &Engine| engine.stream("pages").expect("a stream").counted.expect("it counts").trouble;
    engine.settle().expect("healthy");
    assert_eq!((trouble(&engine), engine.health().streams.len()), (None, 0));
    rig.clock.set(START_MS + 365 * 24 * HOUR);
    engine.settle().expect("healthy");
    rig.clock.set(START_MS + MINUTE);
    let mut engine = engine;
    for start in 0..2 {
        engine.settle().expect("healthy");
        let (said, health) = (trouble(&engine).expect("it stands still"), engine.health());
        assert!(said.contains("is 525599m ahead") && said.contains("PUT /v1/streams/pages"), "{said}");
        assert!(health.is_ready(), "others go on");
        assert_eq!((&health.streams, &health.notices), (&vec![said.clone()], &vec![said]), "start {start}");
        drop(engine);
        engine = rig.open();
    }
    for way in ["replaced", "created"] {
        if way == "replaced" {
            engine.replace_stream(stream_config(ARRIVAL_STREAM)).expect("its own settings");
        } else {
            engine.delete_stream("pages").expect("a stream");
            engine.create_stream("web", stream_config(ARRIVAL_STREAM)).expect("a stream");
        }
        assert_eq!((trouble(&engine), engine.health().streams.len()), (None, 0), "{way}");
        let begin_ms = START_MS + MINUTE + if way == "replaced" { 0 } else { HOUR };
        send(&engine, None, pages(["a"; 5]));
        rig.clock.set(begin_ms + HOUR);
        assert_eq!(all(&engine, begin_ms), 5.0, "{way}: what comes from then on, and nothing from before");
    }
}

/// The order in which a broker is read decides nothing: the service's clock does.
#[test]
fn where_routing_depends_on_the_item_the_clock_decides_which_events_are_late() {
    let source = EVENT_SOURCE.to_owned() + "\nrouting = 'by_item'";
    for is_far_one_first in [false, true] {
        let rig = Rig::new();
        let engine = rig.with(&source, &[EVENT_STREAM]);
        let (far, others) = (START_MS + 40 * MINUTE, [START_MS + MINUTE; 4]);
        rig.clock.set(START_MS + 2 * MINUTE);
        engine.rest().expect("healthy");
        let batches = if is_far_one_first { [&[far][..], &others] } else { [&others[..], &[far]] };
        for times in batches {
            at(&engine, times);
        }
        rig.clock.set(START_MS + 70 * MINUTE);
        assert_eq!(all(&engine, START_MS), 4.0, "far one first: {is_far_one_first}");
        // Late by the clock.
        at(&engine, &[START_MS + 2 * MINUTE]);
        rig.clock.set(START_MS + 80 * MINUTE);
        assert_eq!(all(&engine, START_MS), 4.0);
    }
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
    assert!(engine.create_stream("web", stream_config(ARRIVAL_STREAM)).is_err());
    assert!(!engine.health().is_ready());
    assert_eq!(engine.view("pages").expect("a stream").sealed_until, before.sealed_until, "it still answers");
    drop(engine);
    let engine = rig.open();
    assert_eq!(view(&engine, "pages").sealed_until, before.sealed_until);
    send(&engine, None, pages(["a"; 2]));
    rig.clock.set(START_MS + 30 * MINUTE);
    assert_eq!(all(&engine, START_MS), 5.0);
}
