//! Parquet and Arrow files: up to three columns of them, in batches of rows.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use arrow_array::types::TimestampMillisecondType;
use arrow_array::{Array, BinaryArray, PrimitiveArray, RecordBatch, RecordBatchReader};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Schema, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::arguments::Format;
use crate::fault::Fault;
use crate::input::delimited::{Column, no_column};
use crate::input::reader::{is_stdin, open_file};
use crate::input::{BATCH, Problem, Record, Sink, time};

const ROWS_AT_ONCE: usize = 8192;

/// Which columns were asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub(crate) item: Option<String>,
    pub(crate) time: Option<String>,
    pub(crate) user: Option<String>,
}

/// Where those columns are.
#[derive(Debug, Clone, Copy)]
struct Places {
    item: usize,
    time: Option<usize>,
    user: Option<usize>,
}

impl Places {
    /// Where they are when the others are left out.
    fn projected(self, kept: &BTreeSet<usize>) -> Self {
        let place = |index: usize| kept.range(..index).count();
        Self { item: place(self.item), time: self.time.map(place), user: self.user.map(place) }
    }
}

/// Some rows: their items as bytes, their times, and their users.
pub(crate) struct Rows {
    items: BinaryArray,
    times: Option<Times>,
    users: Option<BinaryArray>,
}

enum Times {
    Millis(PrimitiveArray<TimestampMillisecondType>),
    /// Numbers and texts.
    Text(BinaryArray),
}

impl Rows {
    fn new(batch: &RecordBatch, places: Places) -> Result<Self, ArrowError> {
        let times = places.time.map(|index| Times::new(batch.column(index))).transpose()?;
        let users = places.user.map(|index| text(batch.column(index))).transpose()?;
        Ok(Self { items: text(batch.column(places.item))?, times, users })
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Hands the rows over; the first one has this number.
    pub(crate) fn feed(&self, row: u64, sink: &mut impl Sink) -> Result<()> {
        if self.times.is_none() && self.users.is_none() && self.items.null_count() == 0 {
            return self.feed_items(sink);
        }
        for index in 0..self.len() {
            let time = self.times.as_ref().map(|times| times.get(index));
            let user = self.users.as_ref().map(|users| get(users, index));
            sink.record(row + index as u64, Record { item: get(&self.items, index), time, user })?;
        }
        Ok(())
    }

    fn feed_items(&self, sink: &mut impl Sink) -> Result<()> {
        let mut start = 0;
        while start < self.len() {
            let mut batch: [&[u8]; BATCH] = [&[]; BATCH];
            let len = BATCH.min(self.len() - start);
            for (index, item) in batch[..len].iter_mut().enumerate() {
                *item = self.items.value(start + index);
            }
            sink.items(&batch[..len])?;
            start += len;
        }
        Ok(())
    }
}

impl Times {
    fn new(column: &dyn Array) -> Result<Self, ArrowError> {
        match column.data_type() {
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => {
                let millis = cast(column, &DataType::Timestamp(TimeUnit::Millisecond, None))?;
                Ok(Self::Millis(PrimitiveArray::from(millis.to_data())))
            }
            _ => Ok(Self::Text(text(column)?)),
        }
    }

    fn get(&self, index: usize) -> Result<u64, Problem> {
        match self {
            Self::Millis(times) if times.is_null(index) => Err(Problem::new("the time is null")),
            Self::Millis(times) => {
                u64::try_from(times.value(index)).map_err(|_| Problem::new("the time lies before 1970"))
            }
            Self::Text(times) => time::parse(get(times, index)?),
        }
    }
}

fn get(items: &BinaryArray, index: usize) -> Result<&[u8], Problem> {
    if items.is_null(index) { Err(Problem::new("the value is null")) } else { Ok(items.value(index)) }
}

/// Any plain values as bytes: texts as they are, numbers in decimal.
fn text(column: &dyn Array) -> Result<BinaryArray, ArrowError> {
    let is_binary = matches!(
        column.data_type(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)
    );
    let bytes = if is_binary {
        cast(column, &DataType::Binary)?
    } else {
        cast(&cast(column, &DataType::Utf8)?, &DataType::Binary)?
    };
    Ok(BinaryArray::from(bytes.to_data()))
}

/// Reads a file; `rows` says whether anyone still listens.
pub(crate) fn read(
    path: &Path,
    format: Format,
    selection: &Selection,
    progress: &AtomicU64,
    rows: impl FnMut(Rows) -> bool,
) -> Result<()> {
    match format {
        Format::Arrow if is_stdin(path) => arrow_stream(std::io::stdin().lock(), selection, rows),
        _ if is_stdin(path) => Err(Fault::usage("Parquet cannot be read from a pipe; name a file")),
        Format::Arrow => arrow(open_file(path)?, selection, rows),
        _ => parquet(open_file(path)?, selection, progress, rows),
    }
}

fn parquet(
    file: File,
    selection: &Selection,
    progress: &AtomicU64,
    mut rows: impl FnMut(Rows) -> bool,
) -> Result<()> {
    let bytes = file.metadata()?.len();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(damaged)?;
    let total = builder.metadata().file_metadata().num_rows().max(1) as f64;
    let places = find(builder.schema(), selection)?;
    let kept: BTreeSet<usize> = [Some(places.item), places.time, places.user].into_iter().flatten().collect();
    let places = places.projected(&kept);
    let mask = ProjectionMask::roots(builder.parquet_schema(), kept);
    let reader = builder.with_projection(mask).with_batch_size(ROWS_AT_ONCE).build().map_err(damaged)?;
    for batch in reader {
        let batch = batch.map_err(damaged)?;
        progress.fetch_add((bytes as f64 * batch.num_rows() as f64 / total) as u64, Ordering::Relaxed);
        if !rows(Rows::new(&batch, places).map_err(damaged)?) {
            break;
        }
    }
    Ok(())
}

fn arrow(mut file: File, selection: &Selection, rows: impl FnMut(Rows) -> bool) -> Result<()> {
    let mut magic = Vec::new();
    (&mut file).take(6).read_to_end(&mut magic).context("its start is unreadable")?;
    file.seek(SeekFrom::Start(0))?;
    if magic == b"ARROW1" {
        let reader = arrow_ipc::reader::FileReader::try_new_buffered(file, None).map_err(damaged)?;
        return batches(reader, selection, rows);
    }
    arrow_stream(BufReader::new(file), selection, rows)
}

fn arrow_stream(source: impl Read, selection: &Selection, rows: impl FnMut(Rows) -> bool) -> Result<()> {
    batches(arrow_ipc::reader::StreamReader::try_new(source, None).map_err(damaged)?, selection, rows)
}

fn batches(
    reader: impl RecordBatchReader,
    selection: &Selection,
    mut rows: impl FnMut(Rows) -> bool,
) -> Result<()> {
    let places = find(&reader.schema(), selection)?;
    for batch in reader {
        if !rows(Rows::new(&batch.map_err(damaged)?, places).map_err(damaged)?) {
            break;
        }
    }
    Ok(())
}

fn find(schema: &Schema, selection: &Selection) -> Result<Places> {
    let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let index = |text: &String| match Column::new(text)? {
        Column::Index(index) if index < names.len() => Ok(index),
        Column::Index(_) => Err(no_column(text, &names)),
        Column::Name(name) => {
            names.iter().position(|known| *known == name).ok_or_else(|| no_column(text, &names))
        }
    };
    let item = match &selection.item {
        Some(item) => index(item)?,
        None if names.len() == 1 => 0,
        None => {
            return Err(Fault::usage(format!("which column is the item? Name it with --column: {names:?}")));
        }
    };
    let [time, user] =
        [&selection.time, &selection.user].map(|column| column.as_ref().map(index).transpose());
    Ok(Places { item, time: time?, user: user? })
}

fn damaged(error: impl std::error::Error) -> anyhow::Error {
    Fault::data(format!("it is damaged or not of this format: {error}"))
}
