//! The operator's key: everything on the disk is encrypted with it.

use thiserror::Error;
use zeroize::Zeroizing;

/// The key of everything on the disk. Wiped when dropped.
#[derive(Clone)]
pub struct Key(Zeroizing<[u8; 32]>);

/// A key that cannot be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It is not 64 hexadecimal digits.
    #[error("{place} must hold a key of 64 hexadecimal digits, got {got} characters")]
    Form {
        /// The file or variable.
        place: String,
        /// How many characters it holds.
        got: usize,
    },
}

impl Key {
    /// The key with these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    pub(crate) fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}
