//! The marker: a small file outside the data folder that says which releases were let out last.
//!
//! A saved state may be counted on from only if nothing was ever seen of what was sealed after it; otherwise the same events
//! would be sealed twice with different noise, and averaging removes noise. The library asks a store whether a state is fresh
//! ([`dpsw::FreshnessStore`]); here is what it answers, and why that is right.
//!
//! Every commit that has something new to show gives the database a new *generation*, a random word, and notes which generation
//! the marker has at that moment (`replaces`). After the commit the marker is moved to the new generation, durably, and only then
//! is anything shown. So whatever was ever seen belongs to the marker's generation or to an earlier one. At the start:
//!
//! - *The marker has the database's generation*: nothing newer was seen. The states are fresh; the journal is counted again.
//! - *The marker has what the database's generation replaces*: the service stopped between commit and marker. Nothing of this
//!   generation was seen, and nothing newer exists. The states are fresh, and the marker is moved on.
//! - *Anything else, or no marker*: the database is older than what was seen (a backup), or nobody knows. Every open substream
//!   is given up, and the journal with it; each stream goes on after the last position that the marker says was shown.
//!
//! The database alone can be copied, restored and run twice; the marker is moved by each run, so the second one finds that it is
//! not the newest. That is why the marker must not be in a backup of the data folder.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::OpenError;
use crate::store::cipher::{Cipher, NoRandomness};
use crate::store::records::{Generation, Meta, StreamId};
use crate::store::{Place, Store};

/// What was let out last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    pub(crate) database: [u8; 16],
    pub(crate) generation: Generation,
    /// Up to where each stream was shown.
    pub(crate) shown: BTreeMap<StreamId, u64>,
}

/// What the marker says about the database.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The database is new: nothing was taken, so nothing was shown.
    New,
    /// It has the newest states.
    Newest,
    /// It has the newest states, of which nothing was shown yet: the marker is to be moved on.
    Unshown,
    /// It may be older than what was shown.
    Unknown {
        /// What was shown last, if that is known.
        shown: Option<Shown>,
        /// Why.
        reason: &'static str,
    },
}

/// What was shown last, of which the database knows nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) generation: Generation,
    /// Up to where each stream was shown.
    pub(crate) until: BTreeMap<StreamId, u64>,
}

impl Marker {
    pub(crate) fn to_bytes(&self, cipher: &Cipher) -> Result<Vec<u8>, NoRandomness> {
        let text = serde_json::to_vec(self).expect("numbers and lists can be written");
        cipher.seal(&Place::Marker.bytes(), &text)
    }

    /// The marker in these bytes; `None` if they were changed or belong to another key.
    pub(crate) fn from_bytes(bytes: &[u8], cipher: &Cipher) -> Option<Self> {
        let text = cipher.open(&Place::Marker.bytes(), bytes).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

impl Store {
    /// The marker, and what it says about the database.
    pub(crate) fn standing(&self, meta: &Meta) -> Result<Standing, OpenError> {
        let unreadable = |error: std::io::Error| OpenError::Path {
            path: format!("the marker of {}", self.disk().name()),
            reason: error.to_string(),
        };
        let Some(bytes) = self.disk().read_marker().map_err(unreadable)? else {
            let unknown = Standing::Unknown { shown: None, reason: "there is no marker" };
            return Ok(if meta.replaces.is_none() { Standing::New } else { unknown });
        };
        let Some(marker) = Marker::from_bytes(&bytes, self.cipher()) else {
            return Ok(Standing::Unknown { shown: None, reason: "the marker is damaged or has another key" });
        };
        if marker.database != meta.database {
            return Err(OpenError::OtherMarker { path: format!("the marker of {}", self.disk().name()) });
        }
        Ok(stand(meta, marker))
    }
}

fn stand(meta: &Meta, marker: Marker) -> Standing {
    if marker.generation == meta.generation {
        Standing::Newest
    } else if Some(marker.generation) == meta.replaces {
        Standing::Unshown
    } else {
        let shown = Shown { generation: marker.generation, until: marker.shown };
        Standing::Unknown {
            shown: Some(shown),
            reason: "the marker has another generation than the database",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::store::records::SourceId;

    fn marker(generation: u8) -> Marker {
        Marker {
            database: [1; 16],
            generation: Generation([generation; 16]),
            shown: [(StreamId(3), 40)].into(),
        }
    }

    #[test]
    fn the_marker_says_whether_a_database_has_the_newest_states() {
        let meta = Meta {
            database: [1; 16],
            generation: Generation([7; 16]),
            replaces: Some(Generation([6; 16])),
            next_source: SourceId(0),
            next_stream: StreamId(0),
        };
        assert_eq!(stand(&meta, marker(7)), Standing::Newest);
        assert_eq!(stand(&meta, marker(6)), Standing::Unshown);
        for other in [5, 8] {
            let Standing::Unknown { shown, .. } = stand(&meta, marker(other)) else { panic!("{other}") };
            let generation = Generation([other; 16]);
            assert_eq!(shown, Some(Shown { generation, until: [(StreamId(3), 40)].into() }));
        }
    }

    #[test]
    fn a_marker_is_read_with_its_key_alone() {
        let cipher = Cipher::new(&Key::from_bytes([1; 32]));
        let bytes = marker(7).to_bytes(&cipher).expect("randomness");
        assert_eq!(Marker::from_bytes(&bytes, &cipher), Some(marker(7)));
        assert_eq!(Marker::from_bytes(&bytes, &Cipher::new(&Key::from_bytes([2; 32]))), None);
        assert_eq!(Marker::from_bytes(&bytes[1..], &cipher), None);
    }
}
