//! Numbers as people type them: `1000000`, `1_000_000`, `1,000,000`, `2.5`, `1e5`. They are exact: nothing is rounded on
//! the way.

/// A number `digits · 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    digits: u128,
    scale: i32,
}

impl Decimal {
    /// The number at the start of a text, and what follows it.
    pub(crate) fn read(text: &str) -> Option<(Self, &str)> {
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
    pub(crate) fn times(self, factor: u64) -> Option<u64> {
        let (floor, is_whole) = self.floor_times(factor)?;
        is_whole.then_some(floor)
    }

    /// The number times a factor, rounded down, and whether it was whole.
    pub(crate) fn floor_times(self, factor: u64) -> Option<(u64, bool)> {
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
