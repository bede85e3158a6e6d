//! The messages of an Arrow IPC stream. No length that a stranger wrote down is believed: messages and buffers lie inside the
//! body, and nothing is compressed (a few bytes could claim any amount of memory; a request is compressed as a whole).

use std::ops::Range;

use arrow_ipc::{Message, MessageHeader, RecordBatch, root_as_message};

use crate::input::InputError;
use crate::input::arrow::schema::Cursor;

const CONTINUATION: [u8; 4] = [0xff; 4];

/// A message behind the schema.
pub(crate) enum Part<'b> {
    Rows(Columns<'b>),
    /// The values that places of a dictionary stand for, or more of them.
    Values {
        id: i64,
        is_more: bool,
        columns: Columns<'b>,
    },
}

/// The columns of one message, all of one length.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'b> {
    batch: RecordBatch<'b>,
    /// Where its buffers begin in the whole body.
    start: usize,
    /// How many bytes they have together.
    pub(crate) bytes: usize,
    pub(crate) rows: usize,
}

/// The messages of a body, one after the other.
pub(crate) struct Messages<'b> {
    body: &'b [u8],
    at: usize,
}

impl<'b> Messages<'b> {
    /// From this byte on, where one begins.
    pub(crate) fn new(body: &'b [u8], at: usize) -> Self {
        Self { body, at }
    }

    /// Where the next one begins.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The next message and its buffers; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(Message<'b>, Range<usize>)>, InputError> {
        let rest = &self.body[self.at..];
        let rest = rest.strip_prefix(&CONTINUATION).unwrap_or(rest);
        if rest.is_empty() {
            return Ok(None);
        }
        let (len, rest) = rest.split_first_chunk::<4>().ok_or(InputError::Arrow)?;
        let len = u32::from_le_bytes(*len) as usize;
        if len == 0 {
            return if rest.is_empty() { Ok(None) } else { Err(InputError::Arrow) };
        }
        let (metadata, rest) = rest.split_at_checked(len).ok_or(InputError::Arrow)?;
        let message = root_as_message(metadata).map_err(|_| InputError::Arrow)?;
        let len = number(message.bodyLength())?;
        let start = self.body.len() - rest.len();
        let end = start.checked_add(len).filter(|end| *end <= self.body.len()).ok_or(InputError::Arrow)?;
        self.at = end;
        Ok(Some((message, start..end)))
    }

    /// The next message behind the schema.
    pub(crate) fn part(&mut self) -> Result<Option<Part<'b>>, InputError> {
        let Some((message, buffers)) = self.next()? else { return Ok(None) };
        match message.header_type() {
            MessageHeader::RecordBatch => {
                let batch = message.header_as_record_batch().ok_or(InputError::Arrow)?;
                Ok(Some(Part::Rows(Columns::new(batch, buffers)?)))
            }
            MessageHeader::DictionaryBatch => {
                let dictionary = message.header_as_dictionary_batch().ok_or(InputError::Arrow)?;
                let batch = dictionary.data().ok_or(InputError::Arrow)?;
                let columns = Columns::new(batch, buffers)?;
                Ok(Some(Part::Values { id: dictionary.id(), is_more: dictionary.isDelta(), columns }))
            }
            _ => Err(InputError::Arrow),
        }
    }
}

impl<'b> Columns<'b> {
    fn new(batch: RecordBatch<'b>, buffers: Range<usize>) -> Result<Self, InputError> {
        let rows = number(batch.length())?;
        if batch.compression().is_some() {
            return Err(InputError::Arrow);
        }
        Ok(Self { batch, start: buffers.start, bytes: buffers.len(), rows })
    }

    /// How many values a field has, and how many of them are missing.
    pub(crate) fn node(&self, index: usize) -> Result<(usize, usize), InputError> {
        let nodes = self.batch.nodes().unwrap_or_default();
        let node = (index < nodes.len()).then(|| nodes.get(index)).ok_or(InputError::Arrow)?;
        Ok((number(node.length())?, number(node.null_count())?))
    }

    /// Where a buffer lies in the whole body.
    pub(crate) fn buffer(&self, index: usize) -> Result<Range<usize>, InputError> {
        let buffers = self.batch.buffers().unwrap_or_default();
        let buffer = (index < buffers.len()).then(|| buffers.get(index)).ok_or(InputError::Arrow)?;
        let offset = number(buffer.offset())?;
        let len = number(buffer.length())?;
        let end = offset.checked_add(len).filter(|end| *end <= self.bytes).ok_or(InputError::Arrow)?;
        Ok(self.start + offset..self.start + end)
    }

    /// How many data buffers a field of views has.
    pub(crate) fn data_buffers(&self, at: Cursor) -> Result<usize, InputError> {
        let counts = self.batch.variadicBufferCounts().unwrap_or_default();
        let count = (at.views < counts.len()).then(|| counts.get(at.views)).ok_or(InputError::Arrow)?;
        number(count)
    }

    /// The number of the first buffer of a field. Fields of views before it have data buffers of their own.
    pub(crate) fn first_buffer(&self, at: Cursor) -> Result<usize, InputError> {
        let counts = self.batch.variadicBufferCounts().unwrap_or_default();
        if counts.len() < at.views {
            return Err(InputError::Arrow);
        }
        let mut first = at.buffers;
        for count in counts.iter().take(at.views) {
            first = first.checked_add(number(count)?).ok_or(InputError::Arrow)?;
        }
        Ok(first)
    }
}

/// A number that a stranger wrote down: none is negative.
fn number(value: i64) -> Result<usize, InputError> {
    usize::try_from(value).map_err(|_| InputError::Arrow)
}
