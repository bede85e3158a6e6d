//! How many events are taken, beside the service without durability, the library and Redis.

use std::hint::black_box;
use std::time::{Duration, Instant};

use dpsw::plan::{CounterLayout, Method, TunedMethod};
use dpsw::{Batch, Delta, Domain, DpswSketch, Epsilon, Kind, Plan, Settings, Unit, Window};

use crate::Effort;
use crate::clients::{Way, rate};
use crate::events::{Format, KEYS, Load, key_lines, keys_of};
use crate::redis::{Counted, Redis};
use crate::service::{Durability, Service, settle};
use crate::table::Asked::{AtLeast, Nothing};
use crate::table::{Rate, Table, median};

/// Events of a batch of text, and of a small one of Arrow.
const SMALL: usize = 1000;
/// Events of a batch of Arrow: about 800 kB.
const LARGE: usize = 50_000;
/// Sides without Redis.
const SIDES: usize = 10;
/// Different events, after which they come again.
const EVENTS: usize = 400_000;

pub(crate) const NAMES: [&str; 15] = [
    "ingest_strings: the library alone",
    "NDJSON of 1,000, 1 connection x 16 in flight, not durable",
    "NDJSON of 1,000, 1 connection x 16 in flight",
    "NDJSON of 1,000, 8 connections x 16 in flight, not durable",
    "NDJSON of 1,000, 8 connections x 16 in flight",
    "NDJSON of 1,000, 8 connections, one by one, not durable",
    "NDJSON of 1,000, 8 connections, one by one",
    "Arrow of 1,000, 1 connection x 16 in flight",
    "Arrow of 50,000, 8 connections, one by one, not durable",
    "Arrow of 50,000, 8 connections, one by one",
    "Arrow of 50,000, 8 connections, one by one, beside the library",
    "Redis: INCR, pipelines of 1,000",
    "Redis: ZINCRBY into a set per minute, pipelines of 1,000",
    "Arrow of 50,000, 8 connections, one by one, beside Redis",
    "Arrow of 50,000, 8 connections, one by one, beside NDJSON at its best",
];

/// A stream that lists its keys, so that every question can be asked.
pub(crate) fn service_folder() -> tempfile::TempDir {
    let folder = settle(
        "[[source]]\nname = 'web'\nprotects = 'event'\nepsilon = 1\ncolumns = { page = 'text' }\n\
        [[source.stream]]\nname = 'pages'\nitem = 'page'\nwindow = 1_000_000\nepsilon = 1.0\nkeys = { file = 'keys' }\n",
    );
    std::fs::write(folder.path().join("keys"), key_lines(KEYS)).expect("room");
    folder
}

/// What one side of a comparison does in a round.
type Side<'a> = Box<dyn FnMut(Duration) -> Rate + 'a>;

pub(crate) fn measure(effort: Effort, table: &Table) {
    let keys = keys_of(KEYS, EVENTS, 1);
    let [text, small, large] = [(Format::Ndjson, SMALL), (Format::Arrow, SMALL), (Format::Arrow, LARGE)]
        .map(|(format, events)| Load::new(format, &keys, events));
    let folders = [service_folder(), service_folder()];
    let on = Service::start(folders[0].path(), Durability::On);
    let off = Service::start(folders[1].path(), Durability::Off);
    let redis = Redis::start();
    let mut sketch = library();
    let served = |service: &'_ Service, load: &Load, way: Way, time| {
        let rate = rate(service, load, way, time);
        service.flush();
        rate
    };
    let (one, many, slow) = (Way::InFlight(1), Way::InFlight(8), Way::OneByOne(8));
    let mut sides: Vec<Side<'_>> = vec![
        Box::new(|time| ingest_strings(&mut sketch, &keys, time)),
        Box::new(|time| served(&off, &text, one, time)),
        Box::new(|time| served(&on, &text, one, time)),
        Box::new(|time| served(&off, &text, many, time)),
        Box::new(|time| served(&on, &text, many, time)),
        Box::new(|time| served(&off, &text, slow, time)),
        Box::new(|time| served(&on, &text, slow, time)),
        Box::new(|time| served(&on, &small, one, time)),
        Box::new(|time| served(&off, &large, slow, time)),
        Box::new(|time| served(&on, &large, slow, time)),
    ];
    if let Some(redis) = &redis {
        for counted in [Counted::Incr, Counted::Zincrby] {
            let keys = &keys;
            sides.push(Box::new(move |time| redis.rate(keys, counted, time)));
        }
    }
    report(&in_turn(&mut sides, effort), table);
}

/// Measures all sides in every round, once forwards and once backwards; the rates of each.
fn in_turn(sides: &mut [Side<'_>], effort: Effort) -> Vec<Vec<Rate>> {
    let mut rates = vec![Vec::new(); sides.len()];
    sides.iter_mut().for_each(|side| {
        side(effort.round / 2);
    });
    for round in 0..effort.rounds {
        let mut order: Vec<usize> = (0..sides.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        order.into_iter().for_each(|side| rates[side].push(sides[side](effort.round)));
    }
    rates
}

fn report(rates: &[Vec<Rate>], table: &Table) {
    let of = |side: usize, what: fn(&Rate) -> f64| median(rates[side].iter().map(what).collect());
    let typical = |side: usize| Rate {
        per_second: of(side, |rate| rate.per_second),
        ran_ns: of(side, |rate| rate.ran_ns),
    };
    let ratio = |side: usize, to: usize| {
        median(rates[side].iter().zip(&rates[to]).map(|(one, two)| one.per_second / two.per_second).collect())
    };
    let row = |name: usize, side: usize, to: Option<(usize, &str)>, asked| {
        let ratio = to.map(|(to, what)| (ratio(side, to), what));
        table.rate(NAMES[name], typical(side), ratio, asked);
    };
    row(0, 0, None, Nothing);
    row(1, 1, None, Nothing);
    row(2, 2, Some((1, "not durable")), AtLeast(0.5));
    row(3, 3, None, Nothing);
    row(4, 4, Some((3, "not durable")), AtLeast(0.8));
    row(5, 5, None, Nothing);
    row(6, 6, Some((5, "not durable")), Nothing);
    row(7, 7, Some((2, "NDJSON, the same way")), Nothing);
    row(8, 8, Some((0, "the library")), AtLeast(0.1));
    row(9, 9, Some((6, "NDJSON, the same way")), AtLeast(3.0));
    row(10, 9, Some((0, "the library")), AtLeast(0.03));
    row(14, 9, Some((4, "NDJSON, 8 x 16 in flight")), Nothing);
    if rates.len() == SIDES {
        println!("Redis is not compared: there is no redis-server");
        return;
    }
    let [incr, zincrby] = [SIDES, SIDES + 1];
    row(11, incr, None, Nothing);
    row(12, zincrby, None, Nothing);
    let faster = if typical(incr).per_second < typical(zincrby).per_second { zincrby } else { incr };
    row(13, 9, Some((faster, "the faster way of Redis")), AtLeast(5.0));
}

/// The sketch of the library's own `ingest_strings`.
fn library() -> DpswSketch {
    let counters = CounterLayout::Hashed { rows: 2, columns: 6666 };
    let plan = Plan::new(Settings {
        window: Window::Items(1_000_000),
        unit: Unit::ReplaceOne,
        epsilon: Epsilon::new(1.0).expect("in range"),
        delta: Delta::new(1e-10).ok(),
        domain: Domain::Asked(Kind::Bytes),
        method: Some(Method::Tuned(TunedMethod { substreams: 20, counters, ..TunedMethod::default() })),
        retention: 1,
    });
    DpswSketch::new(plan.expect("a plan")).expect("randomness")
}

fn ingest_strings(sketch: &mut DpswSketch, keys: &[String], time: Duration) -> Rate {
    let (began, mut events) = (Instant::now(), 0);
    while began.elapsed() < time {
        sketch.extend(Batch::bytes(keys)).expect("randomness");
        events += keys.len();
    }
    black_box(sketch.position());
    Rate { per_second: events as f64 / began.elapsed().as_secs_f64(), ran_ns: f64::NAN }
}
