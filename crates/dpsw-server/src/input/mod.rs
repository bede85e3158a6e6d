//! The bodies of batches: from bytes to columns.
//!
//! A body is refused as a whole for its syntax and its size alone. What one event brings (an item that is missing, too long or
//! of another type, a time that is none) makes that item missing in its place, so that no event decides whether others count.
//! Errors name a place and a reason and never show what stands there.

pub(crate) mod arrow;
pub(crate) mod csv;
pub(crate) mod flat;
pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod pointer;
pub(crate) mod rows;
pub(crate) mod time;
pub(crate) mod unpack;

use bytes::Bytes;
use thiserror::Error;

use crate::budget::Reservation;
use crate::config::{ColumnKind, Protects, SourceConfig};
use crate::events::{Events, EventsError};

/// The form in which events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// One item per line.
    Lines,
    /// One JSON document per line.
    Ndjson,
    /// One array of JSON documents.
    Json,
    /// With names in the first record.
    Csv,
    /// An Arrow IPC stream.
    Arrow,
}

/// The content types that are understood.
const CONTENT_TYPES: [(&str, Format); 8] = [
    ("text/plain", Format::Lines),
    ("application/x-ndjson", Format::Ndjson),
    ("application/ndjson", Format::Ndjson),
    ("application/jsonl", Format::Ndjson),
    ("application/x-jsonlines", Format::Ndjson),
    ("application/json", Format::Json),
    ("text/csv", Format::Csv),
    ("application/vnd.apache.arrow.stream", Format::Arrow),
];

impl Format {
    /// The format of a `Content-Type`, whatever its parameters.
    pub(crate) fn of(content_type: &str) -> Option<Self> {
        let name = content_type.split(';').next().unwrap_or_default().trim();
        CONTENT_TYPES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, format)| *format)
    }
}

/// The parts of each event that are taken: the columns that streams count, the time and the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// How often it has changed before. The engine refuses events that were read before a column was added.
    pub(crate) version: u64,
    pub(crate) columns: Vec<(String, ColumnKind)>,
    pub(crate) time: Option<String>,
    pub(crate) user: Option<String>,
    /// The one column of the source, if it has one and nothing else: then a line is an event.
    pub(crate) only: Option<String>,
    /// Whether that an event came is public.
    pub(crate) has_public_arrivals: bool,
}

impl Wanted {
    /// What the streams that count these columns need of a source.
    pub(crate) fn new<'c>(
        source: &SourceConfig,
        counted: impl IntoIterator<Item = &'c str>,
        version: u64,
    ) -> Self {
        let mut names: Vec<&str> = counted.into_iter().collect();
        names.sort_unstable();
        names.dedup();
        let known = |name: &str| source.columns.get(name).map(|kind| (name.to_owned(), *kind));
        let is_alone =
            source.columns.len() == 1 && source.time_column.is_none() && source.user_column.is_none();
        Self {
            version,
            columns: names.into_iter().filter_map(known).collect(),
            time: source.time_column.clone(),
            user: source.user_column.clone(),
            only: source.columns.keys().next().filter(|_| is_alone).cloned(),
            has_public_arrivals: source.protects != Protects::Presence,
        }
    }

    /// Whether it has every column of the other.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        other.columns.iter().all(|column| self.columns.contains(column))
    }

    /// Bytes that a row takes in memory beside its texts.
    fn bytes_per_row(&self) -> usize {
        // The end of a text and its bit, or an integer and its bit.
        let column = |(_, kind): &(String, ColumnKind)| match kind {
            ColumnKind::Text => 5,
            ColumnKind::Integer => 9,
        };
        let columns: usize = self.columns.iter().map(column).sum();
        columns + self.time.as_ref().map_or(0, |_| 8) + self.user.as_ref().map_or(0, |_| 5)
    }

    /// Bytes that a row takes in memory at most, whatever stands in it.
    pub(crate) fn longest_row(&self, limits: InputLimits) -> usize {
        let texts = self.columns.iter().filter(|(_, kind)| *kind == ColumnKind::Text).count();
        1 + self.bytes_per_row() + limits.key_len_max * (texts + usize::from(self.user.is_some()))
    }

    /// Every name that is looked for: columns, then the time, then the user.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name).chain(&self.time).chain(&self.user).map(String::as_str)
    }
}

/// The limits of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InputLimits {
    /// Events of a batch.
    pub(crate) events_max: usize,
    /// Bytes of an item or user; a longer one is missing.
    pub(crate) key_len_max: usize,
}

/// A body that is refused as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub(crate) enum InputError {
    #[error("line {line} is not a JSON document; it goes wrong at byte {byte} of the line")]
    JsonLine { line: usize, byte: usize },
    #[error("the body is not an array of JSON documents; it goes wrong in line {line} at byte {byte}")]
    JsonArray { line: usize, byte: usize },
    #[error("the first record of the CSV has no field {0:?}; it must name every column that is counted")]
    CsvHeader(String),
    #[error("record {record} of the CSV has a quote that is never closed")]
    CsvQuote { record: usize },
    #[error("the body is not a complete Arrow IPC stream without compressed buffers")]
    Arrow,
    #[error("the Arrow schema has no column {0:?}; it must have every column that is counted")]
    ArrowMissing(String),
    #[error("column {name:?} of the Arrow schema is {got}, which cannot be read as {wanted}")]
    ArrowType { name: String, got: String, wanted: &'static str },
    #[error(
        "lines bring one column, but the source has more than that; send {names} as NDJSON, JSON, CSV or Arrow"
    )]
    Lines { names: String },
    #[error("the body is not complete or not valid {0}")]
    Packed(&'static str),
    #[error("the body has more than {most} bytes when it is unpacked; send smaller batches")]
    UnpackedBytes { most: usize },
    #[error("the body has more than {most} events; send smaller batches")]
    Events { most: usize },
    #[error("there is no memory for this body now; nothing was taken, send it again")]
    Busy,
    #[error(transparent)]
    Columns(#[from] EventsError),
}

/// Reads a body, within the memory that was reserved for it. The events take that memory with them.
pub(crate) fn read(
    format: Format,
    body: Bytes,
    wanted: &Wanted,
    limits: InputLimits,
    mut room: Reservation,
) -> Result<Events, InputError> {
    let len = body.len();
    let mut reserve = |bytes: usize| room.change(bytes).map_err(|_| InputError::Busy);
    let (events, kept) = if format == Format::Arrow {
        let stream = arrow::Stream::open(body, wanted, limits)?;
        let kept = stream.kept_max;
        reserve(len.max(kept))?;
        (stream.read()?, kept)
    } else {
        reserve(len + wanted.bytes_per_row() * rows_max(format, &body, limits))?;
        let events = match format {
            Format::Lines => lines::read(&body, wanted, limits),
            Format::Ndjson => json::read_lines(&body, wanted, limits),
            Format::Json => json::read_array(&body, wanted, limits),
            Format::Csv | Format::Arrow => csv::read(&body, wanted, limits),
        }?;
        let kept = len + wanted.bytes_per_row() * events.len();
        (events, kept)
    };
    room.shrink(kept);
    Ok(events.with_room(room))
}

/// The most rows that a body can have. Items have no line ends where lines are rows; elsewhere the length of the body decides, so
/// that no item does.
fn rows_max(format: Format, body: &[u8], limits: InputLimits) -> usize {
    let rows = match format {
        Format::Lines | Format::Ndjson => memchr::memchr_iter(b'\n', body).count() + 1,
        Format::Json => body.len() / 2 + 1,
        Format::Csv | Format::Arrow => body.len() + 1,
    };
    rows.min(limits.events_max)
}

/// Text without the mark that some programs put at its beginning.
fn without_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bodies of one length and one number of rows, whose items differ.
    #[test]
    fn what_is_reserved_for_a_batch_follows_from_its_envelope() {
        /// So many that what their items take is more than what any batch takes.
        const ROWS: usize = 1000;
        let wanted = testing::wanted();
        let reserved = |format: Format, body: &str| {
            let room = crate::budget::Budget::new(1 << 20).reserve("a token", body.len()).expect("much");
            let limits = InputLimits { events_max: 1 << 16, ..testing::LIMITS };
            let events = read(format, Bytes::from(body.to_owned()), &wanted, limits, room).expect("a batch");
            (events.len(), events.reserved())
        };
        let ndjson =
            |page: &str, x: &str| format!("{{\"page\":\"{page}\",\"x\":\"{x}\"}}\n{{}}\n").repeat(ROWS);
        let csv = |page: &str, who: &str| format!("page,status,at,who\n{page},,,{who}\n");
        for (format, one, other) in [
            (Format::Ndjson, ndjson("a", "much too long"), ndjson("much too long", "a")),
            (Format::Csv, csv("a", "bc"), csv("ab", "c")),
            (Format::Json, "[{\"page\":\"a\"},{}] ".to_owned(), "[{\"page\":null},7] ".to_owned()),
        ] {
            assert_eq!(one.len(), other.len());
            assert_eq!(reserved(format, &one), reserved(format, &other), "{format:?}");
        }
    }

    #[test]
    fn a_body_for_which_there_is_no_memory_is_refused_before_it_is_read() {
        let budget = crate::budget::Budget::new(1000);
        let room = budget.reserve("a token", 3).expect("much");
        let body = Bytes::from("\n".repeat(500));
        let only = Wanted { only: Some("page".to_owned()), ..testing::wanted() };
        let refused = read(Format::Lines, body, &only, testing::LIMITS, room);
        assert_eq!(refused.map(|events| events.len()), Err(InputError::Busy));
        drop(budget.reserve("another", 1000).expect("all of it came back"));
    }

    #[test]
    fn content_types_are_known_by_name_whatever_their_case_and_parameters() {
        for (content_type, format) in [
            ("application/x-ndjson", Some(Format::Ndjson)),
            ("Application/JSON; charset=utf-8", Some(Format::Json)),
            ("text/csv;header=present", Some(Format::Csv)),
            ("text/html", None),
            ("", None),
        ] {
            assert_eq!(Format::of(content_type), format, "{content_type}");
        }
    }
}

/// What tests of all formats share.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::events::Column;

    pub(crate) const LIMITS: InputLimits = InputLimits { events_max: 100, key_len_max: 8 };

    /// A source with a text and an integer column, times and users.
    pub(crate) fn wanted() -> Wanted {
        Wanted {
            version: 0,
            columns: vec![("page".to_owned(), ColumnKind::Text), ("status".to_owned(), ColumnKind::Integer)],
            time: Some("at".to_owned()),
            user: Some("who".to_owned()),
            only: None,
            has_public_arrivals: true,
        }
    }

    /// One event per line: page, status, milliseconds, user; `-` where there is none.
    pub(crate) fn show(events: &Events) -> Vec<String> {
        let line = |index| {
            let columns = events.columns().iter().map(|(_, column)| match column {
                Column::Strings(strings) => text(strings.get(index)),
                Column::Integers(integers) => {
                    let (values, present) = integers.parts();
                    text(present.has(index).then(|| values[index].to_string()))
                }
            });
            let time = events.times().map(|times| times[index]);
            let time = time.map(|time| text((time != crate::events::MISSING_TIME).then(|| time.to_string())));
            let user = events.users().map(|users| text(users.get(index)));
            columns.chain(time).chain(user).collect::<Vec<_>>().join(" ")
        };
        (0..events.len()).map(line).collect()
    }

    fn text(value: Option<impl AsRef<[u8]>>) -> String {
        value.map_or("-".to_owned(), |value| String::from_utf8_lossy(value.as_ref()).into_owned())
    }
}
