//! Takes complete records out of blocks of bytes, whatever the format and wherever blocks end.

use anyhow::Result;

use crate::args::Format;
use crate::fault::Fault;
use crate::read::access_log::{AccessLog, Field};
use crate::read::columnar::{HOW, Selection};
use crate::read::delimited::{Column, Columns, Delimited, Scanner, line_ends};
use crate::read::json::{Json, Pointer};
use crate::read::{BOM, Problem, RECORD_LEN_MAX, Record, Sink, access_log, columns, content, lines};

/// The parts of records that are wanted, and how to find them.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) selection: Selection,
    pub(crate) header: Option<bool>,
    /// Between columns; a comma or a tab by default.
    pub(crate) delimiter: Option<u8>,
    /// So many records, from the first one on, can change no answer.
    pub(crate) unasked: u64,
}

impl Wanted {
    /// Refuses what a format does not have.
    pub(crate) fn check(&self, format: Format) -> Result<()> {
        if self.delimiter.is_some() && !matches!(format, Format::Csv | Format::Tsv) {
            return Err(Fault::usage("--delimiter is for --format csv and tsv"));
        }
        Ok(())
    }
}

/// The parser of one file.
///
/// Invariant: the buffer holds no complete record between two calls, and at most [`RECORD_LEN_MAX`] bytes.
pub(crate) struct Parser {
    records: Records,
    buffer: Vec<u8>,
    /// Where the next record starts, from 1.
    line: u64,
    is_at_start: bool,
    /// Follows a record that is too long to its end.
    passing: Option<Scanner>,
}

/// The relation of lines and records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines {
    /// The first one is none.
    pub(crate) has_header: bool,
    /// Quotes may hold line ends.
    pub(crate) may_quote: bool,
}

enum Records {
    Lines,
    Delimited(Delimited),
    Json(Json),
    AccessLog(AccessLog),
}

impl Parser {
    /// The first bytes are only looked at, to say which columns there are.
    pub(crate) fn new(format: Format, wanted: &Wanted, start: &[u8]) -> Result<Self> {
        Ok(Self {
            records: Records::new(format, wanted, start)?,
            buffer: Vec::new(),
            line: 1,
            is_at_start: true,
            passing: None,
        })
    }

    /// How lines are records, if they are; before anything was parsed.
    pub(crate) fn lines(&self) -> Option<Lines> {
        match &self.records {
            Records::Lines => Some(Lines { has_header: false, may_quote: false }),
            Records::Delimited(Delimited { awaits_header, is_quoted, .. }) => {
                Some(Lines { has_header: *awaits_header, may_quote: *is_quoted })
            }
            // Blank lines are none.
            Records::Json(_) | Records::AccessLog(_) => None,
        }
    }

    /// Takes the records that are complete with this block.
    pub(crate) fn push(&mut self, block: &[u8], sink: &mut impl Sink) -> Result<()> {
        let Some(block) = self.pass(block) else { return Ok(()) };
        if self.is_at_start {
            return self.push_first(block, sink);
        }
        let Some(block) = self.complete(block, sink)? else { return Ok(()) };
        let len = self.take(block, sink)?;
        self.buffer.extend(&block[len..]);
        self.check_length(sink)
    }

    /// The start of a file may be a byte order mark, in pieces.
    fn push_first(&mut self, block: &[u8], sink: &mut impl Sink) -> Result<()> {
        self.buffer.extend(block);
        if self.skip_bom() {
            let buffer = std::mem::take(&mut self.buffer);
            let len = self.take(&buffer, sink)?;
            self.buffer.extend(&buffer[len..]);
        }
        self.check_length(sink)
    }

    fn check_length(&mut self, sink: &mut impl Sink) -> Result<()> {
        if RECORD_LEN_MAX < self.buffer.len() { self.refuse_long(sink) } else { Ok(()) }
    }

    /// Takes what is left: a last line may have no end.
    pub(crate) fn finish(&mut self, sink: &mut impl Sink) -> Result<()> {
        self.is_at_start = false;
        let rest = std::mem::take(&mut self.buffer);
        let rest = rest.strip_prefix(BOM).filter(|_| self.line == 1).unwrap_or(&rest);
        if rest.is_empty() || self.passing.is_some() {
            return Ok(());
        }
        let mut scanner = self.records.scanner();
        scanner.find_end(rest);
        if scanner.is_in_quotes() {
            return self.refuse("a quoted field is not closed until the end of the file", sink);
        }
        self.take(&[rest, b"\n"].concat(), sink).map(|_| ())
    }

    fn take(&mut self, buffer: &[u8], sink: &mut impl Sink) -> Result<usize> {
        let (len, lines) = match &mut self.records {
            Records::Lines => lines::take(buffer, sink)?,
            Records::Delimited(records) => records.take(buffer, self.line, sink)?,
            Records::Json(records) => records.take(buffer, self.line, sink)?,
            Records::AccessLog(records) => records.take(buffer, self.line, sink)?,
        };
        self.line += lines;
        Ok(len)
    }

    /// Completes the record that the last block broke off. Returns what follows it in this block, if anything does.
    fn complete<'b>(&mut self, block: &'b [u8], sink: &mut impl Sink) -> Result<Option<&'b [u8]>> {
        if self.buffer.is_empty() {
            return Ok(Some(block));
        }
        let mut scanner = self.records.scanner();
        scanner.find_end(&self.buffer);
        let end = scanner.find_end(block);
        self.buffer.extend(&block[..end.unwrap_or(block.len())]);
        let Some(end) = end else {
            self.check_length(sink)?;
            return Ok(None);
        };
        let record = std::mem::take(&mut self.buffer);
        let len = self.take(&record, sink)?;
        debug_assert_eq!(len, record.len(), "a record ends where the scanner says");
        self.buffer = record;
        self.buffer.clear();
        Ok(Some(&block[end..]))
    }

    /// Removes a byte order mark; false if it cannot be told yet.
    fn skip_bom(&mut self) -> bool {
        if self.buffer.len() < BOM.len() && BOM.starts_with(&self.buffer) {
            return false;
        }
        if self.buffer.starts_with(BOM) {
            self.buffer.drain(..BOM.len());
        }
        self.is_at_start = false;
        true
    }

    fn refuse_long(&mut self, sink: &mut impl Sink) -> Result<()> {
        if let Records::Delimited(records) = &self.records
            && records.awaits_header
        {
            return Err(Fault::data(format!("the header is longer than {RECORD_LEN_MAX} bytes")));
        }
        self.refuse(&format!("the record is longer than {RECORD_LEN_MAX} bytes"), sink)?;
        let mut scanner = self.records.scanner();
        scanner.find_end(&self.buffer);
        self.line += line_ends(&self.buffer);
        self.passing = Some(scanner);
        self.buffer = Vec::new();
        Ok(())
    }

    fn refuse(&self, reason: &str, sink: &mut impl Sink) -> Result<()> {
        sink.record(self.line, Record::unreadable(Problem::new(reason)))
    }

    /// What follows a record that is too long; `None` while it goes on.
    fn pass<'b>(&mut self, block: &'b [u8]) -> Option<&'b [u8]> {
        let Some(scanner) = &mut self.passing else { return Some(block) };
        let end = scanner.find_end(block);
        self.line += line_ends(&block[..end.unwrap_or(block.len())]);
        let rest = &block[end?..];
        self.passing = None;
        Some(rest)
    }
}

impl Records {
    fn new(format: Format, wanted: &Wanted, start: &[u8]) -> Result<Self> {
        wanted.check(format)?;
        match format {
            Format::Lines => Self::lines(wanted, start),
            Format::Tsv | Format::Csv => Self::table(format, wanted, start),
            Format::Ndjson => Self::documents(wanted, start),
            Format::AccessLog => Self::access_log(wanted),
            Format::Parquet | Format::Arrow => unreachable!("columnar files come in rows"),
        }
    }

    fn lines(wanted: &Wanted, start: &[u8]) -> Result<Self> {
        let Selection { item, time, times, user, .. } = &wanted.selection;
        let names: Vec<&str> = [item, time, user].into_iter().filter_map(|name| name.as_deref()).collect();
        match names[..] {
            [] if *times => Err(Fault::usage(
                "lines have no times: give the --format and the --time-column, or let events happen when they arrive with \
                --arrival-time",
            )),
            [] => Ok(Self::Lines),
            _ => Err(columns::ask_format(&names, start)),
        }
    }

    fn table(format: Format, wanted: &Wanted, start: &[u8]) -> Result<Self> {
        let Selection { item, time, times, time_unit, user } = &wanted.selection;
        let column = |name: &Option<String>| name.as_deref().map(Column::new).transpose();
        let columns = Columns {
            item: column(item)?.unwrap_or(Column::Index(0)),
            time: column(time)?,
            time_unit: *time_unit,
            user: column(user)?,
            header: wanted.header,
        };
        let table = match (format, wanted.delimiter) {
            (Format::Tsv, delimiter) => Delimited::new(delimiter.unwrap_or(b'\t'), false, columns),
            (_, delimiter) => Delimited::new(delimiter.unwrap_or(b','), true, columns),
        };
        let described = || columns::of_table(&table, start);
        match (item, time) {
            (None, _) => Err(columns::ask_item(HOW, &described())),
            (_, None) if *times => Err(columns::ask_time(HOW, &described())),
            _ => Ok(Self::Delimited(table)),
        }
    }

    fn documents(wanted: &Wanted, start: &[u8]) -> Result<Self> {
        const HOW: &str = "by a JSON pointer such as /user/name";
        let Selection { item, time, times, time_unit, user } = &wanted.selection;
        content::check_documents(start)?;
        let described = || columns::of_documents(start);
        let Some(item) = item else { return Err(columns::ask_item(HOW, &described())) };
        if *times && time.is_none() {
            return Err(columns::ask_time(HOW, &described()));
        }
        let [time, user] = [time, user].map(|name| name.as_deref().map(Pointer::new).transpose());
        Ok(Self::Json(Json::new(Pointer::new(item)?, time?, *time_unit, user?)))
    }

    fn access_log(wanted: &Wanted) -> Result<Self> {
        let Selection { item, time, times, user, .. } = &wanted.selection;
        time.as_deref().map_or(Ok(()), access_log::check_time)?;
        let field = Field::new(item.as_deref().unwrap_or("path"))?;
        let user = user.as_deref().map(Field::new).transpose()?;
        Ok(Self::AccessLog(AccessLog { field, user, wants_time: *times }))
    }

    fn scanner(&self) -> Scanner {
        match self {
            Self::Delimited(records) => records.scanner(),
            _ => Scanner::lines(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::parsed::Parsed;

    #[derive(Default)]
    struct Seen(Vec<String>);

    impl Sink for Seen {
        fn items(&mut self, items: &[&[u8]], times: &[u64]) -> Result<()> {
            for (index, item) in items.iter().enumerate() {
                let time = times.get(index).map(|time| format!("@{time}")).unwrap_or_default();
                self.0.push(String::from_utf8_lossy(item).into_owned() + &time);
            }
            Ok(())
        }

        fn record(&mut self, line: u64, record: Record<'_>) -> Result<()> {
            let time = match record.time {
                None => String::new(),
                Some(Ok(time)) => format!("@{time}"),
                Some(Err(_)) => "@?".to_owned(),
            };
            let user = match record.user {
                None => String::new(),
                Some(Ok(user)) => format!("{}: ", String::from_utf8_lossy(user)),
                Some(Err(_)) => "?: ".to_owned(),
            };
            self.0.push(match record.item {
                Ok(item) => format!("{user}{}{time}", String::from_utf8_lossy(item)),
                Err(_) => format!("{user}bad {line}{time}"),
            });
            Ok(())
        }
    }

    fn wanted(item: Option<&str>, time: Option<&str>) -> Wanted {
        let [item, time] = [item, time].map(|column| column.map(str::to_owned));
        let selection = Selection { item, times: time.is_some(), time, ..Selection::default() };
        Wanted { selection, header: None, delimiter: None, unasked: 0 }
    }

    fn by_user(user: &str, mut wanted: Wanted) -> Wanted {
        wanted.selection.user = Some(user.to_owned());
        wanted
    }

    /// All ways to cut the text into blocks give the same records.
    #[track_caller]
    fn check(format: Format, wanted: &Wanted, text: &[u8], records: &[&str]) {
        for size in 1..=text.len().max(1) {
            let mut parser = Parser::new(format, wanted, &[]).expect("a parser");
            let mut seen = Seen::default();
            for block in text.chunks(size) {
                parser.push(block, &mut seen).expect("taken");
            }
            parser.finish(&mut seen).expect("taken");
            assert_eq!(seen.0, records, "in blocks of {size}");
            for unasked in 0..=records.len() + 1 {
                let handed_over = handed_over(format, wanted, text.chunks(size), unasked as u64);
                let heard = handed_over.iter().map(|record| readable(record));
                assert!(heard.eq(asked(records, unasked)), "{unasked} in blocks of {size}: {handed_over:?}");
            }
        }
    }

    /// A record as far as another thread hears of it.
    fn readable(record: &str) -> &str {
        if record.contains("bad ") || record.contains('?') { UNREADABLE } else { record }
    }

    const UNREADABLE: &str = "unreadable";

    /// What is left of records if nobody asks about the first so many: what cannot be read is still told.
    fn asked<'r>(records: &[&'r str], unasked: usize) -> impl Iterator<Item = &'r str> {
        let readable = records.iter().copied().map(readable).enumerate();
        let asked = readable.filter(move |(index, record)| unasked <= *index || *record == UNREADABLE);
        asked.map(|(_, record)| record)
    }

    /// The same by way of another thread.
    fn handed_over<'b>(
        format: Format,
        wanted: &Wanted,
        blocks: impl Iterator<Item = &'b [u8]>,
        mut unasked: u64,
    ) -> Vec<String> {
        let mut parser = Parser::new(format, wanted, b"").expect("a parser");
        let (mut parsed, mut seen) = (Parsed::default(), Seen::default());
        for block in blocks {
            *parsed.block() = block.to_vec();
            unasked = parsed.push_to(&mut parser, unasked).expect("taken");
            parsed.feed(&mut seen).expect("taken");
        }
        parsed.finish(&mut parser, unasked).expect("taken");
        parsed.feed(&mut seen).expect("taken");
        seen.0
    }

    #[test]
    fn lines_may_end_anyhow() {
        let lines = wanted(None, None);
        check(Format::Lines, &lines, b"", &[]);
        check(Format::Lines, &lines, b"a\nb\r\n\nc", &["a", "b", "", "c"]);
        check(Format::Lines, &lines, b"\xef\xbb\xbfa\n", &["a"]);
        check(Format::Lines, &lines, b"\xef\xbb\xbf", &[]);
        check(Format::Lines, &lines, b"\xef\xbbx", &["\u{fffd}x"]);
    }

    #[test]
    fn quoted_fields_hold_line_ends_quotes_and_commas() {
        let named = wanted(Some("k"), None);
        let text = b"t,k\r\n1,\"a\nb\"\r\n2,\"c \"\"d\"\", e\"\n3,f\n4\n\n5,\"\"x\n6,g\"h";
        let records = &["a\nb", "c \"d\", e", "f", "bad 6", "bad 7", "x", "g\"h"];
        check(Format::Csv, &named, text, records);
        check(Format::Csv, &wanted(Some("2"), Some("1")), b"t,k\n1,a\nx,b\n", &["a@1000", "b@?"]);
        check(Format::Csv, &named, b"t,k\n1,\"a\n2,b", &["bad 2"]);
        check(Format::Csv, &named, b"", &[]);
        let split_name = wanted(Some("k\nk"), None);
        check(Format::Csv, &split_name, b"\xef\xbb\xbf\"k\nk\"\na\n\"b\nb\"\n", &["a", "b\nb"]);
    }

    #[test]
    fn tabs_have_no_quotes() {
        let numbered = wanted(Some("2"), None);
        check(Format::Tsv, &numbered, b"1\t\"a\n2\tb\tc\nd\n", &["\"a", "b", "bad 3"]);
        check(Format::Tsv, &wanted(Some("k"), None), b"t\tk\n1\ta\n", &["a"]);
    }

    #[test]
    fn any_byte_may_stand_between_columns() {
        for delimiter in *b";|\t,:" {
            let wanted = Wanted { delimiter: Some(delimiter), ..wanted(Some("k"), Some("t")) };
            let text = "t;k\r\n1;\"a;b\"\r\n2;c\nd\n".replace(';', &char::from(delimiter).to_string());
            let quoted = format!("a{}b@1000", char::from(delimiter));
            check(Format::Csv, &wanted, text.as_bytes(), &[&quoted, "c@2000", "bad 4@?"]);
        }
        let wanted = Wanted { delimiter: Some(b' '), ..wanted(Some("2"), None) };
        check(Format::Tsv, &wanted, b"1 \"a b\n", &["\"a"]);
        assert!(Parser::new(Format::Lines, &wanted, &[]).is_err());
    }

    #[test]
    fn documents_are_taken_line_by_line() {
        let both = wanted(Some("/k"), Some("/t"));
        let text = b"{\"t\":1,\"k\":\"a\"}\n{\n{\"k\":5,\"t\":\"1970-01-01T00:00:02Z\"}\n{\"t\":3}";
        check(Format::Ndjson, &both, text, &["a@1000", "bad 2", "5@2000", "bad 4@3000"]);
        let blank = b"\n{\"t\":1,\"k\":\"a\"}\r\n\r\n \t\n{\n\n{\"t\":2,\"k\":\"b\"}\n\n";
        check(Format::Ndjson, &both, blank, &["a@1000", "bad 5", "b@2000"]);
    }

    #[test]
    fn users_stand_in_every_format_that_has_columns() {
        let csv = by_user("u", wanted(Some("k"), None));
        let text = b"u,k\n\"x, y\",\"a\"\"b\"\n,b\nz\n";
        check(Format::Csv, &csv, text, &["x, y: a\"b", ": b", "z: bad 4"]);
        let tsv = by_user("3", wanted(Some("1"), Some("2")));
        check(Format::Tsv, &tsv, b"a\t1\tx\nb\t2\n", &["x: a@1000", "?: b@2000"]);
        let json = by_user("/u/id", wanted(Some("/k"), None));
        let text = b"{\"k\":\"a\",\"u\":{\"id\":7}}\n{\"k\":\"b\",\"u\":8}\n{\n{\"u\":{\"id\":\"x\"}}\n";
        check(Format::Ndjson, &json, text, &["7: a", "?: b", "bad 3", "x: bad 4"]);
        let log = by_user("host", wanted(None, None));
        let text = b"h - - [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.1\" 200 1\nhello\n";
        check(Format::AccessLog, &log, text, &["h: /a", "?: bad 2"]);
        check(Format::AccessLog, &log, &[b"\r\n", &text[..], b"\n\n"].concat(), &["h: /a", "?: bad 3"]);
        assert!(Parser::new(Format::Lines, &by_user("1", wanted(None, None)), &[]).is_err());
    }

    #[test]
    fn a_record_that_is_too_long_takes_its_place() {
        for format in [Format::Lines, Format::Csv] {
            let column = (format == Format::Csv).then_some("1");
            let wanted = Wanted { header: Some(false), ..wanted(column, None) };
            let mut parser = Parser::new(format, &wanted, &[]).expect("a parser");
            let mut seen = Seen::default();
            let quote: &[u8] = if format == Format::Csv { b"\"\n" } else { b"" };
            parser.push(&[b"a\n", quote].concat(), &mut seen).expect("taken");
            for _ in 0..5 {
                parser.push(&vec![b'x'; RECORD_LEN_MAX / 2], &mut seen).expect("taken");
            }
            assert!(parser.buffer.len() <= RECORD_LEN_MAX);
            parser.push(&[&quote[..quote.len().min(1)], b"\nb\nc"].concat(), &mut seen).expect("taken");
            parser.finish(&mut seen).expect("taken");
            assert_eq!(seen.0, ["a", "bad 2", "b", "c"]);
            assert_eq!(parser.line, if format == Format::Csv { 6 } else { 5 });
        }
    }

    #[test]
    fn a_column_that_is_not_there_is_an_error_that_lists_those_that_are() {
        let mut parser = Parser::new(Format::Csv, &wanted(Some("key"), None), &[]).expect("a parser");
        let error = parser.push(b"time,item\n1,a\n", &mut Seen::default()).expect_err("no such column");
        assert_eq!(error.to_string(), "there is no column \"key\"; the columns are \"time\", \"item\"");
    }
}
