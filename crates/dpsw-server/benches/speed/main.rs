//! How fast the service is, as ratios in one run: `cargo bench -p dpsw-server --bench speed`.
//!
//! After `--`: `--quick` for short rounds, or a word for the rows whose names have it. The service is a process of its own, and
//! so is Redis; clients run here, on the same machine. All that is compared is measured in turn, in short rounds, and a ratio is
//! the median of those within a round.

mod clients;
mod events;
mod live;
mod questions;
mod rates;
mod redis;
mod restart;
mod service;
mod table;

use std::time::Duration;

use crate::service::{WITHOUT_DURABILITY, run_without_durability};
use crate::table::Table;

/// How long and how often things are measured.
#[derive(Debug, Clone, Copy)]
struct Effort {
    /// How long each side is measured in a round.
    round: Duration,
    rounds: usize,
    /// How long questions are asked under each load.
    asking: Duration,
}

const USUAL: Effort =
    Effort { round: Duration::from_millis(1500), rounds: 7, asking: Duration::from_secs(6) };
const QUICK: Effort =
    Effort { round: Duration::from_millis(500), rounds: 3, asking: Duration::from_millis(1500) };

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, settings, ..] = arguments.as_slice()
        && word == WITHOUT_DURABILITY
    {
        return run_without_durability(settings.as_ref());
    }
    let effort = if arguments.iter().any(|word| word == "--quick") { QUICK } else { USUAL };
    let only = arguments.into_iter().find(|word| !word.starts_with("--"));
    let table = Table::new(only);
    if table.wants_any(&rates::NAMES) {
        rates::measure(effort, &table);
    }
    if table.wants_any(&questions::NAMES) {
        questions::measure(effort, &table);
    }
    if table.wants_any(&[live::NAME]) {
        live::measure(&table);
    }
    if table.wants_any(&restart::NAMES) {
        restart::measure(&table);
    }
}
