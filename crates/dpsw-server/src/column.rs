//! The columns of a batch: strings and integers, of which some may be missing.

use bytes::Bytes;

use crate::events::{COLUMN_BYTES_MAX, EventsError, at_most, show_len};

/// Strings in one piece of memory. One that is missing takes its place as a null item.
///
/// Strings of a dictionary stay folded: rows that share a value share its bytes, so that a batch takes as much memory as it brings,
/// however long the values are and however often they occur (PRIVACY.md: rule 37).
#[derive(Clone, Default)]
pub struct Strings {
    bytes: Bytes,
    places: Places,
    present: Present,
}

/// The places of strings in their bytes.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Places {
    /// One after the other: each ends here, and begins where the one before ends.
    Ends(Vec<u32>),
    /// Anywhere: each begins and ends here.
    Spans(Vec<[u32; 2]>),
}

/// Integers. One that is missing takes its place as a null item.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Integers {
    values: Vec<u64>,
    present: Present,
}

/// The values that are there: a bit for each, lowest bit first, as in Arrow; without bits, all of them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Present(Option<Bytes>);

impl Strings {
    /// Strings in these bytes, each of which ends here and begins where the one before ends.
    ///
    /// # Errors
    /// The ends do not ascend, or reach beyond the bytes; there are too few bits; or there are more than
    /// [`COLUMN_BYTES_MAX`] bytes.
    pub fn new(bytes: Bytes, ends: Vec<u32>, present: Present) -> Result<Self, EventsError> {
        at_most("the bytes of a column", bytes.len(), COLUMN_BYTES_MAX)?;
        present.fits(ends.len())?;
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let is_wrong = |(start, end): (u32, u32)| end < start || bytes.len() < end as usize;
        match starts.zip(ends.iter().copied()).position(is_wrong) {
            Some(index) => Err(EventsError::Ends { index, end: ends[index], bytes: bytes.len() }),
            None => Ok(Self { bytes, places: Places::Ends(ends), present }),
        }
    }

    /// Strings anywhere in these bytes, each from its start to its end.
    ///
    /// # Errors
    /// One ends before it starts, or beyond the bytes; there are too few bits; or there are more than [`COLUMN_BYTES_MAX`] bytes.
    pub fn with_spans(bytes: Bytes, spans: Vec<[u32; 2]>, present: Present) -> Result<Self, EventsError> {
        at_most("the bytes of a column", bytes.len(), COLUMN_BYTES_MAX)?;
        present.fits(spans.len())?;
        let is_wrong = |[start, end]: &[u32; 2]| end < start || bytes.len() < *end as usize;
        match spans.iter().position(is_wrong) {
            Some(index) => Err(EventsError::Ends { index, end: spans[index][1], bytes: bytes.len() }),
            None => Ok(Self { bytes, places: Places::Spans(spans), present }),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.places {
            Places::Ends(ends) => ends.len(),
            Places::Spans(spans) => spans.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The string at an index below [`len`](Self::len), if it is there.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.present.has(index).then(|| self.slice(index))
    }

    /// The bytes at an index, whether it is there or not.
    pub(crate) fn slice(&self, index: usize) -> &[u8] {
        let [start, end] = match &self.places {
            Places::Ends(ends) => [index.checked_sub(1).map_or(0, |before| ends[before]), ends[index]],
            Places::Spans(spans) => spans[index],
        };
        &self.bytes[start as usize..end as usize]
    }

    /// How many bytes it takes in memory.
    pub(crate) fn size(&self) -> usize {
        let places = match &self.places {
            Places::Ends(ends) => 4 * ends.len(),
            Places::Spans(spans) => 8 * spans.len(),
        };
        self.bytes.len() + places
    }

    pub(crate) fn parts(&self) -> (&Bytes, &Places, &Present) {
        (&self.bytes, &self.places, &self.present)
    }
}

impl Default for Places {
    fn default() -> Self {
        Self::Ends(Vec::new())
    }
}

/// The same strings are equal, however they are kept.
impl PartialEq for Strings {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && (0..self.len()).all(|index| self.get(index) == other.get(index))
    }
}

impl Eq for Strings {}

/// Collects strings one by one; `None` is one that is missing.
impl<T: AsRef<[u8]>> FromIterator<Option<T>> for Strings {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(strings: I) -> Self {
        let mut builder = StringsBuilder::default();
        for string in strings {
            builder.push(string.as_ref().map(AsRef::as_ref));
        }
        builder.finish()
    }
}

/// Strings that are still being collected.
#[derive(Default)]
pub struct StringsBuilder {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    present: PresentBuilder,
}

impl StringsBuilder {
    /// With room for so many strings and so many bytes in all.
    #[must_use]
    pub fn with_capacity(strings: usize, bytes: usize) -> Self {
        let bytes = Vec::with_capacity(bytes);
        let ends = Vec::with_capacity(strings);
        Self { bytes, ends, present: PresentBuilder::default() }
    }

    /// Adds one at the end.
    ///
    /// # Panics
    /// All together have 2^32 bytes or more: whoever collects strings limits their number and their length beforehand.
    pub fn push(&mut self, string: Option<&[u8]>) {
        self.bytes.extend_from_slice(string.unwrap_or_default());
        self.present.push(self.ends.len(), string.is_some());
        self.ends.push(u32::try_from(self.bytes.len()).expect("a column has less than 2^32 bytes"));
    }

    /// The strings.
    #[must_use]
    pub fn finish(self) -> Strings {
        let present = self.present.finish(self.ends.len());
        Strings { bytes: self.bytes.into(), places: Places::Ends(self.ends), present }
    }
}

impl Integers {
    /// # Errors
    /// There are too few bits.
    pub fn new(values: Vec<u64>, present: Present) -> Result<Self, EventsError> {
        present.fits(values.len())?;
        Ok(Self { values, present })
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(crate) fn parts(&self) -> (&[u64], &Present) {
        (&self.values, &self.present)
    }
}

/// Collects integers one by one; `None` is one that is missing.
impl FromIterator<Option<u64>> for Integers {
    fn from_iter<I: IntoIterator<Item = Option<u64>>>(integers: I) -> Self {
        let mut builder = IntegersBuilder::default();
        for integer in integers {
            builder.push(integer);
        }
        builder.finish()
    }
}

/// Integers that are still being collected.
#[derive(Default)]
pub(crate) struct IntegersBuilder {
    values: Vec<u64>,
    present: PresentBuilder,
}

impl IntegersBuilder {
    pub(crate) fn with_capacity(integers: usize) -> Self {
        Self { values: Vec::with_capacity(integers), present: PresentBuilder::default() }
    }

    pub(crate) fn push(&mut self, integer: Option<u64>) {
        self.present.push(self.values.len(), integer.is_some());
        self.values.push(integer.unwrap_or(0));
    }

    pub(crate) fn finish(self) -> Integers {
        let present = self.present.finish(self.values.len());
        Integers { values: self.values, present }
    }
}

impl Present {
    /// All are there.
    #[must_use]
    pub fn all() -> Self {
        Self(None)
    }

    /// Those are there whose bit is set, lowest bit of the first byte first.
    #[must_use]
    pub fn bits(bits: Bytes) -> Self {
        Self(Some(bits))
    }

    /// Whether the value at this index is there.
    #[must_use]
    pub fn has(&self, index: usize) -> bool {
        self.0.as_ref().is_none_or(|bits| bits[index / 8] >> (index % 8) & 1 == 1)
    }

    pub(crate) fn as_bits(&self) -> Option<&Bytes> {
        self.0.as_ref()
    }

    fn fits(&self, len: usize) -> Result<(), EventsError> {
        match &self.0 {
            Some(bits) if bits.len() < len.div_ceil(8) => Err(EventsError::Length {
                what: "a list of bits".to_owned(),
                got: 8 * bits.len(),
                wanted: len,
            }),
            _ => Ok(()),
        }
    }
}

/// Bits, which are kept from the first missing value on.
#[derive(Default)]
pub(crate) struct PresentBuilder(Option<Vec<u8>>);

impl PresentBuilder {
    pub(crate) fn push(&mut self, index: usize, is_there: bool) {
        if !is_there {
            let bits = self.0.get_or_insert_default();
            bits.resize(bits.len().max(index / 8 + 1), u8::MAX);
            bits[index / 8] &= !(1 << (index % 8));
        }
    }

    pub(crate) fn finish(self, len: usize) -> Present {
        Present(self.0.map(|mut bits| {
            bits.resize(len.div_ceil(8), u8::MAX);
            bits.into()
        }))
    }
}

show_len!(Strings, Integers);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_where_they_were_put_and_missing_ones_are_missing() {
        let texts =
            [Some("a"), None, Some(""), Some("bc"), None, None, Some("d"), Some("e"), Some("f"), None];
        let strings: Strings = texts.iter().copied().collect();
        let read: Vec<_> = (0..texts.len()).map(|index| strings.get(index)).collect();
        assert_eq!(read, texts.map(|text| text.map(str::as_bytes)));
        let all: Strings = [Some("x"), Some("y")].into_iter().collect();
        assert!(all.present == Present::all());
    }
}
