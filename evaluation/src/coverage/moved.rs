//! Trends of a stream that stands still.

use anyhow::Result;
use dpsw::{Direction, Item, WindowView};
use serde::{Deserialize, Serialize};

use super::chosen::Chosen;
use super::listed::{LISTED, share};

/// How often keys of a stream that stands still are said to rise or to fall.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// Keys that were chosen beforehand.
    pub chosen: u64,
    /// Of those, said to move.
    pub chosen_moved: u64,
    /// Rows of the top 20.
    pub listed: u64,
    /// Of those, said to move.
    pub listed_moved: u64,
}

impl Moved {
    /// Asks for the trends of chosen keys and of listed rows.
    pub fn ask(&mut self, view: &WindowView, chosen: &[Chosen]) -> Result<()> {
        let moves = |item: Item<'_>| view.trend(item).map(|trend| trend.direction != Direction::Steady);
        for key in chosen {
            self.chosen += 1;
            self.chosen_moved += u64::from(moves(Item::Integer(key.item))?);
        }
        for row in view.top(LISTED)? {
            self.listed += 1;
            self.listed_moved += u64::from(moves(row.item)?);
        }
        Ok(())
    }

    pub fn add(&mut self, other: &Self) {
        self.chosen += other.chosen;
        self.chosen_moved += other.chosen_moved;
        self.listed += other.listed;
        self.listed_moved += other.listed_moved;
    }

    /// The share of chosen keys that are said to move.
    pub fn chosen_share(&self) -> Option<f64> {
        share(self.chosen_moved, self.chosen)
    }

    /// The share of listed rows that are said to move.
    pub fn listed_share(&self) -> Option<f64> {
        share(self.listed_moved, self.listed)
    }
}
