//! Items, and the keys that heavy hitters may be chosen from.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::error::PlanError;
use crate::hash::Index;
use crate::ratio::Ratio;

/// One item of a stream: an integer, or bytes (text is its UTF-8 bytes). Integer 5 and text "5" are different.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Item<'a> {
    /// An integer.
    Integer(u64),
    /// Bytes or text.
    Bytes(&'a [u8]),
}

/// The kind of item that a stream counts; a stream has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// 64-bit integers.
    Integers,
    /// Bytes or text.
    Bytes,
}

impl Item<'_> {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Integer(_) => Kind::Integers,
            Self::Bytes(_) => Kind::Bytes,
        }
    }
}

impl From<u64> for Item<'_> {
    fn from(value: u64) -> Self {
        Self::Integer(value)
    }
}

impl<'a> From<&'a [u8]> for Item<'a> {
    fn from(value: &'a [u8]) -> Self {
        Self::Bytes(value)
    }
}

impl<'a> From<&'a str> for Item<'a> {
    fn from(value: &'a str) -> Self {
        Self::Bytes(value.as_bytes())
    }
}

impl fmt::Display for Item<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Bytes(bytes) => match String::from_utf8_lossy(bytes) {
                Cow::Borrowed(text) => f.pad(text),
                Cow::Owned(text) => f.pad(&text),
            },
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Integers => "integers",
            Self::Bytes => "bytes or text",
        })
    }
}

/// Where the keys of heavy hitters come from. Keys that were seen are never listed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Domain {
    /// A public list of keys. It must not be made from the stream itself.
    Public(Keys),
    /// No list: only questions about keys that the asker names.
    Asked(Kind),
    /// Keys that a private search finds in the stream itself: those that are frequent enough. Needs a δ.
    Discovered(Discovery),
}

/// How keys are found. Every key of an epoch gets a noisy count; those above a threshold are released when the epoch ends
/// and stay listed until it leaves what is retained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Discovery {
    /// The kind of the keys.
    pub kind: Kind,
    /// The share of ε that finding keys takes, strictly between 0 and 1; counting them has the rest.
    pub share: Ratio,
    /// Substreams in an epoch. Longer epochs find rarer keys, later. In a [`Request`](crate::Request) 0 stands for as few
    /// as find keys with 0.1 % of the window, or a whole window.
    pub epoch: u64,
    /// How the keys of an epoch are counted.
    pub tracking: Tracking,
    /// Longer keys are never found. At most 65,536 bytes.
    pub key_len_max: u32,
}

/// How the keys of an epoch are counted. Fixed in the plan: it must not depend on what arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tracking {
    /// Every key exactly: as many entries as an epoch has items.
    Exact,
    /// So many keys in a Misra-Gries summary, whose counts are too small by at most items of an epoch / (keys + 1).
    Summary {
        /// At least 1.
        keys: u64,
    },
}

impl Discovery {
    /// A fifth of ε, epochs of four substreams, exact counts, keys of up to 256 bytes.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        let share = Ratio::new(1, 5).expect("5 is not zero");
        Self { kind, share, epoch: 4, tracking: Tracking::Exact, key_len_max: 256 }
    }
}

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

    /// None yet, with room for so many strings of so many bytes together.
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

    pub(crate) fn check_distinct(&self) -> Result<(), PlanError> {
        match self {
            Self::Range(_) => Ok(()),
            _ => match Index::repeated(self) {
                None => Ok(()),
                Some((first, second)) => Err(PlanError::DuplicateKey { first, second }),
            },
        }
    }
}

impl Domain {
    /// The kind of item.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Public(keys) => keys.kind(),
            Self::Asked(kind) => *kind,
            Self::Discovered(discovery) => discovery.kind,
        }
    }

    /// The public list, if there is one.
    #[must_use]
    pub fn keys(&self) -> Option<&Keys> {
        match self {
            Self::Public(keys) => Some(keys),
            Self::Asked(_) | Self::Discovered(_) => None,
        }
    }

    /// How keys are found, if they are.
    #[must_use]
    pub fn discovery(&self) -> Option<Discovery> {
        match self {
            Self::Discovered(discovery) => Some(*discovery),
            Self::Public(_) | Self::Asked(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_key_is_found() {
        for keys in [Keys::text(["a", "b", "c", "b"]), Keys::integers([9, 4, 0, 4])] {
            let error = keys.check_distinct().expect_err("one twice");
            assert_eq!(error, PlanError::DuplicateKey { first: 1, second: 3 });
        }
        assert!(Keys::text((0..100_000).map(|number| number.to_string())).check_distinct().is_ok());
        assert!(Keys::integers([3, 1, 2]).check_distinct().is_ok());
    }

    #[test]
    fn copies_of_keys_share_their_list() {
        let keys = Keys::bytes([&b"ab"[..], b"", b"c"]);
        let (Keys::Bytes(list), Keys::Bytes(copy)) = (&keys, keys.clone()) else { panic!("bytes") };
        assert!(Arc::ptr_eq(list, &copy));
        assert_eq!((0..3).map(|index| list.get(index)).collect::<Vec<_>>(), [&b"ab"[..], b"", b"c"]);
    }

    #[test]
    fn items_print_as_people_write_them() {
        assert_eq!(Item::from(5).to_string(), "5");
        assert_eq!(format!("{:>4}", Item::from("ab")), "  ab");
        assert_eq!(Item::from(&[0xff, b'x'][..]).to_string(), "\u{fffd}x");
    }
}
