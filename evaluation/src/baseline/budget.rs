//! What a baseline is made for, and how its releases share ε.

use anyhow::{Context, Result, ensure};
use dpsw::noise::Law;
use dpsw::{Delta, Epsilon, Ratio};

use crate::method::Size;
#[cfg(test)]
use crate::method::delta_for;

/// Counts of a window must leave room for noise in a 32-bit cell.
const WINDOW_LEN_MAX: u64 = 1 << 30;

/// The window, the public domain `0..domain_len` and the privacy that a baseline is made for.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    pub(super) window_len: u64,
    pub(super) domain_len: usize,
    pub(super) epsilon: Epsilon,
    pub(super) delta: Delta,
}

impl Task {
    /// The task of this size; its bytes play no part.
    pub fn new(size: Size) -> Result<Self> {
        let Size { window_len, domain_len, .. } = size;
        let windows = 1..WINDOW_LEN_MAX;
        ensure!(windows.contains(&window_len), "the window must hold 1 to 2^30 - 1 items, got {window_len}");
        let domains = 1..=u32::MAX as usize;
        ensure!(domains.contains(&domain_len), "the domain must hold 1 to 2^32 - 1 items, got {domain_len}");
        Ok(Self {
            window_len,
            domain_len,
            epsilon: Epsilon::new(size.epsilon)?,
            delta: Delta::new(size.delta)?,
        })
    }

    pub(super) fn check(&self, items: &[u64]) {
        let len = self.domain_len as u64;
        assert!(items.iter().all(|&item| item < len), "every item lies in the domain 0..{len}");
    }

    /// The exact part `numerator / denominator` of ε.
    pub(super) fn part(&self, numerator: u64, denominator: u64) -> Result<Ratio> {
        let epsilon = self.epsilon.ratio();
        let top = epsilon.numerator().checked_mul(numerator);
        let bottom = epsilon.denominator().checked_mul(denominator);
        let (top, bottom) = top.zip(bottom).context("a part of epsilon has too many digits")?;
        Ok(Ratio::new(top, bottom)?)
    }

    /// Refuses parts that together exceed ε.
    pub(super) fn ensure_covers(&self, parts: &[Ratio]) -> Result<()> {
        let (first, rest) = parts.split_first().context("at least one release costs something")?;
        let sum = rest.iter().try_fold(*first, |sum, &part| sum.checked_add(part));
        let sum = sum.context("the parts of epsilon have too many digits")?;
        let whole = self.epsilon.ratio();
        ensure!(sum <= whole, "the releases cost {sum} together, more than epsilon = {whole}");
        Ok(())
    }
}

/// The noise that keeps a change of L1 norm `l1` private at this cost.
pub(super) fn laplace(l1: u64, cost: Ratio) -> Result<Law> {
    let scale = cost.checked_divide(l1).context("a noise scale has too many digits")?;
    Ok(Law::Laplace { scale })
}

/// Laplace noise of a whole scale.
#[cfg(test)]
pub(super) fn laplace_of(scale: u64) -> Law {
    Law::Laplace { scale: Ratio::new(scale, 1).expect("a ratio") }
}

/// With the δ of the paper's streams.
#[cfg(test)]
pub(super) fn task(window_len: u64, domain_len: usize, epsilon: f64) -> Task {
    let delta = delta_for(10_000_000);
    Task::new(Size { window_len, domain_len, bytes: 0, epsilon, delta }).expect("in range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_beyond_epsilon_are_refused() {
        let task = task(100, 5, 0.3);
        let part = |numerator| task.part(numerator, 3).expect("fits");
        assert_eq!(part(1), Ratio::new(1, 10).expect("a ratio"));
        task.ensure_covers(&[part(1), part(2)]).expect("the parts add up to epsilon");
        let error = task.ensure_covers(&[part(2), part(2)]).expect_err("more than epsilon");
        assert_eq!(error.to_string(), "the releases cost 0.4 together, more than epsilon = 0.3");
    }

    #[test]
    fn sizes_out_of_range_are_refused_with_the_value() {
        let size = Size { window_len: 100, domain_len: 5, bytes: 0, epsilon: 1.0, delta: 1e-9 };
        let message = |size| Task::new(size).expect_err("out of range").to_string();
        assert!(message(Size { window_len: 1 << 30, ..size }).ends_with("got 1073741824"));
        assert!(message(Size { domain_len: 0, ..size }).ends_with("got 0"));
        assert!(message(Size { epsilon: -1.0, ..size }).ends_with("got -1"));
    }
}
