//! One column of one message: checked as a whole when it is made, so that its values can be read without further doubts.

use std::ops::Range;

use arrow_ipc::TimeUnit;

use crate::input::InputError;
use crate::input::arrow::messages::Columns;
use crate::input::arrow::schema::{Cursor, Leaf, Shape, Whole};

/// Bytes of a view.
const VIEW: usize = 16;
/// Strings up to this many bytes stand in their view.
const INLINE: usize = 12;

/// One column of one message. Ranges are those of the whole body.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) len: usize,
    /// A bit for each value; without bits, all are there.
    present: Option<Range<usize>>,
    pub(crate) data: Data,
}

#[derive(Debug)]
pub(crate) enum Data {
    Texts { offsets: Range<usize>, width: usize, bytes: Range<usize> },
    Views { views: Range<usize>, buffers: Vec<Range<usize>> },
    Fixed { width: usize, bytes: Range<usize> },
    Flags(Range<usize>),
    Whole(Whole, Range<usize>),
    Times(TimeUnit, Range<usize>),
    Places(Whole, Range<usize>),
    Runs { ends: Whole, runs: Range<usize>, values: Box<Piece> },
}

/// The place of a value's text.
#[derive(Debug)]
pub(crate) struct Span {
    /// In the whole body.
    pub(crate) range: Range<usize>,
    /// In which of the buffers that hold texts, and where there; `None` if it stands in its view.
    pub(crate) copied: Option<(usize, usize)>,
}

impl Piece {
    /// The column at this place of a message, with as many values as the message has rows.
    pub(crate) fn new(
        body: &[u8],
        columns: &Columns<'_>,
        shape: &Shape,
        at: Cursor,
    ) -> Result<Self, InputError> {
        let piece = match shape {
            Shape::Plain(leaf) => Self::plain(columns, *leaf, at)?,
            Shape::Dictionary { places, .. } => Self::places(columns, *places, at)?,
            Shape::Runs { ends, values } => Self::runs(body, columns, (*ends, values), at)?,
        };
        if piece.len != columns.rows {
            return Err(InputError::Arrow);
        }
        piece.check(body)?;
        Ok(piece)
    }

    fn plain(columns: &Columns<'_>, leaf: Leaf, at: Cursor) -> Result<Self, InputError> {
        let len = columns.node(at.nodes)?.0;
        let first = columns.first_buffer(at)?;
        let values = columns.buffer(first + 1)?;
        let data = match leaf {
            Leaf::Texts(width) => Data::Texts { offsets: values, width, bytes: columns.buffer(first + 2)? },
            Leaf::Fixed(width) => Data::Fixed { width, bytes: values },
            Leaf::Flags => Data::Flags(values),
            Leaf::Whole(whole) => Data::Whole(whole, values),
            Leaf::Times(unit) => Data::Times(unit, values),
            Leaf::Views => Data::Views { views: values, buffers: data_buffers(columns, at, first + 2)? },
        };
        Ok(Self { len, present: present(columns, at, first)?, data })
    }

    fn places(columns: &Columns<'_>, places: Whole, at: Cursor) -> Result<Self, InputError> {
        let len = columns.node(at.nodes)?.0;
        let first = columns.first_buffer(at)?;
        let data = Data::Places(places, columns.buffer(first + 1)?);
        Ok(Self { len, present: present(columns, at, first)?, data })
    }

    fn runs(
        body: &[u8],
        columns: &Columns<'_>,
        (ends, values): (Whole, &Shape),
        at: Cursor,
    ) -> Result<Self, InputError> {
        let inside = at.inside();
        let runs_len = columns.node(inside.nodes)?.0;
        let runs = sized(columns.buffer(columns.first_buffer(inside)? + 1)?, runs_len, ends.width)?;
        let behind = inside.behind_whole();
        let values = match values {
            Shape::Plain(leaf) => Self::plain(columns, *leaf, behind)?,
            Shape::Dictionary { places, .. } => Self::places(columns, *places, behind)?,
            Shape::Runs { .. } => return Err(InputError::Arrow),
        };
        values.check(body)?;
        if values.len != runs_len {
            return Err(InputError::Arrow);
        }
        let data = Data::Runs { ends, runs, values: Box::new(values) };
        Ok(Self { len: columns.node(at.nodes)?.0, present: None, data })
    }

    /// Whether everything lies where it must.
    fn check(&self, body: &[u8]) -> Result<(), InputError> {
        if let Some(bits) = &self.present {
            sized(bits.clone(), self.len.div_ceil(8), 1)?;
        }
        match &self.data {
            Data::Texts { offsets, width, bytes } => self.check_offsets(body, offsets, *width, bytes),
            Data::Views { views, buffers } => self.check_views(body, views, buffers),
            Data::Fixed { width, bytes } => sized(bytes.clone(), self.len, *width).map(drop),
            Data::Flags(bits) => sized(bits.clone(), self.len.div_ceil(8), 1).map(drop),
            Data::Whole(whole, values) | Data::Places(whole, values) => {
                sized(values.clone(), self.len, whole.width).map(drop)
            }
            Data::Times(_, values) => sized(values.clone(), self.len, 8).map(drop),
            Data::Runs { ends, runs, .. } => self.check_runs(body, *ends, runs),
        }
    }

    /// An empty column may have no offsets at all.
    fn check_offsets(
        &self,
        body: &[u8],
        offsets: &Range<usize>,
        width: usize,
        bytes: &Range<usize>,
    ) -> Result<(), InputError> {
        if self.len == 0 {
            return Ok(());
        }
        let wanted = self.len.checked_add(1).ok_or(InputError::Arrow)?;
        let offsets = sized(offsets.clone(), wanted, width)?;
        let mut last = 0;
        let most = bytes.len() as u64;
        for offset in body[offsets].chunks_exact(width).take(wanted) {
            let offset = unsigned(offset);
            if offset < last || most < offset {
                return Err(InputError::Arrow);
            }
            last = offset;
        }
        Ok(())
    }

    fn check_views(
        &self,
        body: &[u8],
        views: &Range<usize>,
        buffers: &[Range<usize>],
    ) -> Result<(), InputError> {
        sized(views.clone(), self.len, VIEW)?;
        for index in (0..self.len).filter(|index| self.has(body, *index)) {
            let View { len, buffer, offset } = View::read(&body[views.start + VIEW * index..]);
            let lies_inside = buffers.get(buffer).is_some_and(|bytes| offset + len <= bytes.len());
            if INLINE < len && !lies_inside {
                return Err(InputError::Arrow);
            }
        }
        Ok(())
    }

    /// Runs ascend, and the last one ends with the column or behind it.
    fn check_runs(&self, body: &[u8], ends: Whole, runs: &Range<usize>) -> Result<(), InputError> {
        let mut last = 0;
        for end in body[runs.clone()].chunks_exact(ends.width) {
            let end = number(end, ends);
            if end <= last {
                return Err(InputError::Arrow);
            }
            last = end;
        }
        if (self.len as i128) <= last { Ok(()) } else { Err(InputError::Arrow) }
    }

    /// Whether a value is there.
    pub(crate) fn has(&self, body: &[u8], index: usize) -> bool {
        self.present.as_ref().is_none_or(|bits| bit(&body[bits.clone()], index))
    }

    /// The values of a run, and which of them stands in this row.
    pub(crate) fn in_run<'p>(&'p self, body: &[u8], row: usize) -> (&'p Self, usize) {
        let Data::Runs { ends, runs, values } = &self.data else { return (self, row) };
        let runs = &body[runs.clone()];
        let end = |index: usize| number(&runs[index * ends.width..][..ends.width], *ends);
        let mut low = 0;
        let mut high = values.len;
        while low < high {
            let middle = low + (high - low) / 2;
            if end(middle) <= row as i128 {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (values, low)
    }

    /// Where the text of a value lies, if it is text or bytes.
    pub(crate) fn span(&self, body: &[u8], index: usize) -> Option<Span> {
        match &self.data {
            Data::Texts { offsets, width, bytes } => {
                let at = |index: usize| unsigned(&body[offsets.start + index * width..][..*width]) as usize;
                Some(Span::inside(bytes, 0, at(index), at(index + 1) - at(index)))
            }
            Data::Fixed { width, bytes } => Some(Span::inside(bytes, 0, index * width, *width)),
            Data::Views { views, buffers } => {
                let start = views.start + VIEW * index;
                let View { len, buffer, offset } = View::read(&body[start..]);
                if len <= INLINE {
                    return Some(Span { range: start + 4..start + 4 + len, copied: None });
                }
                Some(Span::inside(&buffers[buffer], buffer, offset, len))
            }
            _ => None,
        }
    }

    /// An integer, a place or a time, as it is written there.
    pub(crate) fn number(&self, body: &[u8], index: usize) -> Option<i128> {
        let (whole, values) = match &self.data {
            Data::Whole(whole, values) | Data::Places(whole, values) => (*whole, values),
            Data::Times(_, values) => (Whole { width: 8, is_signed: true }, values),
            _ => return None,
        };
        Some(number(&body[values.start + index * whole.width..][..whole.width], whole))
    }

    pub(crate) fn flag(&self, body: &[u8], index: usize) -> Option<bool> {
        let Data::Flags(bits) = &self.data else { return None };
        Some(bit(&body[bits.clone()], index))
    }
}

impl Span {
    fn inside(region: &Range<usize>, buffer: usize, offset: usize, len: usize) -> Self {
        let start = region.start + offset;
        Self { range: start..start + len, copied: Some((buffer, offset)) }
    }
}

/// A string that stands in its view, or where the view says.
struct View {
    len: usize,
    buffer: usize,
    offset: usize,
}

impl View {
    fn read(view: &[u8]) -> Self {
        let word = |at: usize| unsigned(&view[at..at + 4]) as usize;
        Self { len: word(0), buffer: word(8), offset: word(12) }
    }
}

/// How many bytes of texts a column has in a message, by the lengths of its buffers.
pub(crate) fn texts_len(columns: &Columns<'_>, shape: &Shape, at: Cursor) -> Result<usize, InputError> {
    let leaf = match shape {
        Shape::Plain(leaf) => *leaf,
        Shape::Dictionary { .. } => return Ok(0),
        Shape::Runs { values, .. } => return texts_len(columns, values, at.inside().behind_whole()),
    };
    let first = columns.first_buffer(at)?;
    match leaf {
        Leaf::Texts(_) => Ok(columns.buffer(first + 2)?.len()),
        Leaf::Fixed(_) => Ok(columns.buffer(first + 1)?.len()),
        Leaf::Views => Ok(data_buffers(columns, at, first + 2)?.iter().map(Range::len).sum()),
        Leaf::Flags | Leaf::Whole(_) | Leaf::Times(_) => Ok(0),
    }
}

fn present(columns: &Columns<'_>, at: Cursor, first: usize) -> Result<Option<Range<usize>>, InputError> {
    let (len, missing) = columns.node(at.nodes)?;
    let bits = columns.buffer(first)?;
    match (bits.is_empty(), 0 < missing && 0 < len) {
        (true, false) => Ok(None),
        (true, true) => Err(InputError::Arrow),
        // What no value is missing of may have bits all the same.
        (false, _) => Ok(Some(bits)),
    }
}

/// The data buffers of views. Together they are no longer than the message: were they, they would lie upon each other.
fn data_buffers(columns: &Columns<'_>, at: Cursor, first: usize) -> Result<Vec<Range<usize>>, InputError> {
    let mut left = columns.bytes;
    let mut buffers = Vec::new();
    for index in 0..columns.data_buffers(at)? {
        let buffer = columns.buffer(first.checked_add(index).ok_or(InputError::Arrow)?)?;
        left = left.checked_sub(buffer.len()).ok_or(InputError::Arrow)?;
        buffers.push(buffer);
    }
    Ok(buffers)
}

/// The first so many values of a buffer, if it has them.
fn sized(buffer: Range<usize>, len: usize, width: usize) -> Result<Range<usize>, InputError> {
    let bytes = len.checked_mul(width).filter(|bytes| *bytes <= buffer.len()).ok_or(InputError::Arrow)?;
    Ok(buffer.start..buffer.start + bytes)
}

fn bit(bits: &[u8], index: usize) -> bool {
    bits[index / 8] >> (index % 8) & 1 == 1
}

/// An integer of up to eight bytes without a sign.
#[inline]
fn unsigned(bytes: &[u8]) -> u64 {
    // Offsets and most integers have four or eight bytes; copying a length that is not known ahead costs more than reading.
    if let Ok(word) = <[u8; 4]>::try_from(bytes) {
        return u32::from_le_bytes(word).into();
    }
    if let Ok(word) = <[u8; 8]>::try_from(bytes) {
        return u64::from_le_bytes(word);
    }
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

fn number(bytes: &[u8], whole: Whole) -> i128 {
    let value = unsigned(bytes);
    let unused = 64 - 8 * whole.width as u32;
    if whole.is_signed { i128::from((value << unused).cast_signed() >> unused) } else { i128::from(value) }
}
