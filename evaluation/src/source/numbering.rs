//! Items numbered from 0, with their names, in time order.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use anyhow::{Context, Result};
use dpsw::plan::ExpectedDrift;

use super::report::Report;
use crate::dataset::Dataset;

/// A stream from raw files.
#[derive(Debug)]
pub struct Loaded {
    /// The items in time order, numbered by first appearance; items of the domain that never appear come last.
    pub dataset: Dataset,
    pub names: Vec<String>,
    pub report: Report,
}

impl Loaded {
    /// A stream of numbered events that may be out of order; those of one time keep their order.
    ///
    /// `limit` takes the first items alone; the domain stays whole.
    pub(crate) fn from_events(
        name: &str,
        mut events: Vec<Event>,
        names: Vec<String>,
        limit: Option<usize>,
        report: Report,
    ) -> Self {
        events.sort_by_key(|event| event.time);
        events.truncate(limit.unwrap_or(usize::MAX));
        let mut order = Order::new(names.len());
        let items = events.iter().map(|event| order.number(event.item)).collect();
        Self::new(name, items, order.arrange(names), report)
    }

    pub(crate) fn new(name: &str, items: Vec<u64>, names: Vec<String>, report: Report) -> Self {
        let dataset = Dataset {
            name: name.to_owned(),
            items,
            domain_len: names.len(),
            drift: Some(ExpectedDrift::MODERATE),
        };
        Self { dataset, names, report }
    }
}

/// An item at a time, in seconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) time: u32,
    pub(crate) item: u32,
}

/// Gives each key a number in the order of first appearance.
pub(crate) struct Numbering<K> {
    known: HashMap<K, u32>,
}

impl<K: Hash + Eq> Numbering<K> {
    pub(crate) fn new() -> Self {
        Self { known: HashMap::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// Fails after 2³² different keys.
    pub(crate) fn number<Q>(&mut self, key: &Q) -> Result<u32>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        if let Some(&number) = self.known.get(key) {
            return Ok(number);
        }
        let next = u32::try_from(self.known.len()).context("there are more than 2^32 different items")?;
        self.known.insert(key.to_owned(), next);
        Ok(next)
    }

    pub(crate) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<u32>
    where
        K: Borrow<Q>,
    {
        self.known.get(key).copied()
    }

    /// The keys and their numbers in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, u32)> {
        self.known.iter().map(|(key, &number)| (key, number))
    }

    /// The keys by number.
    pub(crate) fn into_keys(self) -> Vec<K> {
        let mut pairs: Vec<(K, u32)> = self.known.into_iter().collect();
        pairs.sort_unstable_by_key(|&(_, number)| number);
        pairs.into_iter().map(|(key, _)| key).collect()
    }
}

/// Numbers anew by first appearance.
struct Order {
    /// The new number of each old one.
    numbers: Vec<Option<u32>>,
    len: u32,
}

impl Order {
    fn new(len: usize) -> Self {
        Self { numbers: vec![None; len], len: 0 }
    }

    fn number(&mut self, old: u32) -> u64 {
        let number = *self.numbers[old as usize].get_or_insert_with(|| {
            self.len += 1;
            self.len - 1
        });
        u64::from(number)
    }

    /// The names by new number, those without one last.
    fn arrange(self, names: Vec<String>) -> Vec<String> {
        let mut pairs: Vec<(u32, String)> =
            self.numbers.into_iter().map(|number| number.unwrap_or(u32::MAX)).zip(names).collect();
        pairs.sort_by_key(|&(number, _)| number);
        pairs.into_iter().map(|(_, name)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_sorted_by_time_and_ties_keep_their_order() {
        let events = [(9, 0), (3, 2), (5, 1), (3, 0)].map(|(time, item)| Event { time, item }).to_vec();
        let names = ["a", "b", "c", "unseen"].map(str::to_owned).to_vec();
        let loaded =
            |limit| Loaded::from_events("x", events.clone(), names.clone(), limit, Report::default());
        let whole = loaded(None);
        assert_eq!(whole.names, ["c", "a", "b", "unseen"]);
        assert_eq!((whole.dataset.items, whole.dataset.domain_len), (vec![0, 1, 2, 1], 4));
        assert_eq!(loaded(Some(2)).dataset.items, [0, 1]);
    }

    #[test]
    fn keys_come_back_by_number() {
        let mut numbering = Numbering::<String>::new();
        let numbers: Vec<u32> =
            ["x", "y", "x"].iter().map(|key| numbering.number(*key).expect("few")).collect();
        assert_eq!(numbers, [0, 1, 0]);
        assert_eq!((numbering.get("y"), numbering.get("z")), (Some(1), None));
        assert_eq!(numbering.into_keys(), ["x", "y"]);
    }
}
