//! Numbers as people write them.

/// A whole number that is not negative, its digits in groups of three.
pub(crate) fn grouped(value: f64) -> String {
    if !value.is_finite() {
        return "unknown".to_owned();
    }
    let digits = format!("{value:.0}");
    let comma = |(index, digit): (usize, char)| {
        let is_start = 0 < index && (digits.len() - index).is_multiple_of(3);
        is_start.then_some(',').into_iter().chain([digit])
    };
    digits.chars().enumerate().flat_map(comma).collect()
}

/// `1 item`, `2,000 items`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(number as f64))
}

/// At most four digits behind the point, and no zeros at the end.
pub(crate) fn decimal(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A probability that may be tiny: `0`, `1e-10`, `2.5e-7`.
pub(crate) fn tiny(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { format!("{value:.1e}").replace(".0e", "e") }
}

/// `20 %`, `0.35 %`: two digits that count, or all before the point.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent == 0.0 || !percent.is_finite() {
        return format!("{percent} %");
    }
    let digits = (1.0 - percent.abs().log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{percent:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

/// `399 KB`, `1.4 MB`.
pub(crate) fn size(bytes: u64) -> String {
    let units = [("GB", 1e9), ("MB", 1e6), ("KB", 1e3)];
    match units.iter().find(|(_, length)| *length <= bytes as f64) {
        Some((name, length)) if bytes as f64 / length < 10.0 => {
            format!("{:.1} {name}", bytes as f64 / length)
        }
        Some((name, length)) => format!("{:.0} {name}", bytes as f64 / length),
        None => count(bytes, "byte"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_people_write_them() {
        for (got, wanted) in [
            (count(1, "item"), "1 item"),
            (count(2000, "item"), "2,000 items"),
            (decimal(2.5), "2.5"),
            (decimal(36.0), "36"),
            (tiny(0.0), "0"),
            (tiny(9.999_999_990_000_001e-11), "1e-10"),
            (tiny(2.5e-7), "2.5e-7"),
            (percent(0.2), "20 %"),
            (percent(0.003_525), "0.35 %"),
            (percent(1.0), "100 %"),
            (percent(2.77), "277 %"),
            (size(399_838), "400 KB"),
            (size(1_456_578), "1.5 MB"),
            (size(12), "12 bytes"),
        ] {
            assert_eq!(got, wanted);
        }
    }
}
