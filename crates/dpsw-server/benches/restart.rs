//! What a checkpoint costs, and how long a start takes with many streams.
//!
//! `cargo bench -p dpsw-server --bench restart` (`-- --quick` for fewer streams).

use std::sync::Arc;
use std::time::Instant;

use dpsw::store::MemoryStore;
use dpsw::{Batch, DpswSketch, StateKey};
use dpsw_server::clock::SystemClock;
use dpsw_server::{Column, Engine, EngineSettings, Events, Key, SourceConfig, StreamConfig, Strings};

const SOURCE: &str =
    "name = 'web'\nprotects = 'event'\nepsilon = 1000\ndelta = 1e-6\ncolumns = { page = 'text' }";

fn main() {
    println!(
        "checkpoints: bytes and time of the library's checkpoint, beside its saved state, and what restores it"
    );
    for (name, window, keys, item_keys) in [
        ("100 keys, the last 10,000", 10_000, list(100), 100),
        ("1,000 keys, the last 100,000", 100_000, list(1_000), 1_000),
        ("25,000 keys, the last 1,000,000", 1_000_000, list(25_000), 25_000),
        ("1,000,000 keys, the last 1,000,000", 1_000_000, list(1_000_000), 1_000_000),
        ("found keys, the last 100,000", 100_000, "'found'".to_owned(), 25_000),
        ("found keys, the last 1,000,000", 1_000_000, "'found'".to_owned(), 250_000),
        ("keys that are asked for, the last 100,000", 100_000, "'asked'".to_owned(), 25_000),
    ] {
        checkpoint(name, &stream("pages", window, &keys, 1), item_keys);
    }
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    start(if is_quick { 10 } else { 100 });
}

fn list(keys: u64) -> String {
    let keys = (0..keys).map(|key| format!("'/page/{key:06}'")).collect::<Vec<_>>().join(", ");
    format!("{{ list = [{keys}] }}")
}

fn stream(name: &str, window: u64, keys: &str, retention: u32) -> StreamConfig {
    let text = format!(
        "name = '{name}'\nitem = 'page'\nwindow = {window}\nepsilon = 1\nretention = {retention}\nkeys = {keys}"
    );
    toml::from_str(&text).expect("a stream")
}

fn items(count: usize, keys: u64, state: &mut u64) -> Vec<String> {
    let mut draw = || {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..count).map(|_| format!("/page/{:06}", (keys as f64).powf(draw()) as u64 - 1)).collect()
}

fn checkpoint(name: &str, config: &StreamConfig, keys: u64) {
    let source: SourceConfig = toml::from_str(SOURCE).expect("a source");
    let plan = config.plan(config.settings(&source).expect("settings")).expect("a plan");
    let window = plan.settings().window.len();
    let seals = plan.substreams_kept() * (plan.ranges().len() as u64).div_ceil(2);
    let mut sketch = DpswSketch::new(plan).expect("randomness");
    let mut state = 9;
    while sketch.position() < 2 * window + window / 40 {
        sketch.extend(Batch::text(&items(10_000, keys, &mut state))).expect("items");
    }
    let key = StateKey::from_bytes([1; 32]);
    let began = Instant::now();
    let saved = sketch.checkpoint(&key).expect("randomness");
    let checkpoint_ms = ms(began);
    let mut store = MemoryStore::default();
    let began = Instant::now();
    let full = sketch.save(&key, &mut store).expect("randomness");
    let save_ms = ms(began);
    let began = Instant::now();
    let restored = DpswSketch::restore(&full.bytes, &key, dpsw::Noise::from_system(), &mut store);
    let restore_ms = ms(began);
    restored.expect("a state");
    println!(
        "  {name:<42} {seals:>4} seals per window; checkpoint {:>9} B {checkpoint_ms:>7.1} ms; save {:>9} B {save_ms:>7.1} ms; \
        restore {restore_ms:>7.1} ms",
        saved.bytes.len(),
        full.bytes.len(),
    );
}

fn ms(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}

/// Streams of one source with twenty substreams or more each, dropped without a shutdown.
fn start(streams: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = EngineSettings::new(folder.path().join("data"), Key::from_bytes([7; 32]));
    let open = || Engine::open(&settings, Arc::new(SystemClock)).expect("a folder");
    let engine = open();
    engine.create_source(toml::from_str(SOURCE).expect("a source")).expect("a source");
    for number in 0..streams {
        engine
            .create_stream("web", stream(&format!("pages-{number}"), 100_000, &list(1_000), 4))
            .expect("a stream");
    }
    let kept = engine.stream("pages-0").expect("a stream").plan.substreams_kept();
    let mut state = 5;
    for _ in 0..45 {
        let strings: Strings = items(10_000, 1_000, &mut state).into_iter().map(Some).collect();
        let events =
            Events::new(10_000).and_then(|events| events.with_column("page", Column::Strings(strings)));
        let pending = engine.ingest("web", None, events.expect("one column")).expect("room");
        pending.wait().expect("durable");
        engine.settle().expect("healthy");
    }
    drop(engine);
    let bytes = std::fs::metadata(folder.path().join("data").join("dpsw.redb")).map_or(0, |file| file.len());
    let began = Instant::now();
    let engine = open();
    let open_ms = ms(began);
    engine.settle().expect("healthy");
    let settled_ms = ms(began);
    println!(
        "start with {streams} streams x {kept} substreams, {bytes} B: {open_ms:.0} ms until it takes batches, {settled_ms:.0} ms \
        until all views are worked out"
    );
    drop(engine);
}
