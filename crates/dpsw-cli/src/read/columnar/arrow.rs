//! Arrow files and streams: messages of metadata and buffers, which `arrow-ipc` decodes.
//!
//! Its own readers reserve whatever length a damaged message announces, and the program ends if the system refuses. So
//! messages are read and their lengths checked here.

use std::cell::Cell;
use std::collections::HashMap;
use std::hint::black_box;
use std::io::{Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Arc, Once};

use anyhow::Result;
use arrow_array::{ArrayRef, RecordBatch, new_empty_array};
use arrow_buffer::Buffer;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_footer_length, read_record_batch};
use arrow_ipc::{root_as_footer, root_as_message};
use arrow_schema::{Schema, SchemaRef};

use crate::read::columnar::array::{self, Values, values};
use crate::read::columnar::rows::{Cells, Chosen, Column, Rows};
use crate::read::columnar::{Selection, damaged, unsuited};
use crate::read::columns::Described;

/// The length of the footer, and the magic.
const TAIL_LEN: usize = 10;
/// Stands before the length of a message, except in files from before 2019.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Reads the messages of a stream in their order; `rows` says whether anyone still listens.
pub(super) fn read_stream(
    mut source: impl Read,
    selection: &Selection,
    mut rows: impl FnMut(Rows) -> bool,
) -> Result<()> {
    let first = Message::read(&mut source)?.ok_or_else(|| damaged("it is empty"))?;
    let schema = first.header()?.header_as_schema();
    let schema = schema.ok_or_else(|| damaged("it does not start with its columns"))?;
    let mut batches = Batches::new(schema, selection)?;
    while let Some(message) = Message::read(&mut source)? {
        if !batches.take(&message, &mut rows)? {
            break;
        }
    }
    Ok(())
}

/// Reads the messages of a file that its footer names: dictionaries first, wherever they are.
pub(super) fn read_file(
    mut source: impl Read + Seek,
    selection: &Selection,
    mut rows: impl FnMut(Rows) -> bool,
) -> Result<()> {
    let footer = footer(&mut source)?;
    let footer = root_as_footer(&footer).map_err(|_| contradiction())?;
    let mut batches = Batches::new(footer.schema().ok_or_else(cut)?, selection)?;
    for block in [footer.dictionaries(), footer.recordBatches()].into_iter().flatten().flatten() {
        let start = u64::try_from(block.offset()).map_err(damaged)?;
        source.seek(SeekFrom::Start(start)).map_err(damaged)?;
        let message = Message::read(&mut source)?.ok_or_else(|| damaged("a batch is missing"))?;
        if !batches.take(&message, &mut rows)? {
            break;
        }
    }
    Ok(())
}

fn footer(source: &mut (impl Read + Seek)) -> Result<Vec<u8>> {
    let file_len = source.seek(SeekFrom::End(0))?;
    let tail_start = file_len.checked_sub(TAIL_LEN as u64).ok_or_else(cut)?;
    source.seek(SeekFrom::Start(tail_start))?;
    let mut tail = [0; TAIL_LEN];
    source.read_exact(&mut tail)?;
    let len = read_footer_length(tail).map_err(damaged)? as u64;
    source.seek(SeekFrom::Start(tail_start.checked_sub(len).ok_or_else(cut)?))?;
    exactly(source, len)
}

/// Metadata, and the buffers that it speaks of.
struct Message {
    metadata: Vec<u8>,
    body: Buffer,
}

impl Message {
    /// `None` at the end.
    fn read(source: &mut impl Read) -> Result<Option<Self>> {
        let Some(mut len) = word(source)? else { return Ok(None) };
        if len == CONTINUATION {
            len = word(source)?.ok_or_else(cut)?;
        }
        let len = u32::from_le_bytes(len);
        if len == 0 {
            return Ok(None);
        }
        let mut message = Self { metadata: exactly(source, len.into())?, body: Buffer::default() };
        let body_len = u64::try_from(message.header()?.bodyLength()).map_err(damaged)?;
        message.body = exactly(source, body_len)?.into();
        Ok(Some(message))
    }

    fn header(&self) -> Result<arrow_ipc::Message<'_>> {
        root_as_message(&self.metadata).map_err(|_| contradiction())
    }

    /// Refuses buffers that lie outside the body, or that announce to unpack to more than there is memory for.
    fn check(&self, batch: arrow_ipc::RecordBatch<'_>) -> Result<()> {
        for buffer in batch.buffers().into_iter().flatten() {
            let [start, len] = [buffer.offset(), buffer.length()].map(|number| usize::try_from(number).ok());
            let range = start.zip(len).and_then(|(start, len)| Some(start..start.checked_add(len)?));
            let bytes = range.and_then(|range| self.body.get(range)).ok_or_else(cut)?;
            if let Some((len, _)) = bytes.split_first_chunk()
                && batch.compression().is_some()
            {
                check_memory(i64::from_le_bytes(*len))?;
            }
        }
        Ok(())
    }
}

/// Refuses a length that the system gives no memory for. Below zero, it is no length.
fn check_memory(len: i64) -> Result<()> {
    let mut bytes = Vec::<u8>::new();
    bytes.try_reserve_exact(usize::try_from(len).unwrap_or(0)).map_err(damaged)?;
    // Otherwise the compiler may leave out what is not used.
    black_box(&bytes);
    Ok(())
}

/// Four bytes, or nothing at the end.
fn word(source: &mut impl Read) -> Result<Option<[u8; 4]>> {
    let mut word = Vec::new();
    source.take(4).read_to_end(&mut word)?;
    if word.is_empty() { Ok(None) } else { word.try_into().map(Some).map_err(|_| cut()) }
}

/// Exactly this many bytes; memory grows with what is there, not with what is announced.
fn exactly(source: &mut impl Read, len: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(len).read_to_end(&mut bytes).map_err(damaged)?;
    if bytes.len() as u64 == len { Ok(bytes) } else { Err(cut()) }
}

fn cut() -> anyhow::Error {
    damaged("it is cut off")
}

/// The crate tells it in several lines, for programmers.
fn contradiction() -> anyhow::Error {
    damaged("its metadata contradicts itself")
}

/// Turns batches into rows, and keeps the dictionaries that they need.
struct Batches {
    schema: SchemaRef,
    chosen: Chosen<usize>,
    dictionaries: HashMap<i64, ArrayRef>,
}

impl Batches {
    fn new(schema: arrow_ipc::Schema<'_>, selection: &Selection) -> Result<Self> {
        if !schema.endianness().equals_to_target_endianness() {
            return Err(damaged("it was written by a big-endian machine"));
        }
        let schema = caught(|| Ok(fb_to_schema(schema)))?;
        let mut columns = Vec::new();
        for field in schema.fields() {
            let shape = array::shape(field.data_type()).to_owned();
            columns.push(Described { name: field.name().clone(), shape });
        }
        let chosen = selection.find(&columns)?;
        caught(|| chosen.iter().try_for_each(|&index| check_type(&schema, index)))?;
        Ok(Self { schema: Arc::new(schema), chosen, dictionaries: HashMap::new() })
    }

    /// Takes a message; false if nobody listens any more.
    fn take(&mut self, message: &Message, rows: &mut impl FnMut(Rows) -> bool) -> Result<bool> {
        match caught(|| self.decode(message))? {
            Some(batch) => self.rows(&batch, rows),
            None => Ok(true),
        }
    }

    /// The chosen columns of a batch, or nothing if the message is about something else.
    fn decode(&mut self, message: &Message) -> Result<Option<RecordBatch>> {
        let header = message.header()?;
        let body = &message.body;
        let version = header.version();
        if let Some(dictionary) = header.header_as_dictionary_batch() {
            message.check(dictionary.data().ok_or_else(cut)?)?;
            read_dictionary(body, dictionary, &self.schema, &mut self.dictionaries, &version)
                .map_err(damaged)?;
        }
        let Some(batch) = header.header_as_record_batch() else { return Ok(None) };
        message.check(batch)?;
        let columns: Vec<usize> = self.chosen.iter().copied().collect();
        let schema = Arc::clone(&self.schema);
        read_record_batch(body, batch, schema, &self.dictionaries, Some(&columns), &version)
            .map(Some)
            .map_err(damaged)
    }

    fn rows(&self, batch: &RecordBatch, rows: &mut impl FnMut(Rows) -> bool) -> Result<bool> {
        let mut arrays = batch.columns().iter();
        let mut columns = self.chosen.try_map(|index| {
            let values = arrays.next().and_then(|array| values(array));
            let values = values.ok_or_else(|| unsuited(self.schema.field(index).name()))?;
            Ok(Cursor { values, next: 0 })
        })?;
        columns.hand_over(batch.num_rows(), rows)
    }
}

fn check_type(schema: &Schema, index: usize) -> Result<()> {
    let field = schema.field(index);
    match values(&new_empty_array(field.data_type())) {
        Some(_) => Ok(()),
        None => Err(unsuited(field.name())),
    }
}

/// A column of a batch while it is read.
struct Cursor<'a> {
    values: Values<'a>,
    next: usize,
}

impl Column for Cursor<'_> {
    fn read(&mut self, count: usize, cells: &mut impl Cells) -> Result<()> {
        let rows = self.next..self.next + count;
        self.next = rows.end;
        for row in rows {
            cells.push((self.values)(row));
        }
        Ok(())
    }
}

thread_local! {
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Decodes; a panic becomes an error and is not reported. What `decode` has changed must not be used after an error.
fn caught<T>(decode: impl FnOnce() -> Result<T>) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(report_only_others);
    IS_CAUGHT.set(true);
    let result = catch_unwind(AssertUnwindSafe(decode));
    IS_CAUGHT.set(false);
    result.unwrap_or_else(|_| Err(damaged("its parts contradict each other, or a type in it is unknown")))
}

fn report_only_others() {
    let report = take_hook();
    set_hook(Box::new(move |panic| {
        if !IS_CAUGHT.get() {
            report(panic);
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        let error = caught(|| -> Result<()> { panic!("a buffer is missing") }).expect_err("refused");
        assert!(error.to_string().contains("damaged"), "{error}");
        assert_eq!(caught(|| Ok(5)).expect("decoded"), 5);
    }
}
