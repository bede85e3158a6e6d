//! From the pieces of a column to text, integers or times. Nothing is unfolded: rows that share a value share its bytes.

use arrow_ipc::TimeUnit;
use bytes::Bytes;

use crate::column::{IntegersBuilder, PresentBuilder, Strings};
use crate::events::MISSING_TIME;
use crate::input::arrow::piece::{Data, Piece, Span};
use crate::input::rows::integer;
use crate::input::{InputError, time};

/// A piece, and where the bytes of its values were copied to.
pub(crate) struct Filed {
    piece: Piece,
    bases: Vec<usize>,
}

/// The values of a dictionary, as far as they have come.
#[derive(Default)]
pub(crate) struct Dictionary {
    /// Each with the number of the place behind its last value.
    pieces: Vec<(usize, Filed)>,
}

impl Dictionary {
    /// More values, or others in their place.
    pub(crate) fn take(&mut self, filed: Filed, is_more: bool) {
        if !is_more {
            self.pieces.clear();
        }
        let before = self.pieces.last().map_or(0, |(end, _)| *end);
        self.pieces.push((before + filed.piece.len, filed));
    }

    fn find(&self, place: i128) -> Option<(&Filed, usize)> {
        let place = usize::try_from(place).ok()?;
        let (end, filed) = self.pieces.get(self.pieces.partition_point(|(end, _)| *end <= place))?;
        Some((filed, filed.piece.len - (end - place)))
    }
}

/// A value: the piece that has it, where that was copied to, and its number there.
type Located<'f> = (&'f Piece, &'f [usize], usize);

impl Filed {
    pub(crate) fn new(piece: Piece, bases: Vec<usize>) -> Self {
        Self { piece, bases }
    }

    /// The value of a row: the piece that has it, where that was copied to, and its number there. `None` where there is none.
    /// A place that the dictionary does not have is an error.
    fn value<'f>(
        &'f self,
        body: &[u8],
        dictionary: &'f Dictionary,
        row: usize,
    ) -> Result<Option<Located<'f>>, InputError> {
        let (piece, index) = self.piece.in_run(body, row);
        if !piece.has(body, index) {
            return Ok(None);
        }
        if !matches!(piece.data, Data::Places(..)) {
            return Ok(Some((piece, &self.bases, index)));
        }
        let place = piece.number(body, index).ok_or(InputError::Arrow)?;
        let (filed, index) = dictionary.find(place).ok_or(InputError::Arrow)?;
        Ok(filed.piece.has(body, index).then_some((&filed.piece, &filed.bases, index)))
    }
}

/// Strings one after the other, as they stand in the body: those of a single piece are not copied.
#[derive(Default)]
pub(crate) struct Flat {
    ends: Vec<u32>,
    present: PresentBuilder,
    /// The first piece that has any.
    first: std::ops::Range<usize>,
    /// All of them, from the second piece on.
    bytes: Vec<u8>,
}

impl Flat {
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.ends.reserve_exact(rows);
    }

    pub(crate) fn take(&mut self, body: &[u8], piece: &Piece, key_len_max: usize) -> Result<(), InputError> {
        let Data::Texts { bytes, .. } = &piece.data else { return Err(InputError::Arrow) };
        if piece.len == 0 {
            return Ok(());
        }
        let start = span(piece, body, 0)?.start;
        let region = start..span(piece, body, piece.len - 1)?.end;
        let base = if self.bytes.is_empty() { self.first.len() } else { self.bytes.len() };
        debug_assert!(bytes.start <= region.start && region.end <= bytes.end, "offsets were checked");
        for row in 0..piece.len {
            let text = span(piece, body, row)?;
            let is_there = text.len() <= key_len_max && piece.has(body, row);
            self.present.push(self.ends.len(), is_there);
            self.ends.push(end(base + text.end - start)?);
        }
        self.add(body, region);
        Ok(())
    }

    fn add(&mut self, body: &[u8], region: std::ops::Range<usize>) {
        if self.bytes.is_empty() && self.first.is_empty() {
            self.first = region;
            return;
        }
        if self.bytes.is_empty() {
            self.bytes.extend_from_slice(&body[self.first.clone()]);
        }
        self.bytes.extend_from_slice(&body[region]);
    }

    /// What is small beside its body is copied, so that the rest of the body is not kept with it.
    pub(crate) fn finish(self, body: &Bytes) -> Result<Strings, InputError> {
        let bytes = match (self.bytes.is_empty(), body.len() <= 2 * self.first.len()) {
            (false, _) => self.bytes.into(),
            (true, true) => body.slice(self.first),
            (true, false) => Bytes::copy_from_slice(&body[self.first]),
        };
        let present = self.present.finish(self.ends.len());
        Ok(Strings::new(bytes, self.ends, present)?)
    }
}

fn span(piece: &Piece, body: &[u8], index: usize) -> Result<std::ops::Range<usize>, InputError> {
    piece.span(body, index).map(|span| span.range).ok_or(InputError::Arrow)
}

fn end(len: usize) -> Result<u32, InputError> {
    u32::try_from(len).map_err(|_| InputError::Arrow)
}

/// Strings that stand anywhere in bytes of their own, several rows perhaps in one place.
pub(crate) struct Shared {
    spans: Vec<[u32; 2]>,
    present: PresentBuilder,
    bytes: Vec<u8>,
    key_len_max: usize,
}

impl Shared {
    pub(crate) fn new(key_len_max: usize) -> Self {
        Self { spans: Vec::new(), present: PresentBuilder::default(), bytes: Vec::new(), key_len_max }
    }

    pub(crate) fn reserve(&mut self, rows: usize) {
        self.spans.reserve_exact(rows);
    }

    /// Copies what the values of a piece are made of, once; where to.
    pub(crate) fn copy(&mut self, body: &[u8], piece: &Piece) -> Vec<usize> {
        let regions = match &piece.data {
            Data::Texts { bytes, .. } | Data::Fixed { bytes, .. } => std::slice::from_ref(bytes),
            Data::Views { buffers, .. } => &buffers[..],
            Data::Runs { values, .. } => return self.copy(body, values),
            _ => &[],
        };
        let mut bases = Vec::with_capacity(regions.len());
        for region in regions {
            bases.push(self.bytes.len());
            self.bytes.extend_from_slice(&body[region.clone()]);
        }
        bases
    }

    pub(crate) fn take(
        &mut self,
        body: &[u8],
        filed: &Filed,
        dictionary: &Dictionary,
    ) -> Result<(), InputError> {
        for row in 0..filed.piece.len {
            let text = match filed.value(body, dictionary, row)? {
                Some((piece, bases, index)) => self.text(body, piece, bases, index)?,
                None => None,
            };
            self.present.push(self.spans.len(), text.is_some());
            self.spans.push(text.unwrap_or_default());
        }
        Ok(())
    }

    /// Where the text of a value lies in the bytes; `None` if it is too long. Short ones that came apart, and numbers, are added.
    fn text(
        &mut self,
        body: &[u8],
        piece: &Piece,
        bases: &[usize],
        index: usize,
    ) -> Result<Option<[u32; 2]>, InputError> {
        let Some(Span { range, copied }) = piece.span(body, index) else {
            return self.write(&written(piece, body, index)?);
        };
        if self.key_len_max < range.len() {
            return Ok(None);
        }
        match copied {
            Some((buffer, offset)) => {
                let start = bases.get(buffer).ok_or(InputError::Arrow)? + offset;
                Ok(Some([end(start)?, end(start + range.len())?]))
            }
            None => self.write(&body[range]),
        }
    }

    fn write(&mut self, text: &[u8]) -> Result<Option<[u32; 2]>, InputError> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        Ok(Some([end(start)?, end(self.bytes.len())?]))
    }

    pub(crate) fn finish(self) -> Result<Strings, InputError> {
        let present = self.present.finish(self.spans.len());
        Ok(Strings::with_spans(self.bytes.into(), self.spans, present)?)
    }
}

/// Integers and flags as they are written.
fn written(piece: &Piece, body: &[u8], index: usize) -> Result<Vec<u8>, InputError> {
    if let Some(flag) = piece.flag(body, index) {
        return Ok(if flag { b"true".to_vec() } else { b"false".to_vec() });
    }
    let number = piece.number(body, index).ok_or(InputError::Arrow)?;
    Ok(number.to_string().into_bytes())
}

/// Integers from 0 on, and text that is all digits.
pub(crate) fn integers(
    body: &[u8],
    filed: &Filed,
    dictionary: &Dictionary,
    integers: &mut IntegersBuilder,
) -> Result<(), InputError> {
    for row in 0..filed.piece.len {
        let value = filed.value(body, dictionary, row)?;
        integers.push(value.and_then(|(piece, _, index)| match piece.span(body, index) {
            Some(Span { range, .. }) => integer(&body[range]),
            None => u64::try_from(piece.number(body, index)?).ok(),
        }));
    }
    Ok(())
}

/// Timestamps, whatever their unit; integers and text as in the other formats.
pub(crate) fn times(
    body: &[u8],
    filed: &Filed,
    dictionary: &Dictionary,
    times: &mut Vec<u64>,
) -> Result<(), InputError> {
    for row in 0..filed.piece.len {
        let value = filed.value(body, dictionary, row)?;
        let time = value.and_then(|(piece, _, index)| time_at(piece, body, index));
        times.push(time.unwrap_or(MISSING_TIME));
    }
    Ok(())
}

fn time_at(piece: &Piece, body: &[u8], index: usize) -> Option<u64> {
    if let Some(Span { range, .. }) = piece.span(body, index) {
        return time::parse(&body[range]);
    }
    // What lies before 1970 is no time; dividing must not round it up to 1970.
    let number = u64::try_from(piece.number(body, index)?).ok()?;
    match &piece.data {
        Data::Times(TimeUnit::SECOND, _) => number.checked_mul(1000),
        Data::Times(TimeUnit::MILLISECOND, _) => Some(number),
        Data::Times(TimeUnit::MICROSECOND, _) => Some(number / 1000),
        Data::Times(TimeUnit::NANOSECOND, _) => Some(number / 1_000_000),
        Data::Times(..) => None,
        _ => Some(time::of_number(number)),
    }
}
