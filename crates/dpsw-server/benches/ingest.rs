//! How many events the engine takes per second, with and without waiting for the disk, and what limits it.
//!
//! `cargo bench -p dpsw-server --bench ingest` (`-- --quick` for a short run, `-- --only WORD` for the rows with this word).

use std::collections::VecDeque;
use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dpsw::{Batch, DpswSketch};
use dpsw_server::clock::SystemClock;
use dpsw_server::{Column, Engine, EngineSettings, Events, IngestError, Key, Pending, Strings};

const KEYS: usize = 25_000;
const SOURCE: &str =
    "name = 'web'\nprotects = 'event'\nepsilon = 1000\ndelta = 1e-6\ncolumns = { page = 'text' }";

struct Settings {
    seconds: f64,
    only: Option<String>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_quick = arguments.iter().any(|argument| argument == "--quick");
    let only = arguments.iter().position(|argument| argument == "--only");
    let only = only.and_then(|at| arguments.get(at + 1).cloned());
    let settings = Settings { seconds: if is_quick { 1.0 } else { 5.0 }, only };
    let library = library_rate(&settings);
    println!("{:<44} {:>9.1} M/s", "the library alone, strings, one thread", library / 1e6);
    println!("{:<44} {:>9.2} ms", "write 256 KiB and wait for the disk", sync_ms());
    for stream in ["list", "found"] {
        for (batch, producers, in_flight) in
            [(1_000, 1, 16), (1_000, 8, 1), (1_000, 8, 16), (65_536, 1, 16), (65_536, 8, 1)]
        {
            let name = format!("{stream}, {batch} x {producers} producers x {in_flight} in flight");
            if settings.only.as_ref().is_some_and(|only| !name.contains(only)) {
                continue;
            }
            let case = Case { stream, batch, producers, in_flight };
            let [(off, spent_off), (on, spent_on)] =
                [false, true].map(|is_durable| case.rate(is_durable, settings.seconds));
            println!(
                "{name:<44} {:>9.2} M/s durable {:>9.2} M/s not; ratio {:.2}; of the library {:.3} and {:.3}",
                on / 1e6,
                off / 1e6,
                on / off,
                on / library,
                off / library
            );
            println!(
                "    ns of processor time per event: {spent_on}\n    without durability:             {spent_off}"
            );
        }
    }
}

/// Keys with Zipf-like frequencies, of about twelve bytes.
fn items(count: usize, seed: u64) -> Vec<String> {
    let mut state = seed | 1;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let rank = |uniform: f64| ((KEYS as f64).powf(uniform) as usize).min(KEYS) - 1;
    (0..count).map(|_| format!("/page/{:06}", rank(draw()))).collect()
}

fn events(count: usize, seed: u64) -> Events {
    let strings: Strings = items(count, seed).into_iter().map(Some).collect();
    Events::new(count)
        .and_then(|events| events.with_column("page", Column::Strings(strings)))
        .expect("one column")
}

fn stream(kind: &str) -> String {
    let keys = (0..KEYS).map(|rank| format!("'/page/{rank:06}'")).collect::<Vec<_>>().join(", ");
    let keys = if kind == "list" { format!("{{ list = [{keys}] }}") } else { "'found'".to_owned() };
    format!("name = 'pages'\nitem = 'page'\nwindow = 1_000_000\nepsilon = 1\nkeys = {keys}")
}

fn library_rate(settings: &Settings) -> f64 {
    let config: dpsw_server::StreamConfig = toml::from_str(&stream("list")).expect("a stream");
    let source: dpsw_server::SourceConfig = toml::from_str(SOURCE).expect("a source");
    let plan = config.plan(config.settings(&source).expect("settings")).expect("a plan");
    let mut sketch = DpswSketch::new(plan).expect("randomness");
    let items = items(1 << 16, 5);
    let (began, mut count) = (Instant::now(), 0);
    while began.elapsed().as_secs_f64() < settings.seconds / 2.0 {
        sketch.extend(Batch::text(&items)).expect("items");
        count += items.len();
    }
    black_box(sketch.position());
    count as f64 / began.elapsed().as_secs_f64()
}

fn sync_ms() -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let mut file = File::create(folder.path().join("file")).expect("a file");
    let (bytes, rounds) = (vec![7; 256 << 10], 50);
    let began = Instant::now();
    for _ in 0..rounds {
        file.write_all(&bytes).and_then(|()| file.sync_data()).expect("room");
    }
    began.elapsed().as_secs_f64() * 1e3 / f64::from(rounds)
}

/// The processor time of each thread of the engine for each event, in user and in system code; where the system tells.
fn spent(events: usize) -> String {
    let mut all = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let Some((name, rest)) = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(") ")) else {
            continue;
        };
        let ticks = |field: usize| {
            rest.split(' ').nth(field).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0)
        };
        if name.starts_with("dpsw") {
            let ns = |ticks: f64| ticks * 1e7 / events as f64;
            all.push(format!("{name} {:.1} + {:.1}", ns(ticks(11)), ns(ticks(12))));
        }
    }
    all.join(", ")
}

struct Case {
    stream: &'static str,
    batch: usize,
    producers: u64,
    in_flight: usize,
}

impl Case {
    fn rate(&self, is_durable: bool, seconds: f64) -> (f64, String) {
        let folder = tempfile::tempdir().expect("a folder");
        let mut settings = EngineSettings::new(folder.path().join("data"), Key::from_bytes([7; 32]));
        settings.is_durable = is_durable;
        let engine = Engine::open(&settings, Arc::new(SystemClock)).expect("a folder");
        engine.create_source(toml::from_str(SOURCE).expect("a source")).expect("a source");
        engine
            .create_stream("web", toml::from_str(&stream(self.stream)).expect("a stream"))
            .expect("a stream");
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let began = Instant::now();
        let counts = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.producers)
                .map(|seed| {
                    scope.spawn({
                        let engine = &engine;
                        move || self.produce(engine, seed, end)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum::<usize>()
        });
        engine.settle().expect("healthy");
        (counts as f64 / began.elapsed().as_secs_f64(), spent(counts))
    }

    /// Keeps so many batches in flight until the time is over; how many events were acknowledged.
    fn produce(&self, engine: &Engine, seed: u64, end: Instant) -> usize {
        let batches: Vec<Events> = (0..4).map(|part| events(self.batch, 1 + 8 * seed + part)).collect();
        let mut flying: VecDeque<Pending> = VecDeque::new();
        let mut count = 0;
        for batch in batches.iter().cycle() {
            if end < Instant::now() {
                break;
            }
            while self.in_flight <= flying.len() {
                count += flying.pop_front().expect("some fly").wait().expect("durable").events;
            }
            match engine.ingest("web", None, batch.clone()) {
                Ok(pending) => flying.push_back(pending),
                Err(IngestError::Busy(_)) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => panic!("{error}"),
            }
        }
        count + flying.into_iter().map(|pending| pending.wait().expect("durable").events).sum::<usize>()
    }
}
