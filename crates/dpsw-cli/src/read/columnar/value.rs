//! A value of a column, as its type describes it, and how it reads as text and as a time.

use std::fmt::Display;
use std::io::{self, Write};

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::args::TimeUnit;
use crate::read::{Problem, time};

/// A value of a column in one row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Bytes(&'a [u8]),
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Single(f32),
    Double(f64),
    /// `unscaled` / 10^`scale`.
    Decimal {
        unscaled: i128,
        scale: i32,
    },
    /// Since 1970-01-01.
    Days(i64),
    /// Since midnight.
    Clock(Ticks),
    /// Since 1970 in UTC, or, if not, since 1970 in a zone that is not told.
    Instant {
        ticks: Ticks,
        is_utc: bool,
    },
}

/// A number of units of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticks {
    pub(super) count: i64,
    pub(super) unit: TimeUnit,
}

impl Ticks {
    fn nanos(self) -> i128 {
        let factor = match self.unit {
            TimeUnit::Seconds => 1_000_000_000,
            TimeUnit::Millis => 1_000_000,
            TimeUnit::Micros => 1_000,
            TimeUnit::Nanos => 1,
        };
        i128::from(self.count) * factor
    }
}

impl Value<'_> {
    /// Appends the value as text: texts as they are, numbers in decimal, times in the manner of RFC 3339. A time out of the
    /// calendar's range is written as its number.
    pub(super) fn write(self, text: &mut Vec<u8>) {
        self.try_write(text).expect("writing to memory does not fail");
    }

    fn try_write(self, text: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::Null => Ok(()),
            Self::Bytes(bytes) => text.write_all(bytes),
            Self::Bool(value) => write!(text, "{value}"),
            Self::Signed(value) => write!(text, "{value}"),
            Self::Unsigned(value) => write!(text, "{value}"),
            Self::Single(value) => write!(text, "{value:?}"),
            Self::Double(value) => write!(text, "{value:?}"),
            Self::Decimal { unscaled, scale } => text.write_all(decimal(unscaled, scale).as_bytes()),
            Self::Days(days) => text.write_all(or_number(date(days), "", days).as_bytes()),
            Self::Clock(ticks) => text.write_all(or_number(clock(ticks), "", ticks.count).as_bytes()),
            Self::Instant { ticks, is_utc } => {
                let zone = if is_utc { "Z" } else { "" };
                text.write_all(or_number(date_time(ticks), zone, ticks.count).as_bytes())
            }
        }
    }

    /// The value as milliseconds since 1970. A number without a unit of its own is in this one, or its size tells it.
    pub(super) fn millis(self, unit: Option<TimeUnit>) -> Result<u64, Problem> {
        let millis = match self {
            Self::Null => return Err(Problem::new("the time is null")),
            Self::Bytes(bytes) => return time::parse(bytes, unit),
            Self::Instant { ticks, .. } => u64::try_from(ticks.nanos().div_euclid(1_000_000)).ok(),
            Self::Days(days) => u64::try_from(days).ok().and_then(|days| days.checked_mul(86_400_000)),
            Self::Signed(value) => u64::try_from(value).ok().and_then(|value| time::of_whole(value, unit)),
            Self::Unsigned(value) => time::of_whole(value, unit),
            Self::Single(value) => time::of_fraction(value.into(), unit),
            Self::Double(value) => time::of_fraction(value, unit),
            Self::Decimal { .. } | Self::Clock(_) | Self::Bool(_) => {
                let mut text = Vec::new();
                self.write(&mut text);
                return time::parse(&text, unit);
            }
        };
        let millis = millis.filter(|millis| *millis < time::MILLIS_END);
        millis.ok_or_else(|| Problem::new("the time lies before 1970 or after 9999"))
    }
}

/// A time and its zone, or the number where the calendar ends.
fn or_number(time: Option<impl Display>, zone: &str, number: i64) -> String {
    time.map_or_else(|| number.to_string(), |time| format!("{time}{zone}"))
}

fn decimal(unscaled: i128, scale: i32) -> String {
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = unscaled.unsigned_abs().to_string();
    let Ok(fraction_len) = usize::try_from(scale) else {
        return format!("{unscaled}{}", "0".repeat(scale.unsigned_abs() as usize));
    };
    let digits = format!("{digits:0>width$}", width = fraction_len + 1);
    let (whole, fraction) = digits.split_at(digits.len() - fraction_len);
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

fn date(days: i64) -> Option<Date> {
    Date::constant(1970, 1, 1).checked_add(SignedDuration::from_secs(days.checked_mul(86_400)?)).ok()
}

fn clock(ticks: Ticks) -> Option<Time> {
    let nanos = i64::try_from(ticks.nanos()).ok()?;
    Time::midnight().checked_add(SignedDuration::from_nanos(nanos)).ok()
}

fn date_time(ticks: Ticks) -> Option<DateTime> {
    let time = Timestamp::from_nanosecond(ticks.nanos()).ok()?;
    Some(TimeZone::UTC.to_datetime(time))
}

/// A half-precision number: a sign, 5 bits of exponent, 10 of fraction.
pub(super) fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let fraction = f32::from(bits & 0x3ff);
    sign * match bits >> 10 & 0x1f {
        0 => fraction * 2_f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        exponent => (1024.0 + fraction) * 2_f32.powi(i32::from(exponent) - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(count: i64, unit: TimeUnit) -> Ticks {
        Ticks { count, unit }
    }

    #[test]
    fn every_kind_of_value_reads_as_text() {
        for (value, wanted) in [
            (Value::Bytes(b"a b"), "a b"),
            (Value::Bool(true), "true"),
            (Value::Signed(-5), "-5"),
            (Value::Unsigned(u64::MAX), "18446744073709551615"),
            (Value::Single(1.5), "1.5"),
            (Value::Single(half(0x3e00)), "1.5"),
            (Value::Single(half(0xc000)), "-2.0"),
            (Value::Single(half(0x0001)), "5.9604645e-8"),
            (Value::Double(3.0), "3.0"),
            (Value::Decimal { unscaled: -12345, scale: 2 }, "-123.45"),
            (Value::Decimal { unscaled: 5, scale: 3 }, "0.005"),
            (Value::Decimal { unscaled: 5, scale: 0 }, "5"),
            (Value::Decimal { unscaled: 5, scale: -2 }, "500"),
            (Value::Days(20_000), "2024-10-04"),
            (Value::Days(-1), "1969-12-31"),
            (Value::Days(i64::MAX), "9223372036854775807"),
            (Value::Clock(ticks(3_600_500, TimeUnit::Millis)), "01:00:00.5"),
            (
                Value::Instant { ticks: ticks(1_700_000_000, TimeUnit::Seconds), is_utc: true },
                "2023-11-14T22:13:20Z",
            ),
            (
                Value::Instant { ticks: ticks(-1, TimeUnit::Micros), is_utc: false },
                "1969-12-31T23:59:59.999999",
            ),
            (
                Value::Instant { ticks: ticks(i64::MAX, TimeUnit::Seconds), is_utc: false },
                "9223372036854775807",
            ),
        ] {
            let mut text = Vec::new();
            value.write(&mut text);
            assert_eq!(String::from_utf8_lossy(&text), wanted, "{value:?}");
        }
    }

    #[test]
    fn every_kind_of_time_is_read() {
        for (value, wanted) in [
            (Value::Instant { ticks: ticks(1_999_999, TimeUnit::Nanos), is_utc: true }, Some(1)),
            (Value::Instant { ticks: ticks(7, TimeUnit::Seconds), is_utc: false }, Some(7000)),
            (Value::Days(2), Some(172_800_000)),
            (Value::Signed(1_700_000_000), Some(1_700_000_000_000)),
            (Value::Unsigned(1_700_000_000_000_000_000), Some(1_700_000_000_000)),
            (Value::Double(1.7e15), Some(1_700_000_000_000)),
            (Value::Decimal { unscaled: 1_700_000_000_250, scale: 3 }, Some(1_700_000_000_250)),
            (Value::Signed(-1), None),
            (Value::Double(f64::NAN), None),
            (Value::Days(i64::MAX), None),
            (Value::Bytes(b"1970-01-01T00:00:01Z"), Some(1000)),
            (Value::Instant { ticks: ticks(-1, TimeUnit::Millis), is_utc: true }, None),
            (Value::Bool(true), None),
            (Value::Null, None),
        ] {
            assert_eq!(value.millis(None).ok(), wanted, "{value:?}");
        }
        let told = Some(TimeUnit::Micros);
        assert_eq!(Value::Signed(5_000_000).millis(told), Ok(5000));
        let seconds = Value::Instant { ticks: ticks(7, TimeUnit::Seconds), is_utc: true };
        assert_eq!(seconds.millis(told), Ok(7000), "a time that has a unit keeps it");
    }
}
