//! The two keys of a sealer, in a file that is made when the stream begins.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use dpsw::{StateKey, StreamKey};
use zeroize::Zeroizing;

use crate::cipher::{Cipher, NoRandomness, random};
use crate::disk::{DiskError, check_owner_only, replace_file, unusable};

const KEY_LEN: usize = 32;

/// The key that encrypts what is on the disk, and the stream key, which workers need to count alike. Wiped when dropped.
pub struct SealerKeys(Zeroizing<[u8; 2 * KEY_LEN]>);

impl std::fmt::Debug for SealerKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealerKeys")
    }
}

impl SealerKeys {
    /// New ones.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn draw() -> Result<Self, NoRandomness> {
        Ok(Self(Zeroizing::new(random()?)))
    }

    /// The keys in this file, which is made if it is not there and there is no database yet, for its owner alone.
    ///
    /// # Errors
    /// It cannot be read or made, others may read it, or it does not have 64 bytes.
    pub fn open(path: &Path, has_database: bool) -> Result<Self, DiskError> {
        let failed = |error: std::io::Error| unusable(path, &error);
        match fs::read(path).map(Zeroizing::new) {
            Err(error) if error.kind() == ErrorKind::NotFound && !has_database => Self::make(path),
            read => {
                let bytes = read.map_err(failed)?;
                check_owner_only(path)?;
                let reason = format!("a key file has {} bytes, this one {}", 2 * KEY_LEN, bytes.len());
                let bytes = <[u8; 2 * KEY_LEN]>::try_from(&bytes[..])
                    .map_err(|_| DiskError::Path { path: path.display().to_string(), reason })?;
                Ok(Self(Zeroizing::new(bytes)))
            }
        }
    }

    fn make(path: &Path) -> Result<Self, DiskError> {
        let failed = |error: std::io::Error| unusable(path, &error);
        let keys = Self::draw().map_err(|error| failed(std::io::Error::other(error.to_string())))?;
        replace_file(path, |file| file.write_all(&*keys.0)).map_err(failed)?;
        Ok(keys)
    }

    fn half(&self, index: usize) -> [u8; KEY_LEN] {
        self.0[index * KEY_LEN..(index + 1) * KEY_LEN].try_into().expect("half of the bytes")
    }

    pub(crate) fn state(&self) -> StateKey {
        StateKey::from_bytes(self.half(0))
    }

    pub(crate) fn cipher(&self) -> Cipher {
        Cipher::new(&self.half(0))
    }

    /// What workers count with.
    #[must_use]
    pub fn stream(&self) -> StreamKey {
        StreamKey::from_bytes(self.half(1))
    }

    /// The stream key as bytes, which must stay inside the cluster.
    #[must_use]
    pub fn stream_bytes(&self) -> Zeroizing<[u8; KEY_LEN]> {
        Zeroizing::new(self.half(1))
    }
}
