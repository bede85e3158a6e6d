//! Files that are named twice, whatever they are called: a run that reads them twice would spend twice.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use anyhow::{Error, Result};

use crate::fault::Fault;
use crate::input::file::{is_stdin, name};

/// Refuses to read a file twice in one run. Of pipes and terminals each reading gives new events.
pub(crate) fn refuse(paths: &[PathBuf]) -> Result<()> {
    let mut known: Vec<(Id, &Path)> = Vec::new();
    for path in paths {
        let Some(id) = id(path) else { continue };
        if let Some((_, other)) = known.iter().find(|(known, _)| *known == id) {
            return Err(twice(other, path));
        }
        known.push((id, path));
    }
    Ok(())
}

fn twice(first: &Path, second: &Path) -> Error {
    let (first, second) = (name(first), name(second));
    let what = if first == second {
        format!("{first} is named twice")
    } else {
        format!("{first} and {second} are the same file")
    };
    Fault::usage(format!(
        "{what}: reading it twice would count its events twice and spend twice as much on them; name it once"
    ))
}

/// Device and number of a file.
#[cfg(unix)]
type Id = (u64, u64);

#[cfg(unix)]
fn id(path: &Path) -> Option<Id> {
    use std::os::unix::fs::MetadataExt;
    let metadata = if is_stdin(path) { of_stdin() } else { std::fs::metadata(path).ok() }?;
    metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
}

#[cfg(unix)]
fn of_stdin() -> Option<Metadata> {
    use std::os::fd::AsFd;
    let stdin = std::io::stdin().as_fd().try_clone_to_owned().ok()?;
    std::fs::File::from(stdin).metadata().ok()
}

/// The path without links and dots; hard links are not told apart here.
#[cfg(not(unix))]
type Id = PathBuf;

#[cfg(not(unix))]
fn id(path: &Path) -> Option<Id> {
    let is_file = |metadata: Metadata| metadata.is_file();
    std::fs::metadata(path).is_ok_and(is_file).then(|| path.canonicalize().ok())?
}
