//! Keys that were chosen beforehand, asked by name.

use std::fmt;

use anyhow::Result;
use dpsw::WindowView;
use rand::RngExt;
use rand::rngs::ChaCha12Rng;
use serde::{Deserialize, Serialize};

use super::arrivals::Occurrences;
use super::listed::share;

/// A key that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// Its true rank over the whole stream, or what it is in the stream.
    pub name: String,
    pub item: u64,
}

impl Chosen {
    /// A key of this name.
    pub fn new(name: impl Into<String>, item: u64) -> Self {
        Self { name: name.into(), item }
    }
}

/// How long the window is that is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asked {
    Whole,
    Third,
    Substream,
    Quarter,
    Tenth,
    Fiftieth,
}

impl Asked {
    /// The longest first.
    pub const ALL: [Self; 6] =
        [Self::Whole, Self::Third, Self::Substream, Self::Quarter, Self::Tenth, Self::Fiftieth];

    fn len(self, view: &WindowView) -> u64 {
        let window_len = view.plan().settings().window.len();
        let substream_len = view.plan().substream_len();
        let len = match self {
            Self::Whole => window_len,
            Self::Third => window_len / 3,
            Self::Substream => substream_len,
            Self::Quarter => substream_len / 4,
            Self::Tenth => substream_len / 10,
            Self::Fiftieth => substream_len / 50,
        };
        len.max(1)
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Whole => "w",
            Self::Third => "w/3",
            Self::Substream => "L",
            Self::Quarter => "L/4",
            Self::Tenth => "0.1 L",
            Self::Fiftieth => "0.02 L",
        })
    }
}

/// When the window ends that is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ends {
    /// Where the stream stands.
    Now,
    /// At a past position, drawn from all that are retained.
    Before,
}

/// How often the intervals of one key over one kind of window hold the truth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    pub key: String,
    pub asked: Asked,
    pub ends: Ends,
    pub answers: u64,
    /// Answers whose 95 % interval holds the true count.
    pub covered: u64,
    /// Answers whose interval for any order inside substreams does.
    pub any_order: u64,
}

/// All cells, in the order in which they were first asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cells(Vec<Cell>);

impl Cells {
    /// Asks for each key over each window, up to now and up to a past position.
    pub fn ask(
        &mut self,
        view: &WindowView,
        truth: &Occurrences,
        chosen: &[Chosen],
        random: &mut ChaCha12Rng,
    ) -> Result<()> {
        for asked in Asked::ALL {
            let view = view.last(asked.len(view))?;
            self.ask_over(&view, truth, chosen, (asked, Ends::Now))?;
            if let Some(past) = past(&view, random)? {
                self.ask_over(&past, truth, chosen, (asked, Ends::Before))?;
            }
        }
        Ok(())
    }

    fn ask_over(
        &mut self,
        view: &WindowView,
        truth: &Occurrences,
        chosen: &[Chosen],
        (asked, ends): (Asked, Ends),
    ) -> Result<()> {
        for Chosen { name, item } in chosen {
            let estimate = view.frequency(*item)?;
            let count = truth.count(*item, &view.window()) as f64;
            let error = (estimate.value - count).abs();
            let any_order = estimate.any_order.start..=estimate.any_order.end;
            let cell = Cell {
                key: name.clone(),
                asked,
                ends,
                answers: 1,
                covered: u64::from(error <= estimate.error_bound),
                any_order: u64::from(any_order.contains(&count)),
            };
            self.put(&cell);
        }
        Ok(())
    }

    fn put(&mut self, cell: &Cell) {
        let is_same =
            |known: &&mut Cell| known.key == cell.key && known.asked == cell.asked && known.ends == cell.ends;
        match self.0.iter_mut().find(is_same) {
            None => self.0.push(cell.clone()),
            Some(known) => {
                known.answers += cell.answers;
                known.covered += cell.covered;
                known.any_order += cell.any_order;
            }
        }
    }

    /// Adds what another seed, or another stream, showed.
    pub fn add(&mut self, other: &Self) {
        other.0.iter().for_each(|cell| self.put(cell));
    }

    /// The share of answers that hold the truth, of the cells that are wanted.
    pub fn coverage(&self, is_wanted: impl Fn(&Cell) -> bool) -> Option<f64> {
        self.share_of(|cell| cell.covered, is_wanted)
    }

    /// The share of what is counted in the cells that are wanted.
    pub(super) fn share_of(
        &self,
        count: impl Fn(&Cell) -> u64,
        is_wanted: impl Fn(&Cell) -> bool,
    ) -> Option<f64> {
        let wanted = || self.0.iter().filter(|cell| is_wanted(cell));
        share(wanted().map(count).sum(), wanted().map(|cell| cell.answers).sum())
    }

    pub fn names(&self) -> Vec<&str> {
        crate::results::distinct(self.0.iter().map(|cell| cell.key.as_str()))
    }
}

/// The same window at a past position, if one that long is retained.
fn past(view: &WindowView, random: &mut ChaCha12Rng) -> Result<Option<WindowView>> {
    let (window, retained) = (view.window(), view.retained());
    let first = retained.start + (window.end - window.start);
    if window.end <= first {
        return Ok(None);
    }
    Ok(Some(view.as_of(random.random_range(first..window.end))?))
}
