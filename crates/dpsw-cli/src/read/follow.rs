//! Files that grow and are rotated: renamed and made anew, or cut to nothing.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};

use crate::read::file;

/// A file that is read as it grows.
pub(crate) struct Followed {
    pub(crate) path: PathBuf,
    /// `None` as long as there is none.
    file: Option<(File, Identity)>,
    position: u64,
}

/// The news of a file since it was looked at.
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
    pub(crate) fn look(
        &mut self,
        known: &mut Known,
        mut read: impl FnMut(&mut File) -> io::Result<usize>,
    ) -> Result<News> {
        let Some((file, identity)) = &mut self.file else { return self.open(known) };
        let mut len = read(file)?;
        if len == 0 && file.metadata().context("its length is unknown")?.len() < self.position {
            file.seek(SeekFrom::Start(0))?;
            self.position = 0;
            return Ok(News::Anew);
        }
        if len == 0
            && let Some(new) = known.replacement(&self.path)
        {
            // What was written between the last read and the rotation.
            len = read(file)?;
            if len == 0 {
                known.leave(*identity);
                known.take(new.1);
                (self.file, self.position) = (Some(new), 0);
                return Ok(News::Anew);
            }
        }
        self.position += len as u64;
        Ok(if len == 0 { News::Nothing } else { News::More })
    }

    fn open(&mut self, known: &mut Known) -> Result<News> {
        if !file::is_missing(&self.path) {
            let file = file::open(&self.path)?;
            let identity = Identity::of(&file)?;
            if known.take(identity) {
                self.file = Some((file, identity));
            }
        }
        Ok(News::Nothing)
    }
}

/// Files that are or were read, whatever they are called now. Rotation gives a file the name of another, and an event counts
/// once.
#[derive(Default)]
pub(crate) struct Known(HashSet<Identity>);

impl Known {
    /// False if it is known already.
    fn take(&mut self, identity: Identity) -> bool {
        self.0.insert(identity)
    }

    /// A file that is no longer open can only be told from later ones by when it was made.
    fn leave(&mut self, identity: Identity) {
        if identity.made.is_none() {
            self.0.remove(&identity);
        }
    }

    /// The file that now has the name, if it is a new one. Between renaming and making anew there is none.
    fn replacement(&self, path: &Path) -> Option<(File, Identity)> {
        let new = File::open(path).ok()?;
        let identity = Identity::of(&new).ok()?;
        (!self.0.contains(&identity)).then_some((new, identity))
    }
}

/// The marks of a file that stay when it is renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    /// The device and the number in it, which a later file may have again.
    place: (u64, u64),
    /// Not all systems know.
    made: Option<SystemTime>,
}

impl Identity {
    fn of(file: &File) -> Result<Self> {
        let metadata = file.metadata().context("nothing is known of it")?;
        Ok(Self { place: file::place(&metadata), made: metadata.created().ok() })
    }
}
