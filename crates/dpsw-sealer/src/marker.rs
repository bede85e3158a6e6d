//! The marker: which generation of the database was shown last, and up to where.
//!
//! Every commit that has something new to show gives the database a new *generation*, a random word, and notes which generation
//! the marker has at that moment (`replaces`). After the commit the marker is moved to the new generation, durably, and only then
//! is anything shown. So whatever was ever seen belongs to the marker's generation or to an earlier one.

use serde::{Deserialize, Serialize};

use crate::disk::Disk;
use crate::error::SealerError;
use crate::store::Meta;

/// A random word that no other commit has.
pub(crate) type Generation = [u8; 16];

/// What was shown last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    pub(crate) database: Generation,
    pub(crate) generation: Generation,
    /// Up to where the stream was shown.
    pub(crate) until: u64,
}

/// What the marker says about the database.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has the newest state.
    Newest,
    /// It has the newest state, of which nothing was shown yet: the marker is to be moved on.
    Unshown,
    /// It is older than what was shown.
    Older {
        /// Up to where the stream was shown.
        until: u64,
        /// The generation that was shown.
        shown: Generation,
    },
}

pub(crate) fn random() -> Result<Generation, SealerError> {
    let mut word = [0; 16];
    getrandom::fill(&mut word)?;
    Ok(word)
}

pub(crate) fn read(disk: &dyn Disk) -> Result<Option<Marker>, SealerError> {
    let name = || format!("the marker of {}", disk.name());
    let read = disk.read_marker().map_err(|error| SealerError::Marker(format!("{}: {error}", name())))?;
    let parse = |bytes: Vec<u8>| {
        serde_json::from_slice(&bytes)
            .map_err(|error| SealerError::Damaged { what: name(), reason: error.to_string() })
    };
    read.map(parse).transpose()
}

/// Moves the marker on from one of these generations and from nowhere else: another owner would have moved it.
pub(crate) fn write(disk: &dyn Disk, marker: &Marker, from: Option<Generation>) -> Result<(), SealerError> {
    let found = read(disk)?.map(|found| found.generation);
    if found != from && found != Some(marker.generation) {
        return Err(SealerError::Marker(format!(
            "the marker of {} is not where this sealer left it: another one went on with a copy of the state",
            disk.name()
        )));
    }
    let bytes = serde_json::to_vec(marker).expect("numbers can be written");
    disk.write_marker(&bytes).map_err(|error| {
        SealerError::Storage(format!("the marker of {} cannot be moved: {error}", disk.name()))
    })
}

pub(crate) fn standing(disk: &dyn Disk, meta: &Meta) -> Result<Standing, SealerError> {
    let name = disk.name();
    match read(disk)? {
        None if meta.replaces.is_none() => Ok(Standing::Unshown),
        None => Err(SealerError::Marker(format!(
            "the marker of {name} is gone, so nobody knows what was shown of this stream; bring it back, or begin a new stream \
            with another state, which spends its epsilon on the same events again"
        ))),
        Some(marker) if marker.database != meta.database => {
            Err(SealerError::Marker(format!("the marker of {name} belongs to another stream")))
        }
        Some(marker) if marker.generation == meta.generation => Ok(Standing::Newest),
        Some(marker) if Some(marker.generation) == meta.replaces => Ok(Standing::Unshown),
        Some(marker) => Ok(Standing::Older { until: marker.until, shown: marker.generation }),
    }
}
