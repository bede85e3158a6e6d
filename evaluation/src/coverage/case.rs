//! What is measured: a stream, a window, a budget, and the keys and bytes of the plan.

use anyhow::Result;
use dpsw::plan::Request;
use dpsw::{Plan, Settings, Window};
use serde::{Deserialize, Serialize};

use super::arrivals::Arrivals;
use super::chosen::Chosen;
use super::made::Made;
use crate::dataset::Synthetic;
use crate::preset::{Preset, Values};
use crate::stream::{REAL_STREAMS, Shelf, Stream};

/// What is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    pub stream: String,
    /// The window, in items or ticks.
    pub window: u64,
    pub epsilon: f64,
    /// Keys of the public list: the most frequent ones of the stream, then made-up ones. `None`: all of the stream and
    /// three made-up ones.
    pub keys: Option<usize>,
    /// Bytes of the sketches. `None`: what the planner takes where nothing is said.
    pub bytes: Option<u64>,
    /// Windows of sealed substreams that are kept.
    pub retention: u32,
}

/// Ranks of keys that are asked for.
const RANKS: [u64; 7] = [1, 3, 10, 30, 100, 300, 1000];
/// Keys that are asked for and never occur.
pub(super) const ABSENT: usize = 3;
/// A stream is followed for this many windows at most.
const WINDOWS_MAX: u64 = 60;
/// A synthetic stream has this many items, but at least 4 and at most 40 windows.
const SYNTHETIC_ITEMS: u64 = 200_000;
/// Windows, beside that of a stream, of which counts of the last come near the noise.
const SHORTER: [u64; 3] = [30_000, 6_000, 2_000];
/// Bytes where memory is scarce.
pub(super) const SCARCE: u64 = 100_000;
/// Keys of a list that is far too long, and of shorter ones.
pub(super) const LONG_LIST: usize = 100_000;
const LISTS: [usize; 2] = [1_000, 10_000];

/// Keys by their rank, where the first one is this item, and some that never occur.
pub(super) fn by_rank(first: u64, keys: usize) -> impl Iterator<Item = Chosen> {
    let ranks = RANKS.into_iter().filter(move |&rank| rank <= keys as u64);
    let present = ranks.map(move |rank| Chosen::new(rank.to_string(), first + rank - 1));
    present.chain((0..ABSENT as u64).map(move |index| Chosen::new("absent", first + keys as u64 + index)))
}

impl Case {
    /// Every case of a preset, with those of a stream together.
    pub fn all(preset: &Preset, is_present: impl Fn(&str) -> bool) -> Vec<Self> {
        let streams = Synthetic::NAMES.into_iter().chain(REAL_STREAMS.iter().map(|real| real.name));
        let streams = streams.filter(|name| is_present(name));
        let mut cases: Vec<Self> = match preset.values {
            Values::Ends => Self::of_stream("zipf", &[6_000], &[1.0]),
            _ => streams.flat_map(|name| Self::of_stream(name, &windows(name), &[1.0, 0.1])).collect(),
        };
        let (made_window, third_window, still) = match preset.values {
            Values::Ends => (10_000, 2_000, 6_000),
            _ => (100_000, 5_000, 100_000),
        };
        for made in Made::ALL {
            cases.extend(match made {
                Made::Third => vec![Self::new(made.name(), third_window, 5.0)],
                _ => [1.0, 0.1].map(|epsilon| Self::new(made.name(), made_window, epsilon)).to_vec(),
            });
        }
        let kept_longer = |name| Self { retention: 2, ..Self::new(name, still, 1.0) };
        cases.extend(["zipf", "gauss"].map(kept_longer));
        cases
    }

    fn new(stream: &str, window: u64, epsilon: f64) -> Self {
        Self { stream: stream.to_owned(), window, epsilon, keys: None, bytes: None, retention: 1 }
    }

    fn of_stream(name: &str, windows: &[u64], epsilons: &[f64]) -> Vec<Self> {
        let mut cases = Vec::new();
        for (index, &window) in windows.iter().enumerate() {
            for &epsilon in epsilons {
                let plain = Self::new(name, window, epsilon);
                cases.push(plain.clone());
                cases.push(Self { bytes: Some(SCARCE), ..plain.clone() });
                cases.push(Self { keys: Some(LONG_LIST), ..plain.clone() });
                if index == 0 {
                    cases.extend(LISTS.map(|keys| Self { keys: Some(keys), ..plain.clone() }));
                }
            }
        }
        cases
    }

    fn made(&self) -> Option<Made> {
        Made::named(&self.stream)
    }

    /// The stream on the shelf, if it is not made for its plan.
    pub(super) fn stream(&self, preset: &Preset, seed: u64) -> Option<Stream> {
        self.made().is_none().then(|| self.on_shelf(preset, seed))
    }

    fn on_shelf(&self, preset: &Preset, seed: u64) -> Stream {
        let items = match Synthetic::named(&self.stream) {
            Some(_) => (4 * self.window).max(SYNTHETIC_ITEMS.min(40 * self.window)) as usize,
            None => usize::MAX,
        };
        Stream::new(&self.stream, preset.domain, items, self.window, seed)
    }

    /// How many keys the stream has.
    pub(super) fn keys_of_stream(&self, preset: &Preset, shelf: &Shelf) -> Result<usize> {
        match self.made() {
            Some(made) => Ok(made.keys()),
            None => Ok(shelf.extent(&self.on_shelf(preset, 0))?.domain_len),
        }
    }

    pub(super) fn plan(&self, keys: usize) -> Result<Plan> {
        let window = self.made().map_or(Window::Items(self.window), |made| made.window(self.window));
        let listed = self.keys.unwrap_or(keys + ABSENT) as u64;
        let settings =
            Settings::new(window, self.epsilon)?.with_keys(0..listed).with_retention(self.retention);
        Ok(match self.bytes {
            None => settings.plan()?,
            Some(bytes) => Request::new(settings).with_bytes(bytes).plan()?.plan,
        })
    }

    pub(super) fn arrivals(
        &self,
        preset: &Preset,
        shelf: &Shelf,
        plan: &Plan,
        seed: u64,
    ) -> Result<Arrivals> {
        if let Some(made) = self.made() {
            return Ok(made.arrivals(self.window, plan.substream_len(), seed));
        }
        let dataset = shelf.get(&self.on_shelf(preset, seed))?;
        Ok(Arrivals::ranked(&dataset, (WINDOWS_MAX * self.window) as usize))
    }

    /// The keys that are asked for by name; none where the list is not that of the stream.
    pub(super) fn chosen(&self, keys: usize) -> Vec<Chosen> {
        match (self.keys, self.made()) {
            (Some(_), _) => Vec::new(),
            (None, Some(made)) => made.chosen(),
            (None, None) => by_rank(0, keys).collect(),
        }
    }

    pub(super) fn asked_from(&self) -> u64 {
        self.made().map_or(self.window, |made| made.asked_from(self.window))
    }

    /// Whether no share of the stream ever changes.
    pub fn stands_still(&self) -> bool {
        match self.made() {
            Some(made) => made.stands_still(),
            None => matches!(Synthetic::named(&self.stream), Some(Synthetic::Zipf | Synthetic::Gauss)),
        }
    }
}

/// The window of a stream and shorter ones, each at most half of the one before but for the last.
fn windows(name: &str) -> Vec<u64> {
    let real = REAL_STREAMS.iter().find(|real| real.name == name);
    let mut windows = vec![real.map_or(300_000, |real| real.window_len)];
    let last = |windows: &[u64]| *windows.last().expect("there is a window");
    for shorter in &SHORTER[..2] {
        if 2 * shorter <= last(&windows) {
            windows.push(*shorter);
        }
    }
    if windows.len() == 1 {
        windows.push(SHORTER[2]);
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stream_has_its_own_window_and_short_ones() {
        for (name, wanted) in [
            ("orm-busy", &[1_000_000, 30_000, 6_000][..]),
            ("movielens-small", &[40_000, 6_000]),
            ("nasa", &[10_000, 2_000]),
            ("zipf", &[300_000, 30_000, 6_000]),
        ] {
            assert_eq!(windows(name), wanted, "{name}");
        }
    }

    #[test]
    fn streams_that_are_absent_are_left_out_and_no_case_is_run_twice() {
        let cases = Case::all(&Preset::quick(), |name| name != "retail");
        assert!(cases.iter().any(|case| case.stream == "nasa" && case.bytes == Some(SCARCE)));
        assert!(cases.iter().all(|case| case.stream != "retail"));
        for (index, case) in cases.iter().enumerate() {
            assert!(!cases[..index].contains(case), "{case:?}");
        }
    }
}
