//! A column of Python values: items, as the library takes them.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::LargeBinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayAccessor, ArrayRef, UInt64Array};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use dpsw::error::IngestError;
use dpsw::{Batch, Kind};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyList, PyString};

use crate::fault::Fault;

/// Items of one kind; integers and strings of Arrow are not copied.
pub(crate) struct Column {
    values: Values,
    /// Which items are there; the others take their places and count nowhere.
    nulls: Option<NullBuffer>,
}

enum Values {
    Integers(ScalarBuffer<u64>),
    /// Any array of strings.
    Strings(ArrayRef),
    /// Places in an array of strings.
    Coded(Vec<usize>, ArrayRef),
    Nulls(usize),
}

/// What goes with the items of a column, row by row.
#[derive(Clone, Copy, Default)]
pub(crate) struct Beside<'a> {
    pub(crate) times: Option<&'a [u64]>,
    pub(crate) users: Option<&'a [u64]>,
}

/// So many strings are looked up at once: their places stay in the cache.
const AT_ONCE: usize = 4096;

impl Column {
    /// The items of an Arrow array.
    pub(crate) fn new(array: &ArrayRef) -> Result<Self, Fault> {
        let column = Self::any(array)?;
        let of = match array.data_type() {
            DataType::Dictionary(_, values) => values,
            of => of,
        };
        if of.is_signed_integer() { column.not_negative() } else { Ok(column) }
    }

    /// The same where integers may be negative: users are told apart, and that is all.
    pub(crate) fn any(array: &ArrayRef) -> Result<Self, Fault> {
        let values = match array.data_type() {
            DataType::Null => Values::Nulls(array.len()),
            DataType::Dictionary(..) => return Self::decoded(array),
            of if is_strings(of) => Values::Strings(array.clone()),
            _ => Values::Integers(integers(array)?),
        };
        Ok(Self { values, nulls: array.nulls().filter(|nulls| 0 < nulls.null_count()).cloned() })
    }

    fn not_negative(self) -> Result<Self, Fault> {
        let Values::Integers(values) = &self.values else { return Ok(self) };
        let is_negative = |value: u64| value.cast_signed() < 0;
        // One pass without branches: nearly all arrays have none.
        if !values.iter().fold(false, |any, value| any | is_negative(*value)) {
            return Ok(self);
        }
        let is_there = |row: usize| self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        match (0..values.len()).find(|row| is_negative(values[*row]) && is_there(*row)) {
            None => Ok(self),
            Some(row) => Err(Fault::ingest(format!(
                "item {row} is {}: integer items run from 0 to 2^64 - 1; shift them, or turn them into text; nothing was taken",
                values[row].cast_signed()
            ))),
        }
    }

    fn decoded(array: &ArrayRef) -> Result<Self, Fault> {
        let coded = array.as_any_dictionary();
        let nulls = array.logical_nulls().filter(|nulls| 0 < nulls.null_count());
        let all = coded.values();
        if all.is_empty() {
            return Ok(Self { values: Values::Nulls(array.len()), nulls: None });
        }
        let places = coded.normalized_keys();
        let values = if is_strings(all.data_type()) {
            Values::Coded(places, all.clone())
        } else {
            let all = integers(all)?;
            Values::Integers(places.iter().map(|place| all[*place]).collect())
        };
        Ok(Self { values, nulls })
    }

    /// The items of a list, of which all are of one kind or `None`.
    pub(crate) fn of_list(list: &Bound<'_, PyList>, first: usize) -> Result<Self, Fault> {
        let mut items = list.iter();
        match items.find(|item| !item.is_none()) {
            None => Ok(Self { values: Values::Nulls(list.len()), nulls: None }),
            Some(item) if is_string(&item) => Self::of_strings(list, first),
            Some(_) => Self::of_integers(list, first),
        }
    }

    /// Items of fixed width that lie behind each other: bytes, or letters of four bytes; zeros at the end do not count.
    pub(crate) fn of_letters(letters: Option<&ArrayRef>, width: usize, count: usize) -> Result<Self, Fault> {
        let mut strings = LargeBinaryBuilder::with_capacity(count, width * count);
        match letters.map(|letters| (letters, letters.data_type())) {
            Some((letters, DataType::UInt8)) => {
                let letters = letters.as_primitive::<UInt8Type>().values();
                letters.chunks_exact(width).for_each(|item| strings.append_value(&item[..used(item)]));
            }
            Some((letters, DataType::UInt32)) => {
                for item in letters.as_primitive::<UInt32Type>().values().chunks_exact(width) {
                    let text = item[..used(item)].iter().map(|&letter| char::from_u32(letter));
                    let text = text.collect::<Option<String>>();
                    strings
                        .append_value(text.ok_or_else(|| Fault::input("a text of the array is not valid"))?);
                }
            }
            _ => (0..count).for_each(|_| strings.append_value([])),
        }
        let strings: ArrayRef = Arc::new(strings.finish());
        Self::new(&strings)
    }

    fn of_strings(list: &Bound<'_, PyList>, first: usize) -> Result<Self, Fault> {
        let mut strings = LargeBinaryBuilder::with_capacity(list.len(), 16 * list.len());
        for (index, item) in list.iter().enumerate() {
            if let Ok(text) = item.cast::<PyString>() {
                strings.append_value(text.to_str()?);
            } else if let Ok(bytes) = item.cast::<PyBytes>() {
                strings.append_value(bytes.as_bytes());
            } else if item.is_none() {
                strings.append_null();
            } else {
                return Err(no_item(first + index, &item, "text or bytes"));
            }
        }
        let strings: ArrayRef = Arc::new(strings.finish());
        Self::new(&strings)
    }

    fn of_integers(list: &Bound<'_, PyList>, first: usize) -> Result<Self, Fault> {
        let integer = |(index, item): (usize, Bound<'_, PyAny>)| match item.extract::<u64>() {
            _ if item.is_none() => Ok(None),
            Ok(value) if !item.is_instance_of::<PyBool>() => Ok(Some(value)),
            _ => Err(no_item(first + index, &item, "an integer from 0 to 2^64 - 1")),
        };
        let integers = list.iter().enumerate().map(integer).collect::<Result<Vec<_>, _>>()?;
        let integers: ArrayRef = Arc::new(UInt64Array::from(integers));
        Self::new(&integers)
    }

    pub(crate) fn len(&self) -> usize {
        match &self.values {
            Values::Integers(values) => values.len(),
            Values::Strings(values) => values.len(),
            Values::Coded(places, _) => places.len(),
            Values::Nulls(len) => *len,
        }
    }

    /// `None` where no item is there.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match &self.values {
            Values::Integers(_) => Some(Kind::Integers),
            Values::Strings(_) | Values::Coded(..) => Some(Kind::Bytes),
            Values::Nulls(_) => None,
        }
    }

    /// Hands all items over in order.
    pub(crate) fn feed(
        &self,
        beside: Beside<'_>,
        take: &mut impl FnMut(Batch<'_>) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let coded = self.coded();
        for (rows, is_there) in self.runs() {
            match is_there {
                true => self.feed_run(rows, &coded, beside, take)?,
                false => take(beside.with(Batch::nulls(rows.len()), rows))?,
            }
        }
        Ok(())
    }

    /// All items as batches; strings were looked up before.
    pub(crate) fn batches<'a>(
        &'a self,
        slices: &'a [&'a [u8]],
        beside: Beside<'a>,
        batches: &mut Vec<Batch<'a>>,
    ) {
        for (rows, is_there) in self.runs() {
            let batch = match &self.values {
                Values::Integers(values) if is_there => Batch::integers(&values[rows.clone()]),
                Values::Strings(_) | Values::Coded(..) if is_there => Batch::bytes(&slices[rows.clone()]),
                _ => Batch::nulls(rows.len()),
            };
            batches.push(beside.with(batch, rows));
        }
    }

    /// All strings; nothing for integers.
    pub(crate) fn slices(&self) -> Vec<&[u8]> {
        let mut slices = Vec::new();
        self.look_up(0..self.len(), &self.coded(), &mut slices);
        slices
    }

    /// Runs of rows, and whether their items are there.
    fn runs(&self) -> Vec<(Range<usize>, bool)> {
        let (len, is_there) = (self.len(), self.kind().is_some());
        let Some(nulls) = self.nulls.as_ref().filter(|_| is_there) else { return vec![(0..len, is_there)] };
        let (mut runs, mut done) = (Vec::new(), 0);
        for (start, end) in nulls.valid_slices() {
            runs.extend([(done..start, false), (start..end, true)]);
            done = end;
        }
        runs.push((done..len, false));
        runs.retain(|(rows, _)| !rows.is_empty());
        runs
    }

    /// Rows without nulls.
    fn feed_run(
        &self,
        rows: Range<usize>,
        coded: &[&[u8]],
        beside: Beside<'_>,
        take: &mut impl FnMut(Batch<'_>) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        match &self.values {
            Values::Nulls(len) => take(beside.with(Batch::nulls(*len), rows)),
            Values::Integers(values) => take(beside.with(Batch::integers(&values[rows.clone()]), rows)),
            Values::Strings(_) | Values::Coded(..) => {
                let mut slices = Vec::with_capacity(AT_ONCE);
                for start in rows.clone().step_by(AT_ONCE) {
                    let rows = start..rows.end.min(start + AT_ONCE);
                    slices.clear();
                    self.look_up(rows.clone(), coded, &mut slices);
                    take(beside.with(Batch::bytes(&slices), rows))?;
                }
                Ok(())
            }
        }
    }

    /// The strings that places stand for.
    fn coded(&self) -> Vec<&[u8]> {
        let mut coded = Vec::new();
        if let Values::Coded(_, values) = &self.values {
            look_up(values, 0..values.len(), &mut coded);
        }
        coded
    }

    fn look_up<'a>(&'a self, rows: Range<usize>, coded: &[&'a [u8]], slices: &mut Vec<&'a [u8]>) {
        match &self.values {
            Values::Strings(values) => look_up(values, rows, slices),
            Values::Coded(places, _) => slices.extend(places[rows].iter().map(|place| coded[*place])),
            Values::Integers(_) | Values::Nulls(_) => {}
        }
    }

    /// A number for the user of each row: integers as they are, names by a hash.
    pub(crate) fn users(&self, hash: impl Fn(&[u8]) -> u64) -> Result<Vec<u64>, Fault> {
        let missing = match &self.nulls {
            Some(nulls) => nulls.iter().position(|is_there| !is_there),
            None => (self.kind().is_none() && 0 < self.len()).then_some(0),
        };
        if let Some(row) = missing {
            return Err(Fault::ingest(format!("row {row} has no user; nothing was taken")));
        }
        Ok(match &self.values {
            Values::Integers(values) => values.to_vec(),
            _ => self.slices().into_iter().map(hash).collect(),
        })
    }

    /// The items themselves, none of which may be missing.
    pub(crate) fn keys(&self) -> Result<dpsw::Keys, Fault> {
        if self.nulls.is_some() || (self.kind().is_none() && 0 < self.len()) {
            return Err(Fault::parameter("a key of the list is missing (None); leave it out"));
        }
        Ok(match &self.values {
            Values::Integers(values) => dpsw::Keys::integers(values.iter().copied()),
            _ => dpsw::Keys::bytes(self.slices()),
        })
    }
}

impl<'a> Beside<'a> {
    /// What goes with some rows.
    fn with<'b>(self, batch: Batch<'b>, rows: Range<usize>) -> Batch<'b>
    where
        'a: 'b,
    {
        let batch = match self.times {
            Some(times) => batch.at(&times[rows.clone()]),
            None => batch,
        };
        match self.users {
            Some(users) => batch.by(&users[rows]),
            None => batch,
        }
    }
}

/// The strings of some rows of an array, whatever its layout.
fn look_up<'a>(array: &'a ArrayRef, rows: Range<usize>, slices: &mut Vec<&'a [u8]>) {
    match array.data_type() {
        DataType::Utf8 => texts(&array.as_string::<i32>(), rows, slices),
        DataType::LargeUtf8 => texts(&array.as_string::<i64>(), rows, slices),
        DataType::Utf8View => texts(&array.as_string_view(), rows, slices),
        DataType::Binary => bytes(&array.as_binary::<i32>(), rows, slices),
        DataType::LargeBinary => bytes(&array.as_binary::<i64>(), rows, slices),
        DataType::BinaryView => bytes(&array.as_binary_view(), rows, slices),
        _ => bytes(&array.as_fixed_size_binary(), rows, slices),
    }
}

fn texts<'a>(array: &impl ArrayAccessor<Item = &'a str>, rows: Range<usize>, slices: &mut Vec<&'a [u8]>) {
    slices.extend(rows.map(|row| array.value(row).as_bytes()));
}

fn bytes<'a>(array: &impl ArrayAccessor<Item = &'a [u8]>, rows: Range<usize>, slices: &mut Vec<&'a [u8]>) {
    slices.extend(rows.map(|row| array.value(row)));
}

fn is_strings(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
    )
}

/// Integers of any width; negative ones as the large numbers that have their bits.
fn integers(array: &ArrayRef) -> Result<ScalarBuffer<u64>, Fault> {
    match array.data_type() {
        DataType::UInt64 => Ok(array.as_primitive::<UInt64Type>().values().clone()),
        DataType::Int64 => {
            let values = array.as_primitive::<Int64Type>().values();
            Ok(ScalarBuffer::new(values.inner().clone(), 0, values.len()))
        }
        DataType::UInt8 => Ok(widened::<UInt8Type>(array)),
        DataType::UInt16 => Ok(widened::<UInt16Type>(array)),
        DataType::UInt32 => Ok(widened::<UInt32Type>(array)),
        DataType::Int8 => Ok(widened::<Int8Type>(array)),
        DataType::Int16 => Ok(widened::<Int16Type>(array)),
        DataType::Int32 => Ok(widened::<Int32Type>(array)),
        other => {
            Err(Fault::input(format!("items must be integers, text or bytes, got {}", described(other))))
        }
    }
}

fn widened<T: ArrowPrimitiveType>(array: &ArrayRef) -> ScalarBuffer<u64>
where
    T::Native: Into<i64>,
{
    let values = array.as_primitive::<T>().values();
    values.iter().map(|&value| value.into().cast_unsigned()).collect()
}

/// A type, and what to do about it.
fn described(of: &DataType) -> String {
    let advice = match of {
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            "; floats are not told apart reliably: round them to integers or turn them into text (pandas makes floats of \
            integers with missing values: use astype(\"Int64\"))"
        }
        DataType::Boolean => "; turn them into text",
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => {
            "; pass times as times=..., or turn them into text to count them"
        }
        DataType::Struct(_) => "; name the column of items: column=...",
        _ => "",
    };
    format!("{of}{advice}")
}

/// How long an item is without the zeros at its end.
fn used<T: Copy + PartialEq + Default>(item: &[T]) -> usize {
    item.iter().rposition(|letter| *letter != T::default()).map_or(0, |last| last + 1)
}

fn is_string(item: &Bound<'_, PyAny>) -> bool {
    item.is_instance_of::<PyString>() || item.is_instance_of::<PyBytes>()
}

/// The item itself is the caller's own, but it may end in a log: its type says enough.
fn no_item(index: usize, item: &Bound<'_, PyAny>, wanted: &str) -> Fault {
    let class = item.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    let hint = match item.extract::<f64>() {
        Ok(value) if value.is_nan() => " (NaN; a missing item is None)",
        Ok(value) if value < 0.0 => " below 0",
        _ => "",
    };
    Fault::input(format!(
        "item {index} is of type {class}{hint}, where {wanted} is wanted: the items of a stream are all integers, or all text or \
        bytes; nothing of this list was taken"
    ))
}
