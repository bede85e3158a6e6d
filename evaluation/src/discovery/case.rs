//! What is measured: a stream and a window.

use std::sync::Arc;

use anyhow::Result;
use dpsw::{Domain, Kind, Plan, SearchSettings, Settings};
use serde::{Deserialize, Serialize};

use crate::dataset::{Dataset, Synthetic};
use crate::preset::{Preset, Values};
use crate::stream::{REAL_STREAMS, Shelf, Stream};

/// ε of all cases.
const EPSILON: f64 = 1.0;
/// δ of all cases.
pub(super) const DELTA: f64 = 1e-10;
/// Synthetic streams last this many windows.
const WINDOWS: u64 = 3;
/// A real stream lasts at least this many windows.
const WINDOWS_MIN: u64 = 2;
/// A real stream is followed for this many windows.
const WINDOWS_MAX: u64 = 30;

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    pub stream: String,
    /// w, in items.
    pub window: u64,
}

impl Case {
    /// Every case of a preset, with those of a stream together.
    pub fn all(preset: &Preset, is_present: impl Fn(&str) -> bool) -> Vec<Self> {
        if preset.values == Values::Ends {
            return vec![Self { stream: "zipf".to_owned(), window: preset.window }];
        }
        let streams = Synthetic::NAMES.into_iter().chain(REAL_STREAMS.iter().map(|real| real.name));
        let cases = |name: &'static str| {
            windows(name).into_iter().map(|window| Self { stream: name.to_owned(), window })
        };
        streams.filter(|name| is_present(name)).flat_map(cases).collect()
    }

    pub(super) fn plan(&self) -> Result<Plan> {
        let domain = Domain::Found(SearchSettings::new(Kind::Integers));
        let settings = Settings::last_items(self.window, EPSILON)?.with_domain(domain).with_delta(DELTA)?;
        Ok(settings.plan()?)
    }

    pub(super) fn stream(&self, preset: &Preset, seed: u64) -> Stream {
        let is_synthetic = Synthetic::named(&self.stream).is_some();
        let items = if is_synthetic { (WINDOWS * self.window) as usize } else { usize::MAX };
        Stream::new(&self.stream, preset.domain, items, self.window, seed)
    }

    /// The items, again from the start where they are too few.
    pub(super) fn followed(&self, preset: &Preset, shelf: &Shelf, seed: u64) -> Result<Followed> {
        let dataset = shelf.get(&self.stream(preset, seed))?;
        let len = dataset.items.len() as u64;
        let followed = len.clamp(WINDOWS_MIN * self.window, WINDOWS_MAX * self.window);
        Ok(Followed { dataset, len: followed as usize })
    }
}

/// A stream as long as it is followed.
pub(super) struct Followed {
    dataset: Arc<Dataset>,
    len: usize,
}

impl Followed {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether the stream is shorter, so that it is repeated.
    pub(super) fn is_repeated(&self) -> bool {
        self.dataset.items.len() < self.len
    }

    /// How many different items there can be.
    pub(super) fn keys(&self) -> usize {
        self.dataset.domain_len
    }

    /// The items from a position on, without end.
    pub(super) fn from(&self, start: usize) -> impl Iterator<Item = u64> {
        let items = &self.dataset.items;
        (start..).map(|index| items[index % items.len()])
    }
}

/// Windows in which keys near the threshold of the search matter.
fn windows(name: &str) -> Vec<u64> {
    match name {
        "void-touches" => vec![20_000, 50_000, 100_000, 300_000],
        "kosarak" => vec![20_000, 100_000],
        _ => match REAL_STREAMS.iter().find(|real| real.name == name).map(|real| real.window_len) {
            None => vec![100_000, 1_000_000],
            Some(len) if 200_000 <= len => vec![100_000, len],
            Some(len) => vec![len],
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_is_too_short_is_repeated() {
        let dataset = Dataset { name: "x".to_owned(), items: vec![4, 5, 6], domain_len: 7, drift: None };
        let followed = Followed { dataset: Arc::new(dataset), len: 5 };
        assert!(followed.is_repeated());
        assert_eq!(followed.from(2).take(5).collect::<Vec<u64>>(), [6, 4, 5, 6, 4]);
    }

    #[test]
    fn streams_that_are_absent_are_left_out() {
        let cases = Case::all(&Preset::quick(), |name| name == "void-touches");
        let windows: Vec<u64> = cases.iter().map(|case| case.window).collect();
        assert_eq!(windows, [20_000, 50_000, 100_000, 300_000]);
    }
}
