//! Requests of the made-up shop, for ever: what rises falls again, and what falls rises.

use std::fmt::Write;

use crate::demo::dice::{Dice, Zipf};
use crate::demo::shop::{self, Page};

/// Requests until the pages that move are where they were.
const ROUND: u64 = 240_000;

pub(crate) struct Visits {
    dice: Dice,
    pages: Vec<Page>,
    ranks: Zipf,
    number: u64,
}

impl Visits {
    pub(crate) fn new() -> Self {
        let pages = shop::pages();
        let ranks = Zipf::new(pages.len() as u32);
        Self { dice: Dice::new(), pages, ranks, number: 0 }
    }

    /// So many requests, a JSON document per line.
    pub(crate) fn batch(&mut self, requests: u64) -> String {
        let mut lines = String::new();
        for _ in 0..requests {
            let (path, status) = self.request();
            // Writing to memory cannot fail. Paths of the shop need no escapes.
            let _ = writeln!(lines, r#"{{"page":"{path}","status":{status}}}"#);
        }
        lines
    }

    fn request(&mut self) -> (&str, u16) {
        let Self { dice, pages, ranks, number, .. } = self;
        let moving = shop::moving(swing(*number), dice);
        *number += 1;
        let page = moving.unwrap_or_else(|| &pages[ranks.rank(dice)]);
        let status = page.status(dice);
        (page.path(), status)
    }
}

/// How far the pages have moved: from where they stand to the end of the log and back.
fn swing(number: u64) -> f64 {
    let turned = (number % ROUND) as f64 / ROUND as f64;
    let there_and_back = 1.0 - (1.0 - 2.0 * turned).abs();
    shop::MOVES_FROM + (1.0 - shop::MOVES_FROM) * there_and_back
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_documents_and_pages_rise_and_fall_in_turns() {
        let mut visits = Visits::new();
        let quarter = ROUND / 4;
        // Around the start, the middle and the start of the next round.
        let [first, _, middle, _, last] = [(); 5].map(|()| visits.batch(quarter));
        for line in first.lines().take(500) {
            let document: serde_json::Value = serde_json::from_str(line).expect("JSON");
            assert!(document["page"].as_str().is_some_and(|page| page.starts_with('/')), "{line}");
            assert!(document["status"].is_u64(), "{line}");
        }
        let rising = |batch: &str| batch.matches(&format!("\"{}\"", shop::RISING)).count();
        assert!(3 * rising(&first) < 2 * rising(&middle) && 3 * rising(&last) < 2 * rising(&middle));
    }
}
