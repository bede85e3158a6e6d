//! Coverage as tables for people.

use std::fmt::Write;

use super::case::Case;
use super::chosen::{Asked, Cell, Cells, Ends};
use super::run::{Measured, Row};
use crate::source::table::grouped;

/// Every number as tables: listed rows, keys chosen beforehand by stream and by key, trends, and what could not be run.
pub fn table(rows: &[Row]) -> String {
    let measured: Vec<(&Case, &Measured)> =
        rows.iter().filter_map(|row| Some((&row.case, row.result.as_ref().ok()?))).collect();
    [listed(&measured), chosen(&measured), by_key(&measured), moved(&measured), absent(rows)].concat()
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}", 100.0 * share))
}

/// The start of every line: stream, window, ε, what the plan holds.
fn start(case: &Case, measured: &Measured) -> String {
    let memory = match (case.bytes, measured.own_counters) {
        (None, true) => "own".to_owned(),
        (None, false) => "hashed".to_owned(),
        (Some(bytes), _) => format!("{} KB", bytes / 1000),
    };
    let (window, keys) = (grouped(case.window), grouped(measured.keys));
    format!(
        "{:<16} {window:>9} {:>4} {keys:>8} {memory:>7} {:>3}",
        case.stream, case.epsilon, measured.substreams
    )
}

const START: &str = "stream              window  eps     keys counters   W";

fn listed(rows: &[(&Case, &Measured)]) -> String {
    let mut text = format!(
        "Rows listed by top 20, in percent but for width: intervals that hold the truth, of listed rows and of all, with \
         those that are\nhidden; the mean width of listed intervals over that for keys chosen beforehand; of unmarked \
         rows: truth below a quarter of\nwhat is shown (ghosts), true count at least the 20th largest but for 3 standard \
         errors (right); of the true top 20: listed\nunmarked (found); times at which the 20th largest count exceeds 8 \
         standard errors (clear);\nstrict intervals of all rows that hold the truth (strict).\n\n\
         {START}  listed covered   all width ghosts right found clear strict\n"
    );
    for (case, measured) in rows.iter().filter(|(case, _)| case.retention == 1) {
        let total = measured.total().listed;
        let _ = writeln!(
            text,
            "{} {:>7.1} {:>7} {:>5} {:>5} {:>6} {:>5} {:>5} {:>5} {:>6}",
            start(case, measured),
            total.rows as f64 / total.queries.max(1) as f64,
            percent(total.coverage()),
            percent(total.coverage_of_all()),
            total.relative_width().map_or_else(|| "-".to_owned(), |width| format!("{width:.2}")),
            percent(total.ghost_share()),
            percent(total.precision()),
            percent(total.recall()),
            percent(total.clear_share()),
            percent(total.strict_coverage()),
        );
    }
    text
}

/// Windows up to now, then those up to a past position.
fn ends() -> impl Iterator<Item = (Asked, Ends)> {
    [Ends::Now, Ends::Before].into_iter().flat_map(|ends| Asked::ALL.map(|asked| (asked, ends)))
}

fn window_names() -> String {
    let name = |(asked, ends): (Asked, Ends)| match ends {
        Ends::Now => format!(" {asked:>6}"),
        Ends::Before => format!(" {:>7}", format!("<{asked}")),
    };
    ends().map(name).collect()
}

fn coverages(cells: &Cells, count: fn(&Cell) -> u64, is_wanted: impl Fn(&str) -> bool) -> String {
    let coverage = |(asked, ends): (Asked, Ends)| {
        let is_asked = |cell: &Cell| cell.asked == asked && cell.ends == ends && is_wanted(&cell.key);
        let share = cells.share_of(count, is_asked);
        let width = if ends == Ends::Now { 6 } else { 7 };
        format!(" {:>width$}", percent(share))
    };
    ends().map(coverage).collect()
}

fn chosen(rows: &[(&Case, &Measured)]) -> String {
    let mut text = format!(
        "\nKeys chosen beforehand: intervals that hold the truth, in percent, for windows up to now and (<) up to a past \
         position.\nL is the length of a substream.\n\n{START} {}\n",
        window_names()
    );
    for (case, measured) in rows.iter().filter(|(case, _)| case.keys.is_none()) {
        let cells = measured.total().chosen;
        let _ =
            writeln!(text, "{} {}", start(case, measured), coverages(&cells, |cell| cell.covered, |_| true));
    }
    text
}

fn by_key(rows: &[(&Case, &Measured)]) -> String {
    let mut cells = Cells::default();
    rows.iter().for_each(|(_, measured)| cells.add(&measured.total().chosen));
    let even = keys(&cells, "The same by true rank, over all streams.", |cell| cell.covered);
    let title = "Intervals for any order of the items inside a substream.";
    even + &keys(&cells, title, |cell| cell.any_order)
}

fn keys(cells: &Cells, title: &str, count: fn(&Cell) -> u64) -> String {
    let mut text = format!("\n{title}\n\n{:<12} {}\n", "key", window_names());
    for name in cells.names() {
        let _ = writeln!(text, "{name:<12} {}", coverages(cells, count, |key| key == name));
    }
    text
}

fn moved(rows: &[(&Case, &Measured)]) -> String {
    let mut text = format!(
        "\nTrends of streams that stand still: said to rise or to fall, in percent. With 2 windows kept, this window \
         against the\none before; else its newer half against its older half.\n\n{START}  kept chosen listed\n"
    );
    for (case, measured) in rows {
        let moved = measured.total().moved;
        if 0 < moved.listed {
            let _ = writeln!(
                text,
                "{} {:>5} {:>6} {:>6}",
                start(case, measured),
                case.retention,
                percent(moved.chosen_share()),
                percent(moved.listed_share())
            );
        }
    }
    text
}

fn absent(rows: &[Row]) -> String {
    let mut text = String::new();
    for (case, reason) in rows.iter().filter_map(|row| Some((&row.case, row.result.as_ref().err()?))) {
        let _ = writeln!(text, "{} {} {}: {reason}", case.stream, grouped(case.window), case.epsilon);
    }
    if text.is_empty() { text } else { format!("\nCould not be run:\n{text}") }
}
