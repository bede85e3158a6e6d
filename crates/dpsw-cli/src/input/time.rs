//! Times in files, read as milliseconds since 1970.

use jiff::Timestamp;

use crate::input::{Problem, excerpt};

/// Numbers from here on are milliseconds: as seconds they would lie beyond the year 5000.
const MILLIS_FROM: f64 = 1e11;

/// Reads unix seconds or milliseconds, RFC 3339, or the time of an access log.
pub(crate) fn parse(text: &[u8]) -> Result<u64, Problem> {
    let time = unix(text).or_else(|| access_log(text)).or_else(|| rfc3339(text));
    time.ok_or_else(|| {
        let wanted =
            "unix seconds or milliseconds, RFC 3339 (2026-01-31T12:00:00Z), or 31/Jan/2026:12:00:00 +0000";
        Problem::new(format!("{} is not a time from 1970 on: wanted {wanted}", excerpt(text)))
    })
}

fn unix(text: &[u8]) -> Option<u64> {
    if let Some(value) = whole(text) {
        return Some(if (value as f64) < MILLIS_FROM { value * 1000 } else { value });
    }
    let is_number = !text.is_empty() && text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    if !is_number {
        return None;
    }
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let millis = if value < MILLIS_FROM { value * 1000.0 } else { value };
    // Beyond 2^53 numbers are no longer exact, and no time is that late.
    (millis < 9e15).then_some(millis.round() as u64)
}

/// A whole number that is not too large for a time.
fn whole(text: &[u8]) -> Option<u64> {
    let digit = |sum: u64, byte: &u8| byte.is_ascii_digit().then(|| 10 * sum + u64::from(byte - b'0'));
    if (1..=15).contains(&text.len()) { text.iter().try_fold(0, digit) } else { None }
}

/// `2026-01-31T12:00:00.5+01:00`; a blank may replace the T, and a time without a zone is UTC.
fn rfc3339(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let with_zone = text.parse::<Timestamp>();
    let time = with_zone.or_else(|_| {
        let civil = text.parse::<jiff::civil::DateTime>()?;
        jiff::tz::TimeZone::UTC.to_timestamp(civil)
    });
    u64::try_from(time.ok()?.as_millisecond()).ok()
}

/// `31/Jan/2026:12:00:00 +0000`, with or without brackets.
fn access_log(text: &[u8]) -> Option<u64> {
    let text = text.strip_prefix(b"[").unwrap_or(text);
    let text = text.strip_suffix(b"]").unwrap_or(text);
    // dd/Mon/yyyy:hh:mm:ss +zzzz
    if text.len() != 26 || text[2] != b'/' || text[6] != b'/' || text[11] != b':' || text[20] != b' ' {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<i64> {
        text[from..to]
            .iter()
            .try_fold(0_i64, |sum, byte| byte.is_ascii_digit().then(|| 10 * sum + i64::from(byte - b'0')))
    };
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
            ("2006-03-04 09:15:02", 1_141_463_702_000),
            ("2006-03-04T09:15:02Z", 1_141_463_702_000),
            ("2006-03-04T10:15:02.5+01:00", 1_141_463_702_500),
            ("[10/Oct/2000:13:55:36 -0700]", 971_211_336_000),
            ("29/Feb/2024:00:00:00 +0000", 1_709_164_800_000),
            ("31/Dec/1999:23:59:59 +0000", 946_684_799_000),
        ] {
            assert_eq!(parse(text.as_bytes()), Ok(millis), "{text}");
        }
    }

    #[test]
    fn the_calendar_of_access_logs_agrees_with_the_library() {
        for days in (0..60_000_u64).step_by(17) {
            let millis = days * 86_400_000;
            let time = Timestamp::from_millisecond(millis as i64).expect("in range");
            let text = time.to_zoned(jiff::tz::TimeZone::UTC).strftime("%d/%b/%Y:%H:%M:%S +0000").to_string();
            assert_eq!(parse(text.as_bytes()), Ok(millis), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "yesterday", "12:00", "1.2.3", "-5", "99999999999999999999", "1969-12-31T00:00:00Z"]
        {
            let problem = parse(text.as_bytes()).expect_err(text);
            assert!(problem.reason.contains("RFC 3339"), "{}", problem.reason);
        }
    }
}
