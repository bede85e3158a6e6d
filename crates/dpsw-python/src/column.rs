//! A column of Python values: items, as the library takes them.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, ArrayAccessor, ArrayRef};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use dpsw::error::IngestError;
use dpsw::{Batch, Kind};

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
    /// The items of an Arrow array; negative integers as the large numbers that have their bits.
    pub(crate) fn new(array: &ArrayRef) -> Result<Self, Fault> {
        let values = match array.data_type() {
            DataType::Null => Values::Nulls(array.len()),
            DataType::Dictionary(..) => return Self::decoded(array),
            of if is_strings(of) => Values::Strings(array.clone()),
            _ => Values::Integers(integers(array)?),
        };
        Ok(Self { values, nulls: array.nulls().filter(|nulls| 0 < nulls.null_count()).cloned() })
    }

    /// The first row that has a negative integer, if they are signed ones.
    pub(crate) fn first_negative(&self) -> Option<usize> {
        let Values::Integers(values) = &self.values else { return None };
        let is_negative = |value: u64| value.cast_signed() < 0;
        // One pass without branches: nearly all arrays have none.
        if !values.iter().fold(false, |any, value| any | is_negative(*value)) {
            return None;
        }
        let is_there = |row: usize| self.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        (0..values.len()).find(|row| is_negative(values[*row]) && is_there(*row))
    }

    /// The same with nulls in place of negative integers.
    pub(crate) fn without_negatives(self) -> Self {
        let Values::Integers(values) = &self.values else { return self };
        let others: NullBuffer = values.iter().map(|value| 0 <= value.cast_signed()).collect();
        Self { nulls: NullBuffer::union(self.nulls.as_ref(), Some(&others)), ..self }
    }

    /// The rows in another order.
    pub(crate) fn ordered(self, order: &[usize]) -> Self {
        let nulls = self.nulls.map(|nulls| order.iter().map(|row| nulls.is_valid(*row)).collect());
        let values = match self.values {
            Values::Integers(values) => Values::Integers(order.iter().map(|row| values[*row]).collect()),
            Values::Strings(values) => Values::Coded(order.to_vec(), values),
            Values::Coded(places, values) => {
                Values::Coded(order.iter().map(|row| places[*row]).collect(), values)
            }
            nulls @ Values::Nulls(_) => nulls,
        };
        Self { values, nulls }
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
