//! Choices that a number repeats: about plans, events and operations, never about noise.

use crate::noise::generator::{Generator, Noise};

pub(super) struct Dice(Generator);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(Noise::seeded(seed).generator().expect("a seed is enough"))
    }

    pub(super) fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Other dice, for what may go differently on neighbours.
    pub(super) fn fork(&mut self) -> Self {
        Self::new(self.word())
    }

    /// Below a bound of at least 1.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.word() % bound
    }

    /// Once in so many times.
    pub(super) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(super) fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }

    pub(super) fn shuffle<T>(&mut self, all: &mut [T]) {
        for end in (1..all.len()).rev() {
            all.swap(end, self.below(end as u64 + 1) as usize);
        }
    }
}
