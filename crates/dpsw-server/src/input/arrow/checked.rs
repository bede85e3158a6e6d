//! Looks at the messages of an Arrow IPC stream before they are decoded, so that no length that a stranger wrote down is
//! believed: messages and buffers lie inside the body, rows are not too many, and nothing is compressed (a few bytes could
//! claim any amount of memory; a request is compressed as a whole).

use arrow_ipc::{Buffer, MessageHeader, RecordBatch, root_as_message};

use crate::input::{InputError, InputLimits};

const CONTINUATION: [u8; 4] = [0xff; 4];

pub(crate) fn check(body: &[u8], limits: InputLimits) -> Result<(), InputError> {
    let mut rest = body;
    let mut rows = 0;
    while let Some((message, body, behind)) = split(rest)? {
        rows += rows_of(message, body)?;
        if limits.events_max < rows {
            return Err(InputError::Events { most: limits.events_max });
        }
        rest = behind;
    }
    Ok(())
}

/// The metadata and the body of the first message, and what follows; `None` at the end of the stream.
type Message<'b> = (&'b [u8], &'b [u8], &'b [u8]);

fn split(rest: &[u8]) -> Result<Option<Message<'_>>, InputError> {
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
    let len = usize::try_from(message.bodyLength()).map_err(|_| InputError::Arrow)?;
    let (body, rest) = rest.split_at_checked(len).ok_or(InputError::Arrow)?;
    Ok(Some((metadata, body, rest)))
}

/// How many events a message brings.
fn rows_of(metadata: &[u8], body: &[u8]) -> Result<usize, InputError> {
    let message = root_as_message(metadata).map_err(|_| InputError::Arrow)?;
    match message.header_type() {
        MessageHeader::RecordBatch => {
            let batch = message.header_as_record_batch().ok_or(InputError::Arrow)?;
            check_batch(batch, body.len())
        }
        MessageHeader::DictionaryBatch => {
            let batch = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
            check_batch(batch.ok_or(InputError::Arrow)?, body.len())?;
            Ok(0)
        }
        MessageHeader::Schema => Ok(0),
        _ => Err(InputError::Arrow),
    }
}

fn check_batch(batch: RecordBatch<'_>, body_len: usize) -> Result<usize, InputError> {
    let lies_inside = |buffer: &Buffer| {
        let end =
            usize::try_from(buffer.offset()).ok()?.checked_add(usize::try_from(buffer.length()).ok()?)?;
        (end <= body_len).then_some(())
    };
    let buffers = batch.buffers().unwrap_or_default();
    if batch.compression().is_some() || !buffers.iter().all(|buffer| lies_inside(buffer).is_some()) {
        return Err(InputError::Arrow);
    }
    let rows = usize::try_from(batch.length()).map_err(|_| InputError::Arrow)?;
    let is_short = |len: i64| usize::try_from(len).is_ok_and(|len| len <= rows.max(body_len));
    let nodes = batch.nodes().unwrap_or_default();
    if nodes.iter().all(|node| is_short(node.length())) { Ok(rows) } else { Err(InputError::Arrow) }
}
