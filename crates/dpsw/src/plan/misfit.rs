//! What the edges of a window add to the variance of an estimate, in the estimates themselves and in their prediction.

/// The shares of substreams by which whole ones miss a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Edges {
    /// Of a substream, predicted at the window's end.
    pub(crate) ahead: f64,
    /// Of the oldest substream, outside the window.
    pub(crate) expired: f64,
    /// Of the newest substream, outside a window that ended before it.
    pub(crate) later: f64,
}

impl Edges {
    /// The variance by chance of an item that occurs once per substream. Of a substream of which the share y is cut off,
    /// the estimate takes y off as well: y (1 - y) is left. What is predicted varies by itself (x) and by the
    /// substream that it is predicted from (x²).
    pub(crate) fn sampling(self) -> f64 {
        let Self { ahead: x, expired: y, later: z } = self;
        let cut = y * (1.0 - y) + z * (1.0 - z);
        cut + x + x * x
    }

    /// The variance of an item whose count walks from substream to substream with variance 1. See docs/estimation.md.
    pub(crate) fn walk(self) -> f64 {
        let Self { ahead: x, expired: y, later: z } = self;
        (x.powi(2) + x.powi(3) + (y * (1.0 - y)).powi(2) + (z * (1.0 - z)).powi(2)) / 3.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::generator::{Generator, Noise};

    const RUNS: usize = 20_000;

    /// The edges that occur, alone and together: the last one is a window that ended before the newest seal.
    const CASES: [[f64; 3]; 7] = [
        [0.25, 0.0, 0.0],
        [1.0, 0.0, 0.0],
        [1.5, 0.0, 0.0],
        [0.0, 0.25, 0.0],
        [0.0, 0.0, 0.5],
        [0.5, 0.5, 0.0],
        [0.0, 0.75, 0.25],
    ];

    /// What is cut out of a stream that starts at 0: the amount between two times.
    trait Stream {
        fn between(&self, start: f64, end: f64) -> f64;
    }

    /// By how much whole substreams miss the window [expired, 4 + ahead - later), when all before 4 is sealed.
    fn error(stream: &impl Stream, [ahead, expired, later]: [f64; 3]) -> f64 {
        let (oldest, newest) = (stream.between(0.0, 1.0), stream.between(3.0, 4.0));
        let between = stream.between(1.0, 3.0);
        let estimate = (1.0 - expired) * oldest + between + (1.0 - later + ahead) * newest;
        estimate - stream.between(expired, 4.0 - later + ahead)
    }

    /// The mean of the squares has a relative deviation of sqrt((k - 1) / runs) with k the kurtosis, which is below 4 for
    /// both streams: 1.2 %. Six deviations happen by chance with probability 2e-9 per case.
    #[track_caller]
    fn check<S: Stream>(wanted: impl Fn(Edges) -> f64, rate: f64, mut draw: impl FnMut() -> S) {
        for edges in CASES {
            let squares: f64 = (0..RUNS).map(|_| error(&draw(), edges).powi(2)).sum();
            let measured = squares / RUNS as f64 / rate;
            let [ahead, expired, later] = edges;
            let wanted = wanted(Edges { ahead, expired, later });
            assert!((measured / wanted - 1.0).abs() < 0.075, "{edges:?}: {measured}, {wanted} claimed");
        }
    }

    fn generator(seed: u64) -> Generator {
        Noise::seeded(seed).generator().expect("seeded")
    }

    /// Times of arrival.
    struct Poisson(Vec<f64>);

    impl Stream for Poisson {
        fn between(&self, start: f64, end: f64) -> f64 {
            self.0.iter().filter(|&&time| start <= time && time < end).count() as f64
        }
    }

    #[test]
    fn the_sampling_variance_is_that_of_a_simulated_poisson_stream() {
        const RATE: f64 = 8.0;
        let mut generator = generator(1);
        let arrivals = || {
            let mut gap = |time: &mut f64| {
                let uniform = (generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
                *time -= (1.0 - uniform).ln() / RATE;
                (*time < 6.0).then_some(*time)
            };
            Poisson(std::iter::repeat(()).scan(0.0, |time, ()| gap(time)).collect())
        };
        check(Edges::sampling, RATE, arrivals);
    }

    /// What a walking rate has summed up to, at multiples of a step.
    struct Walk(Vec<f64>);

    impl Walk {
        const STEPS: f64 = 64.0;
    }

    impl Stream for Walk {
        fn between(&self, start: f64, end: f64) -> f64 {
            let at = |time: f64| self.0[(time * Self::STEPS) as usize];
            at(end) - at(start)
        }
    }

    #[test]
    fn the_walk_variance_is_that_of_a_simulated_random_walk() {
        let mut generator = generator(2);
        let walk = || {
            let (mut rate, mut sum, mut sums) = (0.0, 0.0, vec![0.0]);
            for _ in 0..6 {
                let bits = generator.next_u64();
                for bit in 0..64 {
                    let before = rate;
                    rate += if bits >> bit & 1 == 1 { 1.0 } else { -1.0 } / Walk::STEPS.sqrt();
                    sum += f64::midpoint(before, rate) / Walk::STEPS;
                    sums.push(sum);
                }
            }
            Walk(sums)
        };
        check(Edges::walk, 1.0, walk);
    }

    #[test]
    fn a_window_of_whole_substreams_has_no_misfit() {
        for [ahead, expired, later] in [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] {
            let edges = Edges { ahead, expired, later };
            assert_eq!([edges.sampling(), edges.walk()], [0.0, 0.0], "{edges:?}");
        }
    }
}
