//! The largest of many values.

/// Places by their values, largest first; of equal ones the first.
pub(crate) fn by_value(mut places: Vec<usize>, values: &[f64]) -> Vec<usize> {
    places.sort_unstable_by(|&a, &b| values[b].total_cmp(&values[a]).then(a.cmp(&b)));
    places
}

/// The places of the values that are not below the least, ascending. Where few are, most are passed over many at a time.
pub(crate) fn at_least(values: &[f64], least: f64) -> impl Iterator<Item = usize> {
    let places = |number: usize| number * AT_ONCE..values.len().min((number + 1) * AT_ONCE);
    let chunks = values.chunks(AT_ONCE).enumerate();
    let any = move |chunk: &[f64]| chunk.iter().fold(false, |any, value| any | (least <= *value));
    chunks
        .filter(move |(_, chunk)| any(chunk))
        .flat_map(move |(number, _)| places(number))
        .filter(move |&place| least <= values[place])
}

/// Values that are looked at together.
const AT_ONCE: usize = 64;

/// The places of the largest values, of equal ones the first.
pub(crate) fn largest(values: &[f64], count: usize) -> Vec<usize> {
    let keep = |places: &mut Vec<usize>| {
        if 0 < count && count < places.len() {
            places
                .select_nth_unstable_by(count - 1, |&a, &b| values[b].total_cmp(&values[a]).then(a.cmp(&b)));
        }
        places.truncate(count);
    };
    let (mut places, mut least) = (Vec::new(), f64::NEG_INFINITY);
    for (place, value) in values.iter().enumerate().filter(|_| 0 < count) {
        if least <= *value {
            places.push(place);
        }
        if places.len() == count.saturating_mul(2).max(CHOSEN_AT_ONCE) {
            keep(&mut places);
            least = values[places[count.min(places.len()) - 1]];
        }
    }
    keep(&mut places);
    places
}

/// Places that are gathered before the largest are chosen among them.
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
                let found = by_value(largest(&values, count), &values);
                assert_eq!(found, wanted[..count.min(values.len())], "{count} of {modulus}");
            }
        }
    }
}
