//! JSON documents, one per line or in one array: the wanted fields of each, found without building the document.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::events::Events;
use crate::input::rows::{Field, Rows};
use crate::input::{InputError, InputLimits, Wanted, flat, lines, without_mark};

/// One document per line; blank lines are none.
pub(crate) fn read_lines(body: &[u8], wanted: &Wanted, limits: InputLimits) -> Result<Events, InputError> {
    let body = without_mark(body);
    let mut documents = Documents::new(wanted, limits, body.len() / 32);
    let mut line = 0;
    lines::each(body, |text| {
        line += 1;
        if text.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        documents.push(text, |error| InputError::JsonLine { line, byte: error.column() })
    })?;
    documents.rows.finish()
}

/// One array of documents.
pub(crate) fn read_array(body: &[u8], wanted: &Wanted, limits: InputLimits) -> Result<Events, InputError> {
    let body = without_mark(body);
    let mut documents = Documents::new(wanted, limits, body.len() / 32);
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let mut refused = None;
    let elements = Elements { documents: &mut documents, refused: &mut refused };
    let read = elements.deserialize(&mut deserializer).and_then(|()| deserializer.end());
    match (refused, read) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => Err(InputError::JsonArray { line: error.line(), byte: error.column() }),
        (None, Ok(())) => documents.rows.finish(),
    }
}

/// The rows, and what was found of the present document.
struct Documents<'w> {
    names: Vec<&'w [u8]>,
    rows: Rows<'w>,
}

impl<'w> Documents<'w> {
    fn new(wanted: &'w Wanted, limits: InputLimits, about: usize) -> Self {
        let names = wanted.names().map(str::as_bytes).collect();
        Self { names, rows: Rows::new(wanted, limits, about) }
    }

    /// Takes a document. One that is no object has no fields.
    fn push(
        &mut self,
        text: &[u8],
        wrong: impl Fn(&serde_json::Error) -> InputError,
    ) -> Result<(), InputError> {
        with_fields(self.names.len(), |fields| {
            read_document(text, &self.names, fields).map_err(|error| wrong(&error))?;
            self.rows.push(fields)
        })
    }
}

/// Hands over room for the fields of a document.
pub(crate) fn with_fields<'t, T>(len: usize, take: impl FnOnce(&mut [Field<'t>]) -> T) -> T {
    let mut few = [const { None }; FEW];
    match few.get_mut(..len) {
        Some(fields) => take(fields),
        None => take(&mut vec![None; len]),
    }
}

/// Takes the wanted fields of a document, quickly where it is as events usually are.
pub(crate) fn read_document<'t>(
    text: &'t [u8],
    names: &[&[u8]],
    fields: &mut [Field<'t>],
) -> serde_json::Result<()> {
    if flat::read(text, names, fields).is_some() {
        return Ok(());
    }
    fields.fill(None);
    read_fully(text, names, fields)
}

/// Takes the wanted fields of any document.
pub(crate) fn read_fully<'t>(
    text: &'t [u8],
    names: &[&[u8]],
    fields: &mut [Field<'t>],
) -> serde_json::Result<()> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let is_object = text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&OBJECT);
    match is_object {
        true => deserializer.deserialize_map(Document { names, fields })?,
        false => deserializer.deserialize_ignored_any(IgnoredAny).map(drop)?,
    }
    deserializer.end()
}

/// The first byte of an object.
pub(crate) const OBJECT: u8 = b'{';
/// The most fields that need no allocation: few columns are counted.
const FEW: usize = 8;

/// The wanted members of an object. Of members with one name the last counts.
struct Document<'d, 'f, 'de> {
    names: &'d [&'d [u8]],
    fields: &'f mut [Field<'de>],
}

impl<'de> Visitor<'de> for Document<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(index) = map.next_key_seed(Name(self.names))? {
            match index {
                Some(index) => self.fields[index] = scalar(map.next_value::<&RawValue>()?.get()),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// The text of a string, a number or a flag. A string that is no text (half a character, escaped) is none.
pub(crate) fn scalar(raw: &str) -> Field<'_> {
    let bytes = raw.as_bytes();
    match bytes {
        [b'"', inner @ .., b'"'] if memchr::memchr(b'\\', inner).is_none() => Some(Cow::Borrowed(inner)),
        [b'"', ..] => serde_json::from_str::<String>(raw).ok().map(|text| Cow::Owned(text.into_bytes())),
        [OBJECT | b'[' | b'n', ..] => None,
        _ => Some(Cow::Borrowed(bytes)),
    }
}

/// The names that are looked for. Bytes, so that no name is refused for what it says.
pub(crate) struct Name<'d>(pub(crate) &'d [&'d [u8]]);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_bytes<E>(self, name: &[u8]) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|wanted| *wanted == name))
    }
}

/// The documents of an array, up to the first one that is refused.
struct Elements<'e, 'w> {
    documents: &'e mut Documents<'w>,
    refused: &'e mut Option<InputError>,
}

impl<'de> DeserializeSeed<'de> for Elements<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(raw) = list.next_element::<&RawValue>()? {
            let wrong = |_: &serde_json::Error| InputError::JsonArray { line: 1, byte: 1 };
            if let Err(error) = self.documents.push(raw.get().as_bytes(), wrong) {
                *self.refused = Some(error);
                return Err(serde::de::Error::custom("refused"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::testing::{LIMITS, show, wanted};

    #[track_caller]
    fn check(document: &str, shown: &str) {
        let line = read_lines(document.as_bytes(), &wanted(), LIMITS).expect(document);
        assert_eq!(show(&line), [shown], "{document}");
        let array = read_array(format!("[{document}]").as_bytes(), &wanted(), LIMITS).expect(document);
        assert_eq!(show(&array), [shown], "[{document}]");
    }

    #[test]
    fn the_wanted_fields_are_taken_and_all_else_is_skipped() {
        check(
            r#"{"page": "/a", "x": {"page": [1, "}"]}, "status": 200, "at": 1700000000, "who": "u"}"#,
            "/a 200 1700000000000 u",
        );
        check(r#"{"who": 7, "at": "2006-03-04T09:15:02Z", "page": true}"#, "true - 1141463702000 7");
        check(r#"{"page": "caf\u00e9\n\"", "status": "404", "page\u0000": 1}"#, "caf\u{e9}\n\" 404 - -");
        check(r#"{"p\u0061ge": 1.50, "status": 1.0}"#, "1.50 - - -");
        check(r#"{"page": "first", "page": "last"}"#, "last - - -");
    }

    #[test]
    fn what_cannot_be_an_item_is_missing_in_its_place() {
        for document in [
            "{}",
            "null",
            "7",
            r#""page""#,
            "[[]]",
            r#""\ud800""#,
            r#"{"page": null, "status": null, "at": null, "who": null}"#,
            r#"{"page": {}, "status": {"a": 1}, "at": [1], "who": []}"#,
            r#"{"page": "much too long", "status": -1, "at": "soon", "who": "also too long"}"#,
            r#"{"page": "\ud800", "status": 99999999999999999999, "at": -1, "\ud800": 1}"#,
        ] {
            check(document, "- - - -");
        }
    }

    #[test]
    fn blank_lines_are_no_events_and_the_last_line_needs_no_end() {
        let events = read_lines(b"\n{\"page\":\"a\"}\r\n  \n{\"page\":\"b\"}", &wanted(), LIMITS);
        assert_eq!(show(&events.expect("two")), ["a - - -", "b - - -"]);
        assert_eq!(read_array(b"[]", &wanted(), LIMITS).expect("none").len(), 0);
    }

    #[test]
    fn what_is_no_json_refuses_the_whole_body_with_its_place_alone() {
        for line in ["{", "{\"page\" 1}", "{} x", "nul", "\"\u{1}\"", "{\"page\": 01}", "secret"] {
            let body = format!("{{}}\n{{}}\n{line}\n{{}}");
            let error = read_lines(body.as_bytes(), &wanted(), LIMITS).expect_err(line);
            assert!(matches!(error, InputError::JsonLine { line: 3, .. }), "{error:?}");
            assert!(!error.to_string().contains("secret"));
            let error = read_array(format!("[{line}]").as_bytes(), &wanted(), LIMITS).expect_err(line);
            assert!(matches!(error, InputError::JsonArray { line: 1, .. }), "{error:?}");
        }
        for body in [&b"{}"[..], b"[{}", b"[] []", b"", b"[\"\xff\"]", b"[{},]"] {
            let error = read_array(body, &wanted(), LIMITS).expect_err("no array");
            assert!(matches!(error, InputError::JsonArray { .. }), "{error:?}");
        }
        assert!(read_lines(b"{\"page\": \"\xff\"}", &wanted(), LIMITS).is_err());
    }

    #[test]
    fn deep_documents_use_up_no_stack() {
        let deep = 1_000_000;
        let nested = format!("{}{}", "[".repeat(deep), "]".repeat(deep));
        check(&format!("{{\"page\": {nested}, \"x\": {nested}}}"), "- - - -");
        check(&nested, "- - - -");
        assert!(read_lines("[".repeat(deep).as_bytes(), &wanted(), LIMITS).is_err());
    }

    #[test]
    fn too_many_events_are_refused() {
        let body = "{}\n".repeat(LIMITS.events_max + 1);
        let error = read_lines(body.as_bytes(), &wanted(), LIMITS);
        assert_eq!(error, Err(InputError::Events { most: LIMITS.events_max }));
        let body = format!("[{}{{}}]", "{},".repeat(LIMITS.events_max));
        let error = read_array(body.as_bytes(), &wanted(), LIMITS);
        assert_eq!(error, Err(InputError::Events { most: LIMITS.events_max }));
    }
}
