//! What stands in an Arrow array, read as text, integers or times, one value after the other.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};

use crate::input::rows::{Field, integer};
use crate::input::time;

/// Gives the value at an index; `None` where there is none.
type Get<'a, T> = Box<dyn Fn(usize) -> Option<T> + 'a>;

/// Reads text and bytes; integers and flags as they are written.
pub(crate) fn texts(array: &ArrayRef) -> Option<Get<'_, Cow<'_, [u8]>>> {
    macro_rules! get {
        ($array:expr) => {{
            let array = $array;
            Box::new(move |index| {
                let is_there = array.is_valid(index);
                is_there.then(|| Cow::Borrowed(AsRef::<[u8]>::as_ref(array.value(index))))
            })
        }};
    }
    Some(match array.data_type() {
        DataType::Utf8 => get!(array.as_string::<i32>()),
        DataType::LargeUtf8 => get!(array.as_string::<i64>()),
        DataType::Utf8View => get!(array.as_string_view()),
        DataType::Binary => get!(array.as_binary::<i32>()),
        DataType::LargeBinary => get!(array.as_binary::<i64>()),
        DataType::BinaryView => get!(array.as_binary_view()),
        DataType::FixedSizeBinary(_) => get!(array.as_fixed_size_binary()),
        DataType::Dictionary(_, _) => return dictionary(array),
        DataType::Boolean => {
            let flags = array.as_boolean();
            Box::new(move |index| {
                flags.is_valid(index).then(|| written(if flags.value(index) { "true" } else { "false" }))
            })
        }
        _ => {
            let get = numbers(array)?;
            Box::new(move |index| get(index).map(|number| Cow::Owned(number.to_string().into_bytes())))
        }
    })
}

fn written(text: &'static str) -> Cow<'static, [u8]> {
    Cow::Borrowed(text.as_bytes())
}

fn dictionary(array: &ArrayRef) -> Option<Get<'_, Cow<'_, [u8]>>> {
    let dictionary = array.as_any_dictionary();
    let get = texts(dictionary.values())?;
    if dictionary.values().is_empty() {
        return Some(Box::new(|_| None));
    }
    let places = dictionary.normalized_keys();
    Some(Box::new(move |index| -> Field<'_> {
        if array.is_valid(index) { get(places[index]) } else { None }
    }))
}

/// Reads integers from 0 on, and text that is all digits.
pub(crate) fn integers(array: &ArrayRef) -> Option<Get<'_, u64>> {
    if let Some(get) = numbers(array) {
        return Some(Box::new(move |index| u64::try_from(get(index)?).ok()));
    }
    let get = texts(array)?;
    Some(Box::new(move |index| integer(&get(index)?)))
}

/// Reads timestamps, whatever their unit; integers and text as in the other formats.
pub(crate) fn times(array: &ArrayRef) -> Option<Get<'_, u64>> {
    if let DataType::Timestamp(unit, _) = array.data_type() {
        return Some(timestamps(array, *unit));
    }
    if numbers(array).is_some() {
        let get = integers(array)?;
        return Some(Box::new(move |index| get(index).map(time::of_number)));
    }
    let get = texts(array)?;
    Some(Box::new(move |index| time::parse(&get(index)?)))
}

fn timestamps(array: &ArrayRef, unit: TimeUnit) -> Get<'_, u64> {
    match unit {
        TimeUnit::Second => millis::<TimestampSecondType>(array, |value| value.checked_mul(1000)),
        TimeUnit::Millisecond => millis::<TimestampMillisecondType>(array, Some),
        TimeUnit::Microsecond => millis::<TimestampMicrosecondType>(array, |value| Some(value / 1000)),
        TimeUnit::Nanosecond => millis::<TimestampNanosecondType>(array, |value| Some(value / 1_000_000)),
    }
}

fn millis<T: ArrowPrimitiveType<Native = i64>>(
    array: &ArrayRef,
    scale: fn(i64) -> Option<i64>,
) -> Get<'_, u64> {
    let array = array.as_primitive::<T>();
    Box::new(move |index| {
        let value = array.is_valid(index).then(|| array.value(index))?;
        // What lies before 1970 is no time; dividing must not round it up to 1970.
        if value < 0 { None } else { u64::try_from(scale(value)?).ok() }
    })
}

/// Reads integers of any width and sign.
fn numbers(array: &ArrayRef) -> Option<Get<'_, i128>> {
    macro_rules! get {
        ($kind:ty) => {{
            let array = array.as_primitive::<$kind>();
            Box::new(move |index| array.is_valid(index).then(|| i128::from(array.value(index))))
        }};
    }
    Some(match array.data_type() {
        DataType::UInt8 => get!(UInt8Type),
        DataType::UInt16 => get!(UInt16Type),
        DataType::UInt32 => get!(UInt32Type),
        DataType::UInt64 => get!(UInt64Type),
        DataType::Int8 => get!(Int8Type),
        DataType::Int16 => get!(Int16Type),
        DataType::Int32 => get!(Int32Type),
        DataType::Int64 => get!(Int64Type),
        _ => return None,
    })
}
