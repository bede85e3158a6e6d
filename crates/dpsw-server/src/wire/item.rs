//! Items, as they are asked for and as they are answered.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use dpsw::{Item, Kind};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize as DeriveDeserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// An item of an answer: text, or an integer where the stream counts integers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Item)]
pub(crate) enum ItemShape {
    /// Of a stream of integers.
    Integer(u64),
    /// Text; bytes that are no UTF-8 are replaced, and stand in `item_base64`.
    Text(String),
}

/// The text of an item, and its bytes in base64 where the text is not all of them.
pub(crate) fn names(item: Item<'_>) -> (ItemShape, Option<String>) {
    match item {
        Item::Integer(integer) => (ItemShape::Integer(integer), None),
        Item::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => (ItemShape::Text(text.to_owned()), None),
            Err(_) => (ItemShape::Text(item.to_string()), Some(STANDARD.encode(bytes))),
        },
    }
}

/// An item that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AskedItem {
    Integer(u64),
    Bytes(Vec<u8>),
}

impl AskedItem {
    /// The item of these characters, in a stream that counts this; `None` if it counts no such thing.
    pub(crate) fn of_text(text: &str, kind: Kind) -> Option<Self> {
        match kind {
            Kind::Bytes => Some(Self::Bytes(text.as_bytes().to_vec())),
            Kind::Integers => {
                let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
                text.parse().ok().filter(|_| is_number).map(Self::Integer)
            }
        }
    }

    /// The item of these bytes in base64.
    pub(crate) fn of_base64(text: &str, kind: Kind) -> Option<Self> {
        (kind == Kind::Bytes).then(|| STANDARD.decode(text).ok()).flatten().map(Self::Bytes)
    }

    pub(crate) fn item(&self) -> Item<'_> {
        match self {
            Self::Integer(integer) => Item::Integer(*integer),
            Self::Bytes(bytes) => Item::Bytes(bytes),
        }
    }
}

/// An item in a question: text, an integer, or `{"base64": "…"}` for bytes that are no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QuestionItem {
    /// Where text is counted, its digits.
    Integer(u64),
    /// Where integers are counted, digits.
    Text(String),
    Bytes(Base64),
}

impl PartialSchema for QuestionItem {
    fn schema() -> RefOr<Schema> {
        let integer = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0_u64));
        let text = ObjectBuilder::new().schema_type(Type::String);
        let item = OneOfBuilder::new().item(integer).item(text).item(Base64::schema());
        item.description(Some("Text, an integer, or bytes in base64")).into()
    }
}

impl ToSchema for QuestionItem {}

/// Bytes that are no text.
#[derive(Debug, Clone, PartialEq, Eq, DeriveDeserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Base64 {
    /// In base64.
    pub(crate) base64: String,
}

impl QuestionItem {
    pub(crate) fn asked(&self, kind: Kind) -> Option<AskedItem> {
        match self {
            Self::Integer(integer) if kind == Kind::Integers => Some(AskedItem::Integer(*integer)),
            Self::Integer(integer) => AskedItem::of_text(&integer.to_string(), kind),
            Self::Text(text) => AskedItem::of_text(text, kind),
            Self::Bytes(bytes) => AskedItem::of_base64(&bytes.base64, kind),
        }
    }
}

/// By hand: the error of an untagged enum shows what it could not read, and what is no item must take no memory.
impl<'de> Deserialize<'de> for QuestionItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ItemVisitor)
    }
}

struct ItemVisitor;

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = QuestionItem;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, an integer from 0 on, or {\"base64\": \"…\"}")
    }

    fn visit_u64<E>(self, integer: u64) -> Result<QuestionItem, E> {
        Ok(QuestionItem::Integer(integer))
    }

    fn visit_str<E>(self, text: &str) -> Result<QuestionItem, E> {
        Ok(QuestionItem::Text(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<QuestionItem, A::Error> {
        // The error of a map repeats the names in it.
        let wanted = |_: A::Error| de::Error::custom("bytes are {\"base64\": \"…\"}");
        Base64::deserialize(MapAccessDeserializer::new(map)).map(QuestionItem::Bytes).map_err(wanted)
    }
}

/// The items of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QuestionItems(pub(crate) Vec<QuestionItem>);

/// The most items that are read of a question, whatever its limit.
pub(crate) const QUESTION_ITEMS_MAX: usize = 100_000;

/// By hand: no more is kept than a question may have.
impl<'de> Deserialize<'de> for QuestionItems {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ItemsVisitor)
    }
}

struct ItemsVisitor;

impl<'de> Visitor<'de> for ItemsVisitor {
    type Value = QuestionItems;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<QuestionItems, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            if items.len() == QUESTION_ITEMS_MAX {
                return Err(de::Error::custom(format!("a question has at most {QUESTION_ITEMS_MAX} items")));
            }
            items.push(item);
        }
        Ok(QuestionItems(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_written_as_text_integers_or_bytes() {
        assert_eq!(names(Item::from("é")), (ItemShape::Text("é".to_owned()), None));
        assert_eq!(names(Item::from(7)), (ItemShape::Integer(7), None));
        let (text, base64) = names(Item::from(&[0xff, b'x'][..]));
        assert_eq!((text, base64.as_deref()), (ItemShape::Text("\u{fffd}x".to_owned()), Some("/3g=")));
    }

    #[test]
    fn items_are_asked_for_as_the_stream_counts_them() {
        let bytes = |bytes: &[u8]| Some(AskedItem::Bytes(bytes.to_vec()));
        for (json, text, integer) in [
            ("\"a\"", bytes(b"a"), None),
            ("7", bytes(b"7"), Some(AskedItem::Integer(7))),
            ("\"7\"", bytes(b"7"), Some(AskedItem::Integer(7))),
            ("\"+7\"", bytes(b"+7"), None),
            ("\"\"", bytes(b""), None),
            ("{\"base64\":\"/3g=\"}", bytes(&[0xff, b'x']), None),
            ("{\"base64\":\"?\"}", None, None),
        ] {
            let item: QuestionItem = serde_json::from_str(json).expect(json);
            assert_eq!((item.asked(Kind::Bytes), item.asked(Kind::Integers)), (text, integer), "{json}");
        }
        for json in ["-1", "1.5", "null", "[]", "{\"secret\":1}"] {
            let error = serde_json::from_str::<QuestionItem>(json).expect_err(json).to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
