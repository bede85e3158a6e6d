//! One JSON document per line: the values at up to three pointers, found without building the document.
//!
//! A blank line is no record: it carries no item, so it takes no position. It counts as a line in errors.

use std::fmt;

use anyhow::Result;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::args::TimeUnit;
use crate::fault::Fault;
use crate::read::{Problem, Record, Sink, lines, time};

/// The names and indices on the way to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pointer {
    text: String,
    steps: Vec<String>,
}

impl Pointer {
    /// A JSON pointer such as `/user/name`, or the name of a member of the top level.
    pub(crate) fn new(text: &str) -> Result<Self> {
        let steps = match text.strip_prefix('/') {
            Some(rest) => rest.split('/').map(unescape).collect(),
            None if text.is_empty() => {
                return Err(Fault::usage("a JSON pointer such as /user/name is needed"));
            }
            None => vec![text.to_owned()],
        };
        Ok(Self { text: text.to_owned(), steps })
    }
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// The parser of one file.
pub(crate) struct Json {
    item: Pointer,
    time: Option<Pointer>,
    time_unit: Option<TimeUnit>,
    user: Option<Pointer>,
    /// Of the item, the time and the user.
    found: [Found; POINTERS],
}

const POINTERS: usize = 3;

impl Json {
    /// Times that are numbers have this unit.
    pub(crate) fn new(
        item: Pointer,
        time: Option<Pointer>,
        time_unit: Option<TimeUnit>,
        user: Option<Pointer>,
    ) -> Self {
        Self { item, time, time_unit, user, found: Default::default() }
    }

    /// Takes the complete lines. Returns how many bytes and how many lines they are.
    pub(crate) fn take(&mut self, buffer: &[u8], line: u64, sink: &mut impl Sink) -> Result<(usize, u64)> {
        let mut number = line;
        let len = lines::each(buffer, |text| {
            number += 1;
            if text.trim_ascii().is_empty() { Ok(()) } else { self.take_line(text, number - 1, sink) }
        })?;
        Ok((len, number - line))
    }

    fn take_line(&mut self, text: &[u8], line: u64, sink: &mut impl Sink) -> Result<()> {
        if let Err(error) = self.find(text) {
            return sink.record(line, Record::unreadable(describe(&error)));
        }
        let [item, time, user] = &self.found;
        let time = self.time.as_ref().map(|pointer| time::parse(time.get(pointer)?, self.time_unit));
        let user = self.user.as_ref().map(|pointer| user.get(pointer));
        sink.record(line, Record { item: item.get(&self.item), time, user })
    }

    fn find(&mut self, text: &[u8]) -> serde_json::Result<()> {
        for found in &mut self.found {
            found.state = State::Absent;
        }
        let paths = [Some(&self.item), self.time.as_ref(), self.user.as_ref()];
        let paths = paths.map(|pointer| pointer.map(|pointer| &pointer.steps[..]));
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        Seek { paths, found: &mut self.found }.deserialize(&mut deserializer)?;
        deserializer.end()
    }
}

/// The error without its words about the line, which is always the first.
fn describe(error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or(&text);
    Problem::at(error.column().max(1), format!("not a JSON document: {reason}"))
}

/// A value that was looked for.
#[derive(Debug, Default)]
struct Found {
    state: State,
    text: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Absent,
    Null,
    /// An object or an array.
    Compound,
    Scalar,
}

impl Found {
    fn get(&self, pointer: &Pointer) -> Result<&[u8], Problem> {
        let what = match self.state {
            State::Scalar => return Ok(&self.text),
            State::Absent => "there is nothing at",
            State::Null => "there is null at",
            State::Compound => "there is an object or array, not a text or number, at",
        };
        Err(Problem::new(format!("{what} {:?}", pointer.text)))
    }

    fn set(&mut self, text: &[u8]) {
        self.state = State::Scalar;
        self.text.clear();
        self.text.extend(text);
    }
}

/// The rest of the ways to the item, the time and the user, where they lead into this value.
type Paths<'p> = [Option<&'p [String]>; POINTERS];

/// Goes down the paths and skips everything else.
struct Seek<'p, 'f> {
    paths: Paths<'p>,
    found: &'f mut [Found; POINTERS],
}

impl Seek<'_, '_> {
    fn ends_here(&mut self) -> impl Iterator<Item = &mut Found> {
        let ends = self.paths.map(|path| path.is_some_and(<[String]>::is_empty));
        self.found.iter_mut().zip(ends).filter(|(_, ends)| *ends).map(|(found, _)| found)
    }

    /// Keeps a text or number where a path ends at it.
    fn keep<E>(mut self, text: &[u8]) -> Result<(), E> {
        for found in self.ends_here() {
            found.set(text);
        }
        Ok(())
    }

    fn mark<E>(&mut self, state: State) -> Result<(), E> {
        for found in self.ends_here() {
            found.state = state;
        }
        Ok(())
    }
}

fn step<'p>(paths: Paths<'p>, name: &str) -> Paths<'p> {
    paths.map(|path| path?.split_first().filter(|(first, _)| *first == name).map(|(_, rest)| rest))
}

impl<'de> DeserializeSeed<'de> for Seek<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seek<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON document")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        self.mark(State::Compound)?;
        while let Some(paths) = map.next_key_seed(Step(self.paths))? {
            if paths == [None; POINTERS] {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(Seek { paths, found: self.found })?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        self.mark(State::Compound)?;
        for index in 0_usize.. {
            let seek = Seek { paths: step(self.paths, &index.to_string()), found: self.found };
            if list.next_element_seed(seek)?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.keep(value.as_bytes())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.keep(value.to_string().as_bytes())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.keep(value.to_string().as_bytes())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.keep(value.to_string().as_bytes())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.keep(value.to_string().as_bytes())
    }

    fn visit_unit<E>(mut self) -> Result<(), E> {
        self.mark(State::Null)
    }
}

/// Compares a member's name with the next steps.
struct Step<'p>(Paths<'p>);

impl<'de, 'p> DeserializeSeed<'de> for Step<'p> {
    type Value = Paths<'p>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Paths<'p>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'p> Visitor<'_> for Step<'p> {
    type Value = Paths<'p>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Paths<'p>, E> {
        Ok(step(self.0, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, pointer: &str) -> Result<String, String> {
        let mut json = Json::new(Pointer::new(pointer).expect("a pointer"), None, None, None);
        json.find(text.as_bytes()).map_err(|error| describe(&error).reason)?;
        let found = json.found[0].get(&json.item).map_err(|problem| problem.reason)?;
        Ok(String::from_utf8_lossy(found).into_owned())
    }

    #[test]
    fn pointers_lead_to_texts_numbers_and_flags() {
        let text =
            r#"{"a": {"b": ["x", {"c/d": "y\n"}]}, "n": -7, "f": 1.5, "t": true, "z": null, "a~": "q"}"#;
        for (pointer, wanted) in [
            ("/a/b/0", "x"),
            ("/a/b/1/c~1d", "y\n"),
            ("/n", "-7"),
            ("n", "-7"),
            ("/f", "1.5"),
            ("/t", "true"),
            ("/a~0", "q"),
        ] {
            assert_eq!(find(text, pointer).as_deref(), Ok(wanted), "{pointer}");
        }
        for (pointer, wanted) in
            [("/a", "object or array"), ("/z", "null"), ("/a/b/2", "nothing"), ("/n/x", "nothing")]
        {
            assert!(find(text, pointer).is_err_and(|reason| reason.contains(wanted)), "{pointer}");
        }
    }

    #[test]
    fn what_is_no_document_is_refused() {
        for text in ["", "{", "{\"a\": 1} x", "{\"a\" 1}", "nul", "{\"a\": \"\u{1}\"}"] {
            assert!(
                find(text, "/a").is_err_and(|reason| reason.starts_with("not a JSON document")),
                "{text}"
            );
        }
    }
}
