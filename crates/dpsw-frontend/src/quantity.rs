//! Sizes, durations and lengths as people type them, and numbers as people read them.

use std::time::Duration;

/// A window or a period: a number of items, or a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// From 1.
    Items(u64),
    /// Whole milliseconds, from 1.
    Time(Duration),
}

/// Names of times, the longest first, and their milliseconds.
const TIMES: [(&[&str], u64); 6] = [
    (&["w", "week", "weeks"], 604_800_000),
    (&["d", "day", "days"], 86_400_000),
    (&["h", "hour", "hours"], 3_600_000),
    (&["m", "min", "minute", "minutes"], 60_000),
    (&["s", "sec", "second", "seconds"], 1_000),
    (&["ms"], 1),
];
const COUNTS: [(&str, u64); 5] =
    [("", 1), ("k", 1_000), ("K", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];

const COUNT_FORMS: &str = "100000, 100_000, 100k, 1e5 or 2M";
const TIME_FORMS: &str = "500ms, 90s, 15m, 1h30m, 2d or 1w";

/// A number of items or a time. `5m` is five minutes, `5M` five million items.
///
/// # Errors
/// The text is neither, or 0; the message shows the forms of both.
pub fn span(text: &str) -> Result<Span, String> {
    if !text.contains(|c: char| c.is_alphabetic()) {
        return count(text)
            .map(Span::Items)
            .map_err(|error| format!("{error}, and has no unit of time: {TIME_FORMS}"));
    }
    let items = items(text).filter(|&items| 0 < items).map(Span::Items);
    let time = || millis_of(text).filter(|&millis| 0 < millis).map(Duration::from_millis).map(Span::Time);
    items.or_else(time).ok_or_else(|| {
        format!(
            "{text:?} is neither a number of items ({COUNT_FORMS}) nor a time ({TIME_FORMS}); m means minutes, M millions"
        )
    })
}

/// A time, or 0.
///
/// # Errors
/// The text has no unit of time, or is no time in whole milliseconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    match (span(text), items(text)) {
        (Ok(Span::Time(duration)), _) => Ok(duration),
        (_, Some(0)) => Ok(Duration::ZERO),
        (_, Some(_)) => Err(format!("{text:?} has no unit of time: write {TIME_FORMS}")),
        _ => Err(format!("{text:?} is not a time such as {TIME_FORMS}")),
    }
}

/// A whole number from 1.
///
/// # Errors
/// The text is something else, or too large; the message says what is wanted.
pub fn count(text: &str) -> Result<u64, String> {
    up_to(text, u64::MAX)
}

/// A whole number from 1, for what is kept in 32 bits.
///
/// # Errors
/// As [`count`].
pub fn count_u32(text: &str) -> Result<u32, String> {
    up_to(text, u32::MAX.into()).map(|count| count as u32)
}

/// A whole number from 1, for what is held in memory.
///
/// # Errors
/// As [`count`].
pub fn count_usize(text: &str) -> Result<usize, String> {
    up_to(text, usize::MAX as u64).map(|count| count as usize)
}

const PER_USER_MAX: u32 = 1 << 20;

/// How many items of each user may count per substream.
///
/// # Errors
/// The text is no whole number from 1 to 2^20.
pub fn per_user(text: &str) -> Result<u32, String> {
    let count = items(text).filter(|count| (1..=PER_USER_MAX.into()).contains(count));
    count
        .map(|count| count as u32)
        .ok_or_else(|| format!("{text:?} is not a whole number from 1 to {PER_USER_MAX}"))
}

fn up_to(text: &str, max: u64) -> Result<u64, String> {
    match items(text) {
        Some(count) if (1..=max).contains(&count) => Ok(count),
        None if millis_of(text).is_some() => Err(format!(
            "{text:?} is a time, and a number is wanted, such as {COUNT_FORMS}; M means millions"
        )),
        _ => Err(format!("{text:?} is not a whole number from 1 to {max}, such as {COUNT_FORMS}")),
    }
}

/// A size in memory; `m` means megabytes here.
///
/// # Errors
/// The text is no number with a unit of bytes, or means less than one byte.
pub fn bytes(text: &str) -> Result<u64, String> {
    let bytes = Decimal::read(text).and_then(|(number, unit)| {
        let factor = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kb" => 1_000,
            "m" | "mb" => 1_000_000,
            "g" | "gb" => 1_000_000_000,
            "kib" => 1 << 10,
            "mib" => 1 << 20,
            "gib" => 1 << 30,
            _ => return None,
        };
        number.floor_times(factor)
    });
    let bytes = bytes.map(|(bytes, _)| bytes).filter(|&bytes| 0 < bytes);
    bytes.ok_or_else(|| format!("{text:?} is not a size such as 400000, 400KB, 2MB, 1.5GB or 1MiB"))
}

/// The milliseconds of a time, which are the ticks of time windows.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What was understood, where `m` and `M` could be mistaken for each other.
pub fn reading(text: &str) -> Option<String> {
    let (number, unit) = Decimal::read(text)?;
    let items = format!("{} items", grouped(number.times(1_000_000)? as f64));
    let minutes = time(number.times(60_000)?);
    let digits = text.trim_end().strip_suffix(['m', 'M'])?;
    match unit.trim() {
        "m" => Some(format!("{text} is {minutes}; {digits}M would be {items}")),
        "M" => Some(format!("{text} is {items}; {digits}m would be {minutes}")),
        _ => None,
    }
}

fn items(text: &str) -> Option<u64> {
    let (number, unit) = Decimal::read(text)?;
    let (_, factor) = COUNTS.iter().find(|(name, _)| *name == unit.trim())?;
    number.times(*factor)
}

/// Milliseconds of one or several times, the longest first: `1h30m`.
fn millis_of(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut sum = 0_u64;
    let mut shorter = &TIMES[..];
    loop {
        let (number, after) = Decimal::read(rest)?;
        let after = after.trim_start();
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let place = shorter.iter().position(|(names, _)| names.contains(&&after[..end]))?;
        sum = sum.checked_add(number.times(shorter[place].1)?)?;
        shorter = &shorter[place + 1..];
        rest = after[end..].trim_start();
        if rest.is_empty() {
            return Some(sum);
        }
    }
}

/// `1,234,567`.
pub fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if 0 < index && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 && text != "0" { format!("-{text}") } else { text }
}

/// `15 min`, `2.5 h`: the largest unit that is not below one.
pub fn time(millis: u64) -> String {
    let units = [("d", 86_400_000_u64), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)];
    match units.iter().find(|(_, length)| *length <= millis) {
        Some((name, length)) if millis.is_multiple_of(*length) => format!("{} {name}", millis / length),
        Some((name, length)) => format!("{:.1} {name}", millis as f64 / *length as f64),
        None => format!("{millis} ms"),
    }
}

/// `400 KB`, `1.5 MB`.
pub fn size(bytes: u64) -> String {
    let units = [("GB", 1e9), ("MB", 1e6), ("KB", 1e3)];
    match units.iter().find(|(_, length)| *length <= bytes as f64) {
        Some((name, length)) if bytes as f64 / length < 10.0 => {
            format!("{:.1} {name}", bytes as f64 / length).replace(".0", "")
        }
        Some((name, length)) => format!("{:.0} {name}", bytes as f64 / length),
        None => format!("{bytes} bytes"),
    }
}

/// A number `digits · 10^scale`, as people type it: `1000000`, `1_000_000`, `1,000,000`, `2.5`, `1e5`. It is exact: nothing is
/// rounded on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    digits: u128,
    scale: i32,
}

impl Decimal {
    /// The number at the start of a text, and what follows it.
    fn read(text: &str) -> Option<(Self, &str)> {
        let is_part = |c: char| c.is_ascii_digit() || matches!(c, '_' | ',' | '.');
        let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
        let (number, rest) = text.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let (exponent, rest) = exponent(rest)?;
        let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let whole = ungrouped(whole)?;
        if !is_number(&whole) || !is_number(fraction) {
            return None;
        }
        let digits = format!("{whole}{fraction}").parse().ok()?;
        Some((Self { digits, scale: exponent - i32::try_from(fraction.len()).ok()? }, rest))
    }

    /// The number times a factor, if that is whole.
    fn times(self, factor: u64) -> Option<u64> {
        let (floor, is_whole) = self.floor_times(factor)?;
        is_whole.then_some(floor)
    }

    /// The number times a factor, rounded down, and whether it was whole.
    fn floor_times(self, factor: u64) -> Option<(u64, bool)> {
        let value = self.digits.checked_mul(factor.into())?;
        let power = 10_u128.checked_pow(self.scale.unsigned_abs())?;
        let (floor, rest) =
            if self.scale < 0 { (value / power, value % power) } else { (value.checked_mul(power)?, 0) };
        Some((u64::try_from(floor).ok()?, rest == 0))
    }
}

/// The digits without `_`, and without commas if they stand before every three digits.
fn ungrouped(text: &str) -> Option<String> {
    let (first, rest) = text.split_once(',').unwrap_or((text, ""));
    let is_grouped = rest.is_empty() || rest.split(',').all(|group| group.len() == 3);
    let is_split = text.contains(',') && !(1..=3).contains(&first.len());
    let is_loose = text.ends_with(',') || (text.contains(',') && text.contains('_'));
    (is_grouped && !is_split && !is_loose).then(|| text.replace(['_', ','], ""))
}

/// The power of ten at the start of what follows the digits.
fn exponent(text: &str) -> Option<(i32, &str)> {
    let Some(digits) = text.strip_prefix(['e', 'E']) else { return Some((0, text)) };
    let sign = usize::from(digits.starts_with(['+', '-']));
    let len = digits[sign..].find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len() - sign);
    let (number, rest) = digits.split_at(sign + len);
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type_is_understood() {
        for text in ["1000000", "1_000_000", "1,000,000", "1000k", "1e6", "1M", "1 M", "0.001G", "1E6"] {
            assert_eq!(span(text), Ok(Span::Items(1_000_000)), "{text}");
            assert_eq!(count(text), Ok(1_000_000), "{text}");
        }
        for (text, minutes) in [
            ("15m", 15),
            ("90min", 90),
            ("1.5h", 90),
            ("1h30m", 90),
            ("1 h 30 min", 90),
            ("2d12h", 60 * 60),
            ("1w", 7 * 24 * 60),
            ("1 week", 7 * 24 * 60),
        ] {
            assert_eq!(span(text), Ok(Span::Time(Duration::from_secs(60 * minutes))), "{text}");
        }
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        for (text, value) in
            [("400KB", 400_000), ("1MiB", 1 << 20), ("512", 512), ("1.5 MB", 1_500_000), ("64m", 64_000_000)]
        {
            assert_eq!(bytes(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn minutes_and_millions_are_told_apart() {
        assert_eq!(span("5m"), Ok(Span::Time(Duration::from_secs(300))));
        assert_eq!(span("5M"), Ok(Span::Items(5_000_000)));
        assert_eq!(reading("5m").as_deref(), Some("5m is 5 min; 5M would be 5,000,000 items"));
        assert_eq!(reading("5M").as_deref(), Some("5M is 5,000,000 items; 5m would be 5 min"));
        for text in ["5min", "5k", "1h5m", "500"] {
            assert_eq!(reading(text), None, "{text}");
        }
        assert!(count("5m").is_err_and(|error| error.contains("M means millions")));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in
            ["", "0", "-5", "15x", "m", "0s", "0M", "NaNs", "1.5", "1h30", "30m1h", "1h1h", "1h 5M", "0.5ms"]
        {
            assert!(span(text).is_err(), "{text}");
        }
        for text in ["", "0", "4TB", "KB", "-1KB", "0.5"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        for text in ["30", "5M", "soon"] {
            assert!(duration(text).is_err_and(|error| error.contains("90s")), "{text}");
        }
        assert!(count_u32("5G").is_err_and(|error| error.contains("4294967295")));
    }

    #[test]
    fn numbers_are_grouped() {
        for (value, text) in [(0.0, "0"), (999.6, "1,000"), (1_234_567.0, "1,234,567"), (-1234.0, "-1,234")] {
            assert_eq!(grouped(value), text);
        }
        assert_eq!((time(900_000), size(400_000)), ("15 min".into(), "400 KB".into()));
    }

    #[track_caller]
    fn check(text: &str, factor: u64, wanted: Option<u64>) {
        let number = Decimal::read(text).filter(|(_, rest)| rest.is_empty());
        assert_eq!(number.and_then(|(number, _)| number.times(factor)), wanted, "{text}");
    }

    #[test]
    fn numbers_are_exact() {
        check("1_000_000", 1, Some(1_000_000));
        check("1,000,000", 1, Some(1_000_000));
        check("1e5", 1, Some(100_000));
        check("2.5E+6", 1, Some(2_500_000));
        check("25e-1", 10, Some(25));
        check("0.1", 1_000_000, Some(100_000));
        check("1.2345", 1_000, None);
        check("18446744073709551615", 1, Some(u64::MAX));
        check("18446744073709551616", 1, None);
        check("1e40", 1, None);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "1,5",
            "1,00,000",
            "1000,000",
            ",100",
            "100,",
            "1,000_000",
            "1e",
            "1e+",
            "1.2.3",
            "-5",
        ] {
            assert_eq!(Decimal::read(text), None, "{text}");
        }
    }

    #[test]
    fn units_follow_a_number() {
        for (text, rest) in [("15m", "m"), ("1e5 items", " items"), ("2M", "M")] {
            assert_eq!(Decimal::read(text).map(|(_, rest)| rest), Some(rest), "{text}");
        }
    }
}
