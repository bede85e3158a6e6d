//! Parquet files, by the format's own column reader.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use parquet::basic::{self, ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use crate::args::TimeUnit;
use crate::read::columnar::rows::{Cells, Column, Rows};
use crate::read::columnar::value::{Ticks, Value, half};
use crate::read::columnar::{Selection, damaged, unsuited};
use crate::read::columns::Described;

/// Reads a file; `rows` says whether anyone still listens.
pub(super) fn read(
    file: File,
    selection: &Selection,
    progress: &AtomicU64,
    mut rows: impl FnMut(Rows) -> bool,
) -> Result<()> {
    let bytes = file.metadata()?.len();
    let reader = SerializedFileReader::new(file).map_err(damaged)?;
    let metadata = reader.metadata().file_metadata();
    let bytes_per_row = bytes as f64 / metadata.num_rows().max(1) as f64;
    let schema = metadata.schema_descr();
    let mut columns = Vec::new();
    for (root, field) in schema.root_schema().get_fields().iter().enumerate() {
        let leaf = leaf(schema, root, field.name());
        let shape = leaf.map_or("parts, which cannot be items", |leaf| leaf.shape(schema));
        columns.push(Described { name: field.name().to_owned(), shape: shape.to_owned() });
    }
    let leaves = selection.find(&columns)?.try_map(|root| leaf(schema, root, &columns[root].name))?;
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index).map_err(damaged)?;
        let mut chunks = leaves.try_map(|leaf| Chunk::new(&*group, leaf))?;
        let count = usize::try_from(group.metadata().num_rows()).map_err(damaged)?;
        let is_heard = chunks.hand_over(count, |some| {
            progress.fetch_add((bytes_per_row * some.len() as f64) as u64, Ordering::Relaxed);
            rows(some)
        })?;
        if !is_heard {
            break;
        }
    }
    Ok(())
}

/// A column of the schema, and what its values mean.
#[derive(Debug, Clone, Copy)]
struct Leaf {
    index: usize,
    meaning: Meaning,
}

impl Leaf {
    /// What the column holds, in words.
    fn shape(self, schema: &SchemaDescriptor) -> &'static str {
        let column = schema.column(self.index);
        match (self.meaning, column.physical_type()) {
            (Meaning::Days | Meaning::Instant { .. }, _) | (_, Type::INT96) => "time",
            (Meaning::Clock(_), _) => "time of day",
            (Meaning::Half | Meaning::Decimal { .. }, _) | (_, Type::FLOAT | Type::DOUBLE) => {
                "number with a fraction"
            }
            (_, Type::BOOLEAN) => "true or false",
            (_, Type::INT32 | Type::INT64) => "whole number",
            (_, Type::BYTE_ARRAY) if is_text(&column) => "text",
            (_, Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY) => "bytes",
        }
    }
}

fn is_text(column: &ColumnDescriptor) -> bool {
    column.converted_type() == ConvertedType::UTF8 || column.logical_type_ref() == Some(&LogicalType::String)
}

/// The leaf of a root column that has no parts.
fn leaf(schema: &SchemaDescriptor, root: usize, name: &str) -> Result<Leaf> {
    let mut columns = 0..schema.num_columns();
    let index = columns.find(|index| is_plain(schema, *index, root)).ok_or_else(|| unsuited(name))?;
    let meaning = Meaning::new(&schema.column(index)).ok_or_else(|| unsuited(name))?;
    Ok(Leaf { index, meaning })
}

/// Whether a leaf is all of this root column.
fn is_plain(schema: &SchemaDescriptor, index: usize, root: usize) -> bool {
    let column = schema.column(index);
    let is_root = schema.get_column_root_idx(index) == root && column.path().parts().len() == 1;
    is_root && column.max_rep_level() == 0
}

/// The meaning of the stored values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Stored,
    Unsigned,
    Half,
    Decimal { scale: i32 },
    Days,
    Clock(TimeUnit),
    Instant { unit: TimeUnit, is_utc: bool },
}

/// What fits into 16 bytes.
const DIGITS_MAX: i32 = 38;

impl Meaning {
    /// `None` for decimals that are too long.
    fn new(column: &ColumnDescriptor) -> Option<Self> {
        let meaning = match column.logical_type_ref() {
            Some(LogicalType::Integer(integer)) if !integer.is_signed => Self::Unsigned,
            Some(LogicalType::Float16) => Self::Half,
            Some(LogicalType::Decimal(decimal)) => Self::Decimal { scale: decimal.scale },
            Some(LogicalType::Date) => Self::Days,
            Some(LogicalType::Time(time)) => Self::Clock(unit(time.unit)),
            Some(LogicalType::Timestamp(time)) => {
                Self::Instant { unit: unit(time.unit), is_utc: time.is_adjusted_to_u_t_c }
            }
            Some(_) => Self::Stored,
            None => Self::converted(column),
        };
        let is_long = matches!(meaning, Self::Decimal { .. }) && DIGITS_MAX < column.type_precision();
        (!is_long).then_some(meaning)
    }

    /// The older way to say it.
    fn converted(column: &ColumnDescriptor) -> Self {
        match column.converted_type() {
            ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::UINT_64 => Self::Unsigned,
            ConvertedType::DECIMAL => Self::Decimal { scale: column.type_scale() },
            ConvertedType::DATE => Self::Days,
            ConvertedType::TIME_MILLIS => Self::Clock(TimeUnit::Millis),
            ConvertedType::TIME_MICROS => Self::Clock(TimeUnit::Micros),
            ConvertedType::TIMESTAMP_MILLIS => Self::Instant { unit: TimeUnit::Millis, is_utc: true },
            ConvertedType::TIMESTAMP_MICROS => Self::Instant { unit: TimeUnit::Micros, is_utc: true },
            _ => Self::Stored,
        }
    }

    fn of_32_bits(self, stored: i32) -> Value<'static> {
        match self {
            Self::Unsigned => Value::Unsigned((stored as u32).into()),
            _ => self.of_64_bits(stored.into()),
        }
    }

    fn of_64_bits(self, stored: i64) -> Value<'static> {
        match self {
            Self::Stored | Self::Half => Value::Signed(stored),
            Self::Unsigned => Value::Unsigned(stored as u64),
            Self::Decimal { scale } => Value::Decimal { unscaled: stored.into(), scale },
            Self::Days => Value::Days(stored),
            Self::Clock(unit) => Value::Clock(Ticks { count: stored, unit }),
            Self::Instant { unit, is_utc } => Value::Instant { ticks: Ticks { count: stored, unit }, is_utc },
        }
    }

    fn of_bytes(self, stored: &[u8]) -> Value<'_> {
        match (self, stored) {
            (Self::Decimal { scale }, _) => Value::Decimal { unscaled: big_endian(stored), scale },
            (Self::Half, &[low, high]) => Value::Single(half(u16::from_le_bytes([low, high]))),
            _ => Value::Bytes(stored),
        }
    }
}

fn unit(unit: basic::TimeUnit) -> TimeUnit {
    match unit {
        basic::TimeUnit::MILLIS => TimeUnit::Millis,
        basic::TimeUnit::MICROS => TimeUnit::Micros,
        basic::TimeUnit::NANOS => TimeUnit::Nanos,
    }
}

/// A signed number; what lies beyond 16 bytes repeats the sign.
fn big_endian(bytes: &[u8]) -> i128 {
    let sign = if bytes.first().is_some_and(|first| 128 <= *first) { -1 } else { 0 };
    bytes.iter().fold(sign, |sum, byte| sum << 8 | i128::from(*byte))
}

/// A column of a row group.
struct Chunk {
    reader: ColumnReader,
    meaning: Meaning,
}

impl Chunk {
    fn new(group: &dyn RowGroupReader, leaf: Leaf) -> Result<Self> {
        Ok(Self { reader: group.get_column_reader(leaf.index).map_err(damaged)?, meaning: leaf.meaning })
    }
}

impl Column for Chunk {
    fn read(&mut self, count: usize, cells: &mut impl Cells) -> Result<()> {
        let meaning = self.meaning;
        match &mut self.reader {
            ColumnReader::BoolColumnReader(reader) => each(reader, count, cells, |v| Value::Bool(*v)),
            ColumnReader::Int32ColumnReader(reader) => each(reader, count, cells, |v| meaning.of_32_bits(*v)),
            ColumnReader::Int64ColumnReader(reader) => each(reader, count, cells, |v| meaning.of_64_bits(*v)),
            ColumnReader::Int96ColumnReader(reader) => each(reader, count, cells, |v| Value::Instant {
                ticks: Ticks { count: v.to_nanos(), unit: TimeUnit::Nanos },
                is_utc: false,
            }),
            ColumnReader::FloatColumnReader(reader) => each(reader, count, cells, |v| Value::Single(*v)),
            ColumnReader::DoubleColumnReader(reader) => each(reader, count, cells, |v| Value::Double(*v)),
            ColumnReader::ByteArrayColumnReader(reader) => {
                each(reader, count, cells, |v| meaning.of_bytes(v.data()))
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                each(reader, count, cells, |v| meaning.of_bytes(v.data()))
            }
        }
    }
}

/// Hands over the next values of a column without lists: level 0 of a definition is a null.
fn each<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    count: usize,
    cells: &mut impl Cells,
    value: impl Fn(&T::T) -> Value<'_>,
) -> Result<()> {
    let mut stored = Vec::with_capacity(count);
    let mut levels = Vec::new();
    let (records, _, _) =
        reader.read_records(count, Some(&mut levels), None, &mut stored).map_err(damaged)?;
    if records != count {
        return Err(damaged("a column is shorter than it should be"));
    }
    if levels.is_empty() {
        for stored in &stored {
            cells.push(value(stored));
        }
        return Ok(());
    }
    let mut stored = stored.iter();
    for level in levels {
        let next = if level == 0 { None } else { stored.next() };
        cells.push(next.map_or(Value::Null, &value));
    }
    Ok(())
}
