//! What the tests of the engine share: folders, a clock, sources, streams and events.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use dpsw::WindowView;
use dpsw_server::clock::SetClock;
use dpsw_server::{
    BatchId, Column, Engine, EngineSettings, Events, Key, OpenError, Published, Receipt, SourceConfig,
    StreamConfig, Strings,
};

use crate::disk::SimDisk;

/// The clock begins here.
pub(crate) const START_MS: u64 = 1_700_000_000_000;

/// The service's own clock has steps of this length.
pub(crate) const STEP_MS: u64 = 1000;

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

    pub(crate) fn try_open_on(&self, disk: &SimDisk) -> Result<Engine, OpenError> {
        Engine::open_on(Arc::new(disk.clone()), &self.settings(), self.clock.clone())
    }

    pub(crate) fn open_on(&self, disk: &SimDisk) -> Engine {
        self.try_open_on(disk).expect("the engine opens")
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
    "name = 'web'\nprotects = 'event'\nepsilon = 1e6\ndelta = 1e-6\ncolumns = { page = 'text' }";

/// With so much epsilon every draw of noise is zero: the chance of another one is below e^-10000.
pub(crate) const COUNT_STREAM: &str =
    "name = 'pages'\nitem = 'page'\nwindow = 1000\nepsilon = 100_000.0\nkeys = { list = ['a', 'b', 'c'] }";

/// With this much, two seals of the same items differ: all of forty draws are zero with a chance below 0.25^40.
pub(crate) fn noisy_stream(window: &str) -> String {
    let keys = (0..40).map(|key| format!("'k{key}'")).collect::<Vec<_>>().join(", ");
    format!("name = 'noisy'\nitem = 'page'\n{window}\nepsilon = 1.0\nkeys = {{ list = [{keys}] }}")
}

pub(crate) fn pages<T: AsRef<[u8]>>(items: impl IntoIterator<Item = T>) -> Events {
    let strings: Strings = items.into_iter().map(Some).collect();
    Events::new(strings.len())
        .and_then(|events| events.with_column("page", Column::Strings(strings)))
        .expect("one column")
}

/// The id of a batch with this number, of a sender that all share.
pub(crate) fn id(number: impl std::fmt::Display + Copy) -> Option<BatchId> {
    id_of("owner", &format!("sender/{number}"))
}

pub(crate) fn id_of(owner: &str, id: &str) -> Option<BatchId> {
    Some(BatchId::new(owner, id).expect("a sender and a number"))
}

/// Sends a batch and waits until it is durable.
pub(crate) fn send(engine: &Engine, batch: Option<BatchId>, events: Events) -> Receipt {
    engine.ingest("web", batch, events).expect("room").wait().expect("durable")
}

pub(crate) fn view(engine: &Engine, stream: &str) -> Arc<Published> {
    engine.settle().expect("healthy");
    engine.view(stream).expect("a stream")
}

/// The last whole substreams that are sealed, this many of them: their positions or times.
pub(crate) fn sealed_span(published: &Published, substreams: u64) -> std::ops::Range<u64> {
    let len = published.view.plan().substream_len();
    let end = published.sealed_until / len * len;
    end.saturating_sub(substreams * len)..end
}

/// How often a key occurred in this span, which ends with a substream.
pub(crate) fn frequency(published: &Published, key: &str, span: std::ops::Range<u64>) -> f64 {
    let view = published.view.last(span.end - span.start).and_then(|view| view.as_of(span.end));
    view.expect("a window").frequency(key).expect("a key").value
}

/// What was ever seen of a stream: the counters of each sealed range.
#[derive(Debug, Default)]
pub(crate) struct Seen(BTreeMap<(u64, usize), Vec<i32>>);

impl Seen {
    /// Holds that nothing in the view differs from what was seen before. How many ranges are new.
    #[track_caller]
    pub(crate) fn look(&mut self, view: &WindowView) -> usize {
        let before = self.0.len();
        for sealed in view.sealed() {
            let cells = sealed.sketch().cells();
            let place = (sealed.substream(), sealed.range());
            let first = self.0.entry(place).or_insert_with(|| cells.clone());
            assert_eq!(*first, cells, "substream {}, range {}, was seen otherwise before", place.0, place.1);
        }
        self.0.len() - before
    }

    pub(crate) fn last(&self) -> Option<u64> {
        self.0.keys().next_back().map(|(substream, _)| *substream)
    }
}
