//! The operator's key: everything on the disk is encrypted with it.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use thiserror::Error;
use zeroize::{Zeroize, Zeroizing};

use dpsw::StateKey;
use dpsw_durable::cipher::random;
use dpsw_durable::disk::{check_owner_only, owner_only};

/// The key of everything on the disk. Wiped when dropped.
#[derive(Clone)]
pub struct Key(Zeroizing<[u8; 32]>);

/// A key that cannot be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// It is not 64 hexadecimal digits.
    #[error("{place} must hold a key of 64 hexadecimal digits, and holds {got} characters")]
    Form {
        /// The file or variable.
        place: String,
        /// How many characters it holds.
        got: usize,
    },
    /// Others may read it.
    #[error("the key file {0}")]
    Open(String),
    /// It cannot be read or made.
    #[error("the key file {path} cannot be used: {source}")]
    File {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The system gives no randomness for a new one.
    #[error("no key can be made: {0}")]
    Entropy(String),
}

/// The origin of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It was read.
    Read,
    /// It was made: the operator should be told where it lies, and keep a copy apart from the data.
    Made,
}

impl Key {
    /// The key with these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The key in a text, such as an environment variable, of which `place` is the name.
    ///
    /// # Errors
    /// The text is not 64 hexadecimal digits.
    pub fn from_text(place: &str, text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let form = || KeyError::Form { place: place.to_owned(), got: text.chars().count() };
        if text.len() != 64 || !text.is_ascii() {
            return Err(form());
        }
        let mut bytes = Zeroizing::new([0; 32]);
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16).ok_or_else(form);
            *byte = u8::try_from(16 * digit(digits[0])? + digit(digits[1])?).map_err(|_| form())?;
        }
        Ok(Self(bytes))
    }

    /// The key in this file, which is made if it is not there.
    ///
    /// # Errors
    /// The file holds no key, others may read it, or it cannot be read or made.
    pub fn of_file(path: &Path) -> Result<(Self, Origin), KeyError> {
        match fs::read_to_string(path) {
            Ok(mut text) => {
                check_owner_only(path).map_err(|error| KeyError::Open(error.to_string()))?;
                let key = Self::from_text(&path.display().to_string(), &text);
                text.zeroize();
                Ok((key?, Origin::Read))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let key = Self::from_bytes(random().map_err(|error| KeyError::Entropy(error.to_string()))?);
                key.write(path).map_err(|source| failed(path, source))?;
                Ok((key, Origin::Made))
            }
            Err(source) => Err(failed(path, source)),
        }
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = Zeroizing::new(String::with_capacity(65));
        for byte in self.0.iter() {
            text.push(char::from_digit(u32::from(byte >> 4), 16).expect("half a byte"));
            text.push(char::from_digit(u32::from(byte & 15), 16).expect("half a byte"));
        }
        text.push('\n');
        let mut file = owner_only().write(true).create_new(true).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        path.parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .map_or(Ok(()), dpsw_durable::disk::sync_folder)
    }

    pub(crate) fn state_key(&self) -> StateKey {
        StateKey::from_bytes(*self.expose())
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

fn failed(path: &Path, source: io::Error) -> KeyError {
    KeyError::File { path: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_read_from_then_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        let (made, origin) = Key::of_file(&path).expect("room");
        assert_eq!(origin, Origin::Made);
        let (read, origin) = Key::of_file(&path).expect("a key");
        assert_eq!((read.expose(), origin), (made.expose(), Origin::Read));
        assert_eq!(format!("{made:?}"), "Key");
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_shown() {
        for text in ["", "12", &"g".repeat(64), &"0".repeat(63), &"é".repeat(32)] {
            let error = Key::from_text("DPSW_KEY", text).expect_err("no key").to_string();
            let wanted = format!(
                "DPSW_KEY must hold a key of 64 hexadecimal digits, and holds {} characters",
                text.chars().count()
            );
            assert_eq!(error, wanted);
        }
        assert!(Key::from_text("DPSW_KEY", &format!(" {}\n", "0aF".repeat(22)[..64].to_owned())).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_key_that_others_may_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        Key::of_file(&path).expect("room");
        assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("an owner");
        let error = Key::of_file(&path).expect_err("others may read it").to_string();
        assert!(error.contains("chmod go="), "{error}");
    }
}
