//! Times in files, read as milliseconds since 1970.

use jiff::Timestamp;

use crate::args::TimeUnit;
use crate::read::{Problem, excerpt};

/// The year 10000: no event is that late.
pub(crate) const MILLIS_END: u64 = 253_402_300_800_000;

/// Reads a time: a number, RFC 3339, a date, or the time of an access log. A number is in this unit; without one its size tells
/// the unit.
pub(crate) fn parse(text: &[u8], unit: Option<TimeUnit>) -> Result<u64, Problem> {
    let time = unix(text, unit).or_else(|| of_access_log(text)).or_else(|| rfc3339(text));
    let time = time.or_else(|| unix(text.trim_ascii(), unit));
    time.ok_or_else(|| {
        let unit = match unit {
            None => "seconds, milliseconds, microseconds or nanoseconds",
            Some(TimeUnit::Seconds) => "seconds",
            Some(TimeUnit::Millis) => "milliseconds",
            Some(TimeUnit::Micros) => "microseconds",
            Some(TimeUnit::Nanos) => "nanoseconds",
        };
        Problem::new(format!(
            "{} is not a time from 1970 to 9999: wanted {unit} since 1970, RFC 3339 (2026-01-31T12:00:00Z), a date \
            (2026-01-31), or 31/Jan/2026:12:00:00 +0000",
            excerpt(text)
        ))
    })
}

fn unix(text: &[u8], unit: Option<TimeUnit>) -> Option<u64> {
    if let Some(value) = whole(text) {
        return of_whole(value, unit);
    }
    let is_fraction = text.contains(&b'.') && text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    if !is_fraction {
        return None;
    }
    of_fraction(std::str::from_utf8(text).ok()?.parse().ok()?, unit)
}

/// A whole number that fits into 64 bits.
fn whole(text: &[u8]) -> Option<u64> {
    let digit = |sum: u64, byte: &u8| byte.is_ascii_digit().then(|| 10 * sum + u64::from(byte - b'0'));
    match text.len() {
        // They fit, so that nothing has to be checked.
        1..=19 => text.iter().try_fold(0, digit),
        _ if text.iter().all(u8::is_ascii_digit) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

/// The milliseconds of a whole number of units since 1970.
pub(crate) fn of_whole(value: u64, unit: Option<TimeUnit>) -> Option<u64> {
    let millis = match unit.unwrap_or_else(|| unit_of(value as f64)) {
        TimeUnit::Seconds => value.checked_mul(1000)?,
        TimeUnit::Millis => value,
        TimeUnit::Micros => value / 1_000,
        TimeUnit::Nanos => value / 1_000_000,
    };
    (millis < MILLIS_END).then_some(millis)
}

/// The same of a number with a fraction, rounded to a millisecond.
pub(crate) fn of_fraction(value: f64, unit: Option<TimeUnit>) -> Option<u64> {
    let millis = match unit.unwrap_or_else(|| unit_of(value)) {
        TimeUnit::Seconds => value * 1e3,
        TimeUnit::Millis => value,
        TimeUnit::Micros => value / 1e3,
        TimeUnit::Nanos => value / 1e6,
    };
    (0.0..MILLIS_END as f64).contains(&millis).then_some(millis.round() as u64)
}

/// The unit in which a number since 1970 lies between 1973 and 5138, or, for small numbers, seconds.
fn unit_of(value: f64) -> TimeUnit {
    match value {
        ..1e11 => TimeUnit::Seconds,
        ..1e14 => TimeUnit::Millis,
        ..1e17 => TimeUnit::Micros,
        _ => TimeUnit::Nanos,
    }
}

/// `2026-01-31T12:00:00.5+01:00`; a blank may replace the T or stand before the zone, a time without a zone is UTC, and a date
/// is its start.
fn rfc3339(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let text = text.strip_suffix(" UTC").unwrap_or(text);
    let joined =
        [" +", " -"].iter().find_map(|blank| text.rsplit_once(blank).map(|parts| (parts, &blank[1..])));
    let with_zone = match joined {
        Some(((time, zone), sign)) => format!("{time}{sign}{zone}").parse::<Timestamp>(),
        None => text.parse::<Timestamp>(),
    };
    let time = with_zone.or_else(|_| {
        let civil = text.parse::<jiff::civil::DateTime>()?;
        jiff::tz::TimeZone::UTC.to_timestamp(civil)
    });
    u64::try_from(time.ok()?.as_millisecond()).ok()
}

/// `31/Jan/2026:12:00:00 +0000`, with or without brackets.
pub(crate) fn of_access_log(text: &[u8]) -> Option<u64> {
    let text = text.strip_prefix(b"[").unwrap_or(text);
    let text = text.strip_suffix(b"]").unwrap_or(text);
    // dd/Mon/yyyy:hh:mm:ss +zzzz
    if text.len() != 26 || text[2] != b'/' || text[6] != b'/' || text[11] != b':' || text[20] != b' ' {
        return None;
    }
    let number = |from: usize, to: usize| whole(&text[from..to]).map(|number| number as i64);
    let days = days(number(7, 11)?, month(&text[3..6])?, number(0, 2)?)?;
    let seconds = number(12, 14)? * 3600 + number(15, 17)? * 60 + number(18, 20)?;
    let zone = number(22, 24)? * 3600 + number(24, 26)? * 60;
    let zone = if text[21] == b'-' { -zone } else { zone };
    u64::try_from((days * 86_400 + seconds - zone) * 1000).ok()
}

fn month(name: &[u8]) -> Option<i64> {
    const MONTHS: [&[u8; 3]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    MONTHS.iter().position(|month| month.eq_ignore_ascii_case(name)).map(|index| index as i64 + 1)
}

/// Days since 1970-01-01.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=31).contains(&day) {
        return None;
    }
    // Years that start in March end with their leap day.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let leaps = year / 4 - year / 100 + year / 400;
    Some(365 * year + leaps + (153 * month + 2) / 5 + day - 719_469)
}

/// `2026-01-31T12:00:00Z`.
pub(crate) fn format(millis: u64) -> String {
    let time = i64::try_from(millis).ok().and_then(|millis| Timestamp::from_millisecond(millis).ok());
    time.map_or_else(|| format!("{millis} ms"), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_kind_of_time_is_read() {
        for (text, millis) in [
            ("0", 0),
            ("893971817", 893_971_817_000),
            ("1700000000.25", 1_700_000_000_250),
            ("1700000000123", 1_700_000_000_123),
            ("1700000000123.5", 1_700_000_000_124),
            ("1700000000123456", 1_700_000_000_123),
            ("1700000000123456789", 1_700_000_000_123),
            ("2006-03-04 09:15:02", 1_141_463_702_000),
            ("2006-03-04T09:15:02Z", 1_141_463_702_000),
            ("2006-03-04T10:15:02.5+01:00", 1_141_463_702_500),
            ("2006-03-04 10:15:02 +0100", 1_141_463_702_000),
            ("2006-03-04 08:15:02 -01:00", 1_141_463_702_000),
            ("2006-03-04 09:15:02 UTC", 1_141_463_702_000),
            (" 1141463702 ", 1_141_463_702_000),
            ("2006-03-04", 1_141_430_400_000),
            ("[10/Oct/2000:13:55:36 -0700]", 971_211_336_000),
            ("29/Feb/2024:00:00:00 +0000", 1_709_164_800_000),
            ("31/Dec/1999:23:59:59 +0000", 946_684_799_000),
        ] {
            assert_eq!(parse(text.as_bytes(), None), Ok(millis), "{text}");
        }
    }

    #[test]
    fn the_size_of_a_number_tells_its_unit_up_to_the_year_5138() {
        for year in [1974, 1995, 2001, 2026, 2286, 2550] {
            let second = 31_556_952_u64 * (year - 1970);
            for factor in [1, 1_000, 1_000_000, 1_000_000_000] {
                let text = (second * factor).to_string();
                assert_eq!(parse(text.as_bytes(), None), Ok(second * 1000), "{text}");
            }
        }
        for (text, millis) in [("99999999999", 99_999_999_999_000), ("100000000000", 100_000_000_000)] {
            assert_eq!(parse(text.as_bytes(), None), Ok(millis), "{text}");
        }
    }

    #[test]
    fn a_unit_that_is_told_decides() {
        for (text, unit, millis) in [
            ("86400000", TimeUnit::Millis, 86_400_000),
            ("86400000.5", TimeUnit::Micros, 86_400),
            ("86400000000", TimeUnit::Micros, 86_400_000),
            ("999999", TimeUnit::Nanos, 0),
            ("200000000000", TimeUnit::Seconds, 200_000_000_000_000),
            ("2006-03-04", TimeUnit::Nanos, 1_141_430_400_000),
        ] {
            assert_eq!(parse(text.as_bytes(), Some(unit)), Ok(millis), "{text}");
        }
        let late = parse(b"1700000000123", Some(TimeUnit::Seconds)).expect_err("too late");
        assert!(late.reason.contains("wanted seconds since 1970"), "{}", late.reason);
    }

    #[test]
    fn the_calendar_of_access_logs_agrees_with_the_library() {
        for days in (0..60_000_u64).step_by(17) {
            let millis = days * 86_400_000;
            let time = Timestamp::from_millisecond(millis as i64).expect("in range");
            let text = time.to_zoned(jiff::tz::TimeZone::UTC).strftime("%d/%b/%Y:%H:%M:%S +0000").to_string();
            assert_eq!(parse(text.as_bytes(), None), Ok(millis), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "yesterday",
            "12:00",
            "12:00 +",
            " - ",
            "2026-01-31 +0100 +0100",
            "1.2.3",
            "-5",
            "99999999999999999999",
            "999999999999999999999.5",
            "1969-12-31T00:00:00Z",
            "2026-02-30",
            "2026-13-01",
        ] {
            let problem = parse(text.as_bytes(), None).expect_err(text);
            assert!(problem.reason.contains("RFC 3339"), "{}", problem.reason);
        }
    }
}
