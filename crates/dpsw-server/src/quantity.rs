//! Windows, times and sizes as people write them in settings.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// A window: a number of items (`100000`) or a time (`"15m"`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// The last items.
    Items(u64),
    /// The last stretch of time, in whole milliseconds.
    Time(Millis),
}

/// A time in milliseconds, written as `"500ms"`, `"30s"`, `"15m"`, `"6h"` or `"7d"`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub u64);

/// A size in bytes, written as `400000`, `"400KB"` or `"1MiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// The longest name first, so that `ms` is not read as minutes.
const TIMES: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
const SIZES: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

impl Millis {
    /// As the standard library counts time.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }

    fn parse(text: &str) -> Option<Self> {
        if text == "0" { Some(Self(0)) } else { with_unit(text, &TIMES).map(Self) }
    }
}

/// A whole number with one of these units.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, factor) =
        units.iter().find_map(|(name, factor)| Some((text.strip_suffix(name)?.trim_end(), *factor)))?;
    number.replace('_', "").parse::<u64>().ok()?.checked_mul(factor)
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, factor): &&(&str, u64)| self.0.is_multiple_of(*factor);
        let (name, factor) = TIMES.iter().rev().find(fits).expect("a millisecond divides every time");
        if self.0 == 0 { f.write_str("0") } else { write!(f, "{}{name}", self.0 / factor) }
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Items(items) => serializer.serialize_u64(*items),
            Self::Time(time) => time.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wanted = "a time such as \"500ms\", \"30s\", \"15m\", \"6h\" or \"7d\"";
        deserializer.deserialize_any(Written { wanted, number: |_| None, text: Self::parse })
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wanted = "a size such as 400000, \"400KB\" or \"1MiB\"";
        let text = |text: &str| with_unit(text, &SIZES).map(Self);
        deserializer.deserialize_any(Written { wanted, number: |bytes| Some(Self(bytes)), text })
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wanted = "a number of items such as 100000, or a time such as \"15m\"";
        let text = |text: &str| Millis::parse(text).map(Self::Time);
        deserializer.deserialize_any(Written { wanted, number: |items| Some(Self::Items(items)), text })
    }
}

/// Reads a number or a text, and says what was wanted if it is neither.
struct Written<N, T> {
    wanted: &'static str,
    number: N,
    text: T,
}

impl<V, N: Fn(u64) -> Option<V>, T: Fn(&str) -> Option<V>> Visitor<'_> for Written<N, T> {
    type Value = V;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.wanted)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<V, E> {
        (self.number)(value).ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(value), &self))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<V, E> {
        let number = u64::try_from(value).ok().and_then(|value| (self.number)(value));
        number.ok_or_else(|| E::invalid_value(de::Unexpected::Signed(value), &self))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<V, E> {
        (self.text)(value).ok_or_else(|| E::invalid_value(de::Unexpected::Str(value), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct All {
        window: Span,
        late: Millis,
        memory: Size,
    }

    fn read(window: &str, late: &str, memory: &str) -> Result<All, String> {
        toml::from_str(&format!("window = {window}\nlate = {late}\nmemory = {memory}"))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn windows_times_and_sizes_are_read_as_people_write_them() {
        let wanted = All { window: Span::Time(Millis(900_000)), late: Millis(500), memory: Size(400_000) };
        assert_eq!(read("'15m'", "'500ms'", "'400KB'"), Ok(wanted));
        let wanted = All { window: Span::Items(100_000), late: Millis(0), memory: Size(1 << 20) };
        assert_eq!(read("100_000", "'0'", "'1MiB'"), Ok(wanted));
    }

    #[test]
    fn what_is_no_window_time_or_size_is_refused_with_what_was_wanted() {
        for (window, late, memory, wanted) in [
            ("'15 parsecs'", "'1s'", "1", "a number of items such as 100000, or a time such as \"15m\""),
            ("-5", "'1s'", "1", "a number of items such as 100000, or a time such as \"15m\""),
            ("5", "30", "1", "a time such as \"500ms\""),
            ("5", "'1s'", "'many'", "a size such as 400000"),
            ("5", "'99999999999999999999d'", "1", "a time such as \"500ms\""),
        ] {
            let error = read(window, late, memory).expect_err(wanted);
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn times_are_written_as_they_are_read() {
        for text in ["0", "1500ms", "30s", "90m", "6h", "7d"] {
            assert_eq!(Millis::parse(text).map(|time| time.to_string()).as_deref(), Some(text));
        }
    }
}
