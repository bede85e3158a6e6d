//! `--dry-run`: what a run would read, spend and take. Nothing is counted but records, and nothing is spent.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use dpsw::{Plan, Prediction, Unit};
use serde::Serialize;

use crate::answer;
use crate::input::file;
use crate::input::format;
use crate::input::reader::Files;
use crate::output::{self, Writer};
use crate::plan_command::{self, PlanDocument};
use crate::quantity::size;

/// A run that does not take place, in the words of the outside.
#[derive(Debug, Serialize)]
struct Document {
    dry_run: bool,
    files: Vec<FileDocument>,
    save: Option<PathBuf>,
    /// What would be spent.
    epsilon: Option<f64>,
    delta: Option<f64>,
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
    save: Option<&Path>,
    writer: Writer,
) -> Result<()> {
    if writer == Writer::Table {
        return output::print(&page(plan, prediction, files, save));
    }
    let (epsilon, delta) = answer::promised(plan.claim());
    output::print_json(&Document {
        dry_run: true,
        files: files.paths.iter().map(|path| document(path, files)).collect(),
        save: save.map(Path::to_path_buf),
        epsilon,
        delta,
        plan: PlanDocument::new(plan, prediction),
    })
}

fn document(path: &Path, files: &Files) -> FileDocument {
    let format = files.told.format.or(format::of_name(path)).and_then(|format| format.to_possible_value());
    let by_content = || "told by its content".to_owned();
    FileDocument {
        path: file::name(path),
        format: format.map_or_else(by_content, |format| format.get_name().to_owned()),
    }
}

fn page(plan: &Plan, prediction: Option<&Prediction>, files: &Files, save: Option<&Path>) -> String {
    let read = files.paths.iter().map(|path| document(path, files));
    let read: Vec<String> = read.map(|file| format!("{} ({})", file.path, file.format)).collect();
    let mut text = "A dry run: no item was counted, and nothing is spent.\n\n".to_owned();
    let _ = writeln!(text, "would read   {}", read.join(", "));
    let whom = match plan.settings().unit {
        Unit::Users { .. } => "in each window on each user",
        _ => "on each event",
    };
    let _ = writeln!(text, "would spend  {} {whom}", plan.claim());
    let memory = (size(plan.sketch_bytes()), size(plan.resident_bytes() + plan.search_bytes()));
    let _ = writeln!(text, "would take   {} for counters, at most about {} in all", memory.0, memory.1);
    if let Some(save) = save {
        let _ = writeln!(text, "would save   {}", save.display());
    }
    let _ = writeln!(text, "\n{plan}\n");
    if let Some(prediction) = prediction {
        text += "Expected error\n";
        plan_command::expected(&mut text, prediction);
    }
    let _ = writeln!(text, "The promise: {}.", plan.contract());
    text
}
