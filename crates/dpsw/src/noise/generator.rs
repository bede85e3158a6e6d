//! Where randomness comes from, and the exact samplers that use it.

use chacha20::cipher::{KeyIvInit, StreamCipher};
use chacha20::{ChaCha20Legacy, ChaCha20Rng};
use rand_core::{Rng, SeedableRng};
use zeroize::Zeroizing;

use crate::error::EntropyError;

/// The source of noise. Not `Clone`: a copy would share its draws.
#[derive(Debug)]
pub struct Noise(NoiseSource);

enum NoiseSource {
    System,
    #[cfg(any(test, feature = "reproducible"))]
    Seeded(Box<ChaCha20Rng>),
    #[cfg(any(test, feature = "reproducible"))]
    Off,
    /// So many draws succeed.
    #[cfg(test)]
    Failing(usize),
    /// The same with noise.
    #[cfg(test)]
    RunningDry(Box<ChaCha20Rng>, u64),
}

impl std::fmt::Debug for NoiseSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_system() { "System" } else { "Reproducible" })
    }
}

impl NoiseSource {
    fn is_system(&self) -> bool {
        matches!(self, Self::System)
    }
}

impl Noise {
    /// Noise from the operating system: 256 fresh bits key a new generator at each seal.
    #[must_use]
    pub fn from_system() -> Self {
        Self(NoiseSource::System)
    }

    /// The same noise for the same seed, for tests and experiments: what it makes claims no privacy.
    #[cfg(any(test, feature = "reproducible"))]
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self(NoiseSource::Seeded(Box::new(ChaCha20Rng::from_seed(key))))
    }

    /// Every draw is zero, for tests against exact models: what it makes claims no privacy.
    #[cfg(any(test, feature = "reproducible"))]
    #[must_use]
    pub fn off() -> Self {
        Self(NoiseSource::Off)
    }

    /// As on a system without randomness.
    #[cfg(test)]
    pub(crate) fn failing() -> Self {
        Self::failing_after(0)
    }

    /// As on a system that runs out of randomness after so many draws, which are all zero.
    #[cfg(test)]
    pub(crate) fn failing_after(draws: usize) -> Self {
        Self(NoiseSource::Failing(draws))
    }

    /// As on a system that runs out of randomness after so many draws.
    #[cfg(test)]
    pub(crate) fn running_dry(seed: u64, draws: u64) -> Self {
        Self(NoiseSource::RunningDry(Box::new(ChaCha20Rng::seed_from_u64(seed)), draws))
    }

    /// Whether the noise supports a privacy claim.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.0.is_system()
    }

    /// A newly keyed generator.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn generator(&mut self) -> Result<Generator, EntropyError> {
        let key = self.draw_key()?;
        planted!(let key = fault::key(key));
        let generator = Generator::new(&key);
        #[cfg(any(test, feature = "reproducible"))]
        let generator = Generator { silent: self.is_off(), ..generator };
        Ok(generator)
    }

    #[cfg(any(test, feature = "reproducible"))]
    fn is_off(&self) -> bool {
        match self.0 {
            NoiseSource::Off => true,
            #[cfg(test)]
            NoiseSource::Failing(_) => true,
            _ => false,
        }
    }

    /// 256 fresh bits.
    pub(crate) fn draw_key(&mut self) -> Result<Zeroizing<[u8; 32]>, EntropyError> {
        let mut key = Zeroizing::new([0; 32]);
        match &mut self.0 {
            NoiseSource::System => {
                // Asked for at each seal: a generator that lived on could be saved with a state or copied by a fork
                // (PRIVACY.md: rule 1).
                getrandom::fill(&mut *key).map_err(|error| EntropyError { reason: error.to_string() })?;
            }
            #[cfg(any(test, feature = "reproducible"))]
            NoiseSource::Seeded(generator) => generator.fill_bytes(&mut *key),
            #[cfg(any(test, feature = "reproducible"))]
            NoiseSource::Off => {}
            #[cfg(test)]
            NoiseSource::Failing(draws) => {
                *draws = draws.checked_sub(1).ok_or_else(|| EntropyError { reason: "planted".to_owned() })?;
            }
            #[cfg(test)]
            NoiseSource::RunningDry(generator, draws) => {
                *draws = draws.checked_sub(1).ok_or_else(|| EntropyError { reason: "planted".to_owned() })?;
                generator.fill_bytes(&mut *key);
            }
        }
        Ok(key)
    }
}

/// The generator of one seal: ChaCha20, one stream for bulk words and one for the rare draws that need more.
pub struct Generator {
    bulk: ChaCha20Legacy,
    single: ChaCha20Rng,
    #[cfg(any(test, feature = "reproducible"))]
    silent: bool,
    /// Words that tables took.
    #[cfg(test)]
    words: usize,
}

impl std::fmt::Debug for Generator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Generator")
    }
}

impl Generator {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        let bulk = ChaCha20Legacy::new(key.into(), &[0; 8].into());
        let mut single = ChaCha20Rng::from_seed(*key);
        // Stream 0 has the words of `bulk`: under the same key they would be used twice.
        single.set_stream(1);
        Self {
            bulk,
            single,
            #[cfg(any(test, feature = "reproducible"))]
            silent: false,
            #[cfg(test)]
            words: 0,
        }
    }

    /// How many words tables took: one for each draw.
    #[cfg(test)]
    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// The same without noise.
    #[cfg(test)]
    pub(crate) fn silenced(self) -> Self {
        Self { silent: true, ..self }
    }

    /// Whether the tables leave cells as they are.
    pub(crate) fn is_silent(&self) -> bool {
        #[cfg(any(test, feature = "reproducible"))]
        return self.silent;
        #[cfg(not(any(test, feature = "reproducible")))]
        false
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.single.next_u64()
    }

    /// Fills a buffer with random bytes from the bulk stream.
    pub(crate) fn fill_bytes(&mut self, bytes: &mut [u8]) {
        planted!(fault::rewind(&mut self.bulk));
        planted!(tape::note_words(&mut self.words, bytes.len()));
        self.bulk.write_keystream(bytes);
    }

    /// Uniform on 0..bound, by rejection.
    fn draw_below(&mut self, bound: u128) -> u128 {
        // The fewest bits that hold the bound: at least every second draw is then below it, on average.
        let mask = u128::MAX >> (bound - 1).max(1).leading_zeros();
        loop {
            let high = if mask <= u128::from(u64::MAX) { 0 } else { u128::from(self.next_u64()) << 64 };
            let value = (high | u128::from(self.next_u64())) & mask;
            if value < bound {
                return value;
            }
        }
    }

    /// True with probability exp(-numerator / denominator).
    fn bernoulli_exp(&mut self, mut numerator: u128, denominator: u128) -> bool {
        // exp(-x) is exp(-1) for each whole one times that of the rest: the series below holds up to 1.
        while denominator < numerator {
            if !self.bernoulli_exp_unit(1, 1) {
                return false;
            }
            numerator -= denominator;
        }
        self.bernoulli_exp_unit(numerator, denominator)
    }

    /// The same for numerator ≤ denominator: how often in a row a draw with chance x/k succeeds is even with
    /// probability exp(-x).
    fn bernoulli_exp_unit(&mut self, numerator: u128, denominator: u128) -> bool {
        let mut k = 1;
        while self.draw_below(denominator * k) < numerator {
            k += 1;
        }
        k % 2 == 1
    }

    /// P[y] proportional to exp(-y · numerator / denominator) for y ≥ 0.
    pub(super) fn draw_geometric(&mut self, numerator: u64, denominator: u64) -> u128 {
        let (numerator, denominator) = (u128::from(numerator), u128::from(denominator));
        // The whole part and the fraction of an exponential law are independent, and neither needs a chance below
        // exp(-1).
        let fraction = loop {
            let candidate = self.draw_below(denominator);
            if self.bernoulli_exp_unit(candidate, denominator) {
                break candidate;
            }
        };
        let mut whole = 0;
        while self.bernoulli_exp_unit(1, 1) {
            whole += 1;
        }
        (fraction + denominator * whole) / numerator
    }

    pub(super) fn draw_laplace(&mut self, scale_numerator: u64, scale_denominator: u64) -> i64 {
        loop {
            let magnitude = clamp_draw(self.draw_geometric(scale_denominator, scale_numerator));
            let negative = self.next_u64() & 1 == 1;
            // Zero has one sign: with two it would come twice as often as its law says.
            if !(negative && magnitude == 0) {
                return if negative { -magnitude } else { magnitude };
            }
        }
    }

    pub(super) fn draw_gaussian(&mut self, variance: u64) -> i64 {
        // Any positive scale is exact; one near the deviation is rejected least often.
        let scale = variance.isqrt() + 1;
        let (wide_scale, wide_variance) = (u128::from(scale), u128::from(variance));
        loop {
            let candidate = self.draw_laplace(scale, 1);
            let distance = (u128::from(candidate.unsigned_abs()) * wide_scale).abs_diff(wide_variance);
            if self.bernoulli_exp(distance * distance, 2 * wide_variance * wide_scale * wide_scale) {
                return candidate;
            }
        }
    }

    /// How far a Gaussian draw lies above `first`, given that it is at least that: (first + g)² exceeds first²
    /// by 2 first g, a geometric law, and g², a rejection.
    pub(super) fn gaussian_excess(&mut self, first: u64, variance: u64) -> u128 {
        loop {
            let excess = self.draw_geometric(first, variance);
            if self.bernoulli_exp(excess * excess, 2 * u128::from(variance)) {
                return excess;
            }
        }
    }
}

/// A draw of 2⁶³ or more becomes 2⁶² - 1: counts are so small that the clamped sum, or what exceeds a threshold, is the
/// same.
pub(super) fn clamp_draw(magnitude: u128) -> i64 {
    i64::try_from(magnitude).unwrap_or(i64::MAX >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generator(seed: u64) -> Generator {
        Noise::seeded(seed).generator().expect("seeded")
    }

    #[test]
    fn bernoulli_exp_has_its_probability() {
        // 100,000 trials, six cases: a deviation above 5 standard errors has probability below 6e-7 each.
        let mut generator = generator(1);
        for (numerator, denominator) in [(0, 1), (1, 3), (1, 1), (7, 2), (5, 1), (999, 1000)] {
            let trials = 100_000;
            let hits = (0..trials).filter(|_| generator.bernoulli_exp(numerator, denominator)).count();
            let p = (-(numerator as f64) / denominator as f64).exp();
            let error = (p * (1.0 - p) / f64::from(trials)).sqrt();
            assert!((hits as f64 / f64::from(trials) - p).abs() <= 5.0 * error, "{numerator}/{denominator}");
        }
    }

    #[test]
    fn below_is_uniform_and_bounded() {
        let mut generator = generator(2);
        let mut counts = [0_u32; 6];
        for _ in 0..60_000 {
            counts[generator.draw_below(6) as usize] += 1;
        }
        // Chi-square with 5 degrees of freedom exceeds 35 with probability 1.5e-6.
        let chi: f64 = counts.iter().map(|&c| (f64::from(c) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi < 35.0, "chi-square {chi}");
        assert_eq!(generator.draw_below(1), 0);
        let third = 1_u128 << 100;
        let mut thirds = [0_u32; 3];
        for _ in 0..3000 {
            thirds[(generator.draw_below(3 * third) / third) as usize] += 1;
        }
        // Each is 1000 with deviation 26; five deviations for three numbers fail with probability 2e-6.
        assert!(thirds.iter().all(|third| third.abs_diff(1000) < 130), "{thirds:?}");
    }

    #[test]
    fn two_generators_of_one_source_differ_and_a_seed_repeats() {
        let mut noise = Noise::seeded(7);
        let first = noise.generator().expect("seeded").next_u64();
        let second = noise.generator().expect("seeded").next_u64();
        assert_ne!(first, second);
        assert_eq!(Noise::seeded(7).generator().expect("seeded").next_u64(), first);
        assert_ne!(Noise::seeded(8).generator().expect("seeded").next_u64(), first);
    }

    #[test]
    fn draws_that_do_not_fit_are_cut_on_their_own_side() {
        assert_eq!(clamp_draw(5), 5);
        assert!(i64::from(i32::MAX) < clamp_draw(u128::MAX));
    }

    #[test]
    fn only_noise_from_the_system_is_private() {
        assert!(Noise::from_system().is_private());
        assert!(!Noise::seeded(1).is_private() && !Noise::off().is_private());
    }

    #[test]
    fn debug_output_shows_no_state() {
        assert_eq!(format!("{:?}", Noise::from_system()), "Noise(System)");
        assert_eq!(format!("{:?}", generator(3)), "Generator");
    }
}
