//! Arrow IPC streams: the values of a single record batch go into the columns without a copy.

mod checked;
mod values;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, Utf8Type};
use arrow_array::{Array, ArrayRef, GenericByteArray, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_schema::{DataType, SchemaRef};
use bytes::Bytes;

use crate::column::{Integers, Present, Strings, StringsBuilder};
use crate::config::ColumnKind;
use crate::events::{Column, Events, MISSING_TIME};
use crate::input::arrow::values::{integers, texts, times};
use crate::input::{InputError, InputLimits, Wanted};

pub(crate) fn read(body: Bytes, wanted: &Wanted, limits: InputLimits) -> Result<Events, InputError> {
    checked::check(&body, limits)?;
    // What the check lets through should not make the decoder panic; if it does, one body is refused and no more.
    let read = catch_unwind(AssertUnwindSafe(|| {
        let (schema, batches) = decode(body)?;
        Columns { schema, batches, limits }.events(wanted)
    }));
    read.unwrap_or(Err(InputError::Arrow))
}

fn decode(body: Bytes) -> Result<(SchemaRef, Vec<RecordBatch>), InputError> {
    let mut decoder = StreamDecoder::new();
    let mut buffer = Buffer::from(body);
    let mut batches = Vec::new();
    while let Some(batch) = decoder.decode(&mut buffer).map_err(|_| InputError::Arrow)? {
        batches.push(batch);
    }
    decoder.finish().map_err(|_| InputError::Arrow)?;
    Ok((decoder.schema().ok_or(InputError::Arrow)?, batches))
}

struct Columns {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    limits: InputLimits,
}

impl Columns {
    fn events(&self, wanted: &Wanted) -> Result<Events, InputError> {
        let mut events = Events::new(self.len())?;
        for (name, kind) in &wanted.columns {
            let column = match kind {
                ColumnKind::Text => Column::Strings(self.strings(name)?),
                ColumnKind::Integer => Column::Integers(self.integers(name)?),
            };
            events = events.with_column(name, column)?;
        }
        if let Some(name) = &wanted.time {
            events = events.with_times(self.times(name)?)?;
        }
        if let Some(name) = &wanted.user {
            events = events.with_users(self.strings(name)?)?;
        }
        Ok(events)
    }

    fn len(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The arrays of a column, one for each record batch.
    fn arrays(&self, name: &str) -> Result<Vec<&ArrayRef>, InputError> {
        let index = self.schema.index_of(name).map_err(|_| InputError::ArrowMissing(name.to_owned()))?;
        Ok(self.batches.iter().map(|batch| batch.column(index)).collect())
    }

    fn wrong(&self, name: &str, wanted: &'static str) -> InputError {
        let kind = self.schema.field_with_name(name).map(|field| field.data_type().to_string());
        InputError::ArrowType { name: name.to_owned(), got: kind.unwrap_or_default(), wanted }
    }

    fn strings(&self, name: &str) -> Result<Strings, InputError> {
        let arrays = self.arrays(name)?;
        if let [array] = arrays[..]
            && let Some(strings) = as_they_are(array, self.limits.key_len_max)
        {
            return strings;
        }
        let mut builder = StringsBuilder::with_capacity(self.len(), 0);
        let short = |text: &Cow<'_, [u8]>| text.len() <= self.limits.key_len_max;
        for array in arrays {
            let get = texts(array).ok_or_else(|| self.wrong(name, "text"))?;
            (0..array.len()).for_each(|index| builder.push(get(index).filter(short).as_deref()));
        }
        Ok(builder.finish())
    }

    fn integers(&self, name: &str) -> Result<Integers, InputError> {
        let mut values = Vec::with_capacity(self.len());
        for array in self.arrays(name)? {
            let get = integers(array).ok_or_else(|| self.wrong(name, "integers"))?;
            values.extend((0..array.len()).map(get));
        }
        Ok(values.into_iter().collect())
    }

    fn times(&self, name: &str) -> Result<Vec<u64>, InputError> {
        let mut all = Vec::with_capacity(self.len());
        for array in self.arrays(name)? {
            let get = times(array).ok_or_else(|| self.wrong(name, "times"))?;
            all.extend((0..array.len()).map(|index| get(index).unwrap_or(MISSING_TIME)));
        }
        Ok(all)
    }
}

/// Strings in the memory that they came in; `None` if their type is another or one of them is too long.
fn as_they_are(array: &ArrayRef, key_len_max: usize) -> Option<Result<Strings, InputError>> {
    match array.data_type() {
        DataType::Utf8 => borrowed::<Utf8Type>(array.as_string(), key_len_max),
        DataType::Binary => borrowed::<BinaryType>(array.as_binary(), key_len_max),
        _ => None,
    }
}

fn borrowed<T: ByteArrayType<Offset = i32>>(
    array: &GenericByteArray<T>,
    key_len_max: usize,
) -> Option<Result<Strings, InputError>> {
    let offsets = array.offsets();
    let (first, others) = offsets.split_first()?;
    let is_long = |pair: &[i32]| key_len_max < (pair[1] - pair[0]) as usize;
    let present = present(array)?;
    if offsets.windows(2).any(is_long) {
        return None;
    }
    let ends: Vec<u32> = others.iter().map(|end| (end - first) as u32).collect();
    let len = ends.last().map_or(0, |end| *end as usize);
    let bytes = array.values().slice_with_length(*first as usize, len);
    Some(Strings::new(shared(bytes), ends, present).map_err(InputError::from))
}

/// The bits of an array, if they begin with a byte.
fn present(array: &dyn Array) -> Option<Present> {
    match array.nulls() {
        None => Some(Present::all()),
        Some(nulls) if nulls.offset() == 0 => Some(Present::bits(shared(nulls.buffer().clone()))),
        Some(_) => None,
    }
}

fn shared(buffer: Buffer) -> Bytes {
    struct Shared(Buffer);
    impl AsRef<[u8]> for Shared {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Bytes::from_owner(Shared(buffer))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{
        BinaryArray, DictionaryArray, Int64Array, LargeStringArray, StringArray, StringViewArray,
        TimestampMicrosecondArray, UInt16Array, UInt64Array,
    };
    use arrow_ipc::writer::StreamWriter;
    use arrow_schema::{Field, Schema};

    use super::*;
    use crate::input::testing::{LIMITS, show, wanted};

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
        let body = Bytes::from(stream(&[usual()]));
        let range = body.as_ptr_range();
        let events = read(body, &wanted(), LIMITS).expect("one batch");
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
        let error = read_all(&[batch(vec![("page", many)])]);
        assert_eq!(error, Err(InputError::Events { most: LIMITS.events_max }));
    }

    #[test]
    fn no_changed_byte_makes_it_panic() {
        let whole = stream(&[usual(), usual()]);
        for at in 0..whole.len() {
            for change in [0xff, 0x80, 0x01] {
                let mut body = whole.clone();
                body[at] ^= change;
                let _ = read(body.into(), &wanted(), LIMITS);
            }
        }
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
