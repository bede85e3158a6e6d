//! The table: what was measured, as a ratio to what, and what is asked of it.

use std::time::Duration;

/// Prints rows as they are measured.
pub(crate) struct Table {
    only: Option<String>,
}

/// How many events were taken in a second, and how long the service's threads ran for each.
#[derive(Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) per_second: f64,
    pub(crate) ran_ns: f64,
}

/// What is asked of a row.
#[derive(Clone, Copy)]
pub(crate) enum Asked {
    /// It is only told.
    Nothing,
    AtLeast(f64),
    AtMost(f64),
}

impl Table {
    /// A table of the rows with this word, or of all.
    pub(crate) fn new(only: Option<String>) -> Self {
        println!("{:<64} {:>20}  {:<36} {:<10}", "row", "measured", "ratio", "asked");
        Self { only }
    }

    pub(crate) fn wants_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.wants(name))
    }

    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|word| name.contains(word))
    }

    /// A rate, and how it compares.
    pub(crate) fn rate(&self, name: &str, rate: Rate, ratio: Option<(f64, &str)>, asked: Asked) {
        let ratio = ratio.map(|(ratio, other)| (ratio, format!("{ratio:.3} x {other}")));
        let (value, text) = ratio.unwrap_or((rate.per_second, String::new()));
        let ran = if rate.ran_ns.is_nan() { String::new() } else { format!(", {:.0} ns", rate.ran_ns) };
        self.row(name, &format!("{:.2} M/s{ran}", rate.per_second / 1e6), &text, asked, value);
    }

    /// A time in milliseconds.
    pub(crate) fn time(&self, name: &str, time: Duration, asked: Asked) {
        let ms = time.as_secs_f64() * 1e3;
        self.row(name, &format!("{ms:.2} ms"), "", asked, ms);
    }

    pub(crate) fn row(&self, name: &str, measured: &str, ratio: &str, asked: Asked, value: f64) {
        if !self.wants(name) {
            return;
        }
        let (asked, is_reached) = match asked {
            Asked::Nothing => (String::new(), None),
            Asked::AtLeast(least) => (format!(">= {least}"), Some(least <= value)),
            Asked::AtMost(most) => (format!("<= {most}"), Some(value <= most)),
        };
        let verdict = is_reached.map_or("", |is_reached| if is_reached { "ok" } else { "SHORT" });
        println!("{name:<64} {measured:>20}  {ratio:<36} {asked:<10} {verdict}");
    }
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
