//! A file that grows and is rotated: renamed and made anew, or cut to nothing.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::input::file;

/// A file that is read as it grows.
pub(crate) struct Followed {
    pub(crate) path: PathBuf,
    /// `None` as long as there is none.
    file: Option<File>,
    position: u64,
}

/// What has become of a file since it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    Nothing,
    /// It has grown.
    More,
    /// A new file takes over.
    Anew,
}

impl Followed {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None, position: 0 }
    }

    /// Looks at the file, reads what is new, and never waits.
    pub(crate) fn look(&mut self, mut read: impl FnMut(&mut File) -> io::Result<usize>) -> Result<News> {
        let Some(file) = &mut self.file else { return self.open() };
        let mut len = read(file)?;
        if len == 0 && file.metadata().context("its length is unknown")?.len() < self.position {
            file.seek(SeekFrom::Start(0))?;
            self.position = 0;
            return Ok(News::Anew);
        }
        if len == 0
            && let Some(new) = replacement(&self.path, file)
        {
            // What was written between the last read and the rotation.
            len = read(file)?;
            if len == 0 {
                (self.file, self.position) = (Some(new), 0);
                return Ok(News::Anew);
            }
        }
        self.position += len as u64;
        Ok(if len == 0 { News::Nothing } else { News::More })
    }

    fn open(&mut self) -> Result<News> {
        if !file::is_missing(&self.path) {
            self.file = Some(file::open(&self.path)?);
        }
        Ok(News::Nothing)
    }
}

/// The file that now has the name, if it is another one. Between renaming and making anew there is none.
fn replacement(path: &Path, file: &File) -> Option<File> {
    let new = File::open(path).ok()?;
    (!is_same(&new, file)).then_some(new)
}

#[cfg(unix)]
fn is_same(a: &File, b: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |file: &File| file.metadata().map(|metadata| (metadata.dev(), metadata.ino())).ok();
    id(a) == id(b)
}

#[cfg(not(unix))]
fn is_same(a: &File, b: &File) -> bool {
    let made = |file: &File| file.metadata().and_then(|metadata| metadata.created()).ok();
    made(a) == made(b)
}
