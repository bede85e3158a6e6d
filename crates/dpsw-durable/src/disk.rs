//! Where a database and its marker lie: two folders, memory, or in tests a disk that fails.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use redb::backends::{FileBackend, InMemoryBackend};
use redb::{Database, StorageBackend};

/// The place of a database and its marker.
pub trait Disk: fmt::Debug + Send + Sync + 'static {
    /// The database as it is now, or an empty one; a crash while that is made leaves a whole one or none. Called again after a
    /// failure.
    ///
    /// # Errors
    /// It cannot be opened or made.
    fn database(&self) -> io::Result<Box<dyn StorageBackend>>;

    /// The marker, if there is one.
    ///
    /// # Errors
    /// It cannot be read.
    fn read_marker(&self) -> io::Result<Option<Vec<u8>>>;

    /// Replaces the marker, whole or not at all. Durable when it returns.
    ///
    /// # Errors
    /// It cannot be replaced, or that is not durable.
    fn write_marker(&self, marker: &[u8]) -> io::Result<()>;

    /// What messages call the database.
    fn name(&self) -> String;
}

/// A folder that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// Another process has it.
    #[error("{path} is in use by another process, and a stream has one owner; stop that one first")]
    InUse {
        /// The folder.
        path: String,
    },
    /// It cannot be made, read or written.
    #[error("{path} cannot be used: {reason}")]
    Path {
        /// The folder or file.
        path: String,
        /// Why.
        reason: String,
    },
}

const DATABASE: &str = "dpsw.redb";
const NEW_DATABASE: &str = "dpsw.redb.new";
const MARKER: &str = "marker";
const LOCK: &str = "lock";

/// A database and a marker in two folders, both of which no other process may use.
#[derive(Debug)]
pub struct Folders {
    data: PathBuf,
    marker: PathBuf,
    _locks: [File; 2],
}

impl Folders {
    /// Makes the folders where they are missing, and locks them.
    ///
    /// # Errors
    /// They cannot be made, others may look into them, the marker lies in the data folder, or another process has them.
    pub fn open(data: &Path, marker: &Path) -> Result<Self, DiskError> {
        [data, marker].into_iter().try_for_each(make_folder)?;
        let real = |folder: &Path| fs::canonicalize(folder).map_err(|error| unusable(folder, &error));
        if real(marker)?.starts_with(real(data)?) {
            let reason =
                "the marker folder must not lie in the data folder: a backup would hold both".to_owned();
            return Err(DiskError::Path { path: marker.display().to_string(), reason });
        }
        let locks = [lock(data)?, lock(marker)?];
        Ok(Self { data: data.to_owned(), marker: marker.to_owned(), _locks: locks })
    }

    /// Whether the database was made before.
    ///
    /// # Errors
    /// Nobody can tell.
    pub fn has_database(&self) -> Result<bool, DiskError> {
        let path = self.data.join(DATABASE);
        path.try_exists().map_err(|error| unusable(&path, &error))
    }

    /// Makes the database under another name first: of one that is half made nobody could say whether it was ever used.
    fn make_database(&self) -> io::Result<()> {
        let new = self.data.join(NEW_DATABASE);
        let file = owner_only().read(true).write(true).create(true).truncate(true).open(&new)?;
        drop(Database::builder().create_file(file).map_err(io::Error::other)?);
        fs::rename(&new, self.data.join(DATABASE))?;
        sync_folder(&self.data)
    }
}

impl Disk for Folders {
    fn database(&self) -> io::Result<Box<dyn StorageBackend>> {
        let path = self.data.join(DATABASE);
        if !path.try_exists()? {
            self.make_database()?;
        }
        let file = owner_only().read(true).write(true).open(path)?;
        Ok(Box::new(FileBackend::new(file).map_err(io::Error::other)?))
    }

    fn read_marker(&self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.marker.join(MARKER)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn write_marker(&self, marker: &[u8]) -> io::Result<()> {
        replace_file(&self.marker.join(MARKER), |file| file.write_all(marker))
    }

    fn name(&self) -> String {
        self.data.join(DATABASE).display().to_string()
    }
}

/// A disk in memory: for a stream that is over before anything is shown.
#[derive(Debug, Default)]
pub struct Memory(Mutex<Option<Vec<u8>>>);

impl Disk for Memory {
    fn database(&self) -> io::Result<Box<dyn StorageBackend>> {
        Ok(Box::new(InMemoryBackend::new()))
    }

    fn read_marker(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().map_err(|_| io::Error::other("poisoned"))?.clone())
    }

    fn write_marker(&self, marker: &[u8]) -> io::Result<()> {
        *self.0.lock().map_err(|_| io::Error::other("poisoned"))? = Some(marker.to_vec());
        Ok(())
    }

    fn name(&self) -> String {
        "memory".to_owned()
    }
}

fn make_folder(folder: &Path) -> Result<(), DiskError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| unusable(folder, &error))?;
    check_owner_only(folder)
}

/// Sizes of files tell about events, so nobody else may look but the owner, and a group that the folder was given to.
///
/// # Errors
/// Others may look, or nobody can.
#[cfg(unix)]
pub fn check_owner_only(path: &Path) -> Result<(), DiskError> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = fs::metadata(path).map_err(|error| unusable(path, &error))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 || mode & 0o007 == 0 && is_for_a_group(path, &metadata) {
        return Ok(());
    }
    let reason = format!("others may look into it (mode {mode:o}); run: chmod go= {}", path.display());
    Err(DiskError::Path { path: path.display().to_string(), reason })
}

/// Whether somebody has given the folder, or the folder of the file, to its group: with the set-group-ID bit, as Kubernetes does
/// with the volumes of a pod that has an `fsGroup`. Folders that are made in the usual way never have it.
#[cfg(unix)]
fn is_for_a_group(path: &Path, metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    const SET_GROUP_ID: u32 = 0o2000;
    let folder = fs::canonicalize(path).ok().and_then(|real| fs::metadata(real.parent()?).ok());
    let folder = if metadata.is_dir() { Some(metadata) } else { folder.as_ref() };
    folder.is_some_and(|folder| folder.mode() & SET_GROUP_ID != 0 && folder.gid() == metadata.gid())
}

/// Other systems have no such modes.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn check_owner_only(_path: &Path) -> Result<(), DiskError> {
    Ok(())
}

/// Files that are made so can be read by their owner alone.
#[must_use]
pub fn owner_only() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Replaces a file by one that only its owner may read, whole or not at all. Durable when it returns.
///
/// # Errors
/// It cannot be written or replaced, or that is not durable.
pub fn replace_file(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = owner_only().write(true).create(true).truncate(true).open(&new)?;
    write(&mut file)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    path.parent().map_or(Ok(()), sync_folder)
}

fn lock(folder: &Path) -> Result<File, DiskError> {
    let path = folder.join(LOCK);
    let file = owner_only().write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|error| unusable(folder, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(DiskError::InUse { path: folder.display().to_string() }),
        Err(fs::TryLockError::Error(error)) => Err(unusable(&path, &error)),
    }
}

/// Makes what happened in a folder durable.
///
/// # Errors
/// The folder cannot be opened or synced.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    // Other systems have no handle on folders; their file systems write such changes in order.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// What an error of the file system means.
#[must_use]
pub fn unusable(path: &Path, error: &io::Error) -> DiskError {
    DiskError::Path { path: path.display().to_string(), reason: error.to_string() }
}
