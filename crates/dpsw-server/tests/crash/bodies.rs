//! Batches of pages as bodies, in every format and packing that the service takes.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;

/// A body and the headers that say what it is.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub(crate) content_type: &'static str,
    pub(crate) packing: &'static str,
    pub(crate) bytes: Vec<u8>,
}

/// How many ways there are to send the same batch.
pub(crate) const KINDS: u64 = 7;

impl Body {
    /// The same pages in one of these ways. Lines and CSV have an empty page for one that is missing.
    pub(crate) fn new(kind: u64, pages: &[Option<&str>]) -> Self {
        let (content_type, bytes) = match kind {
            0 => ("text/plain", lines(pages)),
            1 => ("text/csv", [b"page\n", &lines(pages)[..]].concat()),
            2 => ("application/json", format!("[{}]", documents(pages).join(",")).into()),
            3 => ("application/vnd.apache.arrow.stream", arrow(pages)),
            _ => ("application/x-ndjson", ndjson(pages)),
        };
        let (packing, bytes) = match kind {
            5 => ("gzip", gzip(&bytes)),
            6 => ("zstd", zstd::encode_all(&bytes[..], 1).expect("memory")),
            _ => ("identity", bytes),
        };
        Self { content_type, packing, bytes }
    }

    pub(crate) fn headers<'b>(&'b self, batch_id: &'b str) -> [(&'b str, &'b str); 3] {
        [("Content-Type", self.content_type), ("Content-Encoding", self.packing), ("Batch-Id", batch_id)]
    }
}

fn lines(pages: &[Option<&str>]) -> Vec<u8> {
    pages.iter().map(|page| format!("{}\n", page.unwrap_or_default())).collect::<String>().into()
}

fn documents(pages: &[Option<&str>]) -> Vec<String> {
    let document = |page: &Option<&str>| match page {
        Some(page) => serde_json::json!({ "page": page }).to_string(),
        None => "{}".to_owned(),
    };
    pages.iter().map(document).collect()
}

fn ndjson(pages: &[Option<&str>]) -> Vec<u8> {
    documents(pages).into_iter().map(|document| document + "\n").collect::<String>().into()
}

fn arrow(pages: &[Option<&str>]) -> Vec<u8> {
    let column: ArrayRef = Arc::new(StringArray::from(pages.to_vec()));
    let batch = RecordBatch::try_from_iter([("page", column)]).expect("one column");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("memory");
    writer.write(&batch).expect("memory");
    writer.into_inner().expect("memory")
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}
