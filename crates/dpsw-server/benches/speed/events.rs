//! The events that are sent, as every format writes them: pages with the frequencies of Zipf's law.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;

/// As many keys as the library's own `ingest_strings` has.
pub(crate) const KEYS: u64 = 25_600;

pub(crate) fn key(index: u64) -> String {
    format!("/page/{index:06}")
}

/// The keys that a stream lists, one per line.
pub(crate) fn key_lines(keys: u64) -> String {
    (0..keys).map(|index| key(index) + "\n").collect()
}

/// Keys of events in order of arrival. Frequent keys are no neighbours.
pub(crate) fn keys_of(domain: u64, count: usize, seed: u64) -> Vec<String> {
    let mut sum = 0.0;
    let cumulative: Vec<f64> = (1..=domain)
        .map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        })
        .collect();
    let mut state = seed;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = (state >> 11) as f64 / 2_f64.powi(53) * sum;
        cumulative.partition_point(|&sum| sum < uniform) as u64 * 7919 % domain
    };
    (0..count).map(|_| key(draw())).collect()
}

/// A way to write events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Ndjson,
    Arrow,
}

impl Format {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Ndjson => "application/x-ndjson",
            Self::Arrow => "application/vnd.apache.arrow.stream",
        }
    }

    fn write(self, keys: &[String]) -> Vec<u8> {
        match self {
            Self::Ndjson => ndjson(keys),
            Self::Arrow => arrow(keys),
        }
    }
}

fn ndjson(keys: &[String]) -> Vec<u8> {
    let line = |key: &String| format!("{{\"page\":\"{key}\",\"status\":200}}\n");
    keys.iter().map(line).collect::<String>().into_bytes()
}

fn arrow(keys: &[String]) -> Vec<u8> {
    let column: ArrayRef = Arc::new(StringArray::from_iter_values(keys));
    let batch = RecordBatch::try_from_iter([("page", column)]).expect("one column");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("memory");
    writer.write(&batch).expect("memory");
    writer.into_inner().expect("memory")
}

/// Bodies that are sent again and again, each with so many events.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) format: Format,
    pub(crate) bodies: Arc<[Vec<u8>]>,
    pub(crate) events: usize,
}

impl Load {
    pub(crate) fn new(format: Format, keys: &[String], events: usize) -> Self {
        let bodies = keys.chunks_exact(events).map(|keys| format.write(keys)).collect();
        Self { format, bodies, events }
    }
}
