//! Times of events: milliseconds since 1970, from whatever Arrow has them in.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};

use crate::fault::Fault;

const DAY: i64 = 86_400_000;

/// The times of all rows; `first` is the number of the first one, for errors. Numbers need a unit.
pub(crate) fn times(array: &ArrayRef, unit: Option<&str>, first: usize) -> Result<Vec<u64>, Fault> {
    let row = |(row, value): (usize, i64)| match u64::try_from(value) {
        _ if array.is_null(row) => Err(refused(first + row, "has no time")),
        Err(_) => Err(refused(first + row, "lies before 1970")),
        Ok(time) => Ok(time),
    };
    values(array, unit)?.into_iter().enumerate().map(row).collect()
}

/// The same where no row may refuse others: those before 1970 have the time 0, those without a time the last there is.
pub(crate) fn any_times(array: &ArrayRef) -> Result<Vec<u64>, Fault> {
    let row = |(row, value): (usize, i64)| {
        if array.is_null(row) { u64::MAX } else { u64::try_from(value).unwrap_or(0) }
    };
    Ok(values(array, None)?.into_iter().enumerate().map(row).collect())
}

fn values(array: &ArrayRef, unit: Option<&str>) -> Result<Vec<i64>, Fault> {
    Ok(match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => array
            .as_primitive::<TimestampSecondType>()
            .values()
            .iter()
            .map(|t| t.saturating_mul(1000))
            .collect(),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            array.as_primitive::<TimestampMillisecondType>().values().to_vec()
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => array
            .as_primitive::<TimestampMicrosecondType>()
            .values()
            .iter()
            .map(|t| t.div_euclid(1000))
            .collect(),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => array
            .as_primitive::<TimestampNanosecondType>()
            .values()
            .iter()
            .map(|t| t.div_euclid(1_000_000))
            .collect(),
        DataType::Date32 => {
            array.as_primitive::<Date32Type>().values().iter().map(|day| i64::from(*day) * DAY).collect()
        }
        DataType::Date64 => array.as_primitive::<Date64Type>().values().to_vec(),
        DataType::Int64 => numbers(array.as_primitive::<Int64Type>().values(), unit)?,
        other => {
            return Err(Fault::input(format!(
                "times must be timestamps or dates, got {other}; numbers need time_unit=\"s\", \"ms\", \"us\" or \"ns\""
            )));
        }
    })
}

fn numbers(values: &[i64], unit: Option<&str>) -> Result<Vec<i64>, Fault> {
    let scaled: fn(i64) -> i64 = match unit {
        Some("s") => |value| value.saturating_mul(1000),
        Some("ms") => |value| value,
        Some("us") => |value| value.div_euclid(1000),
        Some("ns") => |value| value.div_euclid(1_000_000),
        other => {
            return Err(Fault::input(format!(
                "times that are numbers need time_unit=\"s\", \"ms\", \"us\" or \"ns\", got {}",
                other.unwrap_or("None")
            )));
        }
    };
    Ok(values.iter().map(|value| scaled(*value)).collect())
}

fn refused(row: usize, why: &str) -> Fault {
    Fault::ingest(format!(
        "row {row} {why}; a window of time needs the time of each event; nothing was taken"
    ))
}
