//! Discovery as a table for people.

use std::fmt::Write;

use super::run::{Measured, Row};
use super::surge::SHARES;
use crate::chart::short;
use crate::source::table::grouped;

/// One line per stream and window.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "Keys found without a list, after the first window: the share of the true top 20 that was found; how often the \
         true first\nis missing; windows until anything is listed (median of the seeds); items until a new key that \
         suddenly takes 60, 10\nor 3 % of the stream is listed (median). W: substreams of a window. *: the stream is \
         too short and was repeated.\n\n\
         stream              window   eps  delta   W  recall  first missing  first answer     60 %     10 %      3 %\n",
    );
    for row in rows {
        let name = format!("{:<16} {:>9}", row.case.stream, grouped(row.case.window));
        let _ = match &row.result {
            Ok(measured) => writeln!(text, "{name} {}", line(measured, row.case.window)),
            Err(reason) => writeln!(text, "{name}  {reason}"),
        };
    }
    text
}

fn line(measured: &Measured, window: u64) -> String {
    let mean = |summary: Option<crate::sweep::Summary>| summary.map_or(f64::NAN, |summary| summary.mean);
    let or_never = |items: Option<f64>, text: &dyn Fn(f64) -> String| {
        items.filter(|items| items.is_finite()).map_or_else(|| "never".to_owned(), text)
    };
    let delays = SHARES.map(|share| format!("{:>8}", or_never(measured.delay(share), &short)));
    let first = or_never(measured.first_answer(), &|items| format!("{:.2}", items / window as f64));
    format!(
        "{:>5} {:>6e} {:>3}{} {:>6.2} {:>14.2} {first:>13} {}",
        measured.epsilon,
        measured.delta,
        measured.substreams,
        if measured.is_repeated() { "*" } else { " " },
        mean(measured.summary(|outcome| outcome.recall)),
        mean(measured.summary(|outcome| outcome.first_missing)),
        delays.join(" ")
    )
}
