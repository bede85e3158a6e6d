//! The marker: a small file outside the data folder that says what was shown last.
//!
//! A saved state may be counted on from only if nothing was ever seen of what was sealed after it; otherwise the same events
//! would be sealed twice with different noise, and averaging removes noise. The library asks a store whether a state is fresh
//! ([`dpsw::FreshnessStore`]); here is what it answers, and why that is right.
//!
//! Every commit that has something new to show gives the database a new *generation*, a random word, and notes which generation
//! the marker has at that moment (`replaces`). After the commit the marker is moved to the new generation, durably, and only then
//! is anything shown. So whatever was ever seen belongs to the marker's generation or to an earlier one. At the start:
//!
//! - *The marker has the database's generation*: nothing newer was seen. The states are fresh; what came after them is counted
//!   again.
//! - *The marker has what the database's generation replaces*: the process stopped between commit and marker. Nothing of this
//!   generation was seen, and nothing newer exists. The states are fresh, and the marker is moved on.
//! - *Anything else, or no marker*: the database is older than what was seen (a backup), or nobody knows. Every open substream
//!   is given up, and each stream goes on after the last position that the marker says was shown, or not at all.
//!
//! The database alone can be copied, restored and run twice; the marker is moved by each run, so the second one finds that it is
//! not the newest. That is why the marker must not be in a backup of the data folder.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

use crate::cipher::{Cipher, NoRandomness, random};
use crate::disk::Disk;

/// The place that the encryption of a marker is bound to.
const PLACE: &[u8] = b"marker";

/// A random word: another one after every commit that has something new to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation(pub [u8; 16]);

/// The generation of a database, and the one that the marker had when it was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    /// Which database: a random word.
    pub database: [u8; 16],
    /// What it has to show.
    pub generation: Generation,
    /// What the marker said when this generation was committed; `None` before there was a marker.
    pub replaces: Option<Generation>,
}

impl Lineage {
    /// That of a new database.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn draw() -> Result<Self, NoRandomness> {
        Ok(Self { database: random()?, generation: Generation(random()?), replaces: None })
    }

    /// A new generation, while the marker has this one.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn after(self, marked: Generation) -> Result<Self, NoRandomness> {
        Ok(Self { generation: Generation(random()?), replaces: Some(marked), ..self })
    }

    /// The same of a database that is no longer new: from then on it is not trusted without its marker.
    #[must_use]
    pub fn no_longer_new(self) -> Self {
        Self { replaces: self.replaces.or(Some(self.generation)), ..self }
    }
}

/// The record of what was shown last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// Of which database.
    pub database: [u8; 16],
    /// Of which generation.
    pub generation: Generation,
    /// Up to where each stream was shown, by its number.
    pub shown: BTreeMap<u64, u64>,
}

/// The relation of a database to its marker.
#[derive(Debug, PartialEq, Eq)]
pub enum Standing {
    /// The database is new: nothing was taken, so nothing was shown.
    New,
    /// It has the newest states.
    Newest,
    /// It has the newest states, of which nothing was shown yet: the marker is to be moved on.
    Unshown,
    /// Another generation was shown: this one is older.
    Older(Marker),
    /// The marker is gone: nobody knows what was shown.
    Gone,
    /// The marker was changed, or belongs to another key.
    Unreadable,
    /// The marker belongs to another database.
    Foreign,
}

/// A marker that cannot be moved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MarkerError {
    /// Another owner has moved it.
    #[error("it is not where this process left it")]
    Moved,
    /// The disk refuses.
    #[error(transparent)]
    Disk(#[from] io::Error),
    /// There is no nonce.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

impl Marker {
    /// That of a database of which nothing was shown yet.
    #[must_use]
    pub fn new(lineage: Lineage) -> Self {
        Self { database: lineage.database, generation: lineage.generation, shown: BTreeMap::new() }
    }

    /// Writes it, wherever the one before was.
    ///
    /// # Errors
    /// The disk refuses, or there is no randomness.
    pub fn write(&self, disk: &dyn Disk, cipher: &Cipher) -> Result<(), MarkerError> {
        Ok(disk.write_marker(&self.to_bytes(cipher)?)?)
    }

    /// Moves it on from where this process left it, and from nowhere else: another owner would have moved it.
    ///
    /// # Errors
    /// It is not there, the disk refuses, or there is no randomness.
    pub fn move_on(&self, disk: &dyn Disk, cipher: &Cipher, from: Generation) -> Result<(), MarkerError> {
        let found = disk.read_marker()?.and_then(|bytes| Self::from_bytes(&bytes, cipher));
        if !found.is_some_and(|found| [from, self.generation].contains(&found.generation)) {
            return Err(MarkerError::Moved);
        }
        self.write(disk, cipher)
    }

    fn to_bytes(&self, cipher: &Cipher) -> Result<Vec<u8>, NoRandomness> {
        let text = serde_json::to_vec(self).expect("numbers and lists can be written");
        cipher.seal(PLACE, &text)
    }

    /// The marker in these bytes; `None` if they were changed or belong to another key.
    fn from_bytes(bytes: &[u8], cipher: &Cipher) -> Option<Self> {
        let text = cipher.open(PLACE, bytes).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

impl Standing {
    /// How a database of this lineage stands to the marker on its disk.
    ///
    /// # Errors
    /// The marker cannot be read.
    pub fn read(disk: &dyn Disk, cipher: &Cipher, lineage: Lineage) -> io::Result<Self> {
        let Some(bytes) = disk.read_marker()? else {
            return Ok(if lineage.replaces.is_none() { Self::New } else { Self::Gone });
        };
        Ok(Marker::from_bytes(&bytes, cipher).map_or(Self::Unreadable, |marker| Self::of(lineage, marker)))
    }

    fn of(lineage: Lineage, marker: Marker) -> Self {
        if marker.database != lineage.database {
            Self::Foreign
        } else if marker.generation == lineage.generation {
            Self::Newest
        } else if Some(marker.generation) == lineage.replaces {
            Self::Unshown
        } else {
            Self::Older(marker)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(generation: u8) -> Marker {
        Marker { database: [1; 16], generation: Generation([generation; 16]), shown: [(3, 40)].into() }
    }

    #[test]
    fn the_marker_says_whether_a_database_has_the_newest_states() {
        let (generation, replaces) = (Generation([7; 16]), Some(Generation([6; 16])));
        let lineage = Lineage { database: [1; 16], generation, replaces };
        assert_eq!(Standing::of(lineage, marker(7)), Standing::Newest);
        assert_eq!(Standing::of(lineage, marker(6)), Standing::Unshown);
        for other in [5, 8] {
            assert_eq!(Standing::of(lineage, marker(other)), Standing::Older(marker(other)));
        }
        let foreign = Marker { database: [2; 16], ..marker(7) };
        assert_eq!(Standing::of(lineage, foreign), Standing::Foreign);
    }

    #[test]
    fn a_marker_is_read_with_its_key_alone() {
        let cipher = Cipher::new(&[1; 32]);
        let bytes = marker(7).to_bytes(&cipher).expect("randomness");
        assert_eq!(Marker::from_bytes(&bytes, &cipher), Some(marker(7)));
        assert_eq!(Marker::from_bytes(&bytes, &Cipher::new(&[2; 32])), None);
        assert_eq!(Marker::from_bytes(&bytes[1..], &cipher), None);
    }
}
