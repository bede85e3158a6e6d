//! Files of the system: whether they are there, which are the same, how they are opened, and what errors call them.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Error, Result};

use crate::fault::{self, Fault, Kind};
use crate::read::{content, packing};

pub(crate) use dpsw_frontend::ledger::is_stdin;

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
    unpack_all(path, file, &mut bytes).map_err(|error| cannot_read(path, error))?;
    Ok(bytes)
}

fn unpack_all(path: &Path, file: File, bytes: &mut Vec<u8>) -> Result<()> {
    let (packing, mut source) = packing::unpacked(file)?;
    packing.check_name(path)?;
    source.read_to_end(bytes).map_err(|error| packing.damage(error))?;
    content::check_encoding(bytes)
}

/// A file as text; errors name the file.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    let bytes = read_all(path)?;
    String::from_utf8(bytes).map_err(|_| Fault::data(format!("{} is not UTF-8", path.display())))
}

/// Refuses to read a file twice in one run, whatever it is called: that would spend twice. Of pipes and terminals each reading
/// gives new events.
pub(crate) fn refuse_twice(paths: &[PathBuf]) -> Result<()> {
    let mut known: Vec<(FileId, &Path)> = Vec::new();
    for path in paths {
        let Some(id) = id(path) else { continue };
        if let Some((_, other)) = known.iter().find(|(known, _)| *known == id) {
            return Err(twice(&name(other), &name(path)));
        }
        known.push((id, path));
    }
    Ok(())
}

fn twice(first: &str, second: &str) -> Error {
    let what = if first == second {
        format!("{first} is named twice")
    } else {
        format!("{first} and {second} are the same file")
    };
    Fault::usage(format!(
        "{what}: reading it twice would count its events twice and spend twice as much on them; name it once"
    ))
}

/// The place of a file; where the system tells none, its path without links and dots, which hard links do not share.
type FileId = ((u64, u64), PathBuf);

fn id(path: &Path) -> Option<FileId> {
    let metadata = if is_stdin(path) { of_stdin() } else { std::fs::metadata(path).ok() }?;
    let path = if cfg!(unix) { PathBuf::new() } else { path.canonicalize().ok()? };
    metadata.is_file().then(|| (place(&metadata), path))
}

#[cfg(unix)]
fn of_stdin() -> Option<Metadata> {
    use std::os::fd::AsFd;
    let stdin = io::stdin().as_fd().try_clone_to_owned().ok()?;
    File::from(stdin).metadata().ok()
}

#[cfg(not(unix))]
fn of_stdin() -> Option<Metadata> {
    None
}

/// The device of a file and its number there, which stay when it is renamed.
#[cfg(unix)]
pub(crate) fn place(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
pub(crate) fn place(_: &Metadata) -> (u64, u64) {
    (0, 0)
}
