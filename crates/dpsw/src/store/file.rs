//! Notes as empty files in a folder: the file system removes a file once, whoever asks.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::stream::freshness::{FreshnessStore, StateId};

/// Keeps a note as an empty file with the name of the id. Several processes may share the folder.
///
/// Leave the folder out of backups that hold states: restored together, they would give a consumed id back.
#[derive(Debug)]
pub struct FileStore {
    folder: PathBuf,
}

impl FileStore {
    /// A store in this folder, which is made if it is not there.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let folder = folder.into();
        fs::create_dir_all(&folder).map_err(|error| store_error(&folder, &error))?;
        Ok(Self { folder })
    }

    fn note_path(&self, id: StateId) -> PathBuf {
        self.folder.join(id.to_string())
    }

    /// Makes what happened in the folder durable.
    fn sync_folder(&self) -> io::Result<()> {
        // Other systems have no handle on folders; their file systems write such changes in order.
        if cfg!(unix) { File::open(&self.folder)?.sync_all() } else { Ok(()) }
    }
}

impl FreshnessStore for FileStore {
    fn note(&mut self, id: StateId) -> Result<(), StoreError> {
        let path = self.note_path(id);
        // Fails if the note is there: an id is noted once.
        let made = OpenOptions::new().write(true).create_new(true).open(&path);
        made.and_then(|file| file.sync_all())
            .and_then(|()| self.sync_folder())
            .map_err(|error| store_error(&path, &error))
    }

    fn consume(&mut self, id: StateId) -> Result<bool, StoreError> {
        let path = self.note_path(id);
        // Of several processes that ask, the file system lets one remove it (PRIVACY.md: rule 30).
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            removed => removed
                .and_then(|()| self.sync_folder())
                .map(|()| true)
                .map_err(|error| store_error(&path, &error)),
        }
    }
}

fn store_error(path: &Path, error: &io::Error) -> StoreError {
    StoreError { reason: format!("{}: {error}", path.display()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_cannot_be_taken_away_is_an_error_and_not_a_missing_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = FileStore::new(folder.path()).expect("a folder");
        let (here, stuck) = (StateId([1; 24]), StateId([2; 24]));
        store.note(here).expect("room");
        fs::create_dir(store.note_path(stuck)).expect("room");
        assert!(store.consume(stuck).is_err());
        assert_eq!((store.consume(here), store.consume(here)), (Ok(true), Ok(false)));
        assert!(store.note(stuck).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn what_cannot_be_made_durable_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = FileStore::new(folder.path().join("gone")).expect("a folder");
        fs::remove_dir(folder.path().join("gone")).expect("it is empty");
        assert!(store.sync_folder().is_err());
    }
}
