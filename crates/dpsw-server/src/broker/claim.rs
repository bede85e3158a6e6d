//! Who reads a topic, as written in its broker.
//!
//! A topic is read by one source of one database, for life: its events are charged to that source's ledger, and another reader
//! would spend on them again. The claim has no end in time, so that no clock decides who may read. Each new reader raises the
//! term, first in its own database and then in the broker, and goes on only while the broker has its term:
//!
//! - another database or source finds a claim that is not its own, and is refused;
//! - a copy of the data that was not the last to read finds a later term than it has, and is refused;
//! - a copy that reads finds its term replaced when another copy begins, and stops.

use crate::broker::error::BrokerError;
use crate::store::position::Position;

/// The reader of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The database and the source.
    pub(crate) reader: String,
    /// How often somebody began to read for it.
    pub(crate) term: u64,
}

impl Claim {
    pub(crate) fn to_text(&self) -> String {
        format!("{} {}", self.reader, self.term)
    }

    /// A claim that cannot be read is of a stranger.
    pub(crate) fn from_text(text: &str) -> Self {
        let parts = text.split_once(' ').and_then(|(reader, term)| Some((reader, term.parse().ok()?)));
        let (reader, term) = parts.unwrap_or((text, u64::MAX));
        Self { reader: reader.to_owned(), term }
    }

    /// The claim of a reader that stands here and finds this one.
    pub(crate) fn next(reader: &str, position: &Position, found: Option<&Self>) -> Result<Self, BrokerError> {
        let found_term = match found {
            Some(found) if found.reader != reader => return Err(BrokerError::Taken(found.reader.clone())),
            Some(found) => found.term,
            None => 0,
        };
        // Where nothing old is read, it does not matter who read it.
        if position.term < found_term && !position.begins_at_end {
            return Err(BrokerError::Older);
        }
        Ok(Self { reader: reader.to_owned(), term: position.term.max(found_term) + 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(reader: &str, term: u64) -> Claim {
        Claim { reader: reader.to_owned(), term }
    }

    #[test]
    fn a_claim_is_read_as_it_was_written_and_anything_else_is_a_stranger() {
        assert_eq!(Claim::from_text(&claim("ab/web", 7).to_text()), claim("ab/web", 7));
        for text in ["", "ab/web", "ab/web x", "ab/web -1"] {
            assert_ne!(Claim::from_text(text).reader, "ab/web 7", "{text:?}");
            assert_eq!(Claim::from_text(text).term, u64::MAX, "{text:?}");
        }
    }

    #[test]
    fn one_reader_goes_on_and_strangers_and_older_copies_are_refused() {
        let at = |term, begins_at_end| Position { term, begins_at_end, ..Position::default() };
        let next = |position, found: Option<Claim>| Claim::next("me", &position, found.as_ref());
        assert_eq!(next(at(0, false), None).expect("free").term, 1);
        assert_eq!(next(at(5, false), None).expect("the broker forgot").term, 6);
        assert_eq!(next(at(5, false), Some(claim("me", 5))).expect("mine").term, 6);
        assert_eq!(next(at(6, false), Some(claim("me", 5))).expect("killed before the claim").term, 7);
        assert!(matches!(next(at(4, false), Some(claim("me", 5))), Err(BrokerError::Older)));
        assert_eq!(next(at(4, true), Some(claim("me", 5))).expect("nothing is read again").term, 6);
        for begins_at_end in [false, true] {
            let refused = next(at(9, begins_at_end), Some(claim("you", 1)));
            assert!(matches!(refused, Err(BrokerError::Taken(reader)) if reader == "you"));
        }
    }
}
