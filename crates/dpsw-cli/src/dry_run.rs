//! `--dry-run`: what a run would read, spend and take. Nothing is counted but records, and nothing is spent.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use dpsw::{Plan, Prediction, Unit};
use dpsw_faces::quantity::size;
use serde::Serialize;

use crate::answer;
use crate::arguments::Source;
use crate::input::file;
use crate::input::format;
use crate::input::reader::Files;
use crate::ledger;
use crate::output::{self, Writer};
use crate::plan_command::{self, EXPECTED, PlanDocument};
use crate::words;

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
    let ledger = ledger::preview(&source.account, plan, &files.paths)?;
    let save = source.stream.save.as_deref();
    if writer == Writer::Table {
        return output::print(&Page { plan, prediction, files, save, ledger }.text());
    }
    let (epsilon, delta) = answer::promised(plan.claim());
    output::print_json(&Document {
        dry_run: true,
        files: files.paths.iter().map(|path| document(path, files)).collect(),
        save: save.map(Path::to_path_buf),
        epsilon,
        delta,
        ledger,
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

/// What a person sees.
struct Page<'a> {
    plan: &'a Plan,
    prediction: Option<&'a Prediction>,
    files: &'a Files,
    save: Option<&'a Path>,
    ledger: Vec<String>,
}

impl Page<'_> {
    fn text(&self) -> String {
        let Self { plan, prediction, save, .. } = self;
        let mut text = "A dry run: no item was counted, and nothing is spent.\n\n".to_owned();
        let mut would = |what: &str, how: String| {
            let _ = writeln!(text, "would {what:<6} {how}");
        };
        would("read", self.files());
        would("spend", format!("{} {}", plan.claim(), self.whom()));
        let memory = (size(plan.sketch_bytes()), size(plan.resident_bytes() + plan.search_bytes()));
        would("take", format!("{} for counters, at most about {} in all", memory.0, memory.1));
        save.iter().for_each(|save| would("save", save.display().to_string()));
        self.ledger.iter().for_each(|line| would("charge", line.clone()));
        let _ = writeln!(text, "\n{}\n", words::plan(plan));
        if let Some(prediction) = prediction {
            let _ = writeln!(text, "{EXPECTED}");
            plan_command::expected(&mut text, prediction);
        }
        text
    }

    fn files(&self) -> String {
        let files = self.files.paths.iter().map(|path| document(path, self.files));
        let files: Vec<String> = files.map(|file| format!("{} ({})", file.path, file.format)).collect();
        files.join(", ")
    }

    fn whom(&self) -> &'static str {
        match self.plan.settings().unit {
            Unit::Users { .. } => "in each window on each user",
            _ => "on each event",
        }
    }
}
