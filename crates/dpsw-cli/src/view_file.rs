//! Saved views: read, and written so that a crash leaves the old one or the new one.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dpsw::WindowView;

use crate::fault::Fault;
use crate::input::file::{self, cannot_read};
use crate::ledger;

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
    let write = || -> io::Result<()> {
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        File::create(&part)?;
        fs::remove_file(&part)
    };
    write().with_context(|| format!("{} cannot be written, so nothing was read and spent", path.display()))
}

/// Saves a view.
pub(crate) fn save(view: &WindowView, path: &Path) -> Result<()> {
    let part = part(path)?;
    let write = || -> io::Result<()> {
        let mut file = File::create(&part)?;
        file.write_all(&view.to_bytes())?;
        file.sync_all()?;
        fs::rename(&part, path)
    };
    write().with_context(|| format!("{} cannot be written", path.display()))
}

/// Where a view is written before it takes its place.
fn part(path: &Path) -> Result<PathBuf> {
    let mut name = path.file_name().context("the view needs a file name")?.to_owned();
    name.push(format!(".{}.part", std::process::id()));
    Ok(path.with_file_name(name))
}
