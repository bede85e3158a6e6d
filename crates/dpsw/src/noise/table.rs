//! The sampler that ships: inversion of the cumulative law with lazily taken bits.
//!
//! A draw is a uniform real U whose binary digits are taken as needed, and the outcome z with
//! F(z - 1) ≤ U < F(z). Thirteen digits and one look-up in a small guide decide nearly always; otherwise up to 64 digits are
//! compared with the boundaries floor(2⁶⁴ F(z)), which are certified by interval arithmetic on big integers. When U
//! and a boundary agree in all 64, both are continued until they differ. Outcomes beyond the table are drawn by
//! the rejection sampler, given that they are beyond it. No step rounds, so the law is exact.

use dashu_int::UBig;
use zeroize::Zeroize;

use crate::noise::certified::certify_boundaries;
use crate::noise::generator::Generator;
use crate::noise::law::Law;

/// No table holds outcomes beyond this, so that a guide entry fits in 16 bits.
const REACH_MAX: u64 = 32_000;

/// A guide entry for digits that several outcomes begin with.
const UNDECIDED: i16 = i16::MIN;

/// Digits that the guide looks at: its 16 kB stay in the fastest cache.
const GUIDE_BITS: u32 = 13;

/// Random words taken from the generator at a time.
const CHUNK: usize = 1024;

/// A ready-made sampler of one law.
#[derive(Debug)]
pub struct Table {
    law: Law,
    /// The table holds the outcomes -reach..=reach.
    reach: u64,
    /// floor(2⁶⁴ F(z)) for z from -reach - 1 to reach, ascending.
    boundaries: Box<[u64]>,
    /// The outcome by the first digits, or [`UNDECIDED`].
    guide: Box<[i16; 1 << GUIDE_BITS]>,
    /// How many boundaries begin with smaller digits.
    starts: Box<[u32]>,
}

impl Table {
    /// Builds the table; some microseconds per outcome.
    ///
    /// # Panics
    /// The law has no spread (a scale or variance of zero) or a variance of 2³² or more.
    #[must_use]
    pub fn new(law: Law) -> Self {
        assert!(law.is_drawable(), "no noise can be drawn from {law:?}");
        let reach = choose_reach(law);
        let boundaries = certify_boundaries(law, reach, 64).iter().map(low_word).collect::<Box<[u64]>>();
        let starts: Box<[u32]> = (0..=1_u64 << GUIDE_BITS)
            .map(|cell| boundaries.partition_point(|boundary| boundary >> (64 - GUIDE_BITS) < cell) as u32)
            .collect();
        let guide = build_guide(&starts, boundaries.len(), reach);
        Self { law, reach, boundaries, guide, starts }
    }

    /// The law that is drawn from.
    #[must_use]
    pub fn law(&self) -> Law {
        self.law
    }

    /// Heap bytes of the table of a law.
    #[must_use]
    pub fn bytes(law: Law) -> usize {
        let boundaries = 2 * (choose_reach(law) as usize + 1);
        let cells = 1 << GUIDE_BITS;
        boundaries * size_of::<u64>() + cells * size_of::<i16>() + (cells + 1) * size_of::<u32>()
    }

    /// Adds an independent draw to each cell. The cells must lie within ±2³⁰; only the noisy sum is clamped to the
    /// range of a cell, never the noise alone, which would show the count at the edge of the range.
    pub fn add_to(&self, cells: &mut [i32], generator: &mut Generator) {
        if generator.is_silent() {
            return;
        }
        let mut bytes = [0_u8; 2 * CHUNK];
        for chunk in cells.chunks_mut(CHUNK) {
            let words = &mut bytes[..2 * chunk.len()];
            generator.fill_bytes(words);
            for (cell, word) in chunk.iter_mut().zip(words.chunks_exact(2)) {
                let word = u16::from_le_bytes([word[0], word[1]]);
                let outcome = self.guide[usize::from(word >> (16 - GUIDE_BITS))];
                if outcome == UNDECIDED {
                    let sum = i64::from(*cell).saturating_add(self.outcome_of_word(word, generator));
                    *cell = sum.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
                } else {
                    // Outcomes of the guide lie within ±32,000: with a cell within ±2³⁰ nothing overflows.
                    *cell += i32::from(outcome);
                }
            }
        }
        // Whoever finds these words can take the noise off again.
        bytes.zeroize();
    }

    /// Compares all sixteen digits with the boundaries that share the first of them; at a tie takes 48 more.
    #[cold]
    #[inline(never)]
    fn outcome_of_word(&self, word: u16, generator: &mut Generator) -> i64 {
        let cell = usize::from(word >> (16 - GUIDE_BITS));
        let (start, end) = (self.starts[cell] as usize, self.starts[cell + 1] as usize);
        let words = || self.boundaries[start..end].iter().map(|boundary| boundary >> 48);
        // Digits that equal a boundary's do not tell its sides apart; to guess would bend the law (PRIVACY.md: rule
        // 3).
        if words().any(|boundary| boundary == u64::from(word)) {
            return self.outcome_of(u64::from(word) << 48 | generator.next_u64() >> 16, generator);
        }
        let below = words().filter(|&boundary| boundary < u64::from(word)).count();
        self.outcome_at(start + below, generator)
    }

    /// The outcome for a uniform real that starts with these 64 digits.
    fn outcome_of(&self, digits: u64, generator: &mut Generator) -> i64 {
        let mut index = self.boundaries.partition_point(|&boundary| boundary < digits);
        if self.boundaries.get(index) == Some(&digits) {
            index = self.index_of_long(digits, generator);
        }
        self.outcome_at(index, generator)
    }

    /// The outcome for a uniform real with this many boundaries below it.
    fn outcome_at(&self, index: usize, generator: &mut Generator) -> i64 {
        let last = self.boundaries.len();
        let first_beyond = self.reach + 1;
        match index {
            0 => -self.law.draw_tail(first_beyond, generator),
            _ if index == last => self.law.draw_tail(first_beyond, generator),
            _ => index as i64 - first_beyond as i64,
        }
    }

    /// How many boundaries lie below a uniform real whose first 64 digits equal those of a boundary.
    fn index_of_long(&self, digits: u64, generator: &mut Generator) -> usize {
        let mut bits = 64;
        let mut digits = UBig::from(digits);
        loop {
            bits += 64;
            digits = (digits << 64) + UBig::from(generator.next_u64());
            // Needed about never, so that longer boundaries are not kept.
            let boundaries = certify_boundaries(self.law, self.reach, bits);
            let index = boundaries.partition_point(|boundary| *boundary < digits);
            if boundaries.get(index) != Some(&digits) {
                return index;
            }
        }
    }
}

/// How far the table reaches: about one draw in 10⁵ falls outside it.
fn choose_reach(law: Law) -> u64 {
    let reach = match law {
        Law::Laplace { scale } => 11.0 * scale.to_f64(),
        Law::Gaussian { variance } => 4.5 * (variance as f64).sqrt(),
    };
    (reach.ceil() as u64).clamp(1, REACH_MAX)
}

fn low_word(value: &UBig) -> u64 {
    u64::try_from(value).expect("a probability below 1 scaled by 2^64")
}

/// The outcome of each cell that no boundary crosses and that lies inside the table.
fn build_guide(starts: &[u32], boundaries: usize, reach: u64) -> Box<[i16; 1 << GUIDE_BITS]> {
    let entry = |cell: &[u32]| {
        let (start, end) = (cell[0], cell[1]);
        let is_inside = 0 < start && (start as usize) < boundaries;
        if start == end && is_inside { (i64::from(start) - reach as i64 - 1) as i16 } else { UNDECIDED }
    };
    let entries: Box<[i16]> = starts.windows(2).map(entry).collect();
    entries.try_into().expect("one entry a cell")
}

#[cfg(test)]
mod tests {
    use dashu_ratio::RBig;

    use super::*;
    use crate::noise::generator::Noise;
    use crate::ratio::Ratio;

    fn laplace(numerator: u64, denominator: u64) -> Law {
        Law::Laplace { scale: Ratio::new(numerator, denominator).expect("a ratio") }
    }

    fn gaussian(variance: u64) -> Law {
        Law::Gaussian { variance }
    }

    fn generator(seed: u64) -> Generator {
        Noise::seeded(seed).generator().expect("seeded")
    }

    fn draws(law: Law, count: usize, seed: u64) -> Vec<i64> {
        let mut cells = vec![0; count];
        Table::new(law).add_to(&mut cells, &mut generator(seed));
        cells.into_iter().map(i64::from).collect()
    }

    /// P[z], in floating point, by the definition.
    fn probability(law: Law, z: i64) -> f64 {
        let z = z as f64;
        match law {
            Law::Laplace { scale } => {
                let q = (-1.0 / scale.to_f64()).exp();
                (1.0 - q) / (1.0 + q) * q.powf(z.abs())
            }
            Law::Gaussian { variance } => {
                let weight = |z: f64| (-z * z / (2.0 * variance as f64)).exp();
                let reach = (12.0 * (variance as f64).sqrt()).ceil() as i64 + 3;
                weight(z) / (-reach..=reach).map(|z| weight(z as f64)).sum::<f64>()
            }
        }
    }

    /// Chi-square of draws against the law, with cells of at least 20 expected draws, as (statistic, cells - 1).
    fn chi_square(law: Law, draws: &[i64]) -> (f64, f64) {
        let n = draws.len() as f64;
        let mut edge = 0;
        while 20.0 <= probability(law, edge + 1) * n {
            edge += 1;
        }
        let mut counts = vec![0_u64; 2 * edge as usize + 3];
        for &draw in draws {
            counts[(draw.clamp(-edge - 1, edge + 1) + edge + 1) as usize] += 1;
        }
        let inside: Vec<f64> = (-edge..=edge).map(|z| probability(law, z) * n).collect();
        let outside = (n - inside.iter().sum::<f64>()) / 2.0;
        let expected = [vec![outside], inside, vec![outside]].concat();
        let terms = counts.iter().zip(&expected).map(|(&count, &e)| (count as f64 - e).powi(2) / e);
        (terms.sum(), expected.len() as f64 - 1.0)
    }

    #[track_caller]
    fn check_law(law: Law, draws: &[i64]) {
        let (statistic, freedom) = chi_square(law, draws);
        // Wilson-Hilferty: the cube root of statistic/freedom is nearly normal with variance 2/(9 freedom). Five
        // deviations have probability 3e-7; about 30 such checks run, with fixed seeds.
        let spread = 2.0 / (9.0 * freedom);
        let deviations = ((statistic / freedom).cbrt() - (1.0 - spread)) / spread.sqrt();
        assert!(deviations < 5.0, "{law:?}: chi-square {statistic} with {freedom} degrees of freedom");
    }

    fn laws() -> Vec<Law> {
        let scales = [(1, 4), (1, 2), (1, 1), (2, 1), (4, 1), (20, 1), (40, 3), (400, 1), (5000, 1)];
        let gaussian_variances = [1, 2, 20, 220, 12_596, 1_000_000];
        scales.map(|(n, d)| laplace(n, d)).into_iter().chain(gaussian_variances.map(gaussian)).collect()
    }

    #[test]
    fn the_table_draws_from_its_law() {
        for (seed, law) in (0..).zip(laws()) {
            check_law(law, &draws(law, 400_000, seed));
        }
    }

    #[test]
    fn the_rejection_sampler_draws_from_its_law() {
        for (seed, law) in (100..).zip(laws()) {
            let mut generator = generator(seed);
            let draws: Vec<i64> = (0..60_000).map(|_| law.draw_exactly(&mut generator)).collect();
            check_law(law, &draws);
        }
    }

    #[test]
    fn with_a_huge_budget_every_draw_is_zero() {
        assert!(draws(laplace(1, 500), 100_000, 1).iter().all(|&z| z == 0));
    }

    #[test]
    fn a_wrong_law_fails_the_check() {
        // The same statistic must reject a scale that is 3 % off and a sign-times-geometric law.
        let draws = draws(laplace(4, 1), 400_000, 1);
        let (statistic, freedom) = chi_square(laplace(103, 25), &draws);
        assert!(freedom * 1.5 < statistic);
        let doubled_zero: Vec<i64> =
            draws.iter().enumerate().map(|(i, &z)| if i % 8 == 0 { 0 } else { z }).collect();
        let (statistic, freedom) = chi_square(laplace(4, 1), &doubled_zero);
        assert!(freedom * 10.0 < statistic);
    }

    #[test]
    fn probabilities_agree_with_the_published_values() {
        for (z, wanted) in [(0, 0.026_896_68), (1, 0.026_835_62), (30, 0.003_478_32)] {
            assert!((mass(gaussian(220), z) - wanted).abs() < 1e-8);
        }
        for (scale, zero, one, five) in [
            (1, 0.462_117, 0.170_003, 0.003_114),
            (2, 0.244_919, 0.148_551, 0.020_104),
            (4, 0.124_353, 0.096_846, 0.035_628),
            (20, 0.024_995, 0.023_776, 0.019_466),
        ] {
            for (z, wanted) in [(0, zero), (1, one), (5, five)] {
                assert!((mass(laplace(scale, 1), z) - wanted).abs() < 6e-7);
            }
        }
    }

    /// P[z] as the table has it.
    fn mass(law: Law, z: i64) -> f64 {
        let table = Table::new(law);
        let index = (z + table.reach as i64 + 1) as usize;
        (table.boundaries[index] - table.boundaries[index - 1]) as f64 / 2_f64.powi(64)
    }

    /// exp(-x) as a rational that errs by less than 10⁻⁶⁰: series at x/2^k, squared k times, all in exact rationals
    /// rounded to a grid of 2⁻³⁰⁰.
    fn rational_exp(x: &RBig) -> RBig {
        let mut halved = x.clone();
        let mut squarings = 0;
        while RBig::ONE < halved {
            halved /= RBig::from(2);
            squarings += 1;
        }
        let (mut term, mut sum) = (RBig::ONE, RBig::ONE);
        for i in 1..120_u32 {
            term = on_grid(&(-term * &halved / RBig::from(i)));
            sum += &term;
        }
        (0..squarings).fold(sum, |power, _| on_grid(&power.sqr()))
    }

    fn on_grid(value: &RBig) -> RBig {
        let unit = RBig::from(UBig::ONE << 300);
        RBig::from((value * &unit).floor()) / unit
    }

    /// F(z) for z from -reach - 1 to reach by the definition, in rationals.
    fn rational_cumulative(law: Law, reach: i64) -> Vec<RBig> {
        let weight = |z: i64| match law {
            Law::Laplace { scale } => rational_exp(
                &(RBig::from(z.unsigned_abs() * scale.denominator()) / RBig::from(scale.numerator())),
            ),
            Law::Gaussian { variance } => rational_exp(&(RBig::from(z * z) / RBig::from(2 * variance))),
        };
        let far = match law {
            Law::Laplace { scale } => (150.0 * scale.to_f64()) as i64 + 3,
            Law::Gaussian { variance } => (18.0 * (variance as f64).sqrt()) as i64 + 3,
        };
        let weights: Vec<RBig> = (0..=far).map(weight).collect();
        let both = weights.iter().skip(1).fold(RBig::ZERO, |sum, w| sum + w);
        let total = RBig::ONE + RBig::from(2) * both;
        let mut sum = RBig::ZERO;
        let mut cumulative = Vec::new();
        for z in -far..=reach {
            sum += &weights[z.unsigned_abs() as usize];
            if -reach - 1 <= z {
                cumulative.push(&sum / &total);
            }
        }
        cumulative
    }

    #[test]
    fn the_boundaries_are_those_of_big_rationals() {
        for law in [laplace(1, 3), laplace(2, 1), laplace(7, 3), gaussian(1), gaussian(5), gaussian(74)] {
            let table = Table::new(law);
            let scale = RBig::from(UBig::ONE << 64);
            let wanted = rational_cumulative(law, table.reach as i64);
            assert_eq!(wanted.len(), table.boundaries.len());
            for (index, (wanted, &got)) in wanted.iter().zip(&table.boundaries).enumerate() {
                let floor = (wanted * &scale).floor();
                assert_eq!(floor, got.into(), "{law:?}, boundary {index}");
            }
        }
    }

    #[test]
    fn longer_boundaries_continue_shorter_ones() {
        for law in [laplace(4, 1), gaussian(220)] {
            let (short, long) = (certify_boundaries(law, 30, 64), certify_boundaries(law, 30, 256));
            for (short, long) in short.iter().zip(&long) {
                assert_eq!(*short, long >> 192);
            }
        }
    }

    #[test]
    fn digits_that_equal_a_boundary_are_continued_and_split_as_the_law_says() {
        // At a boundary's 64 digits the outcome is the lower one with probability equal to the boundary's further
        // digits; 4,000 trials, five standard errors.
        let table = Table::new(laplace(4, 1));
        let mut generator = generator(5);
        for index in [30, table.boundaries.len() / 2] {
            let digits = table.boundaries[index];
            let long = &certify_boundaries(table.law, table.reach, 128)[index];
            let rest = low_word(&(long & UBig::from(u64::MAX))) as f64 / 2_f64.powi(64);
            let trials = 4000;
            let lower = (0..trials).filter(|_| table.index_of_long(digits, &mut generator) == index).count();
            let error = (rest * (1.0 - rest) / f64::from(trials)).sqrt();
            assert!((lower as f64 / f64::from(trials) - rest).abs() <= 5.0 * error + 1e-9, "index {index}");
        }
    }

    /// How often in 4,000 trials the outcome is the one below boundary `index`, at most five standard errors from `wanted`.
    #[track_caller]
    fn check_split(table: &Table, index: usize, wanted: f64, mut draw: impl FnMut() -> i64) {
        let lower = index as i64 - table.reach as i64 - 1;
        let trials = 4000;
        let outcomes: Vec<i64> = (0..trials).map(|_| draw()).collect();
        assert!(outcomes.iter().all(|z| [lower, lower + 1].contains(z)), "index {index}");
        let got = outcomes.iter().filter(|z| **z == lower).count() as f64 / f64::from(trials);
        let error = (wanted * (1.0 - wanted) / f64::from(trials)).sqrt();
        assert!((got - wanted).abs() <= 5.0 * error + 1e-9, "index {index}: {got} for {wanted}");
    }

    #[test]
    fn a_word_that_a_boundary_crosses_is_split_where_the_boundary_lies() {
        // Some 40 checks: one fails by chance with probability below 3e-5; the seed is fixed.
        let table = Table::new(laplace(4, 1));
        let mut generator = generator(6);
        let words: Vec<u16> = table.boundaries.iter().map(|boundary| (boundary >> 48) as u16).collect();
        let is_alone = |index: &usize| words.iter().filter(|word| **word == words[*index]).count() == 1;
        let inside = 1..words.len() - 1;
        assert!(20 < inside.clone().filter(is_alone).count());
        for index in inside.filter(is_alone) {
            let rest = (table.boundaries[index] & ((1 << 48) - 1)) as f64 / 2_f64.powi(48);
            check_split(&table, index, rest, || table.outcome_of_word(words[index], &mut generator));
        }
    }

    #[test]
    fn a_tie_in_all_digits_is_decided_by_further_ones() {
        let table = Table::new(laplace(4, 1));
        let mut generator = generator(7);
        let long = certify_boundaries(table.law, table.reach, 128);
        for index in [30, table.boundaries.len() / 2] {
            let rest = low_word(&(&long[index] & UBig::from(u64::MAX))) as f64 / 2_f64.powi(64);
            let digits = table.boundaries[index];
            check_split(&table, index, rest, || table.outcome_of(digits, &mut generator));
        }
    }

    #[test]
    fn about_one_draw_in_a_hundred_thousand_falls_outside_the_table() {
        for law in laws().into_iter().filter(|law| (20.0..1e6).contains(&law.variance())) {
            let outside = 2.0 * Table::new(law).boundaries[0] as f64 / 2_f64.powi(64);
            assert!((1e-6..3e-5).contains(&outside), "{law:?}: {outside}");
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_table() {
        for law in laws() {
            let table = Table::new(law);
            let bytes =
                size_of_val(&*table.boundaries) + size_of_val(&*table.guide) + size_of_val(&*table.starts);
            assert_eq!(Table::bytes(law), bytes);
        }
    }

    #[test]
    fn the_guide_agrees_with_the_boundaries_for_every_word() {
        for law in laws() {
            let table = Table::new(law);
            let mut generator = generator(13);
            for word in 0..=u16::MAX {
                let digits = [u64::from(word) << 48, u64::from(word) << 48 | 0xffff_ffff_ffff];
                let [low, high] = digits.map(|d| table.boundaries.partition_point(|&boundary| boundary < d));
                let is_tied =
                    table.boundaries.get(low).is_some_and(|boundary| boundary >> 48 == u64::from(word));
                let is_tail = low == 0 || low == table.boundaries.len();
                if is_tied || is_tail {
                    assert_eq!(table.guide[usize::from(word >> (16 - GUIDE_BITS))], UNDECIDED);
                } else {
                    assert_eq!(low, high);
                    let wanted = low as i64 - table.reach as i64 - 1;
                    let guided = table.guide[usize::from(word >> (16 - GUIDE_BITS))];
                    assert!(guided == UNDECIDED || i64::from(guided) == wanted, "{law:?}, word {word}");
                    assert_eq!(table.outcome_of_word(word, &mut generator), wanted, "{law:?}, word {word}");
                }
            }
        }
    }

    #[test]
    fn the_guide_decides_wherever_no_boundary_lies() {
        for law in [laplace(4, 1), gaussian(220)] {
            let table = Table::new(law);
            let undecided = table.guide.iter().filter(|entry| **entry == UNDECIDED).count();
            assert!(undecided <= table.boundaries.len(), "{law:?}: {undecided} cells are undecided");
        }
    }

    #[test]
    fn tails_follow_the_law_beyond_the_table() {
        // Draws given that they are at least 12, against the conditional law.
        for (seed, law) in [(1, laplace(4, 1)), (2, gaussian(30))] {
            let mut generator = generator(seed);
            let n = 60_000;
            let beyond: f64 = (12..400).map(|z| probability(law, z)).sum();
            let mut counts = vec![0_u32; 400];
            for _ in 0..n {
                counts[law.draw_tail(12, &mut generator) as usize] += 1;
            }
            assert_eq!(counts[..12].iter().sum::<u32>(), 0);
            for z in 12..16 {
                let p = probability(law, z) / beyond;
                let error = (p * (1.0 - p) / f64::from(n)).sqrt();
                let got = f64::from(counts[z as usize]) / f64::from(n);
                assert!((got - p).abs() < 5.0 * error, "{law:?} at {z}: {got} for {p}");
            }
        }
    }

    #[test]
    fn at_the_edge_of_a_cell_the_count_does_not_show() {
        // With a scale of 2²⁹ one draw in a hundred leaves the range of a cell; both counts must end at its very edge.
        let table = Table::new(laplace(1 << 29, 1));
        for count in [5, 6] {
            let mut cells = vec![count; 20_000];
            table.add_to(&mut cells, &mut generator(21));
            assert!(cells.contains(&i32::MIN) && cells.contains(&i32::MAX));
            assert!(!cells.contains(&(i32::MIN + count)));
        }
    }

    #[test]
    fn outcomes_outside_the_table_are_reached_from_both_ends() {
        let table = Table::new(laplace(4, 1));
        let mut generator = generator(9);
        assert!(table.outcome_of(0, &mut generator) < -(table.reach as i64));
        assert!((table.reach as i64) < table.outcome_of(u64::MAX, &mut generator));
    }

    #[test]
    fn both_samplers_have_the_same_moments() {
        // Means within five standard errors of zero, variances within five of the law's (fourth moment at most 6 var²).
        for law in [laplace(4, 1), laplace(40, 3), gaussian(220)] {
            let mut generator = generator(11);
            let exact: Vec<i64> = (0..100_000).map(|_| law.draw_exactly(&mut generator)).collect();
            for draws in [exact, draws(law, 100_000, 12)] {
                let n = draws.len() as f64;
                let mean = draws.iter().sum::<i64>() as f64 / n;
                let variance = draws.iter().map(|z| (z * z) as f64).sum::<f64>() / n;
                assert!(mean.abs() < 5.0 * (law.variance() / n).sqrt(), "{law:?} mean {mean}");
                assert!(
                    (variance / law.variance() - 1.0).abs() < 5.0 * (5.0 / n).sqrt(),
                    "{law:?} variance {variance}"
                );
            }
        }
    }
}
