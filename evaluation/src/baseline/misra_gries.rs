//! The Misra-Gries summary, plain and reduced.
//!
//! Under replace-one the counts of a summary with k entries change by at most k + 1 in L1, and its reduced counts
//! by at most 2, as an exact histogram would.

/// The counts of at most `len_max` items of a block.
///
/// Invariant: the counts add up to the arrivals less `(len_max + 1) · rounds`.
pub(super) struct Summary {
    len_max: usize,
    /// How often every count was lowered by one.
    rounds: u32,
    entries: Vec<Entry>,
    /// By hash, the number of an entry plus one, or 0: open addressing at a load of at most one half.
    places: Box<[u32]>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    item: u32,
    count: u32,
}

impl Summary {
    pub(super) fn new(len_max: usize) -> Self {
        assert!(0 < len_max, "a summary holds at least one entry");
        let places = vec![0; (2 * len_max).next_power_of_two()].into_boxed_slice();
        Self { len_max, rounds: 0, entries: Vec::with_capacity(len_max), places }
    }

    /// Counts an arrival; amortised constant time.
    pub(super) fn add(&mut self, item: u32) {
        let place = self.place(item);
        match self.places[place] {
            0 if self.entries.len() < self.len_max => {
                self.entries.push(Entry { item, count: 1 });
                self.places[place] = self.entries.len() as u32;
            }
            0 => self.lower(),
            number => self.entries[number as usize - 1].count += 1,
        }
    }

    pub(super) fn clear(&mut self) {
        self.rounds = 0;
        self.entries.clear();
        self.places.fill(0);
    }

    /// Writes the count of every item of the domain, 0 where it has no entry.
    pub(super) fn write_counts(&self, cells: &mut [i32]) {
        cells.fill(0);
        for entry in &self.entries {
            cells[entry.item as usize] = entry.count as i32;
        }
    }

    /// The same, as count + rounds - `excess`, at least 0.
    pub(super) fn write_reduced(&self, excess: u32, cells: &mut [i32]) {
        cells.fill(0);
        for entry in &self.entries {
            cells[entry.item as usize] = (entry.count + self.rounds).saturating_sub(excess) as i32;
        }
    }

    /// Heap bytes.
    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + size_of_val(&*self.places)
    }

    fn lower(&mut self) {
        self.rounds += 1;
        let len = self.entries.len();
        self.entries.retain_mut(|entry| {
            entry.count -= 1;
            0 < entry.count
        });
        if self.entries.len() < len {
            self.find_places();
        }
    }

    fn find_places(&mut self) {
        self.places.fill(0);
        for number in 0..self.entries.len() {
            let place = self.place(self.entries[number].item);
            self.places[place] = number as u32 + 1;
        }
    }

    /// Where the item's entry stands, or would stand.
    fn place(&self, item: u32) -> usize {
        let mask = self.places.len() - 1;
        // Fibonacci hashing spreads consecutive ids, which are the usual case.
        let mut place = (u64::from(item).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while let Some(number) = (self.places[place] as usize).checked_sub(1) {
            if self.entries[number].item == item {
                break;
            }
            place = (place + 1) & mask;
        }
        place
    }
}

/// What the reduced counts of a block subtract: the most that rounds can reach, and 0 where there are none because
/// every item of the domain has an entry. Public, as it must be.
pub(super) fn excess(len_max: usize, block_len: u64, domain_len: usize) -> u32 {
    if domain_len <= len_max { 0 } else { (block_len / (len_max as u64 + 1)) as u32 }
}

#[cfg(test)]
mod tests {
    use rand::rngs::ChaCha12Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    struct Counted {
        rounds: u32,
        plain: Vec<i32>,
        reduced: Vec<i32>,
    }

    fn count(len_max: usize, domain_len: usize, stream: &[u32]) -> Counted {
        let mut summary = Summary::new(len_max);
        stream.iter().for_each(|&item| summary.add(item));
        let (mut plain, mut reduced) = (vec![7; domain_len], vec![7; domain_len]);
        summary.write_counts(&mut plain);
        summary.write_reduced(excess(len_max, stream.len() as u64, domain_len), &mut reduced);
        Counted { rounds: summary.rounds, plain, reduced }
    }

    fn exact(domain_len: usize, stream: &[u32]) -> Vec<i32> {
        let mut counts = vec![0; domain_len];
        stream.iter().for_each(|&item| counts[item as usize] += 1);
        counts
    }

    fn distance(a: &[i32], b: &[i32]) -> i32 {
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
    }

    fn square(a: &[i32], b: &[i32]) -> i32 {
        a.iter().zip(b).map(|(a, b)| (a - b).pow(2)).sum()
    }

    #[track_caller]
    fn check_counts(len_max: usize, stream: &[u32], plain: &[i32], rounds: u32) {
        let counted = count(len_max, plain.len(), stream);
        assert_eq!((counted.plain.as_slice(), counted.rounds), (plain, rounds));
    }

    #[test]
    fn small_streams_give_the_counts_of_the_definition() {
        check_counts(2, &[0, 1, 0, 2, 3, 0], &[2, 0, 0, 1], 1);
        assert_eq!(count(2, 4, &[0, 1, 0, 2, 3, 0]).reduced, [1, 0, 0, 0]);
        check_counts(2, &[0, 0, 0, 0, 0, 1], &[5, 1, 0], 0);
        check_counts(2, &[2, 0, 0, 0, 0, 1], &[3, 0, 0], 1);
        check_counts(3, &[0, 0, 0, 0, 1, 2], &[4, 1, 1, 0], 0);
        check_counts(3, &[3, 0, 0, 0, 1, 2], &[2, 0, 0, 0], 1);
        check_counts(2, &[0, 0, 0, 1, 1, 2], &[2, 1, 0], 1);
    }

    #[test]
    fn exact_counts_of_surviving_keys_would_jump_by_more_than_any_noise_covers() {
        let survivors = |stream: &[u32]| {
            let counted = count(2, 3, stream);
            let kept = |(item, &count): (usize, &i32)| if counted.plain[item] == 0 { 0 } else { count };
            exact(3, stream).iter().enumerate().map(kept).collect::<Vec<_>>()
        };
        // 0 n times, 1 n - 1 times, 2 n - 2 times: both first items survive, and neither in the neighbour.
        for n in [3, 30, 300] {
            let runs = [(0, n), (1, n - 1), (2, n - 2)];
            let stream: Vec<u32> = runs.iter().flat_map(|&(item, len)| vec![item; len]).collect();
            let mut neighbour = stream.clone();
            neighbour[0] = 2;
            assert_eq!(distance(&survivors(&stream), &survivors(&neighbour)), 2 * n as i32 - 1);
        }
    }

    fn largest_change(a: &[i32], b: &[i32]) -> i32 {
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).max().expect("the domain is not empty")
    }

    /// An item with a reduced count in one stream alone has a count of 1, and there is at most one.
    fn check_one_sided(a: &[i32], b: &[i32]) {
        let one_sided: Vec<i32> = a.iter().zip(b).filter(|&(_, b)| *b == 0).map(|(a, _)| *a).collect();
        assert!(one_sided.iter().sum::<i32>() <= 1, "{a:?} and {b:?}");
    }

    /// The largest changes over all neighbours: of the plain counts in L1, squared L2 and of one item, and of the
    /// reduced counts in L1 and squared L2.
    fn changes(len_max: usize, domain_len: usize, len: u32) -> [i32; 5] {
        let streams = domain_len.pow(len);
        let digits = |number: usize| -> Vec<u32> {
            (0..len).map(|i| (number / domain_len.pow(i) % domain_len) as u32).collect()
        };
        let counted: Vec<Counted> = (0..streams).map(|n| count(len_max, domain_len, &digits(n))).collect();
        let mut largest = [0; 5];
        for number in 0..streams {
            let stream = digits(number);
            for (i, &item) in stream.iter().enumerate() {
                for other in item as usize + 1..domain_len {
                    let neighbour = number + (other - item as usize) * domain_len.pow(i as u32);
                    let (a, b) = (&counted[number], &counted[neighbour]);
                    let change = [
                        distance(&a.plain, &b.plain),
                        square(&a.plain, &b.plain),
                        largest_change(&a.plain, &b.plain),
                        distance(&a.reduced, &b.reduced),
                        square(&a.reduced, &b.reduced),
                    ];
                    largest = std::array::from_fn(|i| largest[i].max(change[i]));
                    check_one_sided(&a.reduced, &b.reduced);
                    check_one_sided(&b.reduced, &a.reduced);
                }
            }
        }
        largest
    }

    #[test]
    fn over_all_streams_the_sensitivities_hold_and_the_plain_ones_are_attained() {
        for (len_max, domain_len, len) in [(1, 3, 6), (2, 4, 7), (3, 5, 6), (3, 4, 7), (4, 6, 6)] {
            let k = len_max as i32;
            let [distance, square, largest, reduced_distance, reduced_square] =
                changes(len_max, domain_len, len);
            assert_eq!([distance, square, largest], [k + 1, k + 3, 2], "k = {k}");
            assert!(reduced_distance <= 2 && reduced_square <= 2, "k = {k}");
        }
    }

    fn skewed(random: &mut ChaCha12Rng, domain_len: usize) -> u32 {
        let uniform: f64 = random.random();
        (uniform.powi(3) * domain_len as f64) as u32
    }

    #[test]
    fn random_neighbours_keep_the_error_bound_and_the_sensitivities() {
        let mut random = ChaCha12Rng::seed_from_u64(1);
        for _ in 0..2_000 {
            let domain_len = random.random_range(1..40);
            let len_max = random.random_range(1..20);
            let len = random.random_range(1..300);
            let stream: Vec<u32> = (0..len).map(|_| skewed(&mut random, domain_len)).collect();
            let mut neighbour = stream.clone();
            neighbour[random.random_range(0..len)] = skewed(&mut random, domain_len);
            let (a, b) = (count(len_max, domain_len, &stream), count(len_max, domain_len, &neighbour));
            assert!(distance(&a.plain, &b.plain) <= len_max as i32 + 1);
            assert!(square(&a.plain, &b.plain) <= len_max as i32 + 3);
            assert!(distance(&a.reduced, &b.reduced) <= 2 && square(&a.reduced, &b.reduced) <= 2);
            check_errors(len_max, &stream, &a);
        }
    }

    fn check_errors(len_max: usize, stream: &[u32], counted: &Counted) {
        let slack = (stream.len() / (len_max + 1)) as i32;
        let total: i32 = counted.plain.iter().sum();
        assert_eq!(total, stream.len() as i32 - (len_max as i32 + 1) * counted.rounds as i32);
        for (item, exact) in exact(counted.plain.len(), stream).into_iter().enumerate() {
            for count in [counted.plain[item], counted.reduced[item]] {
                assert!(exact - slack <= count && count <= exact, "{count} for {exact}");
            }
        }
    }

    #[test]
    fn a_cleared_summary_is_as_new() {
        let mut summary = Summary::new(2);
        [0, 1, 2, 3, 3].iter().for_each(|&item| summary.add(item));
        summary.clear();
        [0, 0, 1].iter().for_each(|&item| summary.add(item));
        let mut cells = [0; 4];
        summary.write_counts(&mut cells);
        assert_eq!((cells, summary.rounds), ([2, 1, 0, 0], 0));
    }
}
