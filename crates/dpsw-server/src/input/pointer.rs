//! Fields that stand deep in a JSON document, found by JSON pointers (RFC 6901) without building the document.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::input::json::{Name, OBJECT, scalar};
use crate::input::rows::Field;

/// Where a field stands: the names or numbers on the way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pointer(Vec<String>);

impl Pointer {
    /// A pointer that begins with a slash.
    pub(crate) fn new(text: &str) -> Self {
        let unescaped = |part: &str| part.replace("~1", "/").replace("~0", "~");
        Self(text.split('/').skip(1).map(unescaped).collect())
    }

    /// A member of the document itself.
    pub(crate) fn member(name: &str) -> Self {
        Self(vec![name.to_owned()])
    }

    /// The name, if it points to a member of the document itself.
    pub(crate) fn as_member(&self) -> Option<&str> {
        match &self.0[..] {
            [name] => Some(name),
            _ => None,
        }
    }

    /// What stands there; `None` if the text is no JSON.
    pub(crate) fn find<'t>(&self, text: &'t [u8]) -> Option<Field<'t>> {
        let mut value: &'t RawValue = serde_json::from_slice(text).ok()?;
        for part in &self.0 {
            match step(value, part) {
                Some(next) => value = next,
                None => return Some(None),
            }
        }
        Some(scalar(value.get()))
    }
}

/// The member or element of a value, if it has it.
fn step<'t>(value: &'t RawValue, part: &str) -> Option<&'t RawValue> {
    let mut deserializer = serde_json::Deserializer::from_str(value.get());
    match *value.get().as_bytes().first()? {
        OBJECT => deserializer.deserialize_map(Member(part)).ok()?,
        b'[' => deserializer.deserialize_seq(Element(part.parse().ok()?)).ok()?,
        _ => None,
    }
}

/// Of members with one name the last counts.
struct Member<'p>(&'p str);

impl<'de> Visitor<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (names, mut found) = ([self.0.as_bytes()], None);
        while let Some(index) = map.next_key_seed(Name(&names))? {
            match index {
                Some(_) => found = Some(map.next_value::<&RawValue>()?),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }
}

struct Element(usize);

impl<'de> Visitor<'de> for Element {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let (mut index, mut found) = (0, None);
        while let Some(value) = list.next_element::<&RawValue>()? {
            found = if index == self.0 { Some(value) } else { found };
            index += 1;
        }
        Ok(found)
    }
}
