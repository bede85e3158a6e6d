//! Whether a view may take the place of an earlier one of the same stream.

use crate::item::mapping::Columns;
use crate::sealed::substream::SealedSubstream;
use crate::view::window_view::WindowView;

/// Why a view cannot take the place of an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SuccessionError {
    /// The plans differ.
    #[error("the view has another plan than the one before")]
    Plan,
    /// The hash keys differ.
    #[error("the view hashes with other keys than the one before")]
    Keys,
    /// The sites differ.
    #[error("the view is of other sites than the one before")]
    Sites,
    /// The earlier one is finished.
    #[error("the stream was over at {end}")]
    Over {
        /// Where.
        end: u64,
    },
    /// It does not end later.
    #[error("the view ends at {end}, and the one before at {last}")]
    NotLater {
        /// Where it ends.
        end: u64,
        /// Where the earlier one ends.
        last: u64,
    },
    /// What both have was sealed twice, with different noise or counts.
    #[error("the view has other counters in substream {substream} than the one before: it was sealed twice")]
    SealedTwice {
        /// The first such substream.
        substream: u64,
    },
}

impl WindowView {
    /// Whether it shows the same stream as an earlier view, at a later time: plan, hash keys and sites are the same, it ends
    /// later (or where the earlier one ends, if it is finished and that is not), and whatever is sealed in both is equal. For
    /// those who take views from elsewhere.
    ///
    /// # Errors
    /// It does not; the first reason that was found. A view is not later than itself.
    pub fn check_succeeds(&self, earlier: &Self) -> Result<(), SuccessionError> {
        if self.plan.settings() != earlier.plan.settings() {
            return Err(SuccessionError::Plan);
        }
        if self.cached.released.mapping().fingerprint_key != earlier.cached.released.mapping().fingerprint_key
        {
            return Err(SuccessionError::Keys);
        }
        if self.sites != earlier.sites {
            return Err(SuccessionError::Sites);
        }
        // Nothing follows the end of a stream (PRIVACY.md: rule 34).
        if let Some(end) = earlier.finished() {
            return Err(SuccessionError::Over { end });
        }
        let (end, last) = (self.stream.end, earlier.stream.end);
        if end < last || end == last && self.finished().is_none() {
            return Err(SuccessionError::NotLater { end, last });
        }
        let mut sites = self.each_site().iter().zip(earlier.each_site());
        // Two seals of one substream would show the same counts under two noises (PRIVACY.md: rule 9).
        match sites.find_map(|(site, before)| site.sealed_again(before)) {
            Some(substream) => Err(SuccessionError::SealedTwice { substream }),
            None => Ok(()),
        }
    }

    /// The first substream that differs from what an earlier view of the same site has.
    fn sealed_again(&self, earlier: &Self) -> Option<u64> {
        for before in earlier.cached.released.substreams() {
            let now = self.cached.released.substream(before.number);
            if now.is_some_and(|now| !is_same_seal(now, before)) {
                return Some(before.number);
            }
        }
        None
    }
}

/// Whether two states of one substream have the same keys and, in the ranges that both have, the same counters.
fn is_same_seal(now: &SealedSubstream, before: &SealedSubstream) -> bool {
    let mut both =
        before.sketches().iter().filter_map(|(range, sketch)| now.sketch(*range).map(|now| (now, &**sketch)));
    row_keys(now) == row_keys(before)
        && now.levels() == before.levels()
        && both.all(|(now, sketch)| now == sketch)
}

fn row_keys(substream: &SealedSubstream) -> Option<&[u64]> {
    match &substream.mapping.columns {
        Columns::Hashed(keys) => Some(keys),
        Columns::Range | Columns::Listed(_) => None,
    }
}
