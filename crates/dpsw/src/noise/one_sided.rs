//! The one-sided geometric law, from the table of the two-sided one.

use zeroize::Zeroizing;

use crate::noise::generator::Generator;
use crate::noise::law::Law;
use crate::noise::table::Table;

/// Draws taken from the table at a time.
const CHUNK: usize = 512;

/// Independent draws v ≥ 0 with P[v ≥ i] = exp(-i / scale): those of the discrete Laplace law of this scale that are not
/// negative. Given that, each has a weight of exp(-v / scale), so they are as exact as the table.
pub(crate) struct OneSided<'t> {
    table: &'t Table,
    /// Draws of both signs that are not used yet.
    draws: Zeroizing<Vec<i32>>,
}

impl<'t> OneSided<'t> {
    /// Draws from a table of a Laplace law.
    pub(crate) fn new(table: &'t Table) -> Self {
        debug_assert!(matches!(table.law(), Law::Laplace { .. }), "only Laplace laws have geometric halves");
        Self { table, draws: Zeroizing::new(Vec::with_capacity(CHUNK)) }
    }

    /// One draw. Those that do not fit in 31 bits are the largest number that does, never a smaller one.
    pub(crate) fn draw(&mut self, generator: &mut Generator) -> u32 {
        loop {
            match self.draws.pop() {
                Some(draw) if 0 <= draw => return draw as u32,
                // Left out and not folded over: folded, every value but 0 would come twice as often.
                Some(_) => {}
                None => {
                    self.draws.resize(CHUNK, 0);
                    self.table.add_to(&mut self.draws, generator);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::generator::Noise;
    use crate::ratio::Ratio;

    fn table(numerator: u64, denominator: u64) -> Table {
        Table::new(Law::Laplace { scale: Ratio::new(numerator, denominator).expect("a ratio") })
    }

    fn draws(table: &Table, count: usize, mut noise: Noise) -> Vec<u32> {
        let mut generator = noise.generator().expect("no system is needed");
        let mut one_sided = OneSided::new(table);
        (0..count).map(|_| one_sided.draw(&mut generator)).collect()
    }

    /// Whether draws fit P[v ≥ i] = exp(-i / scale) by chi-square, with cells of at least 20 expected draws. A statistic of d
    /// degrees of freedom exceeds d + 2 √(16 d) + 32 with probability below e^-16 = 1.1e-7 (Laurent and Massart).
    fn fits(scale: f64, draws: &[u32]) -> bool {
        let n = draws.len() as f64;
        let at_least = |i: usize| (-(i as f64) / scale).exp() * n;
        let last = (1..).find(|&i| at_least(i) - at_least(i + 1) < 20.0).expect("a thin tail");
        let mut counts = vec![0_u32; last + 1];
        draws.iter().for_each(|&draw| counts[(draw as usize).min(last)] += 1);
        let expected = |i: usize| if i == last { at_least(i) } else { at_least(i) - at_least(i + 1) };
        let terms = (0..=last).map(|i| (f64::from(counts[i]) - expected(i)).powi(2) / expected(i));
        let freedom = last as f64;
        terms.sum::<f64>() < freedom + 8.0 * freedom.sqrt() + 32.0
    }

    #[test]
    fn draws_have_the_one_sided_law() {
        for (numerator, denominator) in [(6, 5), (7, 2), (30, 1), (630, 1)] {
            let draws = draws(&table(numerator, denominator), 200_000, Noise::seeded(1));
            let scale = numerator as f64 / denominator as f64;
            assert!(fits(scale, &draws), "scale {scale}");
            assert!(!fits(1.1 * scale, &draws), "a wrong law is seen by the same check: {scale}");
        }
    }

    #[test]
    fn draws_that_do_not_fit_are_the_largest_and_without_noise_all_are_zero() {
        // At this scale a draw is below 2^31 - 1 with probability 2e-9; of 1,000 one is with 2e-6.
        let huge = table(1_000_000_000_000_000_000, 1);
        assert!(draws(&huge, 1000, Noise::seeded(2)).iter().all(|&draw| draw == i32::MAX as u32));
        assert!(draws(&table(30, 1), 1000, Noise::off()).iter().all(|&draw| draw == 0));
    }
}
