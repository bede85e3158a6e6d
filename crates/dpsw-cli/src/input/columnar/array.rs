//! A column of an Arrow batch: its buffers, and the values in them. Every place is checked against the bytes.

use anyhow::Result;

use crate::input::columnar::damaged;
use crate::input::columnar::schema::Plain;
use crate::input::columnar::value::{Ticks, Unit, Value, half};

/// A column of plain values.
#[derive(Debug)]
pub(super) struct Array {
    plain: Plain,
    len: usize,
    /// One bit per row; none if all rows have values.
    validity: Option<Vec<u8>>,
    /// The others, in the format's order.
    buffers: Vec<Vec<u8>>,
}

impl Array {
    pub(super) fn new(plain: Plain, len: usize, has_nulls: bool, mut buffers: Vec<Vec<u8>>) -> Self {
        let first = if buffers.is_empty() { None } else { Some(buffers.remove(0)) };
        Self { plain, len, validity: first.filter(|_| has_nulls), buffers }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn value(&self, index: usize) -> Result<Value<'_>> {
        if self.len <= index {
            return Err(damaged("an index points outside its dictionary"));
        }
        if let Some(validity) = &self.validity
            && !bit(validity, index)?
        {
            return Ok(Value::Null);
        }
        Ok(match self.plain {
            Plain::Null => Value::Null,
            Plain::Bool => Value::Bool(bit(self.buffer(0)?, index)?),
            Plain::Signed { width } => Value::Signed(self.signed(index, width)?),
            Plain::Unsigned { width } => Value::Unsigned(self.unsigned(index, width)?),
            Plain::Half => Value::Single(half(u16::from_le_bytes(self.number(index)?))),
            Plain::Single => Value::Single(f32::from_le_bytes(self.number(index)?)),
            Plain::Double => Value::Double(f64::from_le_bytes(self.number(index)?)),
            Plain::Bytes { is_wide: false } => Value::Bytes(self.bytes::<4>(index)?),
            Plain::Bytes { is_wide: true } => Value::Bytes(self.bytes::<8>(index)?),
            Plain::View => Value::Bytes(self.view(index)?),
            Plain::Fixed { width } => Value::Bytes(part(self.buffer(0)?, index.checked_mul(width), width)?),
            Plain::Decimal { width: 16, scale } => {
                Value::Decimal { unscaled: i128::from_le_bytes(self.number(index)?), scale }
            }
            Plain::Decimal { width, scale } => {
                Value::Decimal { unscaled: self.signed(index, width)?.into(), scale }
            }
            Plain::Days => Value::Days(self.signed(index, 4)?),
            Plain::DateMillis => Value::Days(self.signed(index, 8)?.div_euclid(86_400_000)),
            Plain::Clock { width, unit } => Value::Clock(self.ticks(index, width, unit)?),
            Plain::Instant { unit, is_utc } => Value::Instant { ticks: self.ticks(index, 8, unit)?, is_utc },
        })
    }

    /// The row as an index of a dictionary; `None` if it is null.
    pub(super) fn index(&self, row: usize) -> Result<Option<usize>> {
        match self.value(row)? {
            Value::Signed(index) => usize::try_from(index).map(Some).map_err(damaged),
            Value::Unsigned(index) => usize::try_from(index).map(Some).map_err(damaged),
            _ => Ok(None),
        }
    }

    fn ticks(&self, index: usize, width: usize, unit: Unit) -> Result<Ticks> {
        Ok(Ticks { count: self.signed(index, width)?, unit })
    }

    fn signed(&self, index: usize, width: usize) -> Result<i64> {
        Ok(match width {
            1 => i8::from_le_bytes(self.number(index)?).into(),
            2 => i16::from_le_bytes(self.number(index)?).into(),
            4 => i32::from_le_bytes(self.number(index)?).into(),
            _ => i64::from_le_bytes(self.number(index)?),
        })
    }

    fn unsigned(&self, index: usize, width: usize) -> Result<u64> {
        Ok(match width {
            1 => u8::from_le_bytes(self.number(index)?).into(),
            2 => u16::from_le_bytes(self.number(index)?).into(),
            4 => u32::from_le_bytes(self.number(index)?).into(),
            _ => u64::from_le_bytes(self.number(index)?),
        })
    }

    fn number<const LEN: usize>(&self, index: usize) -> Result<[u8; LEN]> {
        number(self.buffer(0)?, index)
    }

    /// Text between two offsets.
    fn bytes<const OFFSET_LEN: usize>(&self, index: usize) -> Result<&[u8]> {
        let offset = |index| -> Result<usize> {
            let bytes: [u8; OFFSET_LEN] = number(self.buffer(0)?, index)?;
            let mut word = [0; 8];
            word[..OFFSET_LEN].copy_from_slice(&bytes);
            usize::try_from(u64::from_le_bytes(word)).map_err(damaged)
        };
        let (start, end) = (offset(index)?, offset(index + 1)?);
        self.buffer(1)?.get(start..end).ok_or_else(outside)
    }

    /// Text of up to 12 bytes beside its length; longer text in one of the other buffers: length, start of the text,
    /// number of the buffer, place in it.
    fn view(&self, index: usize) -> Result<&[u8]> {
        let view = part(self.buffer(0)?, index.checked_mul(16), 16)?;
        let word = |at: usize| number::<4>(view, at).map(|bytes| u32::from_le_bytes(bytes) as usize);
        let len = word(0)?;
        if len <= 12 {
            return Ok(&view[4..4 + len]);
        }
        let buffer = 1 + word(2)?;
        part(self.buffer(buffer)?, Some(word(3)?), len)
    }

    fn buffer(&self, index: usize) -> Result<&[u8]> {
        self.buffers.get(index).map(Vec::as_slice).ok_or_else(outside)
    }
}

fn bit(bits: &[u8], index: usize) -> Result<bool> {
    let byte = bits.get(index / 8).ok_or_else(outside)?;
    Ok(byte >> (index % 8) & 1 == 1)
}

/// The element of this index among elements of this length.
fn number<const LEN: usize>(bytes: &[u8], index: usize) -> Result<[u8; LEN]> {
    let number = part(bytes, index.checked_mul(LEN), LEN)?;
    Ok(number.try_into().expect("the part has that length"))
}

fn part(bytes: &[u8], start: Option<usize>, len: usize) -> Result<&[u8]> {
    let range = start.and_then(|start| Some(start..start.checked_add(len)?));
    range.and_then(|range| bytes.get(range)).ok_or_else(outside)
}

fn outside() -> anyhow::Error {
    damaged("a value lies outside its buffer")
}
