//! One item of a stream.

use std::borrow::Cow;
use std::fmt;

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

impl<'a> From<&'a String> for Item<'a> {
    fn from(value: &'a String) -> Self {
        Self::Bytes(value.as_bytes())
    }
}

impl<'a> From<&'a Vec<u8>> for Item<'a> {
    fn from(value: &'a Vec<u8>) -> Self {
        Self::Bytes(value)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Item<'a> {
    fn from(value: &'a [u8; N]) -> Self {
        Self::Bytes(value)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_print_as_people_write_them() {
        assert_eq!(Item::from(5).to_string(), "5");
        assert_eq!(format!("{:>4}", Item::from("ab")), "  ab");
        assert_eq!(Item::from(&[0xff, b'x'][..]).to_string(), "\u{fffd}x");
    }
}
