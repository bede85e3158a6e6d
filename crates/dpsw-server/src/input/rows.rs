//! Events that come one by one, collected into columns.

use std::borrow::Cow;

use crate::column::{IntegersBuilder, StringsBuilder};
use crate::config::ColumnKind;
use crate::events::{Column, EVENTS_MAX, Events, MISSING_TIME};
use crate::input::{InputError, InputLimits, Wanted, time};

/// The text of one field of an event; `None` where there is nothing that could be an item.
pub(crate) type Field<'f> = Option<Cow<'f, [u8]>>;

/// Columns that grow row by row.
pub(crate) struct Rows<'w> {
    wanted: &'w Wanted,
    limits: InputLimits,
    len: usize,
    columns: Vec<Building>,
    times: Vec<u64>,
    users: StringsBuilder,
}

enum Building {
    Strings(StringsBuilder),
    Integers(IntegersBuilder),
}

impl<'w> Rows<'w> {
    /// None yet, with room for about so many.
    pub(crate) fn new(wanted: &'w Wanted, limits: InputLimits, about: usize) -> Self {
        let about = about.min(limits.events_max);
        let building = |(_, kind): &(String, ColumnKind)| match kind {
            ColumnKind::Text => Building::Strings(StringsBuilder::with_capacity(about, 8 * about)),
            ColumnKind::Integer => Building::Integers(IntegersBuilder::with_capacity(about)),
        };
        let columns = wanted.columns.iter().map(building).collect();
        Self { wanted, limits, len: 0, columns, times: Vec::new(), users: StringsBuilder::default() }
    }

    /// Adds an event with these fields, in the order of [`Wanted::names`].
    pub(crate) fn push(&mut self, fields: &[Field<'_>]) -> Result<(), InputError> {
        self.add(fields, None)
    }

    /// Adds an event with these columns at this time; what is missing is missing.
    pub(crate) fn push_at(&mut self, columns: &[Field<'_>], time: u64) -> Result<(), InputError> {
        self.add(columns, Some(time))
    }

    fn add(&mut self, fields: &[Field<'_>], known_time: Option<u64>) -> Result<(), InputError> {
        if self.len == self.limits.events_max.min(EVENTS_MAX) {
            return Err(InputError::Events { most: self.len });
        }
        let mut fields = fields.iter().map(|field| field.as_deref());
        let key_len_max = self.limits.key_len_max;
        let short = |field: Option<&'_ [u8]>| field.is_none_or(|text| text.len() <= key_len_max);
        for column in &mut self.columns {
            let field = fields.next().flatten();
            match column {
                Building::Strings(strings) => strings.push(field.filter(|_| short(field))),
                Building::Integers(integers) => integers.push(field.and_then(integer)),
            }
        }
        if self.wanted.time.is_some() {
            let time = known_time.or_else(|| fields.next().flatten().and_then(time::parse));
            self.times.push(time.unwrap_or(MISSING_TIME));
        }
        if self.wanted.user.is_some() {
            let user = fields.next().flatten();
            self.users.push(user.filter(|_| short(user)));
        }
        self.len += 1;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Events, InputError> {
        let mut events = Events::new(self.len)?;
        for ((name, _), column) in self.wanted.columns.iter().zip(self.columns) {
            events = events.with_column(name, column.finish())?;
        }
        if self.wanted.time.is_some() {
            events = events.with_times(self.times)?;
        }
        if self.wanted.user.is_some() {
            events = events.with_users(self.users.finish())?;
        }
        Ok(events)
    }
}

impl Building {
    fn finish(self) -> Column {
        match self {
            Self::Strings(strings) => Column::Strings(strings.finish()),
            Self::Integers(integers) => Column::Integers(integers.finish()),
        }
    }
}

/// The integer that a text is, if it is all digits and fits.
pub(crate) fn integer(text: &[u8]) -> Option<u64> {
    let digit = |sum: u64, byte: &u8| {
        let digit = byte.wrapping_sub(b'0');
        if 9 < digit { None } else { sum.checked_mul(10)?.checked_add(u64::from(digit)) }
    };
    if text.is_empty() { None } else { text.iter().try_fold(0, digit) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_digits_that_fit() {
        for (text, wanted) in [
            ("0", Some(0)),
            ("007", Some(7)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("-1", None),
            ("+1", None),
            ("1.0", None),
            ("1e3", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(integer(text.as_bytes()), wanted, "{text}");
        }
    }
}
