//! From the value of a record to an event. A value that cannot be read is a null item in its place, with the broker's time.

use std::borrow::Cow;

use crate::broker::connector::Record;
use crate::config::{BrokerConfig, Values};
use crate::events::Events;
use crate::input::pointer::Pointer;
use crate::input::rows::{Field, Rows};
use crate::input::{InputError, InputLimits, Wanted, json};

/// The form of values, and the fields of them that are wanted.
pub(crate) enum Layout {
    Text,
    /// Members of the document.
    Members(Vec<String>),
    /// At least one stands deeper.
    Pointers(Vec<Pointer>),
}

impl Layout {
    pub(crate) fn new(config: &BrokerConfig, wanted: &Wanted) -> Self {
        if config.values == Values::Text {
            return Self::Text;
        }
        let pointer = |name: &str| match config.fields.get(name) {
            Some(pointer) => Pointer::new(pointer),
            None => Pointer::member(name),
        };
        let pointers: Vec<Pointer> = wanted.names().map(pointer).collect();
        match pointers.iter().map(|pointer| pointer.as_member().map(str::to_owned)).collect() {
            Some(members) => Self::Members(members),
            None => Self::Pointers(pointers),
        }
    }
}

/// Events that were read, record by record.
pub(crate) struct Reading<'w> {
    layout: &'w Layout,
    columns: usize,
    names: Vec<&'w [u8]>,
    rows: Rows<'w>,
}

impl<'w> Reading<'w> {
    pub(crate) fn new(layout: &'w Layout, wanted: &'w Wanted, limits: InputLimits, about: usize) -> Self {
        let names = match layout {
            Layout::Members(members) => members.iter().map(String::as_bytes).collect(),
            Layout::Text | Layout::Pointers(_) => Vec::new(),
        };
        Self { layout, columns: wanted.columns.len(), names, rows: Rows::new(wanted, limits, about) }
    }

    pub(crate) fn push(&mut self, record: &Record<'_>) -> Result<(), InputError> {
        let Some(value) = record.value else { return self.push_null(record) };
        match self.layout {
            Layout::Text => self.push_text(value, record.time_ms),
            Layout::Members(_) => self.push_members(value, record),
            Layout::Pointers(pointers) => {
                let fields: Option<Vec<Field<'_>>> =
                    pointers.iter().map(|pointer| pointer.find(value)).collect();
                match fields {
                    Some(fields) => self.rows.push(&fields),
                    None => self.push_null(record),
                }
            }
        }
    }

    fn push_text(&mut self, value: &[u8], time_ms: u64) -> Result<(), InputError> {
        match self.columns {
            0 => self.rows.push_at(&[], time_ms),
            _ => self.rows.push_at(&[Some(Cow::Borrowed(value))], time_ms),
        }
    }

    fn push_null(&mut self, record: &Record<'_>) -> Result<(), InputError> {
        self.rows.push_at(&[], record.time_ms)
    }

    fn push_members(&mut self, value: &[u8], record: &Record<'_>) -> Result<(), InputError> {
        json::with_fields(self.names.len(), |fields| match json::read_document(value, &self.names, fields) {
            Ok(()) => self.rows.push(fields),
            Err(_) => self.push_null(record),
        })
    }

    pub(crate) fn finish(self) -> Result<Events, InputError> {
        self.rows.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::testing::{LIMITS, show, wanted};

    fn config(text: &str) -> BrokerConfig {
        let text = format!("kind = 'redis'\naddress = 'a:1'\ntopic = 't'\nrouting = 'independent'\n{text}");
        toml::from_str(&text).expect("settings")
    }

    #[track_caller]
    fn check(settings: &str, wanted: &Wanted, values: &[Option<&str>], shown: &[&str]) {
        let layout = Layout::new(&config(settings), wanted);
        let mut reading = Reading::new(&layout, wanted, LIMITS, 4);
        for value in values {
            let value = value.map(str::as_bytes);
            reading.push(&Record { partition: 0, offset: 0, time_ms: 5, value }).expect("few");
        }
        assert_eq!(show(&reading.finish().expect("columns")), shown);
    }

    #[test]
    fn texts_are_items_with_the_time_of_the_broker() {
        let mut text = wanted();
        text.columns.truncate(1);
        text.user = None;
        check("", &text, &[Some("a"), None, Some("much too long"), Some("")], &["a 5", "- 5", "- 5", " 5"]);
        text.columns.clear();
        check("", &text, &[Some("a"), None], &["5", "5"]);
    }

    #[test]
    fn members_and_pointers_find_the_same_and_what_is_no_json_is_a_null_item_in_its_place() {
        let documents = [
            Some(r#"{"page":"a","status":7,"at":1700000000,"who":"u"}"#),
            Some(r#"{"page":"a\n","status":-7,"who":null}"#),
            Some(r#"{"page":"a""#),
            Some("[1]"),
            None,
        ];
        let shown = ["a 7 1700000000000 u", "a\n - - -", "- - 5 -", "- - - -", "- - 5 -"];
        check("values = 'json'", &wanted(), &documents, &shown);
        let nested = documents.map(|document| document.map(|text| format!(r#"{{"e~/":[0,{text}]}}"#)));
        let nested: Vec<_> = nested.iter().map(Option::as_deref).collect();
        let fields = "values = 'json'\n[fields]\npage = '/e~0~1/1/page'\nstatus = '/e~0~1/1/status'\n\
                      at = '/e~0~1/1/at'\nwho = '/e~0~1/1/who'";
        check(fields, &wanted(), &nested, &shown);
    }
}
