//! A batch of events, column by column, as the network brings it.

use std::fmt;

use bytes::Bytes;
use thiserror::Error;

/// The time of an event that has none: it is left out, like one too far ahead.
pub const MISSING_TIME: u64 = u64::MAX;
/// The most events of a batch.
pub const EVENTS_MAX: usize = 1 << 22;
/// The most bytes of one column.
pub const COLUMN_BYTES_MAX: usize = 1 << 28;

/// Columns that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EventsError {
    /// One column is longer than another.
    #[error("{what} has {got} values for {wanted} events")]
    Length {
        /// Which column.
        what: String,
        /// How many values it has.
        got: usize,
        /// How many events there are.
        wanted: usize,
    },
    /// A string begins after its end or outside the bytes.
    #[error(
        "the ends of strings must ascend to at most {bytes}, the length of their bytes; number {index} is {end}"
    )]
    Ends {
        /// Which string.
        index: usize,
        /// Where it ends.
        end: u32,
        /// How many bytes there are.
        bytes: usize,
    },
    /// More than can be kept.
    #[error("{what} must be at most {most}, got {got}; send smaller batches")]
    Many {
        /// What there is too much of.
        what: &'static str,
        /// How much.
        got: usize,
        /// The most.
        most: usize,
    },
}

/// Bytes of a batch beside its columns.
const EVENTS_LEN: usize = 256;

/// Events in order of arrival. Each stream of a source takes one column of items.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Events {
    len: usize,
    columns: Vec<(String, Column)>,
    times: Option<Vec<u64>>,
    users: Option<Strings>,
}

/// The items of one column.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Column {
    /// Texts or bytes.
    Strings(Strings),
    /// Integers.
    Integers(Integers),
}

/// Strings one after the other in one piece of memory. One that is missing takes its place as a null item.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Strings {
    bytes: Bytes,
    /// Where each ends; it begins where the one before ends.
    ends: Vec<u32>,
    present: Present,
}

/// Integers. One that is missing takes its place as a null item.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Integers {
    values: Vec<u64>,
    present: Present,
}

/// Which values are there: a bit for each, lowest bit first, as in Arrow; without bits, all of them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Present(Option<Bytes>);

impl Events {
    /// Events without columns.
    ///
    /// # Errors
    /// There are more than [`EVENTS_MAX`].
    pub fn new(len: usize) -> Result<Self, EventsError> {
        at_most("the number of events", len, EVENTS_MAX)?;
        Ok(Self { len, ..Self::default() })
    }

    /// The same with a column of items. A stream whose column is missing, or of another kind, counts null items.
    ///
    /// # Errors
    /// The column has another length.
    pub fn with_column(mut self, name: impl Into<String>, column: Column) -> Result<Self, EventsError> {
        let name = name.into();
        self.fits(&name, column.len())?;
        self.columns.push((name, column));
        Ok(self)
    }

    /// The same with the time of each event, in milliseconds since 1970 ([`MISSING_TIME`] where there is none).
    ///
    /// # Errors
    /// There are more or fewer times than events.
    pub fn with_times(self, times: Vec<u64>) -> Result<Self, EventsError> {
        self.fits("times", times.len())?;
        Ok(Self { times: Some(times), ..self })
    }

    /// The same with who sent each. An event without a user is a null item of the user without a name.
    ///
    /// # Errors
    /// There are more or fewer users than events.
    pub fn with_users(self, users: Strings) -> Result<Self, EventsError> {
        self.fits("users", users.len())?;
        Ok(Self { users: Some(users), ..self })
    }

    /// How many events there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Leaves out what is not needed.
    pub(crate) fn keep(&mut self, is_needed: impl Fn(&str) -> bool, needs_times: bool, needs_users: bool) {
        self.columns.retain(|(name, _)| is_needed(name));
        self.times = self.times.take().filter(|_| needs_times);
        self.users = self.users.take().filter(|_| needs_users);
    }

    /// About how many bytes they take.
    pub(crate) fn size(&self) -> usize {
        let columns = self.columns.iter().map(|(name, column)| name.len() + column.size()).sum::<usize>();
        let times = self.times.as_ref().map_or(0, |times| 8 * times.len());
        EVENTS_LEN + columns + times + self.users.as_ref().map_or(0, Strings::size)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The column of this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find_map(|(column, values)| (column == name).then_some(values))
    }

    /// All columns of items.
    #[must_use]
    pub fn columns(&self) -> &[(String, Column)] {
        &self.columns
    }

    /// The time of each.
    #[must_use]
    pub fn times(&self) -> Option<&[u64]> {
        self.times.as_deref()
    }

    /// Who sent each.
    #[must_use]
    pub fn users(&self) -> Option<&Strings> {
        self.users.as_ref()
    }

    fn fits(&self, what: &str, got: usize) -> Result<(), EventsError> {
        if got == self.len {
            return Ok(());
        }
        Err(EventsError::Length { what: what.to_owned(), got, wanted: self.len })
    }
}

impl Column {
    /// How many values it has.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Strings(strings) => strings.len(),
            Self::Integers(integers) => integers.len(),
        }
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn size(&self) -> usize {
        match self {
            Self::Strings(strings) => strings.size(),
            Self::Integers(integers) => 8 * integers.len(),
        }
    }
}

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
            None => Ok(Self { bytes, ends, present }),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string at an index below [`len`](Self::len), if it is there.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.present.has(index).then(|| self.slice(index))
    }

    /// The bytes at an index, whether it is there or not.
    pub(crate) fn slice(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[index] as usize]
    }

    fn size(&self) -> usize {
        self.bytes.len() + 4 * self.ends.len()
    }

    pub(crate) fn parts(&self) -> (&Bytes, &[u32], &Present) {
        (&self.bytes, &self.ends, &self.present)
    }
}

/// Collects strings one by one; `None` is one that is missing.
impl<T: AsRef<[u8]>> FromIterator<Option<T>> for Strings {
    fn from_iter<I: IntoIterator<Item = Option<T>>>(strings: I) -> Self {
        let mut builder = StringsBuilder::default();
        strings.into_iter().for_each(|string| builder.push(string.as_ref().map(AsRef::as_ref)));
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
        let (bytes, ends) = (Vec::with_capacity(bytes), Vec::with_capacity(strings));
        Self { bytes, ends, present: PresentBuilder::default() }
    }

    /// Adds one at the end; one for which there is no room below [`COLUMN_BYTES_MAX`] is missing.
    pub fn push(&mut self, string: Option<&[u8]>) {
        let string = string.filter(|string| string.len() <= COLUMN_BYTES_MAX - self.bytes.len());
        self.bytes.extend_from_slice(string.unwrap_or_default());
        self.present.push(self.ends.len(), string.is_some());
        self.ends.push(u32::try_from(self.bytes.len()).expect("a column has less than 2^32 bytes"));
    }

    /// The strings.
    #[must_use]
    pub fn finish(self) -> Strings {
        let present = self.present.finish(self.ends.len());
        Strings { bytes: self.bytes.into(), ends: self.ends, present }
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
        let (mut values, mut present) = (Vec::new(), PresentBuilder::default());
        for integer in integers {
            present.push(values.len(), integer.is_some());
            values.push(integer.unwrap_or(0));
        }
        let present = present.finish(values.len());
        Self { values, present }
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
struct PresentBuilder(Option<Vec<u8>>);

impl PresentBuilder {
    fn push(&mut self, index: usize, is_there: bool) {
        if !is_there {
            let bits = self.0.get_or_insert_default();
            bits.resize(bits.len().max(index / 8 + 1), u8::MAX);
            bits[index / 8] &= !(1 << (index % 8));
        }
    }

    fn finish(self, len: usize) -> Present {
        Present(self.0.map(|mut bits| {
            bits.resize(len.div_ceil(8), u8::MAX);
            bits.into()
        }))
    }
}

/// Debug output shows how many there are, and none of them.
macro_rules! show_len {
    ($($name:ident),*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.len())
            }
        }
    )*};
}
show_len!(Events, Column, Strings, Integers);

fn at_most(what: &'static str, got: usize, most: usize) -> Result<(), EventsError> {
    if got <= most { Ok(()) } else { Err(EventsError::Many { what, got, most }) }
}

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

    #[test]
    fn debug_output_shows_no_items() {
        let strings: Strings = [Some("secret"), None].into_iter().collect();
        let events = Events::new(2).expect("few").with_users(strings.clone()).expect("two");
        assert_eq!(format!("{events:?} {strings:?}"), "Events(2) Strings(2)");
    }

    #[test]
    fn columns_that_do_not_fit_together_are_refused() {
        let strings: Strings = [Some("a"), Some("b")].into_iter().collect();
        let error = Events::new(3).expect("few").with_column("page", Column::Strings(strings));
        assert_eq!(error.expect_err("too short").to_string(), "page has 2 values for 3 events");
        for (ends, index) in [(vec![2, 1], 1), (vec![4], 0)] {
            let error = Strings::new(Bytes::from_static(b"abc"), ends, Present::all());
            assert!(matches!(error, Err(EventsError::Ends { index: at, .. }) if at == index), "{error:?}");
        }
        let bits = Present::bits(Bytes::from_static(&[255]));
        assert!(Strings::new(Bytes::new(), vec![0; 9], bits.clone()).is_err());
        assert!(Integers::new(vec![0; 9], bits).is_err());
        assert!(Events::new(EVENTS_MAX + 1).is_err());
    }
}
