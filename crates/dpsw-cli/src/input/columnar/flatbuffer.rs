//! Tables as Arrow writes its metadata (flatbuffers). Every offset is checked against the bytes.

use anyhow::Result;

use crate::input::columnar::damaged;

/// A table: fields by number, any of which may be left out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table<'a> {
    bytes: &'a [u8],
    start: usize,
}

impl<'a> Table<'a> {
    /// The table that the bytes begin by pointing at.
    pub(super) fn root(bytes: &'a [u8]) -> Result<Self> {
        Ok(Self { bytes, start: follow(bytes, 0)? })
    }

    /// A little-endian integer with a sign.
    pub(super) fn integer<const LEN: usize>(self, field: usize, default: i64) -> Result<i64> {
        let Some(at) = self.place(field)? else { return Ok(default) };
        Ok(sign_extended(array::<LEN>(self.bytes, at)?))
    }

    pub(super) fn flag(self, field: usize) -> Result<bool> {
        Ok(self.integer::<1>(field, 0)? != 0)
    }

    pub(super) fn table(self, field: usize) -> Result<Option<Self>> {
        let table = |at| Ok(Self { bytes: self.bytes, start: follow(self.bytes, at)? });
        self.place(field)?.map(table).transpose()
    }

    /// A table without which the rest has no meaning.
    pub(super) fn table_needed(self, field: usize) -> Result<Self> {
        self.table(field)?.ok_or_else(|| damaged("a part of its metadata is missing"))
    }

    pub(super) fn tables(self, field: usize) -> Result<Vec<Self>> {
        let Some((start, count)) = self.list(field, 4)? else { return Ok(Vec::new()) };
        let table = |index| Ok(Self { bytes: self.bytes, start: follow(self.bytes, start + 4 * index)? });
        (0..count).map(table).collect()
    }

    /// A list of structs of integers: 64 bits each, or padded to that.
    pub(super) fn structs<const WORDS: usize>(self, field: usize) -> Result<Vec<[i64; WORDS]>> {
        let Some((start, count)) = self.list(field, 8 * WORDS)? else { return Ok(Vec::new()) };
        let words = self.bytes[start..start + 8 * WORDS * count]
            .chunks_exact(8)
            .map(|word| i64::from_le_bytes(word.try_into().expect("a chunk has eight bytes")));
        let words: Vec<i64> = words.collect();
        let group = |chunk: &[i64]| chunk.try_into().expect("a chunk has that many words");
        Ok(words.chunks_exact(WORDS).map(group).collect())
    }

    pub(super) fn text(self, field: usize) -> Result<Option<&'a str>> {
        let Some((start, count)) = self.list(field, 1)? else { return Ok(None) };
        std::str::from_utf8(&self.bytes[start..start + count]).map(Some).map_err(damaged)
    }

    /// Where the elements of a list start, and how many they are; they lie within the bytes.
    fn list(self, field: usize, element_len: usize) -> Result<Option<(usize, usize)>> {
        let Some(at) = self.place(field)? else { return Ok(None) };
        let start = follow(self.bytes, at)?;
        let count = u32::from_le_bytes(array(self.bytes, start)?) as usize;
        let elements = start + 4;
        let len = count.checked_mul(element_len).ok_or_else(cut)?;
        if self.bytes.len() - elements < len {
            return Err(cut());
        }
        Ok(Some((elements, count)))
    }

    /// Where a field is, if it is not left out.
    fn place(self, field: usize) -> Result<Option<usize>> {
        let back = i64::from(i32::from_le_bytes(array(self.bytes, self.start)?));
        let fields = usize::try_from(self.start as i64 - back).map_err(damaged)?;
        let len = usize::from(u16::from_le_bytes(array(self.bytes, fields)?));
        let slot = 4 + 2 * field;
        if len < slot + 2 {
            return Ok(None);
        }
        let offset = usize::from(u16::from_le_bytes(array(self.bytes, fields + slot)?));
        Ok((0 < offset).then_some(self.start + offset))
    }
}

/// Where the pointer at this place points to: always ahead.
fn follow(bytes: &[u8], at: usize) -> Result<usize> {
    let offset = u32::from_le_bytes(array(bytes, at)?) as usize;
    at.checked_add(offset).ok_or_else(cut)
}

fn array<const LEN: usize>(bytes: &[u8], at: usize) -> Result<[u8; LEN]> {
    let end = at.checked_add(LEN).ok_or_else(cut)?;
    let part = bytes.get(at..end).ok_or_else(cut)?;
    Ok(part.try_into().expect("the part has that length"))
}

/// A little-endian integer of up to eight bytes.
pub(super) fn sign_extended<const LEN: usize>(bytes: [u8; LEN]) -> i64 {
    let negative = bytes.last().is_some_and(|last| 128 <= *last);
    let mut word = if negative { [0xff; 8] } else { [0; 8] };
    word[..LEN].copy_from_slice(&bytes);
    i64::from_le_bytes(word)
}

fn cut() -> anyhow::Error {
    damaged("its metadata is cut off")
}
