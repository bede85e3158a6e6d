//! What the tests of the engine share: folders, a clock, sources, streams and events.

use std::path::PathBuf;
use std::sync::Arc;

use dpsw_server::clock::SetClock;
use dpsw_server::{
    BatchId, Column, Engine, EngineSettings, Events, Key, OpenError, Published, Receipt, SourceConfig,
    StreamConfig, Strings,
};

/// The clock begins here.
pub(crate) const START_MS: u64 = 1_700_000_000_000;

/// Folders that are removed after the test, a key, and a clock.
pub(crate) struct Rig {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) clock: Arc<SetClock>,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), clock: Arc::new(SetClock::at(START_MS)) }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn settings(&self) -> EngineSettings {
        EngineSettings::new(self.data(), Key::from_bytes([7; 32]))
    }

    pub(crate) fn open(&self) -> Engine {
        self.try_open().expect("the engine opens")
    }

    pub(crate) fn try_open(&self) -> Result<Engine, OpenError> {
        Engine::open(&self.settings(), self.clock.clone())
    }

    /// An engine with one source and these streams.
    pub(crate) fn with(&self, source: &str, streams: &[&str]) -> Engine {
        let engine = self.open();
        create(&engine, source, streams);
        engine
    }
}

pub(crate) fn create(engine: &Engine, source: &str, streams: &[&str]) {
    let source = source_config(source);
    let name = source.name.clone();
    engine.create_source(source).expect("a source");
    streams.iter().for_each(|stream| engine.create_stream(&name, stream_config(stream)).expect("a stream"));
}

pub(crate) fn source_config(text: &str) -> SourceConfig {
    toml::from_str(text).expect("a source")
}

pub(crate) fn stream_config(text: &str) -> StreamConfig {
    toml::from_str(text).expect("a stream")
}

pub(crate) const SOURCE: &str =
    "name = 'web'\nprotects = 'event'\nepsilon = 1e6\ncolumns = { page = 'text' }";

/// With so much epsilon every draw of noise is zero: the chance of another one is below e^-100000.
pub(crate) const COUNT_STREAM: &str =
    "name = 'pages'\nitem = 'page'\nwindow = 1000\nepsilon = 100_000.0\nkeys = { list = ['a', 'b', 'c'] }";

pub(crate) fn pages<T: AsRef<[u8]>>(items: impl IntoIterator<Item = T>) -> Events {
    let strings: Strings = items.into_iter().map(Some).collect();
    Events::new(strings.len())
        .and_then(|events| events.with_column("page", Column::Strings(strings)))
        .expect("one column")
}

pub(crate) fn id(text: impl ToString) -> Option<BatchId> {
    Some(BatchId::new(text.to_string()).expect("a short id"))
}

/// Sends a batch and waits until it is durable.
pub(crate) fn send(engine: &Engine, batch: Option<BatchId>, events: Events) -> Receipt {
    engine.ingest("web", batch, events).expect("room").wait().expect("durable")
}

pub(crate) fn view(engine: &Engine, stream: &str) -> Arc<Published> {
    engine.settle().expect("healthy");
    engine.view(stream).expect("a stream")
}

/// How often a key occurred in the last `len` items or milliseconds before everything that is sealed.
pub(crate) fn frequency(published: &Published, key: &str, len: u64) -> f64 {
    let view = published.view.as_of(published.sealed_until).and_then(|view| view.last(len));
    view.expect("a window").frequency(key).expect("a key").value
}
