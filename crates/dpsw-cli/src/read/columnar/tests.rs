//! Files of every type, packing and layout, written by the formats' own libraries.

use std::fs::File;
use std::io::{Cursor, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::Result;
use arrow_array::builder::{StringDictionaryBuilder, StringViewBuilder};
use arrow_array::types::{Int32Type, UInt16Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array,
    Decimal256Array, DictionaryArray, FixedSizeBinaryArray, Float16Array, Float32Array, Float64Array,
    Int8Array, Int16Array, Int32Array, Int64Array, LargeBinaryArray, LargeStringArray, ListArray, NullArray,
    RecordBatch, StringArray, StringViewArray, StructArray, Time32MillisecondArray, Time32SecondArray,
    Time64MicrosecondArray, Time64NanosecondArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, TimestampSecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::i256;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};

use super::{Rows, Selection, arrow};
use crate::read::content::Content;
use crate::read::{Record, Sink};

/// A column, and how its three values are to read: some text, nothing, and some text.
type Case = (&'static str, ArrayRef, [Option<&'static str>; 3]);

/// Two values with a null between them.
fn three<T>(first: T, last: T) -> Vec<Option<T>> {
    vec![Some(first), None, Some(last)]
}

/// A column of every plain type.
fn cases() -> Vec<Case> {
    fn case(
        name: &'static str,
        array: impl Array + 'static,
        first: &'static str,
        last: &'static str,
    ) -> Case {
        (name, Arc::new(array), [Some(first), None, Some(last)])
    }
    let long = "a text that is longer than twelve bytes";
    let dictionary = three("x", "y").into_iter().collect::<DictionaryArray<Int32Type>>();
    let second = 1_700_000_000;
    vec![
        case("bool", BooleanArray::from(three(true, false)), "true", "false"),
        case("i8", Int8Array::from(three(-1, 2)), "-1", "2"),
        case("i16", Int16Array::from(three(-1, 2)), "-1", "2"),
        case("i32", Int32Array::from(three(-1, i32::MAX)), "-1", "2147483647"),
        case("i64", Int64Array::from(three(i64::MIN, 2)), "-9223372036854775808", "2"),
        case("u8", UInt8Array::from(three(1, 255)), "1", "255"),
        case("u16", UInt16Array::from(three(1, 65_535)), "1", "65535"),
        case("u32", UInt32Array::from(three(1, u32::MAX)), "1", "4294967295"),
        case("u64", UInt64Array::from(three(1, u64::MAX)), "1", "18446744073709551615"),
        case(
            "f16",
            Float16Array::from(three(half::f16::from_f32(1.5), half::f16::from_f32(-2.0))),
            "1.5",
            "-2.0",
        ),
        case("f32", Float32Array::from(three(0.1, -3.0)), "0.1", "-3.0"),
        case("f64", Float64Array::from(three(0.1, 1e20)), "0.1", "1e20"),
        case("text", StringArray::from(three("x", "")), "x", ""),
        case("long text", LargeStringArray::from(three("x", "y")), "x", "y"),
        case("text view", StringViewArray::from(three("x", long)), "x", long),
        case("bytes", BinaryArray::from(three(&b"x"[..], b"y")), "x", "y"),
        case("long bytes", LargeBinaryArray::from(three(&b"x"[..], b"y")), "x", "y"),
        case("bytes view", BinaryViewArray::from(three(long.as_bytes(), b"y")), long, "y"),
        case("fixed", fixed(three(b"xy", b"ab")), "xy", "ab"),
        case("dictionary", dictionary, "x", "y"),
        case("decimal", decimal(three(-12_345, 5), 10), "-123.45", "0.05"),
        case("small decimal", decimal(three(-12_345, 5), 5), "-123.45", "0.05"),
        case("large decimal", decimal(three(-12_345, 5), 38), "-123.45", "0.05"),
        case("date", Date32Array::from(three(20_000, -1)), "2024-10-04", "1969-12-31"),
        case("clock s", Time32SecondArray::from(three(1, 3600)), "00:00:01", "01:00:00"),
        case("clock ms", Time32MillisecondArray::from(three(1, 3_600_000)), "00:00:00.001", "01:00:00"),
        case(
            "clock us",
            Time64MicrosecondArray::from(three(1, 3_600_000_000)),
            "00:00:00.000001",
            "01:00:00",
        ),
        case("clock ns", Time64NanosecondArray::from(three(1000, 0)), "00:00:00.000001", "00:00:00"),
        case(
            "ms",
            TimestampMillisecondArray::from(three(1000 * second, 5)),
            "2023-11-14T22:13:20",
            "1970-01-01T00:00:00.005",
        ),
        case(
            "us",
            TimestampMicrosecondArray::from(three(1_000_000 * second, 0)),
            "2023-11-14T22:13:20",
            "1970-01-01T00:00:00",
        ),
        case(
            "ns",
            TimestampNanosecondArray::from(three(1_000_000_000 * second, 0)),
            "2023-11-14T22:13:20",
            "1970-01-01T00:00:00",
        ),
        case(
            "UTC",
            TimestampMillisecondArray::from(three(1000 * second, 0)).with_timezone("UTC"),
            "2023-11-14T22:13:20Z",
            "1970-01-01T00:00:00Z",
        ),
        ("null", Arc::new(NullArray::new(3)), [None, None, None]),
    ]
}

fn decimal(values: Vec<Option<i128>>, digits: u8) -> Decimal128Array {
    Decimal128Array::from(values).with_precision_and_scale(digits, 2).expect("in range")
}

fn fixed(values: Vec<Option<&[u8; 2]>>) -> FixedSizeBinaryArray {
    FixedSizeBinaryArray::try_from_sparse_iter_with_size(values.into_iter(), 2).expect("in range")
}

/// Columns that hold no items, to be passed over.
fn others() -> Vec<(&'static str, ArrayRef)> {
    let list =
        ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None, Some(vec![])]);
    let large = Decimal256Array::from(three(i256::ONE, i256::MINUS_ONE));
    let texts: ArrayRef = Arc::new(StringViewArray::from(three("x", "a text longer than twelve bytes")));
    let structs = StructArray::try_from(vec![("v", texts)]).expect("a struct");
    vec![("list", Arc::new(list)), ("large", Arc::new(large)), ("struct", Arc::new(structs))]
}

fn batch(columns: impl IntoIterator<Item = (&'static str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .expect("a batch")
}

/// Every type, between columns that are passed over.
fn everything() -> RecordBatch {
    batch(others().into_iter().chain(cases().into_iter().map(|(name, array, _)| (name, array))))
}

fn arrow_file(batches: &[RecordBatch], options: IpcWriteOptions) -> Vec<u8> {
    let mut bytes = Vec::new();
    let schema = batches[0].schema();
    let mut writer = FileWriter::try_new_with_options(&mut bytes, &schema, options).expect("a writer");
    batches.iter().for_each(|batch| writer.write(batch).expect("written"));
    writer.finish().expect("finished");
    bytes
}

fn arrow_stream(batches: &[RecordBatch], options: IpcWriteOptions) -> Vec<u8> {
    let mut bytes = Vec::new();
    let schema = batches[0].schema();
    let mut writer = StreamWriter::try_new_with_options(&mut bytes, &schema, options).expect("a writer");
    batches.iter().for_each(|batch| writer.write(batch).expect("written"));
    writer.finish().expect("finished");
    bytes
}

fn parquet_file(batches: &[RecordBatch], properties: WriterProperties) -> File {
    let mut file = tempfile::tempfile().expect("a file");
    let mut bytes = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut bytes, batches[0].schema(), Some(properties)).expect("a writer");
    batches.iter().for_each(|batch| writer.write(batch).expect("written"));
    writer.close().expect("closed");
    file.write_all(&bytes).expect("written");
    file
}

/// What was read; `None` for what cannot be.
#[derive(Default)]
struct Seen {
    items: Vec<Option<String>>,
    times: Vec<Option<u64>>,
}

impl Sink for Seen {
    fn items(&mut self, items: &[&[u8]], _: &[u64]) -> Result<()> {
        self.items.extend(items.iter().map(|item| Some(String::from_utf8_lossy(item).into_owned())));
        Ok(())
    }

    fn record(&mut self, _: u64, record: Record<'_>) -> Result<()> {
        self.items.push(record.item.ok().map(|item| String::from_utf8_lossy(item).into_owned()));
        self.times.extend(record.time.map(Result::ok));
        Ok(())
    }
}

fn seen(read: impl FnOnce(&mut dyn FnMut(Rows) -> bool) -> Result<()>) -> Result<Seen> {
    let mut seen = Seen::default();
    read(&mut |rows| {
        rows.feed(1, &mut seen).expect("this sink takes all");
        true
    })?;
    Ok(seen)
}

fn column(name: &str) -> Selection {
    Selection { item: Some(name.to_owned()), ..Selection::default() }
}

fn of_arrow(bytes: &[u8], selection: &Selection) -> Result<Seen> {
    let source = Cursor::new(bytes);
    seen(|rows| match Content::of(bytes) {
        Content::ArrowFile => arrow::read_file(source, selection, rows),
        _ => arrow::read_stream(source, selection, rows),
    })
}

fn of_parquet(file: &File, selection: &Selection) -> Result<Seen> {
    let file = file.try_clone().expect("a handle");
    seen(|rows| super::parquet::read(file, selection, &AtomicU64::new(0), rows))
}

#[track_caller]
fn check_arrow(bytes: &[u8], what: &str) {
    for (name, _, wanted) in cases() {
        let seen = of_arrow(bytes, &column(name)).unwrap_or_else(|error| panic!("{what}, {name}: {error:#}"));
        assert_eq!(seen.items.iter().map(Option::as_deref).collect::<Vec<_>>(), wanted, "{what}, {name}");
    }
}

#[test]
fn every_type_of_arrow_is_read_in_every_packing() {
    for packing in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        let options = || IpcWriteOptions::default().try_with_compression(packing).expect("known");
        check_arrow(&arrow_file(&[everything()], options()), &format!("file, {packing:?}"));
        check_arrow(&arrow_stream(&[everything()], options()), &format!("stream, {packing:?}"));
    }
}

#[track_caller]
fn check_parquet(what: &str, properties: WriterPropertiesBuilder) {
    let file = parquet_file(&[everything()], properties.build());
    // The format has no clock of seconds: the writer stores their number.
    for (name, _, wanted) in cases().into_iter().filter(|(name, ..)| *name != "clock s") {
        let seen =
            of_parquet(&file, &column(name)).unwrap_or_else(|error| panic!("{what}, {name}: {error:#}"));
        assert_eq!(seen.items.iter().map(Option::as_deref).collect::<Vec<_>>(), wanted, "{what}, {name}");
    }
}

#[test]
fn every_type_of_parquet_is_read_in_every_packing() {
    for packing in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(Default::default()),
    ] {
        check_parquet(&format!("{packing:?}"), WriterProperties::builder().set_compression(packing));
    }
}

#[test]
fn every_layout_of_parquet_is_read() {
    let version = WriterVersion::PARQUET_2_0;
    let plain = || WriterProperties::builder().set_dictionary_enabled(false);
    check_parquet("without dictionaries", plain());
    check_parquet("version 2", WriterProperties::builder().set_writer_version(version));
    check_parquet("version 2 without dictionaries", plain().set_writer_version(version));
    check_parquet("row by row", plain().set_max_row_group_row_count(Some(1)));
    for (name, encoding) in [
        ("i64", Encoding::DELTA_BINARY_PACKED),
        ("text", Encoding::DELTA_BYTE_ARRAY),
        ("text", Encoding::DELTA_LENGTH_BYTE_ARRAY),
        ("f64", Encoding::BYTE_STREAM_SPLIT),
    ] {
        check_parquet(&format!("{encoding:?}"), plain().set_column_encoding(name.into(), encoding));
    }
}

#[test]
fn many_rows_come_in_their_order() {
    let numbers = |from: i64| -> (&str, ArrayRef) {
        ("n", Arc::new(Int64Array::from_iter_values(from..from + 20_000)))
    };
    let batches = [batch([numbers(0)]), batch([numbers(20_000)])];
    let wanted: Vec<Option<String>> = (0..40_000).map(|number| Some(number.to_string())).collect();
    let all = Selection::default();
    let file =
        parquet_file(&batches, WriterProperties::builder().set_max_row_group_row_count(Some(15_000)).build());
    assert_eq!(of_parquet(&file, &all).expect("read").items, wanted);
    assert_eq!(
        of_arrow(&arrow_file(&batches, IpcWriteOptions::default()), &all).expect("read").items,
        wanted
    );
    assert_eq!(
        of_arrow(&arrow_stream(&batches, IpcWriteOptions::default()), &all).expect("read").items,
        wanted
    );
}

#[test]
fn dictionaries_may_grow_and_be_replaced() {
    let part = |texts: &[&str]| {
        let mut builder = StringDictionaryBuilder::<UInt16Type>::new();
        texts.iter().for_each(|text| builder.append_value(text));
        batch([("k", Arc::new(builder.finish()) as ArrayRef)])
    };
    let check = |batches: &[RecordBatch], handling, wanted: &[&str]| {
        let options = IpcWriteOptions::default().with_dictionary_handling(handling);
        let items = of_arrow(&arrow_stream(batches, options), &Selection::default()).expect("read").items;
        assert_eq!(items.iter().flatten().collect::<Vec<_>>(), wanted);
    };
    let grown = [part(&["x", "y"]), part(&["x", "y", "z"])];
    check(&grown, DictionaryHandling::Delta, &["x", "y", "x", "y", "z"]);
    let replaced = [part(&["x", "y"]), part(&["p", "q"])];
    check(&replaced, DictionaryHandling::Resend, &["x", "y", "p", "q"]);
}

#[test]
fn long_views_lie_in_several_buffers() {
    let mut builder = StringViewBuilder::new().with_fixed_block_size(64);
    let texts: Vec<String> = (0..50).map(|number| format!("a long text of the number {number}")).collect();
    texts.iter().for_each(|text| builder.append_value(text));
    let bytes =
        arrow_file(&[batch([("k", Arc::new(builder.finish()) as ArrayRef)])], IpcWriteOptions::default());
    let items = of_arrow(&bytes, &Selection::default()).expect("read").items;
    assert_eq!(items.into_iter().flatten().collect::<Vec<_>>(), texts);
}

#[test]
fn times_are_read_whatever_their_unit() {
    for name in ["ms", "us", "ns", "UTC"] {
        let selection = Selection { time: Some(name.to_owned()), ..column("i64") };
        for seen in [
            of_arrow(&arrow_file(&[everything()], IpcWriteOptions::default()), &selection),
            of_parquet(&parquet_file(&[everything()], WriterProperties::default()), &selection),
        ] {
            let times = seen.expect("read").times;
            assert_eq!((times[0], times[1]), (Some(1_700_000_000_000), None), "{name}");
        }
    }
    let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(three(1_700_000_000, 150_000_000_000)));
    let bytes = arrow_file(&[batch([("s", seconds)])], IpcWriteOptions::default());
    let selection = Selection { time: Some("s".to_owned()), ..column("s") };
    let times = of_arrow(&bytes, &selection).expect("read").times;
    assert_eq!(times, [Some(1_700_000_000_000), None, Some(150_000_000_000_000)]);
}

#[test]
fn columns_with_parts_are_refused() {
    for name in ["list", "large", "struct"] {
        for seen in [
            of_arrow(&arrow_file(&[everything()], IpcWriteOptions::default()), &column(name)),
            of_parquet(&parquet_file(&[everything()], WriterProperties::default()), &column(name)),
        ] {
            let error = seen.err().expect("refused").to_string();
            assert!(error.contains("does not hold plain values"), "{name}: {error}");
        }
    }
}

#[test]
fn damaged_arrow_bytes_are_errors_and_never_panics() {
    let small = batch(
        cases()
            .into_iter()
            .filter(|(name, ..)| ["text", "text view", "dictionary", "i64"].contains(name))
            .map(|(name, array, _)| (name, array)),
    );
    let selections = ["text", "text view", "dictionary", "i64"].map(column);
    for bytes in file_and_packed_stream(&small) {
        for len in 0..bytes.len() {
            selections.iter().for_each(|selection| drop(of_arrow(&bytes[..len], selection)));
        }
        for at in 0..bytes.len() {
            for value in [0x00, 0x01, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                selections.iter().for_each(|selection| drop(of_arrow(&changed, selection)));
            }
        }
    }
}

fn file_and_packed_stream(batch: &RecordBatch) -> [Vec<u8>; 2] {
    let packed = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME));
    let batches = std::slice::from_ref(batch);
    [arrow_file(batches, IpcWriteOptions::default()), arrow_stream(batches, packed.expect("known"))]
}
