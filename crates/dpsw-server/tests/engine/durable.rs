//! What was acknowledged is counted once, whatever happens to the process.

use std::collections::BTreeSet;
use std::ops::Range;

use dpsw_server::{Column, Engine, Events, Strings};

use crate::disk::Random;
use crate::support::{
    COUNT_STREAM, Rig, SOURCE, START_MS, STEP_MS, frequency, id, pages, sealed_span, send, view,
};

#[test]
fn events_are_counted_and_shown_when_their_substream_is_sealed() {
    let rig = Rig::new();
    let engine = rig.with(SOURCE, &[COUNT_STREAM]);
    let len = engine.stream("pages").expect("a stream").plan.substream_len();
    assert_eq!(view(&engine, "pages").sealed_until, 0);
    for batch in 0..4 * len {
        send(&engine, id(batch), pages(["a", "b", "b"]));
    }
    let published = view(&engine, "pages");
    assert_eq!(published.sealed_until, 12 * len);
    assert_eq!(frequency(&published, "b", 9 * len..12 * len), 2.0 * len as f64);
}

/// An event as the test remembers it.
#[derive(Clone)]
struct Event {
    page: &'static str,
    /// Its position, or its time.
    place: u64,
    user: u64,
}

/// A kind of stream, and what its events look like.
struct Kind {
    source: &'static str,
    stream: &'static str,
    /// How far back events may lie, where they bring their time.
    lateness: Option<u64>,
    has_users: bool,
    is_timed: bool,
}

const PAGES: [&str; 4] = ["a", "b", "c", "not listed"];

/// Sends random batches, drops the engine again and again without a shutdown, sends the last batches again, and compares what is
/// shown with the events themselves.
fn check(kind: &Kind, seed: u64) {
    let (rig, mut random) = (Rig::new(), Random(seed));
    let mut engine = rig.with(kind.source, &[kind.stream]);
    let mut events: Vec<Event> = Vec::new();
    let mut sent: Vec<Events> = Vec::new();
    let mut now_ms = START_MS;
    for batch in 0..150 {
        now_ms += random.below(2_000);
        rig.clock.set(now_ms);
        // Where events bring no time, that of the service's clock.
        if kind.is_timed && kind.lateness.is_none() {
            engine.rest().expect("healthy");
        }
        let made = kind.batch(events.len() as u64, now_ms, &mut random);
        let made_events = to_events(&made, kind);
        assert!(!send(&engine, id(batch), made_events.clone()).is_repeated);
        events.extend(made);
        sent.push(made_events);
        if random.below(12) == 0 {
            drop(engine);
            engine = rig.open();
            for (again, events) in sent.iter().enumerate().rev().take(3) {
                assert!(send(&engine, id(again), events.clone()).is_repeated, "batch {again}");
            }
        }
        if random.below(20) == 0 {
            engine.shutdown().expect("room");
            drop(engine);
            engine = rig.open();
        }
    }
    compare(&engine, kind, &events);
}

fn compare(engine: &Engine, kind: &Kind, events: &[Event]) {
    let published = view(engine, "pages");
    let span = sealed_span(&published, 3);
    assert!(span.start < span.end, "something is sealed");
    let substream_len = published.view.plan().substream_len();
    let counted = kind.counted(events, substream_len);
    let mut all = 0.0;
    for page in &PAGES[..3] {
        let exact = counted.iter().filter(|event| event.page == *page && span.contains(&event.place)).count();
        let shown = frequency(&published, page, span.clone());
        // Found keys share hashed counters with others, which costs less than a tenth of an event here.
        assert!((shown - exact as f64).abs() < 0.1, "{page}: {shown} for {exact} in {span:?}");
        all += shown;
    }
    assert!(10.0 < all, "{all} events are too few to tell");
}

impl Kind {
    fn batch(&self, position: u64, now_ms: u64, random: &mut Random) -> Vec<Event> {
        let len = 1 + random.below(60);
        let place = |at: u64, random: &mut Random| match (self.is_timed, self.lateness) {
            (false, _) => position + at,
            (true, None) => now_ms / STEP_MS * STEP_MS,
            (true, Some(lateness)) => now_ms - random.below(lateness / 2),
        };
        (0..len)
            .map(|at| Event {
                page: PAGES[(random.below(3) + random.below(2)) as usize],
                place: place(at, random),
                user: random.below(30),
            })
            .collect()
    }

    /// The events that count: of each user the first one of a substream.
    fn counted(&self, events: &[Event], substream_len: u64) -> Vec<Event> {
        let mut met = BTreeSet::new();
        let is_first =
            |event: &&Event| !self.has_users || met.insert((event.place / substream_len, event.user));
        events.iter().filter(is_first).cloned().collect()
    }
}

fn to_events(made: &[Event], kind: &Kind) -> Events {
    let mut events = pages(made.iter().map(|event| event.page));
    if kind.lateness.is_some() {
        events = events.with_times(made.iter().map(|event| event.place).collect()).expect("as many");
    }
    if kind.has_users {
        let users: Strings = made.iter().map(|event| Some(event.user.to_string())).collect();
        events = events.with_users(users).expect("as many");
    }
    events
}

const COUNT: Kind =
    Kind { source: SOURCE, stream: COUNT_STREAM, lateness: None, has_users: false, is_timed: false };

#[test]
fn what_was_acknowledged_counts_once_in_count_windows() {
    (0..3).for_each(|seed| check(&COUNT, seed));
}

#[test]
fn what_was_acknowledged_counts_once_where_keys_are_found() {
    let stream = "name = 'pages'\nitem = 'page'\nwindow = 1000\nepsilon = 500\nkeys = 'found'";
    (0..3).for_each(|seed| check(&Kind { stream, ..COUNT }, seed));
}

#[test]
fn what_was_acknowledged_counts_once_where_users_are_protected() {
    let source = "name = 'web'\nprotects = 'users'\nitems_per_user = 1\nuser_column = 'user'\nepsilon = 1e6
        columns = { page = 'text' }";
    (0..3).for_each(|seed| check(&Kind { source, has_users: true, ..COUNT }, seed));
}

const TIME_STREAM: &str = "name = 'pages'\nitem = 'page'\nwindow = '60s'\nexpected = 2000\nepsilon = 100_000
    keys = { list = ['a', 'b', 'c'] }";

#[test]
fn what_was_acknowledged_counts_once_where_presence_is_protected() {
    let source = "name = 'web'\nprotects = 'presence'\nepsilon = 1e6\ncolumns = { page = 'text' }";
    let kind = Kind { source, stream: TIME_STREAM, is_timed: true, ..COUNT };
    (0..3).for_each(|seed| check(&kind, seed));
}

#[test]
fn what_was_acknowledged_counts_once_at_the_time_that_events_bring() {
    let source =
        "name = 'web'\nprotects = 'event'\nepsilon = 1e6\ntime_column = 'time'\ncolumns = { page = 'text' }";
    let stream = "name = 'pages'\nitem = 'page'\nwindow = '60s'\nexpected = 2000\nlateness = '10s'
        epsilon = 100_000\nkeys = { list = ['a', 'b', 'c'] }";
    let kind = Kind { source, stream, is_timed: true, lateness: Some(10_000), ..COUNT };
    (0..3).for_each(|seed| check(&kind, seed));
}

#[test]
fn streams_of_a_source_take_their_own_columns_and_count_from_their_own_start() {
    let rig = Rig::new();
    let source =
        "name = 'web'\nprotects = 'event'\nepsilon = 1e6\ncolumns = { page = 'text', status = 'integer' }";
    let status =
        "name = 'status'\nitem = 'status'\nwindow = 1000\nepsilon = 1000\nkeys = { integers = [200, 404] }";
    let engine = rig.with(source, &[COUNT_STREAM]);
    let both = |count: usize| {
        let numbers = (0..count).map(|at| Some(if at % 4 == 0 { 404 } else { 200 })).collect();
        pages(vec!["a"; count]).with_column("status", Column::Integers(numbers)).expect("as many")
    };
    send(&engine, None, both(100));
    engine.create_stream("web", crate::support::stream_config(status)).expect("a stream");
    send(&engine, None, both(1000));
    drop(engine);
    let engine = rig.open();
    let published = view(&engine, "status");
    let len = published.view.plan().substream_len();
    assert_eq!(published.sealed_until / len, 1000 / len);
    let span = sealed_span(&published, 4);
    assert_eq!(frequency_of(&published, 404, span.clone()), (span.end - span.start) as f64 / 4.0);
    assert_eq!(view(&engine, "pages").sealed_until / len, 1100 / len);
}

fn frequency_of(published: &dpsw_server::Published, key: u64, span: Range<u64>) -> f64 {
    let view = published.view.last(span.end - span.start).and_then(|view| view.as_of(span.end));
    view.expect("a window").frequency(key).expect("a key").value
}

/// Rule: an item that is refused for its content is a null item in its place.
#[test]
fn items_that_are_missing_too_long_or_of_another_kind_take_their_places() {
    let rig = Rig::new();
    let engine = rig.with(SOURCE, &[COUNT_STREAM]);
    let len = engine.stream("pages").expect("a stream").plan.substream_len() as usize;
    let long = "a".repeat(dpsw_server::engine::ITEM_LEN_MAX + 1);
    let items: Vec<Option<&str>> = (0..len)
        .map(|at| match at % 5 {
            0 => None,
            1 => Some(long.as_str()),
            _ => Some("a"),
        })
        .collect();
    let strings: Strings = items.iter().copied().collect();
    let events = Events::new(len).and_then(|events| events.with_column("page", Column::Strings(strings)));
    send(&engine, None, events.expect("one column"));
    let numbers = Column::Integers((0..len).map(|at| Some(at as u64)).collect());
    send(
        &engine,
        None,
        Events::new(len).and_then(|events| events.with_column("page", numbers)).expect("one"),
    );
    send(&engine, None, Events::new(len).expect("no column"));
    send(&engine, None, pages(vec!["b"; len]));
    let published = view(&engine, "pages");
    assert_eq!(published.sealed_until, 4 * len as u64);
    let exact = items.iter().filter(|item| **item == Some("a")).count();
    assert_eq!(frequency(&published, "a", 0..4 * len as u64), exact as f64);
    assert_eq!(frequency(&published, "b", 0..4 * len as u64), len as f64);
}

/// Batches that come twice, in any order and at the same time.
#[test]
fn each_batch_counts_once_in_whatever_order_and_however_often_it_comes() {
    let rig = Rig::new();
    let engine = rig.with(SOURCE, &[COUNT_STREAM]);
    let keys = ["a", "b", "c"];
    let copies = |seed: u64| {
        let mut order: Vec<usize> = (0..120).collect();
        let mut random = Random(seed);
        (1..order.len()).rev().for_each(|at| order.swap(at, random.below(at as u64 + 1) as usize));
        let send = |batch: &usize| {
            !send(&engine, id(*batch), pages(vec![keys[batch % 3]; 1 + batch % 7])).is_repeated
        };
        order.iter().filter(|batch| send(batch)).count()
    };
    let taken: usize = std::thread::scope(|scope| {
        let senders = [1, 2, 3, 4].map(|seed| scope.spawn(move || copies(seed)));
        senders.into_iter().map(|sender| sender.join().expect("no panic")).sum()
    });
    assert_eq!(taken, 120, "each was taken by one of four");
    let sent =
        |key: usize| (0..120).filter(|batch| batch % 3 == key).map(|batch| 1 + batch % 7).sum::<usize>();
    let events: u64 = (0..3).map(|key| sent(key) as u64).sum();
    let len = engine.stream("pages").expect("a stream").plan.substream_len();
    send(&engine, None, pages(vec!["not listed"; (events.next_multiple_of(len) - events) as usize]));
    let published = view(&engine, "pages");
    assert_eq!(published.sealed_until, events.next_multiple_of(len));
    for (number, key) in keys.into_iter().enumerate() {
        assert_eq!(frequency(&published, key, 0..published.sealed_until), sent(number) as f64, "{key}");
    }
}
