//! Arrow IPC streams. Only the wanted columns are read. Those of a single record batch are not copied, and values that several rows
//! share (in dictionaries, views and runs) are not unfolded.
//!
//! Everything is checked before it is read: what cannot be read is refused, and nothing panics.

mod messages;
mod piece;
mod schema;
mod values;

use arrow_ipc::MessageHeader;
use bytes::Bytes;

use crate::column::{IntegersBuilder, Strings};
use crate::config::ColumnKind;
use crate::events::{COLUMN_BYTES_MAX, Column, Events, at_most};
use crate::input::arrow::messages::{Messages, Part};
use crate::input::arrow::piece::{Piece, texts_len};
use crate::input::arrow::schema::{Cursor, Found, Leaf, Shape};
use crate::input::arrow::values::{Dictionary, Filed, Flat, Shared, integers, times};
use crate::input::{InputError, InputLimits, Wanted};

/// More bytes than a number has digits, or than stand in a view.
const SHORT: usize = 20;

/// A body whose envelope was looked at: its schema has the wanted columns, and its rows are not too many.
pub(crate) struct Stream<'w> {
    body: Bytes,
    wanted: &'w Wanted,
    /// Where the messages behind the schema begin.
    start: usize,
    readers: Vec<Reader>,
    rows: usize,
    /// The most bytes that the events take.
    pub(crate) kept_max: usize,
}

impl<'w> Stream<'w> {
    /// Looks at what a body says about itself. No item is read.
    pub(crate) fn open(body: Bytes, wanted: &'w Wanted, limits: InputLimits) -> Result<Self, InputError> {
        let mut messages = Messages::new(&body, 0);
        let (message, _) = messages.next()?.ok_or(InputError::Arrow)?;
        if message.header_type() != MessageHeader::Schema {
            return Err(InputError::Arrow);
        }
        let schema = message.header_as_schema().ok_or(InputError::Arrow)?;
        let names: Vec<&str> = wanted.names().collect();
        let found = schema::find(schema, message.version(), &names)?;
        let mut readers = Vec::with_capacity(names.len());
        for ((name, found), wants) in names.into_iter().zip(found).zip(wants(wanted)) {
            readers.push(Reader::new(name, found, wants, limits)?);
        }
        let start = messages.at();
        let (rows, bytes) = measure(messages, &readers, limits)?;
        let per_row: usize = readers.iter().map(Reader::bytes_per_row).sum();
        // A column that takes up half of its body keeps all of it.
        let kept_max = 2 * bytes + rows * per_row;
        Ok(Self { body, wanted, start, readers, rows, kept_max })
    }

    /// Reads the wanted columns.
    pub(crate) fn read(self) -> Result<Events, InputError> {
        let Self { body, wanted, start, mut readers, rows, .. } = self;
        for reader in &mut readers {
            reader.reserve(rows);
        }
        let mut messages = Messages::new(&body, start);
        while let Some(part) = messages.part()? {
            readers.iter_mut().try_for_each(|reader| reader.take(&body, &part))?;
        }
        let mut events = Events::new(rows)?;
        let mut readers = readers.into_iter();
        for ((name, _), reader) in wanted.columns.iter().zip(readers.by_ref()) {
            events = events.with_column(name, reader.finish(&body)?)?;
        }
        if wanted.time.is_some() {
            let times = readers.next().map(Reader::into_times);
            events = events.with_times(times.unwrap_or_default())?;
        }
        if let Some(reader) = readers.next() {
            events = events.with_users(reader.into_strings(&body)?)?;
        }
        Ok(events)
    }
}

/// How many rows there are, and how many bytes the texts of the wanted columns have: from the lengths of buffers alone.
fn measure(
    mut messages: Messages<'_>,
    readers: &[Reader],
    limits: InputLimits,
) -> Result<(usize, usize), InputError> {
    let mut rows = 0_usize;
    let mut bytes = vec![0_usize; readers.len()];
    while let Some(part) = messages.part()? {
        if let Part::Rows(columns) = &part {
            rows = rows.saturating_add(columns.rows);
        }
        if limits.events_max < rows {
            return Err(InputError::Events { most: limits.events_max });
        }
        for (reader, bytes) in readers.iter().zip(&mut bytes) {
            *bytes = bytes.saturating_add(reader.texts_len(&part)?);
        }
    }
    for bytes in &bytes {
        at_most("the bytes of a column", bytes.saturating_add(SHORT * rows), COLUMN_BYTES_MAX)?;
    }
    Ok((rows, bytes.iter().sum()))
}

/// The kind of values that is wanted of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    Text,
    Integers,
    Times,
}

impl Wants {
    fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integers => "integers",
            Self::Times => "times",
        }
    }
}

/// What is wanted of each column, in the order of [`Wanted::names`].
fn wants(wanted: &Wanted) -> impl Iterator<Item = Wants> {
    let items = wanted.columns.iter().map(|(_, kind)| match kind {
        ColumnKind::Text => Wants::Text,
        ColumnKind::Integer => Wants::Integers,
    });
    let time = wanted.time.iter().map(|_| Wants::Times);
    items.chain(time).chain(wanted.user.iter().map(|_| Wants::Text))
}

/// The reader of one column, message by message.
struct Reader {
    shape: Shape,
    at: Cursor,
    dictionary: Dictionary,
    values: Values,
    key_len_max: usize,
}

enum Values {
    Flat(Flat),
    Shared(Shared),
    Integers(IntegersBuilder),
    Times(Vec<u64>),
}

impl Reader {
    fn new(name: &str, found: Found, wants: Wants, limits: InputLimits) -> Result<Self, InputError> {
        let Found { shape, type_name, at } = found;
        let wanted = wants.word();
        let wrong = || InputError::ArrowType { name: name.to_owned(), got: type_name.to_owned(), wanted };
        let is_readable = |shape: &Shape| wants == Wants::Times || !shape.has_times();
        let shape = shape.filter(is_readable).ok_or_else(wrong)?;
        let values = match (wants, &shape) {
            (Wants::Text, Shape::Plain(Leaf::Texts(_))) => Values::Flat(Flat::default()),
            (Wants::Text, _) => Values::Shared(Shared::new(limits.key_len_max)),
            (Wants::Integers, _) => Values::Integers(IntegersBuilder::default()),
            (Wants::Times, _) => Values::Times(Vec::new()),
        };
        let dictionary = Dictionary::default();
        let key_len_max = limits.key_len_max;
        Ok(Self { shape, at, dictionary, values, key_len_max })
    }

    /// Bytes that a row takes beside those of its text.
    fn bytes_per_row(&self) -> usize {
        match &self.values {
            Values::Flat(_) => 5,
            Values::Shared(_) => 9 + SHORT,
            Values::Integers(_) => 9,
            Values::Times(_) => 8,
        }
    }

    fn reserve(&mut self, rows: usize) {
        match &mut self.values {
            Values::Flat(flat) => flat.reserve(rows),
            Values::Shared(shared) => shared.reserve(rows),
            Values::Integers(integers) => *integers = IntegersBuilder::with_capacity(rows),
            Values::Times(times) => times.reserve_exact(rows),
        }
    }

    /// How many bytes of texts a message has for this column.
    fn texts_len(&self, part: &Part<'_>) -> Result<usize, InputError> {
        match (part, self.shape.dictionary()) {
            (Part::Rows(columns), _) => texts_len(columns, &self.shape, self.at),
            (Part::Values { id, columns, .. }, Some((own, leaf))) if *id == own => {
                texts_len(columns, &Shape::Plain(leaf), Cursor::default())
            }
            _ => Ok(0),
        }
    }

    fn take(&mut self, body: &[u8], part: &Part<'_>) -> Result<(), InputError> {
        match (part, self.shape.dictionary()) {
            (Part::Rows(columns), _) => {
                let piece = Piece::new(body, columns, &self.shape, self.at)?;
                self.take_rows(body, piece)
            }
            (Part::Values { id, is_more, columns }, Some((own, leaf))) if *id == own => {
                let piece = Piece::new(body, columns, &Shape::Plain(leaf), Cursor::default())?;
                let bases = self.copy(body, &piece);
                self.dictionary.take(Filed::new(piece, bases), *is_more);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Copies the texts of a piece, where texts are wanted; where to.
    fn copy(&mut self, body: &[u8], piece: &Piece) -> Vec<usize> {
        match &mut self.values {
            Values::Shared(shared) => shared.copy(body, piece),
            _ => Vec::new(),
        }
    }

    fn take_rows(&mut self, body: &[u8], piece: Piece) -> Result<(), InputError> {
        if let Values::Flat(flat) = &mut self.values {
            return flat.take(body, &piece, self.key_len_max);
        }
        let bases = self.copy(body, &piece);
        let filed = Filed::new(piece, bases);
        match &mut self.values {
            Values::Flat(_) => Err(InputError::Arrow),
            Values::Shared(shared) => shared.take(body, &filed, &self.dictionary),
            Values::Integers(values) => integers(body, &filed, &self.dictionary, values),
            Values::Times(values) => times(body, &filed, &self.dictionary, values),
        }
    }

    fn finish(self, body: &Bytes) -> Result<Column, InputError> {
        match self.values {
            Values::Integers(integers) => Ok(Column::Integers(integers.finish())),
            _ => self.into_strings(body).map(Column::Strings),
        }
    }

    fn into_strings(self, body: &Bytes) -> Result<Strings, InputError> {
        match self.values {
            Values::Flat(flat) => flat.finish(body),
            Values::Shared(shared) => shared.finish(),
            Values::Integers(_) | Values::Times(_) => Err(InputError::Arrow),
        }
    }

    fn into_times(self) -> Vec<u64> {
        match self.values {
            Values::Times(times) => times,
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Array, ArrayRef, RecordBatch};

    use arrow_array::types::Int8Type;
    use arrow_array::{
        BinaryArray, DictionaryArray, Int64Array, LargeStringArray, StringArray, StringViewArray,
        TimestampMicrosecondArray, UInt16Array, UInt64Array,
    };
    use arrow_ipc::writer::StreamWriter;
    use arrow_schema::{Field, Schema};

    use super::*;
    use crate::input::testing::{LIMITS, show, wanted};

    fn read(body: Bytes, wanted: &Wanted, limits: InputLimits) -> Result<Events, InputError> {
        Stream::open(body, wanted, limits)?.read()
    }

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, array)| (name, array, true)).collect::<Vec<_>>(),
        )
        .expect("equal lengths")
    }

    fn stream(batches: &[RecordBatch]) -> Vec<u8> {
        let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).expect("memory");
        batches.iter().for_each(|batch| writer.write(batch).expect("memory"));
        writer.into_inner().expect("memory")
    }

    fn usual() -> RecordBatch {
        batch(vec![
            ("page", Arc::new(StringArray::from(vec![Some("/a"), None, Some("")]))),
            ("status", Arc::new(UInt16Array::from(vec![Some(200), Some(404), None]))),
            ("at", Arc::new(TimestampMicrosecondArray::from(vec![Some(5_999), Some(-1), None]))),
            ("who", Arc::new(Int64Array::from(vec![Some(-7), Some(8), None]))),
        ])
    }

    const USUAL: [&str; 3] = ["/a 200 5 -7", "- 404 - 8", " - - -"];

    fn read_all(batches: &[RecordBatch]) -> Result<Vec<String>, InputError> {
        read(stream(batches).into(), &wanted(), LIMITS).map(|events| show(&events))
    }

    fn only_pages() -> Wanted {
        Wanted { time: None, user: None, columns: wanted().columns[..1].to_vec(), ..wanted() }
    }

    #[test]
    fn one_batch_and_several_give_the_same_values() {
        assert_eq!(read_all(&[usual()]).expect("one"), USUAL);
        assert_eq!(read_all(&[usual(), usual()]).expect("two"), [USUAL, USUAL].concat());
        assert_eq!(read_all(&[usual().slice(1, 2)]).expect("a slice"), USUAL[1..]);
    }

    #[test]
    fn strings_of_one_batch_are_not_copied() {
        let body = Bytes::from(stream(&[page(StringArray::from(vec!["x".repeat(1000); 100]))]));
        let range = body.as_ptr_range();
        let events = read(body, &only_pages(), LONG).expect("one batch");
        let Some(Column::Strings(pages)) = events.column("page") else { panic!("text") };
        let (bytes, _, _) = pages.parts();
        assert!(range.contains(&bytes.as_ptr()), "the values lie in the body");
    }

    #[test]
    fn text_comes_in_many_types_and_one_that_is_too_long_is_missing() {
        let long = "much too long";
        let dictionary: DictionaryArray<Int8Type> = [Some("/a"), None, Some(long)].into_iter().collect();
        let pages: [ArrayRef; 5] = [
            Arc::new(StringArray::from(vec![Some("/a"), None, Some(long)])),
            Arc::new(LargeStringArray::from(vec![Some("/a"), None, Some(long)])),
            Arc::new(StringViewArray::from(vec![Some("/a"), None, Some(long)])),
            Arc::new(BinaryArray::from(vec![Some(&b"/a"[..]), None, Some(long.as_bytes())])),
            Arc::new(dictionary),
        ];
        for page in pages {
            let name = page.data_type().to_string();
            let wanted = only_pages();
            let body = stream(&[batch(vec![("page", page)])]);
            let events = read(body.into(), &wanted, LIMITS).expect(&name);
            assert_eq!(show(&events), ["/a", "-", "-"], "{name}");
        }
    }

    #[test]
    fn columns_that_are_missing_or_cannot_be_read_are_refused_by_name() {
        let error = read_all(&[usual().project(&[0, 1, 2]).expect("three")]).expect_err("no user");
        assert_eq!(error, InputError::ArrowMissing("who".to_owned()));
        let floats: ArrayRef = Arc::new(arrow_array::Float64Array::from(vec![1.0]));
        let error = read_all(&[batch(vec![
            ("page", floats.clone()),
            ("status", floats.clone()),
            ("at", floats.clone()),
            ("who", floats),
        ])]);
        assert!(matches!(error, Err(InputError::ArrowType { name, .. }) if name == "page"));
    }

    #[test]
    fn a_stream_that_is_cut_off_or_has_too_many_rows_is_refused() {
        let whole = stream(&[usual()]);
        for len in (0..whole.len() - 8).step_by(7) {
            assert!(read(whole[..len].to_vec().into(), &wanted(), LIMITS).is_err(), "{len}");
        }
        let many: ArrayRef = Arc::new(UInt64Array::from(vec![1; LIMITS.events_max + 1]));
        let error = read(stream(&[batch(vec![("page", many)])]).into(), &only_pages(), LIMITS);
        assert_eq!(error, Err(InputError::Events { most: LIMITS.events_max }));
    }

    fn page(array: impl Array + 'static) -> RecordBatch {
        batch(vec![("page", Arc::new(array))])
    }

    const LONG: InputLimits = InputLimits { events_max: 1_000_000, key_len_max: 1024 };

    /// A first value of the longest allowed length, in a column that would unfold to more than the most bytes of a column: it counts
    /// like a short one, and so do all others.
    #[test]
    fn the_length_of_one_value_decides_about_no_other() {
        let rows = COLUMN_BYTES_MAX / 1024 + 1024;
        let read_with = |first: &str| {
            let values: ArrayRef = Arc::new(StringArray::from(vec![first, "z"]));
            let keys: Vec<i8> = (0..rows).map(|row| i8::from(rows - 1024 < row)).collect();
            let keys = arrow_array::Int8Array::from(keys);
            let dictionary = page(DictionaryArray::try_new(keys, values).expect("two values"));
            let events = read(stream(&[dictionary]).into(), &only_pages(), LONG).expect("within all limits");
            let Some(Column::Strings(pages)) = events.column("page") else { panic!("text") };
            let count = |text: &[u8]| (0..rows).filter(|row| pages.get(*row) == Some(text)).count();
            (count(first.as_bytes()), count(b"z"), pages.size())
        };
        let (long, short) = ("x".repeat(1024), "x");
        let (long, short) = (read_with(&long), read_with(short));
        assert_eq!((long.0, long.1), (rows - 1023, 1023));
        assert_eq!((short.0, short.1), (rows - 1023, 1023));
        assert_eq!(long.2 - short.2, 1023, "the value is there once");
        let (none, others, _) = read_with(&"x".repeat(1025));
        assert_eq!((none, others), (0, 1023), "one that is too long is missing in each of its places");
    }

    #[test]
    fn views_and_runs_that_share_their_bytes_are_not_unfolded() {
        let long = "x".repeat(1000);
        let mut views = arrow_array::builder::StringViewBuilder::new();
        let block = views.append_block(long.as_bytes().into());
        (0..1000).for_each(|row| views.try_append_view(block, row / 2, 500).expect("inside the block"));
        let ends = arrow_array::Int32Array::from(vec![400, 999, 1000]);
        let values = StringArray::from(vec![Some(&long[..]), None, Some("b")]);
        let runs = arrow_array::RunArray::try_new(&ends, &values).expect("three runs");
        let views = page(views.finish());
        for (name, rows, bytes, there) in [("views", views, 1000, 1000), ("runs", page(runs), 1001, 401)] {
            let events = read(stream(&[rows]).into(), &only_pages(), LONG).expect(name);
            let Some(Column::Strings(pages)) = events.column("page") else { panic!("text") };
            assert_eq!(pages.size(), bytes + 8 * 1000, "{name}");
            assert_eq!((0..1000).filter(|row| pages.get(*row).is_some()).count(), there, "{name}");
        }
    }

    #[test]
    fn dictionaries_may_be_replaced_between_batches() {
        let texts = |texts: &[Option<&str>]| -> RecordBatch {
            page(texts.iter().copied().collect::<DictionaryArray<Int8Type>>())
        };
        let batches = [texts(&[Some("/a"), None, Some("/b")]), texts(&[Some("/c"), Some("/a"), Some("/a")])];
        let events = read(stream(&batches).into(), &only_pages(), LIMITS).expect("two dictionaries");
        assert_eq!(show(&events), ["/a", "-", "/b", "/c", "/a", "/a"]);
    }

    /// The columns beside the wanted one are skipped, whatever they are, and nothing of them is kept.
    #[test]
    fn unwanted_columns_are_skipped_and_not_kept() {
        let wide: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(10_000); 3]));
        let views: ArrayRef = Arc::new(StringViewArray::from(vec!["y".repeat(100); 3]));
        let numbers: ArrayRef = Arc::new(UInt64Array::from(vec![1, 2, 3]));
        let nested = arrow_array::StructArray::from(vec![
            (Arc::new(Field::new("views", views.data_type().clone(), true)), views.clone()),
            (Arc::new(Field::new("numbers", numbers.data_type().clone(), true)), numbers),
        ]);
        let list = arrow_array::ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>(vec![
            Some(vec![Some(1), None]),
            None,
            Some(vec![]),
        ]);
        let pages: ArrayRef = Arc::new(StringArray::from(vec![Some("/a"), None, Some("/c")]));
        let body = stream(&[batch(vec![
            ("wide", wide),
            ("nothing", Arc::new(arrow_array::NullArray::new(3))),
            ("nested", Arc::new(nested)),
            ("list", Arc::new(list)),
            ("page", pages),
            ("views", views),
        ])]);
        let body = Bytes::from(body);
        let range = body.as_ptr_range();
        let events = read(body.clone(), &only_pages(), LIMITS).expect("the page is there");
        assert_eq!(show(&events), ["/a", "-", "/c"]);
        let Some(Column::Strings(pages)) = events.column("page") else { panic!("text") };
        assert!(!range.contains(&pages.parts().0.as_ptr()), "a small column does not keep its body");
    }

    /// Bodies of every shape that is read, and of shapes that are skipped.
    fn shapes() -> Vec<Vec<u8>> {
        let texts = [Some("/a"), None, Some("a longer text than a view holds"), Some("")];
        let ends = arrow_array::Int16Array::from(vec![1, 2, 4]);
        let runs =
            arrow_array::RunArray::try_new(&ends, &StringArray::from(vec![Some("/a"), None, Some("b")]));
        let dictionary: DictionaryArray<Int8Type> = texts.into_iter().collect();
        let more: DictionaryArray<Int8Type> = [Some("/z"), Some("/a"), None, None].into_iter().collect();
        let nested: ArrayRef = Arc::new(StringViewArray::from(texts.to_vec()));
        let field = Arc::new(Field::new("inside", nested.data_type().clone(), true));
        let nested = arrow_array::StructArray::from(vec![(field, nested)]);
        let pages = |array: ArrayRef| batch(vec![("nested", Arc::new(nested.clone())), ("page", array)]);
        let all: Vec<Vec<RecordBatch>> = vec![
            vec![pages(Arc::new(StringArray::from(texts.to_vec()))); 2],
            vec![pages(Arc::new(LargeStringArray::from(texts.to_vec())))],
            vec![pages(Arc::new(StringViewArray::from(texts.to_vec()))); 2],
            vec![pages(Arc::new(runs.expect("three runs")))],
            vec![pages(Arc::new(dictionary)), pages(Arc::new(more))],
            vec![pages(Arc::new(arrow_array::BooleanArray::from(vec![true, false, true, true])))],
        ];
        let mut bodies: Vec<Vec<u8>> = all.iter().map(|batches| stream(batches)).collect();
        bodies.push(stream(&[usual(), usual()]));
        bodies
    }

    /// No panic is caught: one would fail the test.
    #[test]
    fn no_changed_byte_makes_it_panic() {
        let wanted = [only_pages(), wanted(), Wanted { time: Some("page".to_owned()), ..only_pages() }];
        let mut state = 7_u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let (mut read_whole, mut refused) = (0, 0);
        for whole in shapes() {
            for _ in 0..1500 {
                let mut body = whole.clone();
                for _ in 0..1 + next(3) {
                    let at = next(body.len());
                    body[at] = [body[at] ^ 1 << next(8), 0, 0xff, 0x7f, 0x80, next(256) as u8][next(6)];
                }
                if next(10) == 0 {
                    body.truncate(next(body.len()));
                }
                match read(body.into(), &wanted[next(3)], LIMITS) {
                    Ok(_) => read_whole += 1,
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(1000 < read_whole && 1000 < refused, "{read_whole} read, {refused} refused");
    }

    #[test]
    fn a_dictionary_without_values_has_no_items() {
        let values: ArrayRef = Arc::new(StringArray::from(Vec::<&str>::new()));
        let keys = arrow_array::Int8Array::from(vec![None, None]);
        let array: ArrayRef = Arc::new(DictionaryArray::try_new(keys, values).expect("all null"));
        let schema = Schema::new(vec![Field::new("page", array.data_type().clone(), true)]);
        let batch = RecordBatch::try_new(Arc::new(schema), vec![array]).expect("one column");
        let events = read(stream(&[batch]).into(), &only_pages(), LIMITS).expect("two");
        assert_eq!(show(&events), ["-", "-"]);
    }
}
