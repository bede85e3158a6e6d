//! The keys that heavy hitters may be chosen from.

use crate::item::keys::Keys;
use crate::item::value::Kind;
use crate::ratio::Ratio;

/// The origin of the keys of heavy hitters. Keys that were seen are never listed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Domain {
    /// A public list of keys. It must not be made from the stream itself.
    Public(Keys),
    /// No list: only questions about keys that the asker names.
    Asked(Kind),
    /// Keys that a private search finds in the stream itself: those that are frequent enough. Needs a δ.
    Found(SearchSettings),
}

/// The settings of the private search for keys. In a search, a run of substreams, keys are counted in secret. Whenever a substream is sealed, those
/// whose noisy counts reach a threshold are released; they stay listed until others with larger counts need their room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchSettings {
    /// The kind of the keys.
    pub kind: Kind,
    /// The share of ε that finding keys takes, strictly between 0 and 1. Counting takes the rest. `None` takes 1/20, 1/10
    /// or 1/5: the first that finds keys with 0.05 % of the window or of a search, whichever is shorter, else the last.
    pub share: Option<Ratio>,
    /// Substreams per search. Longer searches find rarer keys. `None` takes about a million items, at most eight windows and
    /// 64 MiB; with a summary the fewest that find keys with 0.1 % of the items, and at most a whole window.
    pub search_len: Option<u64>,
    /// How the keys of a search are counted.
    pub counting: SearchCounts,
    /// Longer keys are never found. At most 65,536 bytes.
    pub key_len_max: u32,
}

/// The way in which the keys of a search are counted. Fixed in the plan: it must not depend on what arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SearchCounts {
    /// Every key exactly: up to one entry per item of a search.
    Exact,
    /// This many keys in a Misra-Gries summary, which are released at the end of the search alone. Its counts are too small by
    /// at most the items of a search / (keys + 1).
    Summary {
        /// At least 1.
        keys: u64,
    },
}

impl SearchSettings {
    /// Exact counts of keys of up to 256 bytes; share and search are left to the plan.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self { kind, share: None, search_len: None, counting: SearchCounts::Exact, key_len_max: 256 }
    }
}

impl Domain {
    /// The kind of item.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Public(keys) => keys.kind(),
            Self::Asked(kind) => *kind,
            Self::Found(search) => search.kind,
        }
    }

    /// The public list, if there is one.
    #[must_use]
    pub fn keys(&self) -> Option<&Keys> {
        match self {
            Self::Public(keys) => Some(keys),
            Self::Asked(_) | Self::Found(_) => None,
        }
    }

    /// How keys are found, if they are.
    #[must_use]
    pub fn search(&self) -> Option<SearchSettings> {
        match self {
            Self::Found(search) => Some(*search),
            Self::Public(_) | Self::Asked(_) => None,
        }
    }
}
