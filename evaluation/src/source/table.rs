//! The paper's table of data sets, next to what is found in a data folder.

use std::path::Path;

use serde::Serialize;

use super::registry::{Files, PaperDataset, Printed};
use super::statistics::Statistics;

/// A data set of the paper and what was found of it.
#[derive(Debug, Serialize)]
pub struct Entry {
    pub dataset: PaperDataset,
    pub printed: Printed,
    pub state: State,
}

/// What was found of a data set.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is here and was counted.
    Present {
        /// Its files; none for a synthetic stream.
        files: Option<Files>,
        statistics: Statistics,
    },
    /// It is not here.
    Absent {
        /// Where to get it and where to put it.
        instructions: String,
    },
    /// It is here and wrong.
    Wrong {
        /// The file, the place, the reason and what to do.
        reason: String,
    },
}

/// Counts every data set that is in the folder; the whole of each is read, which takes minutes for the large ones.
pub fn table(folder: &Path) -> Vec<Entry> {
    PaperDataset::ALL.iter().map(|&dataset| entry(dataset, folder)).collect()
}

/// Counts one data set if it is in the folder.
pub fn entry(dataset: PaperDataset, folder: &Path) -> Entry {
    let wrong = |error: anyhow::Error| State::Wrong { reason: format!("{error:#}") };
    let state = match dataset.find(folder) {
        Ok(None) if dataset.url().is_some() => State::Absent { instructions: dataset.instructions(folder) },
        Ok(files) => match dataset.count(folder) {
            Ok(statistics) => State::Present { files, statistics },
            Err(error) => wrong(error),
        },
        Err(error) => wrong(error),
    };
    Entry { dataset, printed: dataset.printed(), state }
}

/// The table for people, and below it a remark on each data set.
pub fn render(entries: &[Entry]) -> String {
    let mut text = row(["dataset", "n", "n of paper", "m", "m of paper", "description"]);
    for entry in entries {
        let (len, domain_len) = match &entry.state {
            State::Present { statistics, .. } => {
                (grouped(statistics.len), grouped(statistics.domain_len as u64))
            }
            State::Absent { .. } => ("absent".to_owned(), String::new()),
            State::Wrong { .. } => ("wrong".to_owned(), String::new()),
        };
        text += &row([
            entry.dataset.name(),
            &len,
            &grouped(entry.printed.len),
            &domain_len,
            &grouped(entry.printed.domain_len as u64),
            entry.printed.description,
        ]);
    }
    text + &entries.iter().map(remark).collect::<String>()
}

fn row([dataset, len, paper_len, domain_len, paper_domain_len, description]: [&str; 6]) -> String {
    format!(
        "{dataset:<10} {len:>13} {paper_len:>13} {domain_len:>10} {paper_domain_len:>10}  {description}\n"
    )
}

fn remark(entry: &Entry) -> String {
    let remark = match &entry.state {
        State::Present { files, statistics } => present(entry.dataset, files.as_ref(), statistics),
        State::Absent { instructions } => format!("absent\n{instructions}"),
        State::Wrong { reason } => format!("wrong\n{reason}"),
    };
    format!("\n{}: {}\n", entry.dataset.name(), remark.replace('\n', "\n  "))
}

fn present(dataset: PaperDataset, files: Option<&Files>, statistics: &Statistics) -> String {
    let top: Vec<String> =
        statistics.top.iter().map(|(name, count)| format!("{name} {}", grouped(*count))).collect();
    let top = format!("most frequent: {}", top.join(", "));
    let Some(files) = files else { return format!("generated\n{top}") };
    let (found, all) = (files.logs.len(), dataset.files_len());
    let part = if found < all { ", so n and m are of a part" } else { "" };
    let from = files.logs.first().map_or_else(String::new, |path| path.display().to_string());
    let companion = if files.companion.is_none() { dataset.without_companion() } else { None };
    let companion = companion.map_or_else(String::new, |remark| format!("{remark}\n"));
    format!("{from}, {found} of {all}{part}\n{companion}{}\n{top}", statistics.report)
}

/// A number with a comma between each three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index != 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_267_670_951, "1,267,670,951")] {
            assert_eq!(grouped(number), text);
        }
    }
}
