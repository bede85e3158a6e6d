//! Lines: each is an item. An empty line is an empty item: left out, it would shift all later positions.

use std::borrow::Cow;

use crate::events::Events;
use crate::input::rows::Rows;
use crate::input::{InputError, InputLimits, Wanted, without_mark};

pub(crate) fn read(body: &[u8], wanted: &Wanted, limits: InputLimits) -> Result<Events, InputError> {
    if wanted.only.is_none() {
        let names = wanted.names().collect::<Vec<_>>().join(", ");
        return Err(InputError::Lines { names });
    }
    let body = without_mark(body);
    let mut rows = Rows::new(wanted, limits, body.len() / 8);
    each(body, |line| rows.push(&[Some(Cow::Borrowed(line))]))?;
    rows.finish()
}

/// Calls for each line, with its end removed; the last one needs none.
pub(crate) fn each<E>(body: &[u8], mut line: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', body) {
        line(without_return(&body[start..end]))?;
        start = end + 1;
    }
    if start < body.len() { line(without_return(&body[start..])) } else { Ok(()) }
}

/// A line may end in CR LF.
fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ColumnKind;
    use crate::input::testing::{LIMITS, show, wanted};

    #[test]
    fn every_line_is_an_item_also_an_empty_one_and_one_that_is_too_long_is_missing() {
        let column = vec![("page".to_owned(), ColumnKind::Text)];
        let only = Some("page".to_owned());
        let lines = Wanted { columns: column, time: None, user: None, only, ..wanted() };
        let events = read(b"\xef\xbb\xbfa b\r\n\nmuch too long\n\xffz", &lines, LIMITS).expect("lines");
        assert_eq!(show(&events), ["a b", "", "-", "\u{fffd}z"]);
        // Nobody counts the column: the events come without it.
        let nothing = Wanted { columns: Vec::new(), ..lines };
        assert_eq!(read(b"a\nb", &nothing, LIMITS).expect("lines").len(), 2);
    }

    #[test]
    fn a_line_cannot_be_an_event_of_several_columns() {
        let error = read(b"a\n", &wanted(), LIMITS).expect_err("four fields");
        assert!(error.to_string().contains("page, status, at, who"), "{error}");
    }
}
