//! How batches stand in the journal: one record for all batches of a source that were committed together.

use std::sync::Arc;

use bytes::Bytes;

use crate::column::{Integers, Places, Present, Strings};
use crate::events::{Column, Events};

/// A batch in its place in the order of its source.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    /// How many batches of the source came before.
    pub(crate) sequence: u64,
    /// When it came, by the service's clock, which never goes back.
    pub(crate) arrival_ms: u64,
    /// How many bytes were reserved for it, from its envelope. How full a journal is goes by these: its own bytes depend on items.
    pub(crate) reserved: usize,
    pub(crate) events: Arc<Events>,
}

/// How many bytes were reserved for all of them.
pub(crate) fn reserved(batches: &[Batch]) -> usize {
    batches.iter().map(|batch| batch.reserved).sum()
}

/// A record that is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record of the journal is not valid")]
pub(crate) struct Malformed;

const STRINGS: u8 = 0;
const INTEGERS: u8 = 1;
/// Strings one after the other, or anywhere in their bytes.
const ENDS: u8 = 0;
const SPANS: u8 = 1;

/// How many bytes the record of these batches takes.
pub(crate) fn encoded_len(batches: &[Batch]) -> usize {
    let mut len = 4;
    for batch in batches {
        len += 34;
        for (name, column) in batch.events.columns() {
            len += 5 + name.len() + column_len(column);
        }
        len += batch.events.times().map_or(0, |times| 8 * times.len());
        len += batch.events.users().map_or(0, strings_len);
    }
    len
}

fn column_len(column: &Column) -> usize {
    match column {
        Column::Strings(strings) => strings_len(strings),
        Column::Integers(integers) => {
            let (values, present) = integers.parts();
            present_len(present, values.len()) + 8 * values.len()
        }
    }
}

fn strings_len(strings: &Strings) -> usize {
    let (bytes, places, present) = strings.parts();
    let places_len = match places {
        Places::Ends(ends) => 1 + 4 * ends.len() + used(ends),
        Places::Spans(spans) => 1 + 8 * spans.len() + 4 + bytes.len(),
    };
    present_len(present, strings.len()) + places_len
}

/// How much of their bytes strings use that stand one after the other.
fn used(ends: &[u32]) -> usize {
    ends.last().map_or(0, |&end| end as usize)
}

fn present_len(present: &Present, len: usize) -> usize {
    1 + present.as_bits().map_or(0, |_| len.div_ceil(8))
}

/// Writes the record of these batches into a place of [`encoded_len`].
pub(crate) fn encode_into(batches: &[Batch], place: &mut [u8]) {
    let mut rest = place;
    encode(batches, &mut |bytes| {
        let (here, after) = std::mem::take(&mut rest).split_at_mut(bytes.len());
        here.copy_from_slice(bytes);
        rest = after;
    });
    assert!(rest.is_empty(), "a record is as long as it was measured");
}

fn encode(batches: &[Batch], put: &mut impl FnMut(&[u8])) {
    put(&len32(batches.len()));
    for batch in batches {
        put(&batch.sequence.to_le_bytes());
        put(&batch.arrival_ms.to_le_bytes());
        put(&(batch.reserved as u64).to_le_bytes());
        put(&len32(batch.events.len()));
        put(&len32(batch.events.columns().len()));
        for (name, column) in batch.events.columns() {
            put(&len32(name.len()));
            put(name.as_bytes());
            encode_column(column, put);
        }
        put(&[u8::from(batch.events.times().is_some())]);
        if let Some(times) = batch.events.times() {
            encode_words(times, u64::to_le_bytes, put);
        }
        put(&[u8::from(batch.events.users().is_some())]);
        if let Some(users) = batch.events.users() {
            encode_strings(users, put);
        }
    }
}

fn encode_column(column: &Column, put: &mut impl FnMut(&[u8])) {
    match column {
        Column::Strings(strings) => {
            put(&[STRINGS]);
            encode_strings(strings, put);
        }
        Column::Integers(integers) => {
            let (values, present) = integers.parts();
            put(&[INTEGERS]);
            encode_present(present, values.len(), put);
            encode_words(values, u64::to_le_bytes, put);
        }
    }
}

fn encode_strings(strings: &Strings, put: &mut impl FnMut(&[u8])) {
    let (bytes, places, present) = strings.parts();
    encode_present(present, strings.len(), put);
    match places {
        Places::Ends(ends) => {
            put(&[ENDS]);
            encode_words(ends, u32::to_le_bytes, put);
            put(&bytes[..used(ends)]);
        }
        // Values that several rows share are written once.
        Places::Spans(spans) => {
            put(&[SPANS]);
            encode_words(spans.as_flattened(), u32::to_le_bytes, put);
            put(&len32(bytes.len()));
            put(bytes);
        }
    }
}

/// Numbers are turned into bytes this many at a time.
const BLOCK: usize = 1024;

fn encode_words<W: Copy, const N: usize>(
    words: &[W],
    to_bytes: impl Fn(W) -> [u8; N],
    put: &mut impl FnMut(&[u8]),
) {
    let mut buffer = [[0; N]; BLOCK];
    for block in words.chunks(BLOCK) {
        for (place, word) in buffer.iter_mut().zip(block) {
            *place = to_bytes(*word);
        }
        put(buffer[..block.len()].as_flattened());
    }
}

fn encode_present(present: &Present, len: usize, put: &mut impl FnMut(&[u8])) {
    put(&[u8::from(present.as_bits().is_some())]);
    if let Some(bits) = present.as_bits() {
        put(&bits[..len.div_ceil(8)]);
    }
}

fn len32(len: usize) -> [u8; 4] {
    u32::try_from(len).expect("everything that is counted is below 2^32").to_le_bytes()
}

/// The batches of a record. Their strings lie in the record itself.
pub(crate) fn decode(record: Bytes) -> Result<Vec<Batch>, Malformed> {
    let mut reader = Reader(record);
    let count = reader.len()?;
    let batches = (0..count).map(|_| reader.batch()).collect::<Result<Vec<_>, _>>()?;
    if reader.0.is_empty() { Ok(batches) } else { Err(Malformed) }
}

struct Reader(Bytes);

impl Reader {
    fn take(&mut self, len: usize) -> Result<Bytes, Malformed> {
        if len <= self.0.len() { Ok(self.0.split_to(len)) } else { Err(Malformed) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N).map(|bytes| (&*bytes).try_into().expect("as many as were taken"))
    }

    fn len(&mut self) -> Result<usize, Malformed> {
        self.array().map(|bytes| u32::from_le_bytes(bytes) as usize)
    }

    fn word(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    fn flag(&mut self) -> Result<bool, Malformed> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(Malformed),
        }
    }

    fn batch(&mut self) -> Result<Batch, Malformed> {
        let sequence = self.word()?;
        let arrival_ms = self.word()?;
        let reserved = usize::try_from(self.word()?).map_err(|_| Malformed)?;
        let len = self.len()?;
        let mut events = Events::new(len).map_err(|_| Malformed)?;
        for _ in 0..self.len()? {
            let name_len = self.len()?;
            let name = String::from_utf8(self.take(name_len)?.to_vec()).map_err(|_| Malformed)?;
            events = events.with_column(name, self.column(len)?).map_err(|_| Malformed)?;
        }
        if self.flag()? {
            events = events.with_times(self.words(len, u64::from_le_bytes)?).map_err(|_| Malformed)?;
        }
        if self.flag()? {
            events = events.with_users(self.strings(len)?).map_err(|_| Malformed)?;
        }
        Ok(Batch { sequence, arrival_ms, reserved, events: Arc::new(events) })
    }

    fn column(&mut self, len: usize) -> Result<Column, Malformed> {
        match self.array()? {
            [STRINGS] => self.strings(len).map(Column::Strings),
            [INTEGERS] => {
                let present = self.present(len)?;
                let values = self.words(len, u64::from_le_bytes)?;
                Integers::new(values, present).map(Column::Integers).map_err(|_| Malformed)
            }
            _ => Err(Malformed),
        }
    }

    fn strings(&mut self, len: usize) -> Result<Strings, Malformed> {
        let present = self.present(len)?;
        match self.array()? {
            [ENDS] => {
                let ends = self.words(len, u32::from_le_bytes)?;
                let bytes = self.take(used(&ends))?;
                Strings::new(bytes, ends, present).map_err(|_| Malformed)
            }
            [SPANS] => {
                let words = self.words(2 * len, u32::from_le_bytes)?;
                let spans = words.as_chunks().0.to_vec();
                let bytes_len = self.len()?;
                Strings::with_spans(self.take(bytes_len)?, spans, present).map_err(|_| Malformed)
            }
            _ => Err(Malformed),
        }
    }

    fn words<W, const N: usize>(
        &mut self,
        len: usize,
        from_bytes: impl Fn([u8; N]) -> W,
    ) -> Result<Vec<W>, Malformed> {
        let bytes = self.take(N * len)?;
        let (words, _) = bytes.as_chunks::<N>();
        Ok(words.iter().map(|word| from_bytes(*word)).collect())
    }

    fn present(&mut self, len: usize) -> Result<Present, Malformed> {
        if self.flag()? { self.take(len.div_ceil(8)).map(Present::bits) } else { Ok(Present::all()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches() -> Vec<Batch> {
        let texts: Strings = [Some("a"), None, Some("bcd")].into_iter().collect();
        let numbers: Integers = [Some(7), Some(u64::MAX), None].into_iter().collect();
        let users: Strings = [Some("ann"), Some("bob"), Some("ann")].into_iter().collect();
        let full = Events::new(3)
            .and_then(|events| events.with_column("page", Column::Strings(texts)))
            .and_then(|events| events.with_column("status", Column::Integers(numbers)))
            .and_then(|events| events.with_times(vec![1, 2, 3]))
            .and_then(|events| events.with_users(users))
            .expect("columns of three");
        let bytes = Bytes::from_static(b"onetwo");
        let spans = vec![[0, 3], [3, 6], [0, 3], [2, 4], [0, 0]];
        let folded = Strings::with_spans(bytes, spans, Present::bits(Bytes::from_static(&[0b10111])));
        let folded = Column::Strings(folded.expect("inside the bytes"));
        let folded = Events::new(5).and_then(|events| events.with_column("page", folded));
        let many: Strings = (0..3000).map(|i| Some(format!("{i}"))).collect();
        let many = Events::new(3000).and_then(|events| events.with_column("page", Column::Strings(many)));
        let all = [full, Events::default(), folded.expect("one column"), many.expect("one column")];
        let batch =
            |(sequence, events)| Batch { sequence, arrival_ms: 9, reserved: 77, events: Arc::new(events) };
        (5..).zip(all).map(batch).collect()
    }

    fn encoded() -> Vec<u8> {
        let mut record = vec![0; encoded_len(&batches())];
        encode_into(&batches(), &mut record);
        record
    }

    #[test]
    fn batches_are_read_as_they_were_written() {
        let read = decode(encoded().into()).expect("a record");
        let key = |batch: &Batch| (batch.sequence, batch.arrival_ms, batch.reserved, batch.events.clone());
        assert_eq!(read.iter().map(key).collect::<Vec<_>>(), batches().iter().map(key).collect::<Vec<_>>());
    }

    #[test]
    fn a_record_that_was_cut_or_changed_is_refused_or_read_and_never_panics() {
        let record = encoded();
        for len in 0..record.len().min(400) {
            assert_eq!(decode(record[..len].to_vec().into()).map(|_| ()), Err(Malformed), "{len} bytes");
        }
        for at in 0..record.len().min(400) {
            for bit in 0..8 {
                let mut changed = record.clone();
                changed[at] ^= 1 << bit;
                let _ = decode(changed.into());
            }
        }
    }

    /// A part of a shared buffer is written alone.
    #[test]
    fn strings_write_what_they_use_of_their_bytes() {
        let strings =
            Strings::new(Bytes::from_static(b"abcdef"), vec![1, 3], Present::all()).expect("ends ascend");
        let events = Events::new(2).and_then(|events| events.with_column("page", Column::Strings(strings)));
        let events = Arc::new(events.expect("two of them"));
        let batch = [Batch { sequence: 0, arrival_ms: 0, reserved: 0, events }];
        let mut record = vec![0; encoded_len(&batch)];
        encode_into(&batch, &mut record);
        assert!(!record.windows(3).any(|part| part == b"def"));
        assert_eq!(decode(record.into()).expect("a record")[0].events.len(), 2);
    }
}
