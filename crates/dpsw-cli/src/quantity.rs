//! Sizes, durations and lengths as people type them, and numbers as people read them.

use std::time::Duration;

/// A window or a period: a number of items, or a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    Items(u64),
    Time(Duration),
}

const UNITS: [(&str, u64); 6] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// `1000000` or `15m`.
pub(crate) fn span(text: &str) -> Result<Span, String> {
    let (number, unit) = split(text);
    if unit.is_empty() {
        return count(text).map(Span::Items);
    }
    let wanted = || format!("{text:?} is neither a number of items such as 1000000 nor a time such as 15m");
    let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wanted)?;
    let millis = positive(number, *millis).ok_or_else(wanted)?;
    Ok(Span::Time(Duration::from_millis(millis)))
}

/// `30s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    match span(text) {
        Ok(Span::Time(duration)) => Ok(duration),
        _ if text == "0" => Ok(Duration::ZERO),
        _ => Err(format!("{text:?} is not a time such as 500ms, 30s, 15m, 6h or 7d")),
    }
}

/// `1000000` or `1_000_000`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let value = text.replace('_', "").parse().ok().filter(|&value: &u64| 0 < value);
    value.ok_or_else(|| format!("{text:?} is not a whole number from 1 to {}", u64::MAX))
}

/// `400KB`, `1.5MiB` or `400000`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" | "kb" => Some(1_000),
        "m" | "mb" => Some(1_000_000),
        "g" | "gb" => Some(1_000_000_000),
        "kib" => Some(1 << 10),
        "mib" => Some(1 << 20),
        "gib" => Some(1 << 30),
        _ => None,
    };
    let value = factor.and_then(|factor| positive(number, factor));
    value.ok_or_else(|| format!("{text:?} is not a size such as 400KB, 2MB or 1MiB"))
}

fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    (text[..end].trim_end(), &text[end..])
}

fn positive(number: &str, factor: u64) -> Option<u64> {
    let value = number.replace('_', "").parse::<f64>().ok()? * factor as f64;
    (1.0..1e18).contains(&value).then_some(value as u64)
}

/// `1,234,567`.
pub(crate) fn grouped(value: f64) -> String {
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
pub(crate) fn time(millis: u64) -> String {
    let units = [("d", 86_400_000_u64), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)];
    match units.iter().find(|(_, length)| *length <= millis) {
        Some((name, length)) if millis.is_multiple_of(*length) => format!("{} {name}", millis / length),
        Some((name, length)) => format!("{:.1} {name}", millis as f64 / *length as f64),
        None => format!("{millis} ms"),
    }
}

/// `400 KB`.
pub(crate) fn size(bytes: u64) -> String {
    let units = [("GB", 1e9), ("MB", 1e6), ("KB", 1e3)];
    match units.iter().find(|(_, length)| *length <= bytes as f64) {
        Some((name, length)) => format!("{:.3} {name}", bytes as f64 / length).replace(".000", ""),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type_is_understood() {
        assert_eq!(span("1000000"), Ok(Span::Items(1_000_000)));
        assert_eq!(span("1_000"), Ok(Span::Items(1_000)));
        for (text, millis) in [("15m", 900_000), ("1.5h", 5_400_000), ("250ms", 250), ("7d", 604_800_000)] {
            assert_eq!(span(text), Ok(Span::Time(Duration::from_millis(millis))), "{text}");
        }
        for (text, value) in [("400KB", 400_000), ("1MiB", 1 << 20), ("512", 512), ("1.5 MB", 1_500_000)] {
            assert_eq!(bytes(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in ["", "0", "-5", "15x", "m", "0s", "1e6", "NaNs"] {
            assert!(span(text).is_err(), "{text}");
        }
        for text in ["", "0", "4TB", "KB", "-1KB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_grouped() {
        for (value, text) in [(0.0, "0"), (999.6, "1,000"), (1_234_567.0, "1,234,567"), (-1234.0, "-1,234")] {
            assert_eq!(grouped(value), text);
        }
        assert_eq!((time(900_000), size(400_000)), ("15 min".into(), "400 KB".into()));
    }
}
