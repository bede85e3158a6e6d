//! Which saved state may still be restored.

use crate::error::StoreError;

/// Bytes of the id of a state.
pub(crate) const ID_LEN: usize = 24;

/// The name of a saved state: random, so that no two are mixed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(pub [u8; ID_LEN]);

impl std::fmt::Display for StateId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Remembers which saved states may still be restored, each once.
///
/// A state that is restored twice seals the same events twice with different noise, and averaging removes noise. An
/// implementation must keep its notes out of backups that hold states: restoring both would bring a consumed id back.
pub trait FreshnessStore {
    /// Notes that the state of this id may be restored. Durable when it returns.
    ///
    /// # Errors
    /// The note could not be made durable.
    fn note(&mut self, id: StateId) -> Result<(), StoreError>;

    /// Takes the note away and says whether it was there: `true` at most once for each note, also when several processes
    /// ask. Durable when it returns.
    ///
    /// # Errors
    /// The note could not be taken away durably; the caller must then treat it as gone.
    fn consume(&mut self, id: StateId) -> Result<bool, StoreError>;
}
