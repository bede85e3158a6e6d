//! What a reader left out, and when it is too much for the right file.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde::Serialize;

use super::table::grouped;

/// How many bad records are kept as examples.
const EXAMPLES_MAX: usize = 5;
/// A file whose first records are all bad, up to this number, is a wrong file.
const BAD_START: u64 = 100;

/// A record that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BadRecord {
    pub file: PathBuf,
    /// What is counted: a line, or a record of a binary file.
    pub unit: &'static str,
    /// Which one, from 1.
    pub number: u64,
    pub reason: String,
}

/// What was read and what was left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub records: u64,
    /// Records that could not be read.
    pub bad: u64,
    /// The first few of them.
    pub examples: Vec<BadRecord>,
    /// Readable records that lack a field the paper asks for.
    pub incomplete: u64,
    /// Records that were there before.
    pub duplicate: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [records, bad, incomplete, duplicate] =
            [self.records, self.bad, self.incomplete, self.duplicate].map(grouped);
        write!(f, "records: {records} (bad {bad}, incomplete {incomplete}, duplicate {duplicate})")?;
        for BadRecord { file, unit, number, reason } in &self.examples {
            write!(f, "\n  {}: {unit} {number}: {reason}", file.display())?;
        }
        if (self.examples.len() as u64) < self.bad {
            write!(f, "\n  and {} more", grouped(self.bad - self.examples.len() as u64))?;
        }
        Ok(())
    }
}

/// What a file should be.
pub(crate) struct Kind {
    /// As in "an AOL query log".
    pub(crate) name: &'static str,
    /// What its records are counted as: line or record.
    pub(crate) unit: &'static str,
}

/// The report of one file, which must not be mostly bad.
pub(crate) struct FileReport<'a> {
    total: &'a mut Report,
    path: &'a Path,
    kind: &'static Kind,
    records: u64,
    bad: u64,
}

impl<'a> FileReport<'a> {
    pub(crate) fn new(total: &'a mut Report, path: &'a Path, kind: &'static Kind) -> Self {
        Self { total, path, kind, records: 0, bad: 0 }
    }

    /// Counts a record; whether it is good is said afterwards.
    pub(crate) fn record(&mut self) {
        self.records += 1;
        self.total.records += 1;
    }

    pub(crate) fn incomplete(&mut self) {
        self.total.incomplete += 1;
    }

    pub(crate) fn duplicate(&mut self) {
        self.total.duplicate += 1;
    }

    /// Fails when all records were bad so far, and they are many.
    pub(crate) fn bad(&mut self, number: u64, reason: String) -> Result<()> {
        self.bad += 1;
        self.total.bad += 1;
        if self.total.examples.len() < EXAMPLES_MAX {
            let file = self.path.to_owned();
            self.total.examples.push(BadRecord { file, unit: self.kind.unit, number, reason });
        }
        if self.bad == BAD_START && self.records == BAD_START { self.refuse() } else { Ok(()) }
    }

    /// Fails when most records were bad.
    pub(crate) fn finish(self) -> Result<()> {
        if self.records < 2 * self.bad { self.refuse() } else { Ok(()) }
    }

    fn refuse(&self) -> Result<()> {
        let mine = self.total.examples.iter().find(|example| example.file == self.path);
        let first = mine
            .map_or_else(String::new, |bad| format!(", such as {} {}: {}", bad.unit, bad.number, bad.reason));
        bail!(
            "{}: {} of the first {} records are bad{first}; this is not {}: put the right file there",
            self.path.display(),
            self.bad,
            self.records,
            self.kind.name
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(good: u64, bad: u64) -> (Result<()>, Report) {
        let mut total = Report::default();
        let mut file = FileReport::new(&mut total, Path::new("log"), &Kind { name: "a log", unit: "line" });
        (0..good).for_each(|_| file.record());
        let outcome = (0..bad).try_for_each(|number| {
            file.record();
            file.bad(number + 1, format!("{number} is odd"))
        });
        let outcome = outcome.and_then(|()| file.finish());
        (outcome, total)
    }

    #[test]
    fn some_bad_records_are_counted_and_the_first_are_shown() {
        let (outcome, report) = read(1_000, 7);
        outcome.expect("mostly good");
        let text = report.to_string();
        assert!(text.starts_with("records: 1,007 (bad 7, "), "{text}");
        assert!(text.contains("log: line 1: 0 is odd") && text.ends_with("and 2 more"), "{text}");
    }

    #[test]
    fn mostly_bad_records_are_a_wrong_file() {
        for (good, bad) in [(0, 1), (2, 3), (0, 1_000)] {
            let message = read(good, bad).0.expect_err("mostly bad").to_string();
            assert!(message.contains("such as line 1: 0 is odd; this is not a log"), "{message}");
        }
        assert_eq!(read(0, 1_000).1.bad, BAD_START);
    }
}
