//! Items, and the keys that heavy hitters may be chosen from.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use crate::error::PlanError;
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

/// A public list of keys, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Keys {
    /// The integers from 0 up to this one, exclusive.
    Range(u64),
    /// A list of integers.
    Integers(Vec<u64>),
    /// A list of byte strings.
    Bytes(Vec<Box<[u8]>>),
}

impl Keys {
    /// A list of texts.
    pub fn text<T: AsRef<str>>(keys: impl IntoIterator<Item = T>) -> Self {
        Self::Bytes(keys.into_iter().map(|key| key.as_ref().as_bytes().into()).collect())
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
            Self::Bytes(keys) => Item::Bytes(&keys[index]),
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
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Range(_) => 0,
            Self::Integers(keys) => size_of_val(&**keys),
            Self::Bytes(keys) => size_of_val(&**keys) + keys.iter().map(|key| key.len()).sum::<usize>(),
        }
    }

    pub(crate) fn check_distinct(&self) -> Result<(), PlanError> {
        if matches!(self, Self::Range(_)) {
            return Ok(());
        }
        let mut seen = HashMap::with_capacity(self.len());
        for second in 0..self.len() {
            if let Some(first) = seen.insert(self.get(second), second) {
                return Err(PlanError::DuplicateKey { first, second });
            }
        }
        Ok(())
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
        let keys = Keys::text(["a", "b", "c", "b"]);
        let error = keys.check_distinct().expect_err("b twice");
        assert_eq!(error, PlanError::DuplicateKey { first: 1, second: 3 });
        assert!(Keys::Integers(vec![3, 1, 2]).check_distinct().is_ok());
    }

    #[test]
    fn items_print_as_people_write_them() {
        assert_eq!(Item::from(5).to_string(), "5");
        assert_eq!(format!("{:>4}", Item::from("ab")), "  ab");
        assert_eq!(Item::from(&[0xff, b'x'][..]).to_string(), "\u{fffd}x");
    }
}
