//! `--dry-run`: what a run would read, spend and take. Nothing is counted but records, and nothing is spent.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use dpsw::plan::Prediction;
use dpsw::{Plan, Unit};
use dpsw_frontend::quantity::size;
use serde::Serialize;

use crate::args::Source;
use crate::commands::ledger;
use crate::commands::plan::{self, EXPECTED, PlanDocument};
use crate::read::file;
use crate::read::reader::Files;
use crate::read::start::format_of_name;
use crate::show::answer;
use crate::show::output::{self, Writer};
use crate::show::words;

/// A run that does not take place, in the words of the outside.
#[derive(Debug, Serialize)]
struct Document {
    dry_run: bool,
    files: Vec<FileDocument>,
    save: Option<PathBuf>,
    /// What would be spent.
    epsilon: Option<f64>,
    delta: Option<f64>,
    /// What the ledger would say, for each data set.
    ledger: Vec<String>,
    plan: PlanDocument,
}

#[derive(Debug, Serialize)]
struct FileDocument {
    path: String,
    format: String,
}

/// Shows what would be done.
pub(crate) fn show(
    plan: &Plan,
    prediction: Option<&Prediction>,
    files: &Files,
    source: &Source,
    writer: Writer,
) -> Result<()> {
    let (epsilon, delta) = answer::promised(plan.claim());
    let document = Document {
        dry_run: true,
        files: files.paths.iter().map(|path| document(path, files)).collect(),
        save: source.stream.save.clone(),
        epsilon,
        delta,
        ledger: ledger::preview(&source.account, plan, &files.paths)?,
        plan: PlanDocument::new(plan, prediction),
    };
    match writer {
        Writer::Table => output::print(&page(&document, plan, prediction)),
        _ => output::print_json(&document),
    }
}

fn document(path: &Path, files: &Files) -> FileDocument {
    let format = files.told.format.or(format_of_name(path)).and_then(|format| format.to_possible_value());
    let by_content = || "told by its content".to_owned();
    FileDocument {
        path: file::name(path),
        format: format.map_or_else(by_content, |format| format.get_name().to_owned()),
    }
}

/// The page that a person sees.
fn page(document: &Document, plan: &Plan, prediction: Option<&Prediction>) -> String {
    let mut text = "A dry run: no item was counted, and nothing is spent.\n\n".to_owned();
    let files = document.files.iter().map(|file| format!("{} ({})", file.path, file.format));
    let whom = match plan.settings().unit {
        Unit::Users { .. } => "in each window on each user",
        _ => "on each event",
    };
    let counters = size(plan.sketch_bytes());
    let all = size(plan.resident_bytes() + plan.search_bytes());
    let mut would = vec![
        ("read", files.collect::<Vec<_>>().join(", ")),
        ("spend", format!("{} {whom}", plan.claim())),
        ("take", format!("{counters} for counters, at most about {all} in all")),
    ];
    would.extend(document.save.iter().map(|save| ("save", save.display().to_string())));
    would.extend(document.ledger.iter().map(|line| ("charge", line.clone())));
    for (what, how) in would {
        let _ = writeln!(text, "would {what:<6} {how}");
    }
    let _ = writeln!(text, "\n{}\n", words::plan(plan));
    if let Some(prediction) = prediction {
        let _ = writeln!(text, "{EXPECTED}");
        plan::expected(&mut text, prediction);
    }
    text
}
