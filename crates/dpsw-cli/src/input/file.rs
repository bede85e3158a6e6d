//! Files of the system: whether they are there, how they are opened, and what errors call them.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Error, Result};

use crate::fault::{self, Fault, Kind};
use crate::input::{content, packing};

pub(crate) use dpsw_faces::ledger::is_stdin;

/// What people call it.
pub(crate) fn name(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// Whether nothing has this name.
pub(crate) fn is_missing(path: &Path) -> bool {
    std::fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Whether it can be read once only, and not from any place in it.
pub(crate) fn is_pipe(path: &Path) -> bool {
    is_stdin(path) || std::fs::metadata(path).is_ok_and(|metadata| is_named_pipe(&metadata))
}

#[cfg(unix)]
fn is_named_pipe(metadata: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    metadata.file_type().is_fifo()
}

#[cfg(not(unix))]
fn is_named_pipe(metadata: &Metadata) -> bool {
    !metadata.is_file() && !metadata.is_dir()
}

/// Refuses what is not there, and directories.
pub(crate) fn check_is_file(path: &Path) -> Result<()> {
    if std::fs::metadata(path).map_err(|error| cannot_open(path, &error))?.is_dir() {
        return Err(Fault::data(format!("{} is a directory; name the files in it", path.display())));
    }
    Ok(())
}

pub(crate) fn open(path: &Path) -> Result<File> {
    check_is_file(path)?;
    File::open(path).map_err(|error| cannot_open(path, &error))
}

fn cannot_open(path: &Path, error: &io::Error) -> Error {
    Fault::data(format!("{} cannot be opened: {error}", path.display()))
}

/// What the system refuses to read is data that cannot be read.
pub(crate) fn cannot_read(path: &Path, error: Error) -> Error {
    let context = format!("{} cannot be read", name(path));
    match fault::kind(&error) {
        Kind::Failure => Fault::data(format!("{context}: {error:#}")),
        Kind::Usage => named(error, &name(path)),
        _ => error.context(context),
    }
}

/// An error that begins with the name of its source, as those of records do.
pub(crate) fn named(error: Error, name: &str) -> Error {
    let message = error.to_string();
    let rest = message.strip_prefix(name).unwrap_or_default();
    if rest.starts_with(':') || rest.starts_with(" cannot be ") {
        error
    } else {
        error.context(name.to_owned())
    }
}

/// The whole of a small file, unpacked.
pub(crate) fn read_all(path: &Path) -> Result<Vec<u8>> {
    let len = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    // One more tells the end of the file without growing.
    let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0) + 1);
    let file = open(path)?;
    let read = || -> Result<()> {
        let (packing, mut source) = packing::unpacked(file)?;
        packing.check_name(path)?;
        source.read_to_end(&mut bytes).map_err(|error| packing.damage(error))?;
        content::check_encoding(&bytes)
    };
    read().map_err(|error| cannot_read(path, error))?;
    Ok(bytes)
}
