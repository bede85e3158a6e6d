//! Lists of keys.

use std::ops::Range;
use std::sync::Arc;

use crate::item::value::{Item, Kind};

/// A public list of keys, each once. Copies share the list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keys {
    /// The integers from 0 up to this one, exclusive.
    Range(u64),
    /// A list of integers.
    Integers(Arc<[u64]>),
    /// A list of byte strings.
    Bytes(Arc<Strings>),
}

/// Byte strings in one piece of memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strings {
    bytes: Vec<u8>,
    /// Where each ends; it starts where the one before ends.
    ends: Vec<usize>,
}

impl Strings {
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

    /// The string at an index below [`len`](Self::len).
    ///
    /// # Panics
    /// The index is not below the length.
    #[must_use]
    pub fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }

    /// An empty list with room for this many strings and this many bytes in all.
    #[must_use]
    pub fn with_capacity(strings: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(strings) }
    }

    /// Adds one at the end.
    pub fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Strings {
    fn from_iter<I: IntoIterator<Item = T>>(strings: I) -> Self {
        let mut all = Self::default();
        strings.into_iter().for_each(|string| all.push(string.as_ref()));
        // A list lives as long as its plan, which counts every byte of it.
        all.bytes.shrink_to_fit();
        all.ends.shrink_to_fit();
        all
    }
}

impl Keys {
    /// A list of texts.
    pub fn text<T: AsRef<str>>(keys: impl IntoIterator<Item = T>) -> Self {
        struct Bytes<T>(T);
        impl<T: AsRef<str>> AsRef<[u8]> for Bytes<T> {
            fn as_ref(&self) -> &[u8] {
                self.0.as_ref().as_bytes()
            }
        }
        Self::bytes(keys.into_iter().map(Bytes))
    }

    /// A list of byte strings.
    pub fn bytes<T: AsRef<[u8]>>(keys: impl IntoIterator<Item = T>) -> Self {
        Self::Bytes(Arc::new(keys.into_iter().collect()))
    }

    /// A list of integers.
    pub fn integers(keys: impl IntoIterator<Item = u64>) -> Self {
        Self::Integers(keys.into_iter().collect())
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Range(end) => usize::try_from(*end).unwrap_or(usize::MAX),
            Self::Integers(keys) => keys.len(),
            Self::Bytes(keys) => keys.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key at an index below [`len`](Self::len).
    ///
    /// # Panics
    /// The index is not below the length.
    #[must_use]
    pub fn get(&self, index: usize) -> Item<'_> {
        match self {
            Self::Range(_) => Item::Integer(index as u64),
            Self::Integers(keys) => Item::Integer(keys[index]),
            Self::Bytes(keys) => Item::Bytes(keys.get(index)),
        }
    }

    /// The keys in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Item<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The kind of the keys.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Range(_) | Self::Integers(_) => Kind::Integers,
            Self::Bytes(_) => Kind::Bytes,
        }
    }

    /// Heap bytes of the list.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Range(_) => 0,
            Self::Integers(keys) => size_of_val(&**keys),
            Self::Bytes(keys) => keys.bytes.capacity() + keys.ends.capacity() * size_of::<usize>(),
        }
    }

    /// A list of the keys of this kind among these items.
    pub(crate) fn collect_kind<'i>(kind: Kind, items: impl Iterator<Item = Item<'i>>) -> Self {
        match kind {
            Kind::Integers => Self::integers(
                items.filter_map(|item| if let Item::Integer(value) = item { Some(value) } else { None }),
            ),
            Kind::Bytes => Self::bytes(
                items.filter_map(|item| if let Item::Bytes(bytes) = item { Some(bytes) } else { None }),
            ),
        }
    }
}

impl<T: AsRef<str>, const N: usize> From<[T; N]> for Keys {
    fn from(keys: [T; N]) -> Self {
        Self::text(keys)
    }
}

impl<T: AsRef<str>> From<&[T]> for Keys {
    fn from(keys: &[T]) -> Self {
        Self::text(keys)
    }
}

impl<T: AsRef<str>> From<Vec<T>> for Keys {
    fn from(keys: Vec<T>) -> Self {
        Self::text(keys)
    }
}

/// The integers of the range.
impl From<Range<u64>> for Keys {
    fn from(keys: Range<u64>) -> Self {
        if keys.start == 0 { Self::Range(keys.end) } else { Self::integers(keys) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_keys_share_their_list() {
        let keys = Keys::bytes([&b"ab"[..], b"", b"c"]);
        let (Keys::Bytes(list), Keys::Bytes(copy)) = (&keys, keys.clone()) else { panic!("bytes") };
        assert!(Arc::ptr_eq(list, &copy));
        assert_eq!((0..3).map(|index| list.get(index)).collect::<Vec<_>>(), [&b"ab"[..], b"", b"c"]);
    }
}
