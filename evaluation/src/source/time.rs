//! Dates as seconds since 1970.

/// The seconds of `YYYY-MM-DD HH:MM:SS` from 1970 to 2105, without a zone.
pub(crate) fn seconds(text: &[u8]) -> Option<u32> {
    let [year, month, day, hour, minute, second] = fields(text)?;
    let is_date = (1970..2106).contains(&year)
        && (1..=12).contains(&month)
        && (1..=month_len(year, month)).contains(&day);
    let is_time = hour < 24 && minute < 60 && second < 60;
    (is_date && is_time).then(|| ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

fn fields(text: &[u8]) -> Option<[u32; 6]> {
    if text.len() != 19 {
        return None;
    }
    let separators = [(4, b'-'), (7, b'-'), (10, b' '), (13, b':'), (16, b':')];
    if separators.iter().any(|&(at, separator)| text[at] != separator) {
        return None;
    }
    let number = |from: usize, to: usize| digits(&text[from..to]);
    Some([number(0, 4)?, number(5, 7)?, number(8, 10)?, number(11, 13)?, number(14, 16)?, number(17, 19)?])
}

/// A decimal number without a sign.
pub(crate) fn digits(text: &[u8]) -> Option<u32> {
    if !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(text).ok()?.parse().ok()
}

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn month_len(year: u32, month: u32) -> u32 {
    match month {
        2 => 28 + u32::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days(year: u32, month: u32, day: u32) -> u32 {
    let years: u32 = (1970..year).map(|year| 365 + u32::from(is_leap(year))).sum();
    let months: u32 = (1..month).map(|month| month_len(year, month)).sum();
    years + months + day - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_become_seconds() {
        for (text, expected) in [
            ("1970-01-01 00:00:00", Some(0)),
            ("2000-02-29 12:00:00", Some(951_825_600)),
            ("2006-03-01 00:00:07", Some(1_141_171_207)),
            ("2006-05-31 23:59:59", Some(1_149_119_999)),
            ("2105-12-31 23:59:59", Some(4_291_747_199)),
            ("2006-02-29 00:00:00", None),
            ("2006-13-01 00:00:00", None),
            ("2006-03-01 24:00:00", None),
            ("2006-03-01T00:00:00", None),
            ("2006-3-1 00:00:00", None),
            ("+006-03-01 00:00:00", None),
            ("", None),
        ] {
            assert_eq!(seconds(text.as_bytes()), expected, "{text}");
        }
    }
}
