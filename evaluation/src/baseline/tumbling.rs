//! Tumbling buckets: what a careful team would deploy. The window is cut into disjoint buckets, each released as a
//! noisy histogram over the whole public domain.
//!
//! Replace-one moves two cells of one bucket by one, so Laplace noise of scale 2/ε gives pure ε; Gaussian noise is
//! calibrated to two unit changes.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;

use anyhow::{Result, ensure};
use dpsw::error::EntropyError;
use dpsw::noise::{Law, Table};
use dpsw::privacy::accounting::gaussian_variance;
use dpsw::{Claim, Noise};

use super::Baseline;
use super::budget::{Task, laplace};
use super::dyadic::split_at_end;

/// How many buckets a window has, as results sweep it.
pub(super) const BUCKETS: [u64; 10] = [2, 3, 4, 5, 6, 8, 10, 20, 50, 100];

/// The law of the noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NoiseKind {
    /// Pure ε.
    #[default]
    Laplace,
    /// (ε, δ).
    Gauss,
}

/// How the edges of the window are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Edges {
    /// Every sealed bucket that overlaps the window counts whole.
    #[default]
    Whole,
    /// The oldest bucket counts with its part in the window; the newest stands in for the open one.
    Interpolated,
}

/// What may be chosen.
#[derive(Debug, Clone, Copy)]
pub struct Parameters {
    pub buckets: u64,
    pub noise: NoiseKind,
    pub edges: Edges,
}

/// Tumbling buckets with every derived number.
#[derive(Debug, Clone)]
pub struct Plan {
    task: Task,
    parameters: Parameters,
    bucket_len: u64,
    law: Law,
}

impl Plan {
    pub fn new(task: Task, parameters: Parameters) -> Result<Self> {
        let (buckets, window_len) = (parameters.buckets, task.window_len);
        ensure!(
            (1..=window_len).contains(&buckets),
            "a window of {window_len} cannot have {buckets} buckets"
        );
        let law = match parameters.noise {
            NoiseKind::Laplace => laplace(2, task.part(1, 1)?)?,
            NoiseKind::Gauss => Law::Gaussian { variance: gaussian_variance(task.epsilon, task.delta, 2) },
        };
        Ok(Self { task, parameters, bucket_len: window_len.div_ceil(buckets), law })
    }

    /// Bytes of the buckets, sealed and open, and of their sum.
    pub fn sketch_bytes(&self) -> u64 {
        4 * self.task.domain_len as u64 * (self.parameters.buckets + 2)
    }

    pub fn claim(&self) -> Claim {
        match self.parameters.noise {
            NoiseKind::Laplace => Claim::Pure(self.task.epsilon),
            NoiseKind::Gauss => Claim::Approximate(self.task.epsilon, self.task.delta),
        }
    }

    pub fn start(&self, noise: Noise) -> Result<Box<dyn Baseline>, EntropyError> {
        Ok(Box::new(Tumbling::new(self.clone(), noise)))
    }

    /// The sealed buckets that overlap the window.
    fn live(&self, position: u64) -> Range<u64> {
        position.saturating_sub(self.task.window_len) / self.bucket_len..position / self.bucket_len
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parameters { buckets, noise, edges } = self.parameters;
        write!(f, "{buckets} buckets, {noise:?}, {edges:?} edges")
    }
}

struct Tumbling {
    plan: Plan,
    table: Table,
    open: Vec<i32>,
    sealed: VecDeque<Box<[i32]>>,
    /// The index of the first sealed bucket.
    first: u64,
    /// Of all sealed buckets.
    sums: Vec<i64>,
    position: u64,
    noise: Noise,
}

impl Tumbling {
    fn new(plan: Plan, noise: Noise) -> Self {
        let len = plan.task.domain_len;
        let table = Table::new(plan.law);
        let (open, sums) = (vec![0; len], vec![0; len]);
        Self { plan, table, open, sealed: VecDeque::new(), first: 0, sums, position: 0, noise }
    }

    fn seal(&mut self) -> Result<(), EntropyError> {
        let mut generator = self.noise.generator()?;
        self.table.add_to(&mut self.open, &mut generator);
        self.sums.iter_mut().zip(&self.open).for_each(|(sum, &cell)| *sum += i64::from(cell));
        self.sealed.push_back(self.open.as_slice().into());
        self.open.fill(0);
        Ok(())
    }

    fn expire(&mut self) {
        let live = self.plan.live(self.position).start;
        while self.first < live {
            let Some(bucket) = self.sealed.pop_front() else { break };
            self.sums.iter_mut().zip(&bucket).for_each(|(sum, &cell)| *sum -= i64::from(cell));
            self.first += 1;
        }
    }

    /// What the parts of buckets at the edges add to their whole ones.
    fn edges(&self, item: usize) -> f64 {
        let (Some(oldest), Some(newest)) = (self.sealed.front(), self.sealed.back()) else { return 0.0 };
        let bucket_len = self.plan.bucket_len;
        let expired = self.position.saturating_sub(self.plan.task.window_len + self.first * bucket_len);
        let open = self.position % bucket_len;
        let part = |len: u64, bucket: &[i32]| len as f64 / bucket_len as f64 * f64::from(bucket[item]);
        part(open, newest) - part(expired, oldest)
    }
}

impl Baseline for Tumbling {
    fn insert(&mut self, mut items: &[u64]) -> Result<(), EntropyError> {
        self.plan.task.check(items);
        while !items.is_empty() {
            let (part, rest) = split_at_end(items, self.position, self.plan.bucket_len);
            part.iter().for_each(|&item| self.open[item as usize] += 1);
            self.position += part.len() as u64;
            if self.position.is_multiple_of(self.plan.bucket_len) {
                self.seal()?;
            }
            self.expire();
            items = rest;
        }
        Ok(())
    }

    fn frequency(&self, item: u64) -> f64 {
        let item = item as usize;
        let Some(&sum) = self.sums.get(item) else { return 0.0 };
        match self.plan.parameters.edges {
            Edges::Whole => sum as f64,
            Edges::Interpolated => sum as f64 + self.edges(item),
        }
    }

    fn estimates(&self) -> Vec<f64> {
        (0..self.sums.len() as u64).map(|item| self.frequency(item)).collect()
    }

    fn resident_bytes(&self) -> u64 {
        let cells = (self.sealed.len() + 1) * self.open.len() * size_of::<i32>();
        let list = self.sealed.capacity() * size_of::<Box<[i32]>>();
        (cells + list + size_of_val(&*self.sums) + Table::bytes(self.plan.law)) as u64
    }
}

#[cfg(test)]
mod tests {
    use dpsw::{Delta, Epsilon};

    use super::*;
    use crate::baseline::audit::{Trials, check_variance, reveals};
    use crate::baseline::budget::task;
    use crate::baseline::model::{counts, stream};

    fn buckets(buckets: u64) -> Parameters {
        Parameters { buckets, noise: NoiseKind::Laplace, edges: Edges::Whole }
    }

    fn plan(window_len: u64, domain_len: usize, parameters: Parameters) -> Plan {
        Plan::new(task(window_len, domain_len, 1.0), parameters).expect("a plan")
    }

    #[test]
    fn windows_are_covered_as_in_the_vectors() {
        let even = plan(100, 5, buckets(4));
        assert_eq!((even.live(24), even.live(125), even.live(130)), (0..0, 1..5, 1..5));
        let uneven = plan(100, 5, buckets(3));
        assert_eq!((uneven.bucket_len, uneven.live(150)), (34, 1..4));
    }

    #[test]
    fn without_noise_the_live_buckets_are_exact() {
        let items = stream(700, 6, 1);
        for number in [1, 3, 4, 7, 100] {
            let plan = plan(100, 6, buckets(number));
            let mut method = Tumbling::new(plan.clone(), Noise::off());
            for t in 1..=items.len() {
                method.insert(&items[t - 1..t]).expect("no entropy needed");
                let live = plan.live(t as u64);
                let covered = (live.start * plan.bucket_len) as usize..(live.end * plan.bucket_len) as usize;
                assert_eq!(method.estimates(), counts(&items[covered], 6), "{number} buckets at {t}");
                let is_aligned = 100 % number == 0 && (t as u64).is_multiple_of(plan.bucket_len);
                if is_aligned && 100 <= t {
                    assert_eq!(method.estimates(), counts(&items[t - 100..t], 6));
                }
            }
        }
    }

    #[test]
    fn interpolated_edges_are_exact_on_a_constant_stream() {
        let parameters = Parameters { edges: Edges::Interpolated, ..buckets(4) };
        let mut method = Tumbling::new(plan(100, 2, parameters), Noise::off());
        method.insert(&[1; 100]).expect("no entropy needed");
        for t in 101..400 {
            method.insert(&[1]).expect("no entropy needed");
            assert!((method.frequency(1) - 100.0).abs() < 1e-9, "{} at {t}", method.frequency(1));
            assert_eq!(method.frequency(0), 0.0);
        }
    }

    #[test]
    fn the_sums_are_those_of_the_live_buckets() {
        let items = stream(3000, 8, 2);
        let mut method = Tumbling::new(plan(500, 8, buckets(7)), Noise::seeded(1));
        for part in items.chunks(13) {
            method.insert(part).expect("seeded");
            let sum = |item: usize| method.sealed.iter().map(|bucket| i64::from(bucket[item])).sum::<i64>();
            assert_eq!(method.sums, (0..8).map(sum).collect::<Vec<_>>());
            assert_eq!(method.sealed.len(), method.plan.live(method.position).count());
        }
    }

    #[test]
    fn cells_have_the_noise_of_the_definition() {
        let items = vec![3; 100];
        let mut method = Tumbling::new(plan(100, 50_000, buckets(1)), Noise::seeded(2));
        method.insert(&items).expect("seeded");
        let mut draws = method.estimates();
        draws[3] -= 100.0;
        check_variance(&draws, 7.8354, 6.0);
        let zeros = draws.iter().filter(|&&draw| draw == 0.0).count() as f64 / 50_000.0;
        // Five standard errors of 50,000 draws.
        assert!((zeros - 0.2449).abs() < 0.0097, "{zeros}");
    }

    #[test]
    fn gaussian_noise_has_the_smallest_sufficient_variance() {
        for (epsilon, variance) in [(0.1, 6298), (0.5, 279), (1.0, 74), (2.0, 20)] {
            let parameters = Parameters { noise: NoiseKind::Gauss, ..buckets(10) };
            let plan = Plan::new(task(1000, 5, epsilon), parameters).expect("a plan");
            assert_eq!(plan.law, Law::Gaussian { variance });
        }
        let parameters = Parameters { noise: NoiseKind::Gauss, ..buckets(1) };
        let mut method = Tumbling::new(plan(100, 50_000, parameters), Noise::seeded(3));
        method.insert(&[0; 100]).expect("seeded");
        check_variance(&method.estimates()[1..], 74.0, 3.0);
    }

    #[test]
    fn the_size_is_that_of_the_example() {
        assert_eq!(plan(1_000_000, 25_600, buckets(10)).sketch_bytes(), 1_228_800);
    }

    /// One bucket of two items, sealed again and again.
    fn audited(law: Law) -> Trials {
        let mut method = Tumbling::new(Plan { law, ..plan(2, 3, buckets(1)) }, Noise::seeded(4));
        Trials::run(20_000, |side| {
            method.insert(&side.of([0, 1], [2, 1])).expect("seeded");
            let released: Vec<i32> = method.estimates().iter().map(|&cell| cell as i32).collect();
            reveals(&released, &[1, 1, 0], &[0, 1, 1])
        })
    }

    #[test]
    fn a_sealed_bucket_costs_epsilon_and_half_the_noise_is_caught() {
        let law = plan(2, 3, buckets(1)).law;
        audited(law).check_costs(1.0);
        let halved = laplace(1, task(2, 3, 1.0).part(1, 1).expect("fits")).expect("fits");
        audited(halved).check_leaks(1.0);
    }

    #[test]
    fn gaussian_noise_costs_epsilon_and_delta_and_half_the_variance_is_caught() {
        let (epsilon, delta) = (Epsilon::new(1.0).expect("in range"), Delta::new(0.05).expect("in range"));
        let variance = gaussian_variance(epsilon, delta, 2);
        let audited = |variance: u64| {
            let law = Law::Gaussian { variance };
            let mut method = Tumbling::new(Plan { law, ..plan(2, 3, buckets(1)) }, Noise::seeded(7));
            Trials::run(50_000, |side| {
                method.insert(&side.of([0, 1], [2, 1])).expect("seeded");
                // Where the loss exceeds epsilon.
                (variance as f64) < method.frequency(0) - method.frequency(2)
            })
        };
        assert!(audited(variance).delta_bound(1.0) <= 0.05);
        assert!(0.05 < audited(variance / 2).delta_bound(1.0));
    }

    #[test]
    fn noise_on_occupied_cells_alone_is_caught() {
        let table = Table::new(plan(2, 3, buckets(1)).law);
        let mut generator = Noise::seeded(5).generator().expect("seeded");
        let skipped = Trials::run(2_000, |side| {
            let mut cells = side.of([1, 1, 0], [0, 1, 1]);
            let is_empty = cells.map(|cell| cell == 0);
            table.add_to(&mut cells, &mut generator);
            cells.iter_mut().zip(is_empty).for_each(|(cell, empty)| *cell *= i32::from(!empty));
            cells[0] != 0
        });
        skipped.check_leaks(1.0);
    }

    #[test]
    fn the_open_bucket_is_never_read() {
        let mut method = plan(100, 3, buckets(4)).start(Noise::seeded(6)).expect("seeded");
        method.insert(&[1; 24]).expect("seeded");
        assert_eq!(method.estimates(), [0.0; 3]);
        method.insert(&[1]).expect("seeded");
        let sealed = method.estimates();
        method.insert(&[2; 24]).expect("seeded");
        assert_eq!(method.estimates(), sealed);
    }
}
