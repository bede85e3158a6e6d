//! One budget for what many senders share: memory for bodies, places for requests, places for those who follow streams.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::sync::LockAnyway;

/// A limited amount of something, with a fair part for everybody.
///
/// A holder (a token, an address, a source with a broker) may hold at most as much as is still free. One greedy holder therefore ends
/// with half, two with a third each, and so on: whoever comes next finds something free. Whoever holds nothing may take all that is
/// free at once, so that what fits at all is let in when it is quiet.
///
/// For memory, every amount comes from the envelope of a body: its stated length, the length of its buffers, its number of rows, and
/// never from the items in it. Whether others are refused therefore depends on no item (PRIVACY.md: rule 37).
#[derive(Debug, Clone)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    total: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    by_holder: BTreeMap<Arc<str>, usize>,
}

/// A part of a budget, which is given back when this is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Shared>,
    holder: Arc<str>,
    amount: usize,
}

/// There is not so much left for this holder now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exhausted;

impl Budget {
    /// So much of something, all of it free.
    #[must_use]
    pub fn new(total: usize) -> Self {
        Self(Arc::new(Shared { total, held: Mutex::default() }))
    }

    /// A part of it for a holder.
    pub(crate) fn reserve(&self, holder: &str, amount: usize) -> Result<Reservation, Exhausted> {
        let mut reservation = Reservation { budget: Arc::clone(&self.0), holder: holder.into(), amount: 0 };
        reservation.change(amount)?;
        Ok(reservation)
    }

    /// Whether a holder could have a part of it if nobody held any.
    pub(crate) fn could_ever_hold(&self, amount: usize) -> bool {
        amount <= self.0.total
    }
}

impl Reservation {
    pub(crate) fn amount(&self) -> usize {
        self.amount
    }

    /// Makes it larger or smaller. Smaller it can always be made.
    pub(crate) fn change(&mut self, amount: usize) -> Result<(), Exhausted> {
        let mut held = self.budget.held.lock_anyway();
        let own = held.by_holder.get(&self.holder).copied().unwrap_or(0);
        if self.amount < amount {
            let more = amount - self.amount;
            let free = self.budget.total.saturating_sub(held.all).checked_sub(more).ok_or(Exhausted)?;
            let is_alone = own == self.amount;
            if !is_alone && free < own + more {
                return Err(Exhausted);
            }
        }
        held.all = held.all - self.amount + amount;
        let own = own - self.amount + amount;
        match own {
            0 => _ = held.by_holder.remove(&self.holder),
            own => _ = held.by_holder.insert(Arc::clone(&self.holder), own),
        }
        drop(held);
        self.amount = amount;
        Ok(())
    }

    /// Makes it smaller, if it is larger.
    pub(crate) fn shrink(&mut self, amount: usize) {
        let smaller = self.change(amount.min(self.amount));
        debug_assert!(smaller.is_ok(), "less is always there");
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grab(budget: &Budget, holder: &str) -> Vec<Reservation> {
        std::iter::from_fn(|| budget.reserve(holder, 1).ok()).collect()
    }

    #[test]
    fn whoever_comes_next_finds_something_free() {
        let budget = Budget::new(120);
        let first = grab(&budget, "a");
        assert_eq!(first.len(), 60);
        let second = grab(&budget, "b");
        assert_eq!(second.len(), 30);
        let third = grab(&budget, "c");
        assert_eq!(third.len(), 15);
        assert_eq!(budget.reserve("a", 1).err(), Some(Exhausted));
        drop((first, second, third));
        assert_eq!(grab(&budget, "a").len(), 60);
    }

    #[test]
    fn what_fits_is_let_in_when_it_is_quiet_and_all_of_it_comes_back() {
        let budget = Budget::new(100);
        let mut all = budget.reserve("a", 100).expect("nobody holds any");
        assert!(budget.reserve("b", 1).is_err() && budget.reserve("a", 1).is_err());
        all.shrink(70);
        let b = budget.reserve("b", 30).expect("it is free");
        assert_eq!(all.change(71), Err(Exhausted));
        drop(b);
        all.change(100).expect("it is alone");
        drop(all);
        assert!(budget.reserve("b", 101).is_err());
        assert!(budget.0.held.lock_anyway().by_holder.is_empty() && budget.0.held.lock_anyway().all == 0);
    }
}
