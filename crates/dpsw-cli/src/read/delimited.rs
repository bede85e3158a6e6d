//! Columns between commas, tabs or other bytes.
//!
//! In CSV fields may be quoted, a quoted field may hold line ends, and `""` in it is a quote. TSV has no quoting. A blank
//! line is a record with one empty field: left out, it would shift all later positions.

use std::ops::Range;

use anyhow::Result;
use memchr::{memchr, memchr_iter, memchr2};

use crate::args::TimeUnit;
use crate::fault::Fault;
use crate::read::lines::{self, without_return};
use crate::read::{BATCH, Problem, Record, Sink, time};
use crate::show::words::count;

/// A column, as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Column {
    Name(String),
    /// From 0.
    Index(usize),
}

impl Column {
    /// A number from 1 is a place, anything else a name.
    pub(crate) fn new(text: &str) -> Result<Self> {
        match text.parse::<usize>() {
            Ok(0) => Err(Fault::usage("columns are numbered from 1, got 0")),
            Ok(number) => Ok(Self::Index(number - 1)),
            Err(_) => Ok(Self::Name(text.to_owned())),
        }
    }

    /// Where it is among columns with these names.
    pub(crate) fn find(&self, names: &[String]) -> Result<usize> {
        let (place, wanted) = match self {
            Self::Index(index) => {
                (Some(*index).filter(|index| *index < names.len()), &(index + 1).to_string())
            }
            Self::Name(wanted) => (names.iter().position(|name| name == wanted), wanted),
        };
        place.ok_or_else(|| no_column(wanted, names))
    }
}

/// The columns that are wanted of a file.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    pub(crate) item: Column,
    pub(crate) time: Option<Column>,
    pub(crate) time_unit: Option<TimeUnit>,
    pub(crate) user: Option<Column>,
    /// Whether the first line names the columns; by default if a name is given, and in CSV.
    pub(crate) header: Option<bool>,
}

/// The parser of one file.
pub(crate) struct Delimited {
    delimiter: u8,
    /// Whether fields may be quoted.
    pub(crate) is_quoted: bool,
    columns: Columns,
    /// Whether a header is still to come.
    pub(crate) awaits_header: bool,
    item: usize,
    time: Option<usize>,
    user: Option<usize>,
    /// An item and a user, unquoted.
    fields: [Vec<u8>; 2],
}

impl Delimited {
    /// A table whose fields may be quoted, or in which quotes are bytes as others are.
    pub(crate) fn new(delimiter: u8, is_quoted: bool, columns: Columns) -> Self {
        let index = |column: &Column| if let Column::Index(index) = column { *index } else { 0 };
        let is_named = |column: &Column| matches!(column, Column::Name(_));
        let all = [Some(&columns.item), columns.time.as_ref(), columns.user.as_ref()];
        let has_names = all.iter().any(|column| column.is_some_and(is_named));
        Self {
            delimiter,
            is_quoted,
            awaits_header: columns.header.unwrap_or(has_names || is_quoted),
            item: index(&columns.item),
            time: columns.time.as_ref().map(index),
            user: columns.user.as_ref().map(index),
            columns,
            fields: Default::default(),
        }
    }

    /// Takes the complete records. Returns how many bytes and how many lines they are.
    pub(crate) fn take(&mut self, buffer: &[u8], line: u64, sink: &mut impl Sink) -> Result<(usize, u64)> {
        let mut start = 0;
        let mut lines = 0;
        if self.awaits_header {
            let Some(end) = self.record_end(buffer) else { return Ok((0, 0)) };
            self.read_header(&buffer[..end])?;
            start = end;
            lines = line_ends(&buffer[..end]);
        }
        let rest = &buffer[start..];
        let is_plain = !self.is_quoted || memchr(b'"', rest).is_none();
        let (len, more) = if is_plain && self.user.is_none() {
            self.take_plain(rest, line + lines, sink)?
        } else {
            self.take_records(rest, line + lines, sink)?
        };
        Ok((start + len, lines + more))
    }

    /// Records without quotes and users.
    fn take_plain(&mut self, buffer: &[u8], line: u64, sink: &mut impl Sink) -> Result<(usize, u64)> {
        let delimiter = self.delimiter;
        let item = self.item;
        let unit = self.columns.time_unit;
        let Some(time) = self.time else {
            return self.take_read(buffer, line, sink, |text, len| {
                let [item, _] = fields(text, len, delimiter, [item, item])?;
                Some((item, None))
            });
        };
        self.take_read(buffer, line, sink, |text, len| {
            let [first, second] = fields(text, len, delimiter, [item.min(time), item.max(time)])?;
            let (item, time) = if item < time { (first, second) } else { (second, first) };
            Some((item, Some(time::parse(time, unit).ok()?)))
        })
    }

    /// Reads item and time of the record of some length at the start of a text; what cannot be read so is read with care.
    #[inline(always)]
    fn take_read<'b>(
        &mut self,
        buffer: &'b [u8],
        line: u64,
        sink: &mut impl Sink,
        read: impl Fn(&'b [u8], usize) -> Option<(&'b [u8], Option<u64>)>,
    ) -> Result<(usize, u64)> {
        let mut batch = Batch { items: Vec::with_capacity(BATCH), times: Vec::with_capacity(BATCH) };
        let mut start = 0;
        let mut lines = 0;
        for end in lines::ends(buffer) {
            let len = without_return(&buffer[start..end]).len();
            if let Some((item, time)) = read(&buffer[start..], len) {
                batch.items.push(item);
                batch.times.extend(time);
            } else {
                batch.hand_over(sink)?;
                self.take_record(&buffer[start..start + len], line + lines, sink)?;
            }
            if batch.items.len() == BATCH {
                batch.hand_over(sink)?;
            }
            start = end + 1;
            lines += 1;
        }
        batch.hand_over(sink)?;
        Ok((start, lines))
    }

    fn take_records(&mut self, buffer: &[u8], line: u64, sink: &mut impl Sink) -> Result<(usize, u64)> {
        let mut start = 0;
        let mut lines = 0;
        while let Some(len) = self.record_end(&buffer[start..]) {
            let record = &buffer[start..start + len];
            self.take_record(without_end(record), line + lines, sink)?;
            lines += if self.is_quoted { line_ends(record) } else { 1 };
            start += len;
        }
        Ok((start, lines))
    }

    fn take_record(&mut self, record: &[u8], line: u64, sink: &mut impl Sink) -> Result<()> {
        let [mut of_item, mut of_user] = std::mem::take(&mut self.fields);
        let time = self.time.map(|index| {
            let read = time::parse(self.field(record, index, &mut of_item)?, self.columns.time_unit);
            read.map_err(|problem| Problem { column: self.field_start(record, index), ..problem })
        });
        let item = self.field(record, self.item, &mut of_item);
        let user = self.user.map(|index| self.field(record, index, &mut of_user));
        let done = sink.record(line, Record { item, time, user });
        self.fields = [of_item, of_user];
        done
    }

    /// The field at this index, unquoted; the buffer holds it if there are quotes to remove.
    fn field<'f>(&self, record: &'f [u8], index: usize, field: &'f mut Vec<u8>) -> Result<&'f [u8], Problem> {
        if !self.is_quoted || memchr(b'"', record).is_none() {
            return Ok(&record[self.plain_field(record, index)?]);
        }
        let mut start = 0;
        for number in 0..=index {
            field.clear();
            let end = self.quoted_field(record, start, field);
            if number < index {
                start = end.map(|end| end + 1).ok_or_else(|| missing(number + 1, index))?;
            }
        }
        Ok(field)
    }

    /// Unquotes the field that starts here. Returns where the delimiter after it stands.
    fn quoted_field(&self, record: &[u8], start: usize, field: &mut Vec<u8>) -> Option<usize> {
        let mut at = start;
        if record.get(at) == Some(&b'"') {
            at += 1;
            loop {
                let Some(len) = memchr(b'"', &record[at..]) else {
                    field.extend(&record[at..]);
                    return None;
                };
                field.extend(&record[at..at + len]);
                at += len + 1;
                if record.get(at) != Some(&b'"') {
                    break;
                }
                field.push(b'"');
                at += 1;
            }
        }
        let rest = &record[at..];
        let end = memchr(self.delimiter, rest);
        field.extend(&rest[..end.unwrap_or(rest.len())]);
        end.map(|len| at + len)
    }

    /// Where a field starts, from 1, in a record without quotes.
    fn field_start(&self, record: &[u8], index: usize) -> Option<usize> {
        let is_plain = !self.is_quoted || memchr(b'"', record).is_none();
        Some(self.plain_field(record, index).ok().filter(|_| is_plain)?.start + 1)
    }

    fn plain_field(&self, record: &[u8], index: usize) -> Result<Range<usize>, Problem> {
        let mut start = 0;
        for number in 0..index {
            let Some(len) = memchr(self.delimiter, &record[start..]) else {
                return Err(Problem::at(record.len() + 1, missing(number + 1, index).reason));
            };
            start += len + 1;
        }
        let len = memchr(self.delimiter, &record[start..]).unwrap_or(record.len() - start);
        Ok(start..start + len)
    }

    /// All fields of a record, unquoted.
    fn all_fields(&self, record: &[u8]) -> Vec<Vec<u8>> {
        let mut fields = Vec::new();
        let mut field = Vec::new();
        while let Ok(value) = self.field(without_end(record), fields.len(), &mut field) {
            fields.push(value.to_vec());
        }
        fields
    }

    fn names(&self, header: &[u8]) -> Vec<String> {
        self.all_fields(header).iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// The names of the columns, if the first record has them, and the fields of the first record that has values.
    pub(crate) fn first(&self, start: &[u8]) -> (Option<Vec<String>>, Vec<Vec<u8>>) {
        let split = |bytes: &'_ [u8]| self.record_end(bytes).unwrap_or(bytes.len());
        let (header, rest) = start.split_at(if self.awaits_header { split(start) } else { 0 });
        let names = (!header.is_empty()).then(|| self.names(header));
        let record = &rest[..split(rest)];
        (names, if record.is_empty() { Vec::new() } else { self.all_fields(record) })
    }

    fn read_header(&mut self, record: &[u8]) -> Result<()> {
        let names = self.names(record);
        self.item = self.columns.item.find(&names)?;
        self.time = self.columns.time.as_ref().map(|column| column.find(&names)).transpose()?;
        self.user = self.columns.user.as_ref().map(|column| column.find(&names)).transpose()?;
        self.awaits_header = false;
        Ok(())
    }

    /// Where the first record ends, behind its line end.
    fn record_end(&self, buffer: &[u8]) -> Option<usize> {
        let end = memchr(b'\n', buffer)? + 1;
        if !self.is_quoted || memchr(b'"', &buffer[..end]).is_none() {
            return Some(end);
        }
        self.scanner().find_end(buffer)
    }

    /// Follows a record from its start.
    pub(crate) fn scanner(&self) -> Scanner {
        Scanner { delimiter: self.delimiter, is_quoted: self.is_quoted, state: State::FieldStart }
    }
}

/// Items that are handed over together, with their times if they have some.
struct Batch<'b> {
    items: Vec<&'b [u8]>,
    times: Vec<u64>,
}

impl Batch<'_> {
    fn hand_over(&mut self, sink: &mut impl Sink) -> Result<()> {
        sink.items(&self.items, &self.times)?;
        self.items.clear();
        self.times.clear();
        Ok(())
    }
}

/// The fields at two places, the first one first, of the record without quotes at the start of a text.
#[inline(always)]
fn fields(text: &[u8], len: usize, delimiter: u8, [first, second]: [usize; 2]) -> Option<[&[u8]; 2]> {
    let mut delimiters = lines::places(text, delimiter);
    let mut next = || delimiters.next().filter(|place| *place < len);
    let mut start = 0;
    for _ in 0..first {
        start = next()? + 1;
    }
    let mut end = next();
    let one = &text[start..end.unwrap_or(len)];
    for _ in first..second {
        start = end? + 1;
        end = next();
    }
    Some([one, &text[start..end.unwrap_or(len)]])
}

/// Finds the end of a record piece by piece.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scanner {
    delimiter: u8,
    is_quoted: bool,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    FieldStart,
    Plain,
    Quoted,
    /// Behind a quote that closes the field or is the first of two.
    Closed,
}

impl Scanner {
    /// Line ends close every record: no quoting.
    pub(crate) fn lines() -> Self {
        Self { delimiter: b'\n', is_quoted: false, state: State::FieldStart }
    }

    /// Where the record ends, behind its line end, if it does in these bytes.
    pub(crate) fn find_end(&mut self, bytes: &[u8]) -> Option<usize> {
        if !self.is_quoted {
            return memchr(b'\n', bytes).map(|at| at + 1);
        }
        let mut at = 0;
        while at < bytes.len() {
            match (self.state, bytes[at]) {
                (State::FieldStart, b'"') | (State::Closed, b'"') => self.state = State::Quoted,
                (State::Quoted, _) => {
                    at += memchr(b'"', &bytes[at..])?;
                    self.state = State::Closed;
                }
                _ => {
                    self.state = State::Plain;
                    at += memchr2(self.delimiter, b'\n', &bytes[at..])?;
                    if bytes[at] == b'\n' {
                        return Some(at + 1);
                    }
                    self.state = State::FieldStart;
                }
            }
            at += 1;
        }
        None
    }

    /// Whether a quoted field is open.
    pub(crate) fn is_in_quotes(&self) -> bool {
        self.state == State::Quoted
    }
}

fn without_end(record: &[u8]) -> &[u8] {
    without_return(record.strip_suffix(b"\n").unwrap_or(record))
}

pub(crate) fn line_ends(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

fn missing(has: usize, index: usize) -> Problem {
    Problem::new(format!("the record has {}, column {} is wanted", count(has as u64, "column"), index + 1))
}

fn no_column(wanted: &str, names: &[String]) -> anyhow::Error {
    const SHOWN: usize = 20;
    let mut shown = names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    if SHOWN < names.len() {
        shown.push_str(", ...");
    }
    Fault::data(format!("there is no column {wanted:?}; the columns are {shown}{}", another(names)))
}

/// A single column with other delimiters in its name is several.
pub(crate) fn another(names: &[String]) -> String {
    let delimiter = |name: &String| name.chars().find(|c| ";|\t,".contains(*c));
    match names {
        [name] => delimiter(name).map_or_else(String::new, |c| {
            format!("; do columns end at {:?}? Then say --delimiter '{}'", c, c.escape_default())
        }),
        _ => String::new(),
    }
}
