//! CSV with names in its first record. Quotes may hold separators and line ends; a quote inside is doubled.
//!
//! A record with too few fields has none in the places that are missing. An empty line is a record with one empty field: left
//! out, it would shift all later positions.

use std::borrow::Cow;

use crate::events::Events;
use crate::input::rows::Rows;
use crate::input::{InputError, InputLimits, Wanted, without_mark};

pub(crate) fn read(body: &[u8], wanted: &Wanted, limits: InputLimits) -> Result<Events, InputError> {
    let mut records = Records { rest: without_mark(body), number: 0 };
    let places = places(&mut records, wanted)?;
    let mut rows = Rows::new(wanted, limits, body.len() / 16);
    let mut found = vec![None; places.len()];
    // A record may have any number of fields: those that are not wanted are never kept.
    while records.next(|number, field| {
        for (place, found) in places.iter().zip(&mut found) {
            if *place == number {
                *found = Some(field.clone());
            }
        }
    })? {
        rows.push(&found)?;
        found.fill(None);
    }
    rows.finish()
}

/// Where each wanted name stands in the first record.
fn places(records: &mut Records<'_>, wanted: &Wanted) -> Result<Vec<usize>, InputError> {
    let names: Vec<&str> = wanted.names().collect();
    let mut places = vec![None; names.len()];
    records.next(|number, field| {
        for (name, place) in names.iter().zip(&mut places) {
            if place.is_none() && field.trim_ascii() == name.as_bytes() {
                *place = Some(number);
            }
        }
    })?;
    let missing = |name: &str| InputError::CsvHeader(name.to_owned());
    names.into_iter().zip(places).map(|(name, place)| place.ok_or_else(|| missing(name))).collect()
}

struct Records<'b> {
    rest: &'b [u8],
    /// How many were read.
    number: usize,
}

impl<'b> Records<'b> {
    /// Hands out the fields of the next record, each with its number; false if there is none.
    fn next(&mut self, mut take: impl FnMut(usize, &Cow<'b, [u8]>)) -> Result<bool, InputError> {
        if self.rest.is_empty() {
            return Ok(false);
        }
        self.number += 1;
        for number in 0.. {
            let (field, is_last) = self.field()?;
            take(number, &field);
            if is_last {
                break;
            }
        }
        Ok(true)
    }

    /// Reads a field and what ends it; whether it is the last one of its record.
    fn field(&mut self) -> Result<(Cow<'b, [u8]>, bool), InputError> {
        let (field, rest) = match self.rest.strip_prefix(b"\"") {
            Some(rest) => quoted(rest).ok_or(InputError::CsvQuote { record: self.number })?,
            None => plain(self.rest),
        };
        let (end, rest) = after(rest);
        self.rest = rest;
        Ok((field, end != Some(b',')))
    }
}

/// The field up to a separator or line end.
fn plain(text: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    let (field, rest) = text.split_at(memchr::memchr2(b',', b'\n', text).unwrap_or(text.len()));
    let is_last = rest.first() != Some(&b',');
    let field = field.strip_suffix(b"\r").filter(|_| is_last).unwrap_or(field);
    (Cow::Borrowed(field), rest)
}

/// The field up to the closing quote, which was opened before; `None` if there is none. What stands between the closing quote
/// and the next separator belongs to no field.
fn quoted(text: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let mut field = Cow::Borrowed(&text[..0]);
    let mut rest = text;
    loop {
        let end = memchr::memchr(b'"', rest)?;
        let part = &rest[..end];
        let behind = &rest[end + 1..];
        if field.is_empty() {
            field = Cow::Borrowed(part);
        } else {
            field.to_mut().extend_from_slice(part);
        }
        let Some(behind) = behind.strip_prefix(b"\"") else {
            return Some((field, plain(behind).1));
        };
        field.to_mut().push(b'"');
        rest = behind;
    }
}

/// What ends a field, and what follows.
fn after(rest: &[u8]) -> (Option<u8>, &[u8]) {
    rest.split_first().map_or((None, rest), |(end, rest)| (Some(*end), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::testing::{LIMITS, show, wanted};

    #[test]
    fn columns_are_found_by_the_names_of_the_first_record() {
        let body =
            b"\xef\xbb\xbfwho, x,at,status,\"page\"\r\nu,,1700000000,200,/a\r\nv\n\n,,x,y,much too long\n";
        let events = read(body, &wanted(), LIMITS).expect("CSV");
        assert_eq!(show(&events), ["/a 200 1700000000000 u", "- - - v", "- - - ", "- - - "]);
    }

    #[test]
    fn a_first_record_without_a_wanted_name_is_refused() {
        for body in ["", "page,at,who\n/a,1,u\n"] {
            let error = read(body.as_bytes(), &wanted(), LIMITS).expect_err(body);
            assert!(matches!(error, InputError::CsvHeader(_)), "{error:?}");
        }
    }

    fn records(text: &str) -> Result<Vec<Vec<String>>, InputError> {
        let mut records = Records { rest: text.as_bytes(), number: 0 };
        let (mut fields, mut all) = (Vec::new(), Vec::new());
        while records.next(|_, field| fields.push(String::from_utf8_lossy(field).into_owned()))? {
            all.push(std::mem::take(&mut fields));
        }
        Ok(all)
    }

    #[track_caller]
    fn check(text: &str, wanted: &[&[&str]]) {
        assert_eq!(records(text).expect("CSV"), wanted, "{text:?}");
    }

    #[test]
    fn fields_are_what_stands_between_separators_and_inside_quotes() {
        check("a,b\nc,d\n", &[&["a", "b"], &["c", "d"]]);
        check("a,b\r\nc,d", &[&["a", "b"], &["c", "d"]]);
        check("\"a,\n\"\"b\"\"\",c\n", &[&["a,\n\"b\"", "c"]]);
        check("\"\"\"\",\"\",x\n", &[&["\"", "", "x"]]);
        check("\"a\"x,b\n", &[&["a", "b"]]);
        check("a,,\n\nb\n", &[&["a", "", ""], &[""], &["b"]]);
        check("a,", &[&["a", ""]]);
        check("x\"y,z\n", &[&["x\"y", "z"]]);
        check("", &[]);
    }

    #[test]
    fn a_quote_that_is_never_closed_is_refused_with_its_record() {
        assert_eq!(records("a\nb\n\"c\nd\n"), Err(InputError::CsvQuote { record: 3 }));
    }
}
