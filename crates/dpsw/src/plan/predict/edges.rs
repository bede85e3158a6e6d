//! What the edges of a window add to the variance of an estimate, in the estimates themselves and in their prediction.

/// A stretch of the stream, in substreams, and how much of what it holds an estimate takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Piece {
    pub(crate) len: f64,
    pub(crate) weight: f64,
    pub(crate) is_inside: bool,
}

/// By how much an estimate misses a window.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Misfit {
    /// The variance by chance of an item that occurs once per substream.
    pub(crate) sampling: f64,
    /// The variance of an item whose rate walks with variance 1 per substream.
    pub(crate) walk: f64,
}

impl Misfit {
    /// Of neighbouring pieces, oldest first. An estimate takes too much of a piece by its weight, less 1 inside the window.
    /// Chance adds the squares of that. A walk adds the squares of what is still to come of it: they are parabolas, as it
    /// adds up evenly. See docs/design/estimation.md.
    pub(crate) fn of_pieces(pieces: &[Piece]) -> Self {
        let too_much = |piece: &Piece| piece.weight - f64::from(u8::from(piece.is_inside));
        let mut misfit = Self::default();
        let mut to_come = 0.0;
        // From the newest back: a change of the rate moves all that comes after it.
        for piece in pieces.iter().rev() {
            let (rate, next) = (too_much(piece), to_come);
            to_come += rate * piece.len;
            misfit.sampling += rate * rate * piece.len;
            // The mean of a square whose root runs evenly from one end to the other.
            misfit.walk += piece.len * (next * next + next * to_come + to_come * to_come) / 3.0;
        }
        misfit
    }

    /// Of a window of whole slices when the share `x` of one more has passed, which is predicted from the last `span` of them: as
    /// much has left at the other end.
    pub(crate) fn at_phase(x: f64, span: f64) -> Self {
        let piece = |len, weight, is_inside| Piece { len, weight, is_inside };
        Self::of_pieces(&[
            piece(x, 1.0 - x, false),
            piece(1.0 - x, 1.0 - x, true),
            piece(span, 1.0 + x / span, true),
            piece(x, 0.0, true),
        ])
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

    fn misfit([ahead, expired, later]: [f64; 3]) -> Misfit {
        let piece = |len, weight, is_inside| Piece { len, weight, is_inside };
        let newest = 1.0 - later + ahead;
        Misfit::of_pieces(&[
            piece(expired, 1.0 - expired, false),
            piece(1.0 - expired, 1.0 - expired, true),
            piece(2.0, 1.0, true),
            piece(1.0 - later, newest, true),
            piece(later, newest, false),
            piece(ahead, 0.0, true),
        ])
    }

    /// The mean of the squares has a relative deviation of sqrt((k - 1) / runs) with k the kurtosis, which is below 4 for
    /// both streams: 1.2 %. Six deviations happen by chance with probability 2e-9 per case.
    #[track_caller]
    fn check<S: Stream>(wanted: impl Fn(Misfit) -> f64, rate: f64, mut draw: impl FnMut() -> S) {
        for edges in CASES {
            let squares: f64 = (0..RUNS).map(|_| error(&draw(), edges).powi(2)).sum();
            let measured = squares / RUNS as f64 / rate;
            let wanted = wanted(misfit(edges));
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
        check(|misfit| misfit.sampling, RATE, arrivals);
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
        check(|misfit| misfit.walk, 1.0, walk);
    }

    #[test]
    fn a_window_of_whole_substreams_has_no_misfit() {
        for edges in [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]] {
            assert_eq!(misfit(edges), Misfit::default(), "{edges:?}");
        }
    }

    #[test]
    fn a_phase_is_cut_and_predicted_by_as_much() {
        for x in [0.0, 0.25, 0.5, 1.0] {
            let (phase, edges) = (Misfit::at_phase(x, 1.0), misfit([x, x, 0.0]));
            assert!((phase.sampling - edges.sampling).abs() < 1e-12, "{x}");
            assert!((phase.walk - edges.walk).abs() < 1e-12, "{x}");
        }
    }

    #[test]
    fn longer_spans_have_less_chance_and_more_drift() {
        for x in [0.25, 0.5, 1.0] {
            let [short, long] = [1.0, 4.0].map(|span| Misfit::at_phase(x, span));
            assert!((short.sampling - long.sampling - 0.75 * x * x).abs() < 1e-12, "{x}");
            assert!((long.walk - short.walk - x * x).abs() < 1e-12, "{x}");
        }
    }
}
