//! Times of events and of questions, read as milliseconds since 1970, as the command line reads them.

use jiff::Timestamp;

/// Numbers from here on are milliseconds: as seconds they would lie beyond the year 5000.
const MILLIS_FROM: u64 = 100_000_000_000;

/// Unix seconds or milliseconds, or RFC 3339 (a blank may replace the T; a time without a zone is UTC).
pub(crate) fn parse(text: &[u8]) -> Option<u64> {
    whole(text).or_else(|| fraction(text)).or_else(|| rfc3339(text))
}

/// A whole number that is not too large for a time.
fn whole(text: &[u8]) -> Option<u64> {
    let digit = |sum: u64, byte: &u8| byte.is_ascii_digit().then(|| 10 * sum + u64::from(byte - b'0'));
    let value = if (1..=15).contains(&text.len()) { text.iter().try_fold(0, digit) } else { None };
    value.map(of_number)
}

/// Unix seconds or milliseconds.
pub(crate) fn of_number(value: u64) -> u64 {
    if value < MILLIS_FROM { value * 1000 } else { value }
}

fn fraction(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let text = std::str::from_utf8(text).ok().filter(|_| is_number)?;
    let value: f64 = text.parse().ok()?;
    let millis = if value < MILLIS_FROM as f64 { value * 1000.0 } else { value };
    // Beyond 2^53 numbers are no longer exact, and no time is that late.
    (millis < 9e15).then_some(millis.round() as u64)
}

fn rfc3339(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let with_zone = text.parse::<Timestamp>();
    let time = with_zone.or_else(|_| {
        let civil = text.parse::<jiff::civil::DateTime>()?;
        jiff::tz::TimeZone::UTC.to_timestamp(civil)
    });
    u64::try_from(time.ok()?.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_kind_of_time_is_read_and_nothing_else() {
        for (text, millis) in [
            ("0", Some(0)),
            ("893971817", Some(893_971_817_000)),
            ("1700000000.25", Some(1_700_000_000_250)),
            ("1700000000123", Some(1_700_000_000_123)),
            ("2006-03-04 09:15:02", Some(1_141_463_702_000)),
            ("2006-03-04T10:15:02.5+01:00", Some(1_141_463_702_500)),
            ("-5", None),
            ("1e9", None),
            ("1.2.3", None),
            ("99999999999999999999", None),
            ("1969-12-31T23:59:59Z", None),
            ("tomorrow", None),
            ("", None),
        ] {
            assert_eq!(parse(text.as_bytes()), millis, "{text}");
        }
    }
}
