//! Saved views: read, and written so that a crash leaves the old one or the new one.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dpsw::WindowView;
use dpsw_frontend::ledger;

use crate::fault::Fault;
use crate::read::file::{self, cannot_read};

/// Loads a view.
pub(crate) fn load(path: &Path) -> Result<WindowView> {
    let mut bytes = Vec::new();
    let read = file::open(path)?.read_to_end(&mut bytes);
    read.map_err(|error| cannot_read(path, error.into()))?;
    if ledger::is_ledger(&bytes) {
        let path = path.display();
        return Err(Fault::usage(format!("{path} is a ledger, not a view: dpsw ledger {path} shows it")));
    }
    WindowView::from_bytes(&bytes).with_context(|| format!("{} is not a readable view", path.display()))
}

/// Refuses a place where no view can be saved, before anything is spent on it.
pub(crate) fn check(path: &Path) -> Result<()> {
    let part = part(path)?;
    let tried = if path.is_dir() {
        Err(io::ErrorKind::IsADirectory.into())
    } else {
        File::create(&part).and_then(|_| fs::remove_file(&part))
    };
    tried.with_context(|| format!("{} cannot be written, so nothing was read and spent", path.display()))
}

/// Saves a view.
pub(crate) fn save(view: &WindowView, path: &Path) -> Result<()> {
    let written = write(&view.to_bytes(), &part(path)?, path);
    written.with_context(|| format!("{} cannot be written", path.display()))
}

fn write(bytes: &[u8], part: &Path, path: &Path) -> io::Result<()> {
    let mut file = File::create(part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(part, path)
}

/// Where a view is written before it takes its place.
fn part(path: &Path) -> Result<PathBuf> {
    let mut name = path.file_name().context("the view needs a file name")?.to_owned();
    name.push(format!(".{}.part", std::process::id()));
    Ok(path.with_file_name(name))
}
