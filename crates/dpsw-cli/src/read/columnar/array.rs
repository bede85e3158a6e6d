//! The values of an Arrow array, by its type.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type,
    Decimal128Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayAccessor};
use arrow_buffer::ArrowNativeType;
use arrow_schema::{DataType, TimeUnit as Unit};

use crate::args::TimeUnit;
use crate::read::columnar::value::{Ticks, Value};

/// The value of a row.
pub(super) type Values<'a> = Box<dyn Fn(usize) -> Value<'a> + 'a>;

/// `None` for a type with parts, or one whose values are no items.
pub(super) fn values(array: &dyn Array) -> Option<Values<'_>> {
    match array.data_type() {
        DataType::Null => Some(Box::new(|_| Value::Null)),
        DataType::Boolean => Some(each(array.as_boolean(), Value::Bool)),
        DataType::Dictionary(index, _) => dictionary(array, index),
        kind if kind.is_numeric() => number(array),
        kind if kind.is_temporal() => time(array),
        _ => bytes(array),
    }
}

fn number(array: &dyn Array) -> Option<Values<'_>> {
    Some(match array.data_type() {
        DataType::Int8 => signed::<Int8Type>(array, Value::Signed),
        DataType::Int16 => signed::<Int16Type>(array, Value::Signed),
        DataType::Int32 => signed::<Int32Type>(array, Value::Signed),
        DataType::Int64 => signed::<Int64Type>(array, Value::Signed),
        DataType::UInt8 => unsigned::<UInt8Type>(array),
        DataType::UInt16 => unsigned::<UInt16Type>(array),
        DataType::UInt32 => unsigned::<UInt32Type>(array),
        DataType::UInt64 => unsigned::<UInt64Type>(array),
        DataType::Float16 => each(array.as_primitive::<Float16Type>(), |v| Value::Single(v.to_f32())),
        DataType::Float32 => each(array.as_primitive::<Float32Type>(), Value::Single),
        DataType::Float64 => each(array.as_primitive::<Float64Type>(), Value::Double),
        DataType::Decimal32(_, scale) => decimal::<Decimal32Type>(array, *scale),
        DataType::Decimal64(_, scale) => decimal::<Decimal64Type>(array, *scale),
        DataType::Decimal128(_, scale) => decimal::<Decimal128Type>(array, *scale),
        _ => return None,
    })
}

fn bytes(array: &dyn Array) -> Option<Values<'_>> {
    Some(match array.data_type() {
        DataType::Utf8 => each(array.as_string::<i32>(), |v| Value::Bytes(v.as_bytes())),
        DataType::LargeUtf8 => each(array.as_string::<i64>(), |v| Value::Bytes(v.as_bytes())),
        DataType::Utf8View => each(array.as_string_view(), |v| Value::Bytes(v.as_bytes())),
        DataType::Binary => each(array.as_binary::<i32>(), Value::Bytes),
        DataType::LargeBinary => each(array.as_binary::<i64>(), Value::Bytes),
        DataType::BinaryView => each(array.as_binary_view(), Value::Bytes),
        DataType::FixedSizeBinary(_) => each(array.as_fixed_size_binary(), Value::Bytes),
        _ => return None,
    })
}

/// What a column of this type holds, in words.
pub(super) fn shape(kind: &DataType) -> &'static str {
    match kind {
        DataType::Boolean => "true or false",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "bytes"
        }
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => "time",
        DataType::Time32(_) | DataType::Time64(_) => "time of day",
        DataType::Dictionary(_, values) => shape(values),
        DataType::Null => "null",
        _ if kind.is_integer() => "whole number",
        _ if kind.is_numeric() => "number with a fraction",
        _ => "parts, which cannot be items",
    }
}

fn time(array: &dyn Array) -> Option<Values<'_>> {
    Some(match array.data_type() {
        DataType::Date32 => signed::<Date32Type>(array, Value::Days),
        DataType::Date64 => signed::<Date64Type>(array, |millis| Value::Days(millis.div_euclid(86_400_000))),
        DataType::Time32(Unit::Second) => clock::<Time32SecondType>(array, TimeUnit::Seconds),
        DataType::Time32(_) => clock::<Time32MillisecondType>(array, TimeUnit::Millis),
        DataType::Time64(Unit::Microsecond) => clock::<Time64MicrosecondType>(array, TimeUnit::Micros),
        DataType::Time64(_) => clock::<Time64NanosecondType>(array, TimeUnit::Nanos),
        DataType::Timestamp(unit, zone) => {
            instant(array, *unit, zone.as_ref().is_some_and(|zone| !zone.is_empty()))
        }
        DataType::Duration(Unit::Second) => signed::<DurationSecondType>(array, Value::Signed),
        DataType::Duration(Unit::Millisecond) => signed::<DurationMillisecondType>(array, Value::Signed),
        DataType::Duration(Unit::Microsecond) => signed::<DurationMicrosecondType>(array, Value::Signed),
        DataType::Duration(Unit::Nanosecond) => signed::<DurationNanosecondType>(array, Value::Signed),
        _ => return None,
    })
}

fn instant(array: &dyn Array, unit: Unit, is_utc: bool) -> Values<'_> {
    let value = move |unit| move |count| Value::Instant { ticks: Ticks { count, unit }, is_utc };
    match unit {
        Unit::Second => signed::<TimestampSecondType>(array, value(TimeUnit::Seconds)),
        Unit::Millisecond => signed::<TimestampMillisecondType>(array, value(TimeUnit::Millis)),
        Unit::Microsecond => signed::<TimestampMicrosecondType>(array, value(TimeUnit::Micros)),
        Unit::Nanosecond => signed::<TimestampNanosecondType>(array, value(TimeUnit::Nanos)),
    }
}

fn dictionary<'a>(array: &'a dyn Array, index: &DataType) -> Option<Values<'a>> {
    match index {
        DataType::Int8 => looked_up::<Int8Type>(array),
        DataType::Int16 => looked_up::<Int16Type>(array),
        DataType::Int32 => looked_up::<Int32Type>(array),
        DataType::Int64 => looked_up::<Int64Type>(array),
        DataType::UInt8 => looked_up::<UInt8Type>(array),
        DataType::UInt16 => looked_up::<UInt16Type>(array),
        DataType::UInt32 => looked_up::<UInt32Type>(array),
        _ => looked_up::<UInt64Type>(array),
    }
}

fn looked_up<K: ArrowDictionaryKeyType>(array: &dyn Array) -> Option<Values<'_>> {
    let array = array.as_dictionary::<K>();
    let values = values(array.values())?;
    Some(each(array.keys(), move |key| values(key.as_usize())))
}

fn clock<T: ArrowPrimitiveType<Native: Into<i64>>>(array: &dyn Array, unit: TimeUnit) -> Values<'_> {
    signed::<T>(array, move |count| Value::Clock(Ticks { count, unit }))
}

fn signed<'a, T: ArrowPrimitiveType<Native: Into<i64>>>(
    array: &'a dyn Array,
    value: impl Fn(i64) -> Value<'a> + 'a,
) -> Values<'a> {
    each(array.as_primitive::<T>(), move |stored| value(stored.into()))
}

fn unsigned<T: ArrowPrimitiveType<Native: Into<u64>>>(array: &dyn Array) -> Values<'_> {
    each(array.as_primitive::<T>(), |stored| Value::Unsigned(stored.into()))
}

fn decimal<T: ArrowPrimitiveType<Native: Into<i128>>>(array: &dyn Array, scale: i8) -> Values<'_> {
    each(array.as_primitive::<T>(), move |stored| Value::Decimal {
        unscaled: stored.into(),
        scale: scale.into(),
    })
}

fn each<'a, A: ArrayAccessor + 'a>(array: A, value: impl Fn(A::Item) -> Value<'a> + 'a) -> Values<'a> {
    Box::new(move |row| if array.is_null(row) { Value::Null } else { value(array.value(row)) })
}
