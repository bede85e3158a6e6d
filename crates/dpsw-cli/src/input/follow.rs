//! A file that grows and is rotated: renamed and made anew, or cut to nothing.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::input::reader::open_file;

/// How often an unchanged file is looked at.
const POLL: Duration = Duration::from_millis(100);

/// A file that is read as it grows.
pub(crate) struct Followed {
    path: PathBuf,
    file: File,
    position: u64,
}

impl Followed {
    /// Opens a file, or waits until there is one.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        while is_missing(path) {
            std::thread::sleep(POLL);
        }
        Ok(Self { path: path.to_owned(), file: open_file(path)?, position: 0 })
    }

    /// Waits for more. Returns how many bytes were read, or 0 when a new file takes over.
    pub(crate) fn next(&mut self, mut read: impl FnMut(&mut File) -> io::Result<usize>) -> Result<usize> {
        loop {
            let len = read(&mut self.file)?;
            if 0 < len {
                self.position += len as u64;
                return Ok(len);
            }
            if self.is_cut()? {
                self.file.seek(SeekFrom::Start(0))?;
                self.position = 0;
                return Ok(0);
            }
            if let Some(new) = self.replaced() {
                // What was written between the last read and the rotation.
                let len = read(&mut self.file)?;
                if 0 < len {
                    self.position += len as u64;
                    return Ok(len);
                }
                (self.file, self.position) = (new, 0);
                return Ok(0);
            }
            std::thread::sleep(POLL);
        }
    }

    fn is_cut(&self) -> Result<bool> {
        Ok(self.file.metadata().context("its length is unknown")?.len() < self.position)
    }

    /// The file that now has the name, if it is another one. Between renaming and making anew there is none.
    fn replaced(&self) -> Option<File> {
        let new = File::open(&self.path).ok()?;
        (!is_same(&new, &self.file)).then_some(new)
    }
}

/// Whether nothing has this name.
pub(crate) fn is_missing(path: &Path) -> bool {
    std::fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
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
