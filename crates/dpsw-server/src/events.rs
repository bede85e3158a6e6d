//! A batch of events, column by column, as the network brings it.

use std::sync::Arc;

use thiserror::Error;

use crate::budget::Reservation;
use crate::column::{Integers, Strings};

/// The time of an event that has none: it is left out, like one too far ahead.
pub const MISSING_TIME: u64 = u64::MAX;
/// The most events of a batch.
pub const EVENTS_MAX: usize = 1 << 22;
/// The most bytes of one column.
pub const COLUMN_BYTES_MAX: usize = 1 << 28;

/// Columns that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EventsError {
    /// One column is longer than another.
    #[error("{what} has {got} values for {wanted} events")]
    Length {
        /// Which column.
        what: String,
        /// How many values it has.
        got: usize,
        /// How many events there are.
        wanted: usize,
    },
    /// A string begins after its end or outside the bytes.
    #[error(
        "the ends of strings must ascend to at most {bytes}, the length of their bytes; number {index} is {end}"
    )]
    Ends {
        /// Which string.
        index: usize,
        /// Where it ends.
        end: u32,
        /// How many bytes there are.
        bytes: usize,
    },
    /// More than can be kept.
    #[error("{what} must be at most {most}, got {got}; send smaller batches")]
    Many {
        /// What there is too much of.
        what: &'static str,
        /// How much.
        got: usize,
        /// The most.
        most: usize,
    },
}

/// Bytes of a batch beside its columns.
const EVENTS_LEN: usize = 256;

/// Events in order of arrival. Each stream of a source takes one column of items.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Events {
    len: usize,
    columns: Vec<(String, Column)>,
    times: Option<Vec<u64>>,
    users: Option<Strings>,
    /// The version of what was wanted when they were read; `None` if they were not read from a body or a broker.
    wanted_version: Option<u64>,
    room: Room,
}

/// The memory that events hold of a budget, from the first byte of their body until they are dropped.
#[derive(Clone, Default)]
struct Room(Option<Arc<Reservation>>);

/// Events are the same whoever holds what for them.
impl PartialEq for Room {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Room {}

/// The items of one column.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Column {
    /// Texts or bytes.
    Strings(Strings),
    /// Integers.
    Integers(Integers),
}

impl Events {
    /// Events without columns.
    ///
    /// # Errors
    /// There are more than [`EVENTS_MAX`].
    pub fn new(len: usize) -> Result<Self, EventsError> {
        at_most("the number of events", len, EVENTS_MAX)?;
        Ok(Self { len, ..Self::default() })
    }

    /// The same with a column of items. A stream whose column is missing, or of another kind, counts null items.
    ///
    /// # Errors
    /// The column has another length.
    pub fn with_column(mut self, name: impl Into<String>, column: Column) -> Result<Self, EventsError> {
        let name = name.into();
        self.fits(&name, column.len())?;
        self.columns.push((name, column));
        Ok(self)
    }

    /// The same with the time of each event, in milliseconds since 1970 ([`MISSING_TIME`] where there is none).
    ///
    /// # Errors
    /// There are more or fewer times than events.
    pub fn with_times(self, times: Vec<u64>) -> Result<Self, EventsError> {
        self.fits("times", times.len())?;
        Ok(Self { times: Some(times), ..self })
    }

    /// The same with who sent each. An event without a user is a null item of the user without a name.
    ///
    /// # Errors
    /// There are more or fewer users than events.
    pub fn with_users(self, users: Strings) -> Result<Self, EventsError> {
        self.fits("users", users.len())?;
        Ok(Self { users: Some(users), ..self })
    }

    /// The same, read when this version of columns was wanted.
    pub(crate) fn read_for(self, wanted_version: u64) -> Self {
        Self { wanted_version: Some(wanted_version), ..self }
    }

    /// Whether they were read before this version of columns was wanted.
    pub(crate) fn is_read_before(&self, wanted_version: u64) -> bool {
        self.wanted_version.is_some_and(|version| version < wanted_version)
    }

    /// How many events there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Leaves out what is not needed.
    pub(crate) fn keep(&mut self, is_needed: impl Fn(&str) -> bool, needs_times: bool, needs_users: bool) {
        self.columns.retain(|(name, _)| is_needed(name));
        self.times = self.times.take().filter(|_| needs_times);
        self.users = self.users.take().filter(|_| needs_users);
    }

    /// The same with the memory that was reserved for them.
    pub(crate) fn with_room(self, room: Reservation) -> Self {
        Self { room: Room(Some(Arc::new(room))), ..self }
    }

    /// How many bytes were reserved for them, if any were.
    pub(crate) fn reserved(&self) -> Option<usize> {
        self.room.0.as_ref().map(|room| room.amount())
    }

    /// How many bytes they are counted as, where transactions and journals have a most.
    pub(crate) fn reserved_or_size(&self) -> usize {
        self.reserved().unwrap_or_else(|| self.size())
    }

    /// About how many bytes they take. It depends on their items: what was reserved decides, wherever others could see it.
    pub(crate) fn size(&self) -> usize {
        let columns = self.columns.iter().map(|(name, column)| name.len() + column.size()).sum::<usize>();
        let times = self.times.as_ref().map_or(0, |times| 8 * times.len());
        EVENTS_LEN + columns + times + self.users.as_ref().map_or(0, Strings::size)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The column of this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find_map(|(column, values)| (column == name).then_some(values))
    }

    /// All columns of items.
    #[must_use]
    pub fn columns(&self) -> &[(String, Column)] {
        &self.columns
    }

    /// The time of each.
    #[must_use]
    pub fn times(&self) -> Option<&[u64]> {
        self.times.as_deref()
    }

    /// Who sent each.
    #[must_use]
    pub fn users(&self) -> Option<&Strings> {
        self.users.as_ref()
    }

    fn fits(&self, what: &str, got: usize) -> Result<(), EventsError> {
        if got == self.len {
            return Ok(());
        }
        Err(EventsError::Length { what: what.to_owned(), got, wanted: self.len })
    }
}

impl Column {
    /// How many values it has.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Strings(strings) => strings.len(),
            Self::Integers(integers) => integers.len(),
        }
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn size(&self) -> usize {
        match self {
            Self::Strings(strings) => strings.size(),
            Self::Integers(integers) => 8 * integers.len(),
        }
    }
}

/// Debug output shows how many there are, and none of them.
macro_rules! show_len {
    ($($name:ident),*) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.len())
            }
        }
    )*};
}
pub(crate) use show_len;

show_len!(Events, Column);

pub(crate) fn at_most(what: &'static str, got: usize, most: usize) -> Result<(), EventsError> {
    if got <= most { Ok(()) } else { Err(EventsError::Many { what, got, most }) }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::column::Present;

    #[test]
    fn debug_output_shows_no_items() {
        let strings: Strings = [Some("secret"), None].into_iter().collect();
        let events = Events::new(2).expect("few").with_users(strings.clone()).expect("two");
        assert_eq!(format!("{events:?} {strings:?}"), "Events(2) Strings(2)");
    }

    #[test]
    fn columns_that_do_not_fit_together_are_refused() {
        let strings: Strings = [Some("a"), Some("b")].into_iter().collect();
        let error = Events::new(3).expect("few").with_column("page", Column::Strings(strings));
        assert_eq!(error.expect_err("too short").to_string(), "page has 2 values for 3 events");
        for (ends, index) in [(vec![2, 1], 1), (vec![4], 0)] {
            let error = Strings::new(Bytes::from_static(b"abc"), ends, Present::all());
            assert!(matches!(error, Err(EventsError::Ends { index: at, .. }) if at == index), "{error:?}");
        }
        let bits = Present::bits(Bytes::from_static(&[255]));
        assert!(Strings::new(Bytes::new(), vec![0; 9], bits.clone()).is_err());
        assert!(Integers::new(vec![0; 9], bits).is_err());
        assert!(Events::new(EVENTS_MAX + 1).is_err());
    }
}
