//! The largest of many values.

use std::cmp::Ordering;

/// Indices by their values, largest first; of equal ones the first.
pub(crate) fn by_value(mut indices: Vec<usize>, values: &[f64]) -> Vec<usize> {
    indices.sort_unstable_by(|&a, &b| compare_values(a, b, values));
    indices
}

fn compare_values(a: usize, b: usize, values: &[f64]) -> Ordering {
    values[b].total_cmp(&values[a]).then(a.cmp(&b))
}

/// The indices of the values that are not below the least, ascending. Where few are, most are passed over many at a time.
pub(crate) fn at_least(values: &[f64], least: f64) -> impl Iterator<Item = usize> {
    let chunks = values.chunks(AT_ONCE).zip((0..).step_by(AT_ONCE));
    // Without an early end the processor compares many values at once.
    let large =
        chunks.filter(move |(chunk, _)| chunk.iter().fold(false, |any, value| any | (least <= *value)));
    large.flat_map(move |(chunk, first)| {
        (first..).zip(chunk).filter(move |(_, value)| least <= **value).map(|(index, _)| index)
    })
}

/// Values that are looked at together.
const AT_ONCE: usize = 64;

/// The indices of the largest values, of equal ones the first.
pub(crate) fn choose_largest(values: &[f64], count: usize) -> Vec<usize> {
    let mut indices = Vec::new();
    let mut least = f64::NEG_INFINITY;
    for (index, value) in values.iter().enumerate().filter(|_| 0 < count) {
        if least <= *value {
            indices.push(index);
        }
        if indices.len() == count.saturating_mul(2).max(CHOSEN_AT_ONCE) {
            keep_largest(&mut indices, values, count);
            least = values[indices[count.min(indices.len()) - 1]];
        }
    }
    keep_largest(&mut indices, values, count);
    indices
}

/// Afterwards the smallest of those that are kept is the last one.
fn keep_largest(indices: &mut Vec<usize>, values: &[f64], count: usize) {
    if 0 < count && count < indices.len() {
        indices.select_nth_unstable_by(count - 1, |&a, &b| compare_values(a, b, values));
    }
    indices.truncate(count);
}

/// Indices that are gathered before the largest are chosen among them.
const CHOSEN_AT_ONCE: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_that_are_not_below_the_least_are_found_in_their_order() {
        for len in [0, 1, 63, 64, 65, 1000] {
            let values: Vec<f64> = (0..len).map(|i| f64::from(i * 7919 % 997)).collect();
            for least in [-1.0, 500.0, 990.0, 996.0, 1e9] {
                let wanted: Vec<usize> = (0..values.len()).filter(|&place| least <= values[place]).collect();
                assert_eq!(at_least(&values, least).collect::<Vec<_>>(), wanted, "{len}, {least}");
            }
        }
    }

    #[test]
    fn the_largest_values_are_those_that_sorting_finds() {
        for modulus in [7, 997, 1_000_003] {
            let values: Vec<f64> = (0..10_000_u64).map(|i| (i * 7919 % modulus) as f64).collect();
            let mut wanted: Vec<usize> = (0..values.len()).collect();
            wanted.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
            for count in [0, 1, 20, 600, 5000, 10_000, usize::MAX] {
                let found = by_value(choose_largest(&values, count), &values);
                assert_eq!(found, wanted[..count.min(values.len())], "{count} of {modulus}");
            }
        }
    }
}
