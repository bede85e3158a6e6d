//! Which data sets a run reads.

use std::path::{Path, PathBuf};

use crate::ledger::accounts::Accounts;
use crate::ledger::entry::{DataSet, FileMark};
use crate::ledger::error::LedgerError;
use crate::ledger::remark::Remark;

/// Whether this name means standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The data sets of these files: the one that was named, or one for each file, by its path.
pub(crate) fn data_sets(
    name: Option<&str>,
    paths: &[PathBuf],
    known: &Accounts,
    say: &dyn Fn(&Remark),
) -> Result<Vec<DataSet>, LedgerError> {
    match name {
        Some(name) => named(name, paths, known, say),
        // What is charged to nobody would never be missed.
        None if paths.is_empty() => Err(LedgerError::NoFiles),
        None => by_path(paths, known, say),
    }
}

fn named(
    name: &str,
    paths: &[PathBuf],
    known: &Accounts,
    say: &dyn Fn(&Remark),
) -> Result<Vec<DataSet>, LedgerError> {
    if name.trim().is_empty() {
        return Err(LedgerError::Nameless);
    }
    let files: Vec<FileMark> = paths.iter().filter_map(|path| mark(path)).collect();
    for file in &files {
        if let Some(other) = known.sets_of(file).into_iter().find(|other| *other != name) {
            say(&Remark::Elsewhere { file: file.path.clone(), data_set: other.to_owned() });
        }
    }
    Ok(vec![DataSet { name: name.to_owned(), files }])
}

fn by_path(paths: &[PathBuf], known: &Accounts, say: &dyn Fn(&Remark)) -> Result<Vec<DataSet>, LedgerError> {
    let mut sets: Vec<DataSet> = Vec::new();
    for path in paths {
        let file = mark(path).ok_or_else(|| LedgerError::NoPath { path: path.clone() })?;
        let name = name_of(&file, known, say)?;
        match sets.iter_mut().find(|set| set.name == name) {
            Some(set) => set.files.push(file),
            None => sets.push(DataSet { name, files: vec![file] }),
        }
    }
    Ok(sets)
}

/// The data set to which a file was charged before, or else its path.
fn name_of(file: &FileMark, known: &Accounts, say: &dyn Fn(&Remark)) -> Result<String, LedgerError> {
    match known.sets_of(file)[..] {
        [] => Ok(file.path.clone()),
        [name] => {
            if name != file.path {
                say(&Remark::Again { file: file.path.clone(), data_set: name.to_owned() });
            }
            Ok(name.to_owned())
        }
        ref names => Err(LedgerError::Several {
            file: file.path.clone(),
            data_sets: names.iter().map(|&name| name.to_owned()).collect(),
        }),
    }
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
