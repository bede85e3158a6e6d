//! What a caller hands over in one call.

use std::fmt;

use crate::error::IngestError;
use crate::item::hash::FingerprintKey;
use crate::item::keys::Strings;
use crate::item::value::Kind;

/// Items of one call in order of arrival, with their times and users where the plan asks for them.
///
/// ```
/// use dpsw::Batch;
///
/// Batch::text(&["/", "/cart"]); // a count window of single events
/// Batch::integers(&[404, 200]).at(&[1_700_000_000, 1_700_000_002]); // a time window
/// Batch::bytes(&[b"key"]).at(&[1_700_000_000]).by(&[17]); // a time window that protects users
/// Batch::nulls(3); // three items whose content was refused: they take their positions and count nowhere
/// ```
pub struct Batch<'a> {
    pub(crate) items: Items<'a>,
    pub(crate) times: Option<&'a [u64]>,
    pub(crate) users: Option<&'a [u64]>,
}

/// The items themselves.
pub(crate) enum Items<'a> {
    Integers(&'a [u64]),
    Strings(Box<dyn ByteStrings + 'a>),
    Nulls(usize),
}

impl<'a> Batch<'a> {
    /// Integers.
    #[must_use]
    pub fn integers(items: &'a [u64]) -> Self {
        Self::new(Items::Integers(items))
    }

    /// Byte strings.
    #[must_use]
    pub fn bytes<T: AsRef<[u8]>>(items: &'a [T]) -> Self {
        Self::new(Items::Strings(Box::new(Listed { items, bytes: T::as_ref })))
    }

    /// Texts: their UTF-8 bytes.
    #[must_use]
    pub fn text<T: AsRef<str>>(items: &'a [T]) -> Self {
        fn bytes<T: AsRef<str>>(item: &T) -> &[u8] {
            item.as_ref().as_bytes()
        }
        Self::new(Items::Strings(Box::new(Listed { items, bytes: bytes::<T> })))
    }

    /// Byte strings in one piece of memory.
    #[must_use]
    pub fn strings(items: &'a Strings) -> Self {
        Self::new(Items::Strings(Box::new(items)))
    }

    /// Null items: each takes its position and counts nowhere, like an item that was refused for its content.
    #[must_use]
    pub fn nulls(len: usize) -> Self {
        Self::new(Items::Nulls(len))
    }

    /// The same items with the time of each, for time windows.
    #[must_use]
    pub fn at(self, times: &'a [u64]) -> Self {
        Self { times: Some(times), ..self }
    }

    /// The same items with the user who sent each, where whole users are protected. Any number that identifies a user
    /// will do; [`DpswSketch::user`](crate::DpswSketch::user) makes one from a name.
    #[must_use]
    pub fn by(self, users: &'a [u64]) -> Self {
        Self { users: Some(users), ..self }
    }

    /// How many items there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.items {
            Items::Integers(items) => items.len(),
            Items::Strings(items) => items.len(),
            Items::Nulls(len) => *len,
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The kind of the items; `None` for null items.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match self.items {
            Items::Integers(_) => Some(Kind::Integers),
            Items::Strings(_) => Some(Kind::Bytes),
            Items::Nulls(_) => None,
        }
    }

    /// # Errors
    /// The items are of another kind than the stream's; null items go with either.
    pub(crate) fn check_kind(&self, wanted: Kind) -> Result<(), IngestError> {
        match self.kind().filter(|got| *got != wanted) {
            None => Ok(()),
            Some(got) => Err(IngestError::Kind { wanted, got }),
        }
    }

    fn new(items: Items<'a>) -> Self {
        Self { items, times: None, users: None }
    }
}

/// Shows how many items there are, and none of them.
impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Debug output ends up in logs, and no log may hold an item (PRIVACY.md: rule 24).
        write!(f, "Batch({} items)", self.len())
    }
}

/// A list of byte strings, however it lies in memory.
pub(crate) trait ByteStrings {
    fn len(&self) -> usize;
    /// Hashes the strings from `start` on, as many as the buffer holds.
    fn hash_into(&self, start: usize, key: FingerprintKey, buffer: &mut [u64]);
    /// Appends the `len` strings from `start` on.
    fn push_slices<'s>(&'s self, start: usize, len: usize, slices: &mut Vec<&'s [u8]>);
}

struct Listed<'a, T, F> {
    items: &'a [T],
    bytes: F,
}

impl<T, F: Fn(&T) -> &[u8]> ByteStrings for Listed<'_, T, F> {
    fn len(&self) -> usize {
        self.items.len()
    }

    fn hash_into(&self, start: usize, key: FingerprintKey, buffer: &mut [u64]) {
        for (fingerprint, item) in buffer.iter_mut().zip(&self.items[start..]) {
            *fingerprint = key.hash_bytes((self.bytes)(item));
        }
    }

    fn push_slices<'s>(&'s self, start: usize, len: usize, slices: &mut Vec<&'s [u8]>) {
        slices.extend(self.items[start..start + len].iter().map(&self.bytes));
    }
}

impl ByteStrings for &Strings {
    fn len(&self) -> usize {
        Strings::len(self)
    }

    fn hash_into(&self, start: usize, key: FingerprintKey, buffer: &mut [u64]) {
        for (index, fingerprint) in (start..).zip(buffer) {
            *fingerprint = key.hash_bytes(self.get(index));
        }
    }

    fn push_slices<'s>(&'s self, start: usize, len: usize, slices: &mut Vec<&'s [u8]>) {
        slices.extend((start..start + len).map(|index| self.get(index)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_hash_alike_however_they_lie() {
        let texts = ["", "a", "longer than the others"];
        let strings: Strings = texts.iter().collect();
        let hashes = |batch: Batch<'_>| {
            let Items::Strings(items) = batch.items else { panic!("strings") };
            let mut buffer = [0; 2];
            items.hash_into(1, FingerprintKey::new(5), &mut buffer);
            let mut slices = Vec::new();
            items.push_slices(0, 3, &mut slices);
            assert_eq!(slices, texts.map(str::as_bytes));
            buffer
        };
        let wanted = [texts[1], texts[2]].map(|text| FingerprintKey::new(5).hash_bytes(text.as_bytes()));
        assert_eq!(hashes(Batch::text(&texts)), wanted);
        assert_eq!(hashes(Batch::bytes(&texts)), wanted);
        assert_eq!(hashes(Batch::strings(&strings)), wanted);
    }

    #[test]
    fn debug_output_shows_no_items() {
        assert_eq!(format!("{:?}", Batch::text(&["secret"]).at(&[7]).by(&[8])), "Batch(1 items)");
    }
}
