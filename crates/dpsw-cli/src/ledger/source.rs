//! Which data sets a run reads.

use std::path::{Path, PathBuf};

use anyhow::{Error, Result};

use crate::fault::Fault;
use crate::input::file::{self, is_stdin};
use crate::ledger::accounts::Accounts;
use crate::ledger::entry::{DataSet, FileMark};
use crate::remark;

/// The data sets of these files: the one that was named, or one for each file, by its path.
pub(crate) fn data_sets(name: Option<&str>, paths: &[PathBuf], known: &Accounts) -> Result<Vec<DataSet>> {
    match name {
        Some(name) => named(name, paths, known),
        None => by_path(paths, known),
    }
}

fn named(name: &str, paths: &[PathBuf], known: &Accounts) -> Result<Vec<DataSet>> {
    if name.trim().is_empty() {
        return Err(Fault::usage("--data-set needs a name"));
    }
    let files: Vec<FileMark> = paths.iter().filter_map(|path| mark(path)).collect();
    for file in &files {
        if let Some(other) = known.sets_of(file).iter().find(|other| **other != name) {
            remark::note(format!(
                "{} was charged to {other} before; if its events are the same, charge them there: --data-set {other:?}",
                file.path
            ));
        }
    }
    Ok(vec![DataSet { name: name.to_owned(), files }])
}

fn by_path(paths: &[PathBuf], known: &Accounts) -> Result<Vec<DataSet>> {
    let mut sets: Vec<DataSet> = Vec::new();
    for path in paths {
        let file = mark(path).ok_or_else(|| nameless(path))?;
        let name = name_of(&file, known)?;
        match sets.iter_mut().find(|set| set.name == name) {
            Some(set) => set.files.push(file),
            None => sets.push(DataSet { name, files: vec![file] }),
        }
    }
    Ok(sets)
}

/// The data set to which a file was charged before, or else its path.
fn name_of(file: &FileMark, known: &Accounts) -> Result<String> {
    match known.sets_of(file)[..] {
        [] => Ok(file.path.clone()),
        [name] => {
            if name != file.path {
                remark::note(format!("{} was charged to {name} before, and is again", file.path));
            }
            Ok(name.to_owned())
        }
        ref names => Err(Fault::usage(format!(
            "{} was charged to several data sets: {}; say which with --data-set",
            file.path,
            names.join(", ")
        ))),
    }
}

fn nameless(path: &Path) -> Error {
    let name = file::name(path);
    Fault::usage(format!(
        "--ledger needs --data-set NAME here: {name} has no path by which it is known again"
    ))
}

/// A file that keeps its path; pipes do not.
pub(crate) fn mark(path: &Path) -> Option<FileMark> {
    let metadata = if is_stdin(path) { None } else { Some(std::fs::metadata(path)) };
    match metadata? {
        Ok(metadata) => {
            let path = path.canonicalize().ok()?;
            let path = path.to_str().filter(|_| metadata.is_file())?.to_owned();
            Some(FileMark { path, id: id(&metadata) })
        }
        // A file that is waited for.
        Err(_) => {
            let folder =
                path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let path = folder.canonicalize().ok()?.join(path.file_name()?);
            Some(FileMark { path: path.to_str()?.to_owned(), id: None })
        }
    }
}

/// Device, number and birth. Numbers are used again, so without the birth there is no telling.
#[cfg(unix)]
fn id(metadata: &std::fs::Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let born = metadata.created().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(format!("{}:{}:{}", metadata.dev(), metadata.ino(), born.as_nanos()))
}

#[cfg(not(unix))]
fn id(_: &std::fs::Metadata) -> Option<String> {
    None
}
