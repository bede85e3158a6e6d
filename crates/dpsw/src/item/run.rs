//! Items that are about to be counted: integers or fingerprints, with what goes with each.

use crate::item::value::Kind;

/// A run of items in order of arrival.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    /// `None` for null items: they take their positions and count nowhere.
    pub(crate) kind: Option<Kind>,
    len: usize,
    /// The integers, or the fingerprints of byte strings.
    pub(crate) words: &'a [u64],
    /// The byte strings; empty for integers.
    pub(crate) bytes: &'a [&'a [u8]],
    /// Who sent each; empty where single events are protected.
    pub(crate) users: &'a [u64],
}

impl<'a> Run<'a> {
    pub(crate) fn integers(words: &'a [u64]) -> Self {
        Self { kind: Some(Kind::Integers), len: words.len(), words, bytes: &[], users: &[] }
    }

    pub(crate) fn strings(words: &'a [u64], bytes: &'a [&'a [u8]]) -> Self {
        Self { kind: Some(Kind::Bytes), len: words.len(), words, bytes, users: &[] }
    }

    pub(crate) fn nulls(len: usize) -> Self {
        Self { kind: None, len, words: &[], bytes: &[], users: &[] }
    }

    /// The same with who sent each.
    pub(crate) fn with_users(self, users: &'a [u64]) -> Self {
        Self { users, ..self }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Those from `start` on, at most `len`.
    pub(crate) fn part_from(self, start: usize, len: usize) -> Self {
        fn cut<T>(list: &[T], start: usize, len: usize) -> &[T] {
            // A list that is not needed is empty, and stays so.
            let start = start.min(list.len());
            &list[start..start.saturating_add(len).min(list.len())]
        }
        Self {
            len: len.min(self.len.saturating_sub(start)),
            words: cut(self.words, start, len),
            bytes: cut(self.bytes, start, len),
            users: cut(self.users, start, len),
            ..self
        }
    }
}
