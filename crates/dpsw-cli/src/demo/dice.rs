//! Throws for made-up streams. They start the same each time, so that a stream is the same on every machine.

/// Knuth's linear congruential generator; only its high bits are used.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new() -> Self {
        Self(1)
    }

    /// The next throw, from 0 up to 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / 2_f64.powi(53)
    }

    /// One of these, each as often as the others.
    pub(crate) fn one_of(&mut self, these: &[&'static str]) -> &'static str {
        these[(self.uniform() * these.len() as f64) as usize]
    }
}

/// Ranks from 0 on, whose frequencies fall as 1, 1/2, 1/3...
pub(crate) struct Zipf {
    cumulative: Vec<f64>,
}

impl Zipf {
    pub(crate) fn new(ranks: u32) -> Self {
        let mut sum = 0.0;
        let cumulative = (1..=ranks).map(|rank| {
            sum += 1.0 / f64::from(rank);
            sum
        });
        Self { cumulative: cumulative.collect() }
    }

    pub(crate) fn rank(&self, dice: &mut Dice) -> usize {
        let total = self.cumulative.last().expect("there is a rank");
        let uniform = dice.uniform() * total;
        self.cumulative.partition_point(|&c| c < uniform)
    }
}
