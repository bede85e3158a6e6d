//! How much the rates of frequent keys walk, by their counts in the substreams of a window.

use crate::plan::levels::WALK;

/// A change counts at most by this many squares of a key's mean count: as that of a key that is there for half of the window.
const LARGEST: f64 = 4.0;
/// What plans expect of rates counts as much as this many changes that are seen.
const EXPECTED: f64 = 8.0;
/// Counts of neighbouring substreams differ by 2/3 of the variance with which the rate walks over one; see docs/design/estimation.md.
const WALK_PER_CHANGE: f64 = 1.5;

/// Changes of counts from substream to substream.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RateDrift {
    /// Squares beyond noise and chance, over the mean count of their key.
    squares: f64,
    /// Mean counts.
    rates: f64,
    pairs: f64,
}

impl RateDrift {
    /// Adds those of a key: its count in each substream, and the variance of the noise on it.
    pub(crate) fn add_key(&mut self, counts: &[[f64; 2]]) {
        let rate = counts.iter().map(|[count, _]| count).sum::<f64>() / counts.len() as f64;
        for pair in counts.windows(2) {
            let [[before, noise_before], [after, noise_after]] = [pair[0], pair[1]];
            let by_chance = noise_before + noise_after + 2.0 * rate;
            // A few keys that come or go would outweigh all that drift.
            self.squares += ((after - before).powi(2) - by_chance).min(LARGEST * rate * rate) / rate;
            self.rates += rate;
            self.pairs += 1.0;
        }
    }

    /// The relative variance by which rates walk over a window of so many substreams.
    pub(crate) fn expected_walk(&self, substreams: f64) -> f64 {
        if self.pairs == 0.0 {
            return WALK;
        }
        let seen = (WALK_PER_CHANGE * substreams * self.squares / self.rates).max(0.0);
        (self.pairs * seen + EXPECTED * WALK) / (self.pairs + EXPECTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::generator::{Generator, Noise};
    use crate::noise::law::Law;

    const SUBSTREAMS: usize = 10;
    const KEYS: usize = 400;
    const RATE: f64 = 2_000.0;
    const NOISE: u64 = 800;

    fn normal(variance: f64, generator: &mut Generator) -> f64 {
        Law::Gaussian { variance: variance as u64 }.draw_exactly(generator) as f64
    }

    /// What is found of keys whose rates walk with this relative variance per window. The mean of 3,600 squares deviates by about
    /// 3 % of itself, and by chance by 0.003; what is expected adds 0.001.
    fn found(walk: f64) -> f64 {
        let mut generator = Noise::seeded(3).generator().expect("seeded");
        let per_substream = RATE * RATE * walk / SUBSTREAMS as f64;
        let mut changes = RateDrift::default();
        for _ in 0..KEYS {
            let mut rate = RATE;
            let mut count = || {
                // Over a substream the mean of a walk is the middle of its ends and a twelfth of its variance.
                let step = if walk == 0.0 { 0.0 } else { normal(per_substream, &mut generator) };
                let within = if walk == 0.0 { 0.0 } else { normal(per_substream / 12.0, &mut generator) };
                let mean = rate + step / 2.0 + within;
                rate += step;
                [mean + normal(RATE + NOISE as f64, &mut generator), NOISE as f64]
            };
            changes.add_key(&(0..SUBSTREAMS).map(|_| count()).collect::<Vec<_>>());
        }
        changes.expected_walk(SUBSTREAMS as f64)
    }

    #[test]
    fn the_walk_of_rates_is_found_in_their_counts() {
        for walk in [0.0, 0.05, 0.2] {
            let found = found(walk);
            assert!((found - walk).abs() < 0.01 + 0.2 * walk, "{found} for {walk}");
        }
    }

    #[test]
    fn rates_that_are_hardly_seen_are_taken_as_expected() {
        assert_eq!(RateDrift::default().expected_walk(10.0), WALK);
        let mut few = RateDrift::default();
        few.add_key(&[[1e6, 8.0], [1e6, 8.0]]);
        assert!((few.expected_walk(10.0) - WALK * 8.0 / 9.0).abs() < 1e-12);
    }
}
