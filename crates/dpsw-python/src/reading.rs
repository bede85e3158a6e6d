//! From Python values to columns, and what happens to an item that is none.

use std::sync::Arc;

use arrow_array::builder::LargeBinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt32Type};
use arrow_array::{Array, ArrayRef, UInt64Array};
use arrow_schema::DataType;
use dpsw::Kind;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyList, PyString, PyTuple};
use pyo3_arrow::PyArray;
use pyo3_arrow::input::AnyArray;

use crate::column::Column;
use crate::fault::Fault;

/// How items are read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reading {
    /// The kind of the stream, where there is one; else that of the first item.
    pub(crate) kind: Option<Kind>,
    /// The number of the first row, for errors.
    pub(crate) first: usize,
    /// Whether an item that is none becomes a null item in its place; else nothing is taken.
    pub(crate) skips: bool,
    /// What is read, for errors: `item` if nothing is said.
    pub(crate) what: Option<&'static str>,
}

impl Reading {
    /// The items of a list, of letters of fixed width, or of Arrow arrays.
    pub(crate) fn columns(self, items: &Bound<'_, PyAny>) -> Result<Vec<Column>, Fault> {
        if let Ok(list) = items.cast::<PyList>() {
            return Ok(vec![self.list(list)?]);
        }
        if let Ok((letters, width, count)) = items.extract::<(Option<PyArray>, usize, usize)>() {
            return Ok(vec![self.letters(letters.as_ref().map(PyArray::array), width, count)?]);
        }
        arrays(items)?.iter().map(|array| self.array(array)).collect()
    }

    /// The same as one column.
    pub(crate) fn column(self, items: &Bound<'_, PyAny>) -> Result<Column, Fault> {
        if items.is_instance_of::<PyList>() || items.is_instance_of::<PyTuple>() {
            return Ok(self.columns(items)?.remove(0));
        }
        let arrays = arrays(items)?;
        let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
        match &arrays[..] {
            [] => Column::new(&arrow_array::new_null_array(&DataType::Null, 0)),
            arrays => {
                let one = arrow_select::concat::concat(arrays);
                self.array(&one.map_err(|error| Fault::input(error.to_string()))?)
            }
        }
    }

    /// The items of an Arrow array.
    pub(crate) fn array(self, array: &ArrayRef) -> Result<Column, Fault> {
        let column = Column::new(array)?;
        let of = match array.data_type() {
            DataType::Dictionary(_, values) => values,
            of => of,
        };
        match column.first_negative().filter(|_| of.is_signed_integer()) {
            None => Ok(column),
            Some(_) if self.skips => Ok(column.without_negatives()),
            Some(row) => Err(Fault::ingest(format!(
                "{} {} is below 0: integers run from 0 to 2^64 - 1; shift them, or turn them into text; nothing was taken",
                self.what(),
                self.first + row
            ))),
        }
    }

    pub(crate) fn list(self, list: &Bound<'_, PyList>) -> Result<Column, Fault> {
        let mut there = list.iter().filter(|item| !item.is_none());
        let first = there.next().map(|item| if is_string(&item) { Kind::Bytes } else { Kind::Integers });
        match first.map(|first| self.kind.unwrap_or(first)) {
            None => Column::new(&arrow_array::new_null_array(&DataType::Null, list.len())),
            Some(Kind::Bytes) => self.strings(list),
            Some(Kind::Integers) => self.integers(list),
        }
    }

    fn strings(self, list: &Bound<'_, PyList>) -> Result<Column, Fault> {
        let mut strings = LargeBinaryBuilder::with_capacity(list.len(), 16 * list.len());
        for (index, item) in list.iter().enumerate() {
            match bytes(&item) {
                Some(bytes) => strings.append_value(bytes),
                None if item.is_none() || self.skips => strings.append_null(),
                None => return Err(self.no_item(index, &item, "text or bytes")),
            }
        }
        let strings: ArrayRef = Arc::new(strings.finish());
        Column::new(&strings)
    }

    fn integers(self, list: &Bound<'_, PyList>) -> Result<Column, Fault> {
        let integer = |(index, item): (usize, Bound<'_, PyAny>)| match item.extract::<u64>() {
            Ok(value) if !item.is_instance_of::<PyBool>() => Ok(Some(value)),
            _ if item.is_none() || self.skips => Ok(None),
            _ => Err(self.no_item(index, &item, "an integer from 0 to 2^64 - 1")),
        };
        let integers = list.iter().enumerate().map(integer).collect::<Result<Vec<_>, _>>()?;
        let integers: ArrayRef = Arc::new(UInt64Array::from(integers));
        Column::new(&integers)
    }

    /// Items of fixed width that lie behind each other: bytes, or letters of four bytes; zeros at the end do not count.
    fn letters(self, letters: Option<&ArrayRef>, width: usize, count: usize) -> Result<Column, Fault> {
        let mut strings = LargeBinaryBuilder::with_capacity(count, width * count);
        match letters.map(|letters| (letters, letters.data_type())) {
            Some((letters, DataType::UInt8)) => {
                let letters = letters.as_primitive::<UInt8Type>().values();
                letters.chunks_exact(width).for_each(|item| strings.append_value(&item[..used(item)]));
            }
            Some((letters, DataType::UInt32)) => {
                let letters = letters.as_primitive::<UInt32Type>().values();
                for (index, item) in letters.chunks_exact(width).enumerate() {
                    let text = item[..used(item)].iter().map(|&letter| char::from_u32(letter));
                    match text.collect::<Option<String>>() {
                        Some(text) => strings.append_value(text),
                        None if self.skips => strings.append_null(),
                        None => return Err(self.no_text(index)),
                    }
                }
            }
            _ => (0..count).for_each(|_| strings.append_value([])),
        }
        let strings: ArrayRef = Arc::new(strings.finish());
        Column::new(&strings)
    }

    fn what(self) -> &'static str {
        self.what.unwrap_or("item")
    }

    /// What became of the others, and what to do.
    fn outcome(self) -> &'static str {
        if self.what.is_none() { "; nothing was taken; on_error=\"skip\" leaves such items out" } else { "" }
    }

    fn no_text(self, index: usize) -> Fault {
        let (what, outcome) = (self.what(), self.outcome());
        Fault::input(format!(
            "{what} {} is text that cannot be written as UTF-8{outcome}",
            self.first + index
        ))
    }

    /// The item itself may end in a log: its type says enough.
    fn no_item(self, index: usize, item: &Bound<'_, PyAny>, wanted: &str) -> Fault {
        if item.is_instance_of::<PyString>() && wanted.starts_with("text") {
            return self.no_text(index);
        }
        let class = item.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
        let hint = match item.extract::<f64>() {
            Ok(value) if value.is_nan() => " (NaN; a missing item is None)",
            Ok(value) if value < 0.0 => " below 0",
            Ok(value) if class == "int" && 1e19 < value => " of 2^64 or more",
            _ if class == "NAType" => " (a missing item is None)",
            _ => "",
        };
        let (what, outcome) = (self.what(), self.outcome());
        Fault::input(format!(
            "{what} {} is of type {class}{hint}, where {wanted} is wanted: {what}s of a stream are all integers, or all text or \
            bytes{outcome}",
            self.first + index
        ))
    }
}

/// The arrays that an object hands over.
pub(crate) fn arrays(object: &Bound<'_, PyAny>) -> Result<Vec<ArrayRef>, Fault> {
    let arrays = object.extract::<AnyArray>()?.into_reader()?;
    arrays.map(|array| array.map_err(|error| Fault::input(error.to_string()))).collect()
}

/// The bytes of a text or of bytes.
fn bytes<'a>(item: &'a Bound<'_, PyAny>) -> Option<&'a [u8]> {
    match item.cast::<PyString>() {
        Ok(text) => text.to_str().ok().map(str::as_bytes),
        Err(_) => item.cast::<PyBytes>().ok().map(PyBytesMethods::as_bytes),
    }
}

/// How long an item is without the zeros at its end.
fn used<T: Copy + PartialEq + Default>(item: &[T]) -> usize {
    item.iter().rposition(|letter| *letter != T::default()).map_or(0, |last| last + 1)
}

fn is_string(item: &Bound<'_, PyAny>) -> bool {
    item.is_instance_of::<PyString>() || item.is_instance_of::<PyBytes>()
}
