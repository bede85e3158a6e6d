//! The columns of an Arrow file: their types, and how many buffers each one takes.

use anyhow::Result;

use crate::input::columnar::damaged;
use crate::input::columnar::flatbuffer::Table;
use crate::input::columnar::value::Unit;

/// The most columns of a file, with the parts of nested ones.
const FIELDS_MAX: usize = 1 << 16;
/// The deepest nesting.
const DEPTH_MAX: usize = 64;

/// A column, or a part of a nested one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// If the values are in a dictionary, its number, and the type of the indices that stand in the column.
    pub(super) dictionary: Option<(i64, Plain)>,
    pub(super) children: Vec<Field>,
}

impl Field {
    /// What stands in the column itself: values, or indices of a dictionary.
    pub(super) fn stored(&self) -> Kind {
        self.dictionary.map_or(self.kind, |(_, index)| Kind::Plain(index))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain(Plain),
    /// A type with parts, or one whose values are no items: only how many buffers it takes matters.
    Other {
        buffers: usize,
    },
}

impl Kind {
    /// How many buffers a column takes; a view takes more, told with each batch.
    pub(super) fn buffers(self) -> usize {
        match self {
            Self::Plain(Plain::Null) => 0,
            Self::Plain(Plain::Bytes { .. }) => 3,
            Self::Plain(_) => 2,
            Self::Other { buffers } => buffers,
        }
    }
}

/// A type whose values can be items, users or times. Widths are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    Null,
    Bool,
    Signed {
        width: usize,
    },
    Unsigned {
        width: usize,
    },
    Half,
    Single,
    Double,
    /// With offsets of 64 instead of 32 bits, if they are wide.
    Bytes {
        is_wide: bool,
    },
    View,
    Fixed {
        width: usize,
    },
    Decimal {
        width: usize,
        scale: i32,
    },
    Days,
    /// A date, in milliseconds.
    DateMillis,
    Clock {
        width: usize,
        unit: Unit,
    },
    Instant {
        unit: Unit,
        is_utc: bool,
    },
}

/// The columns of a schema.
pub(super) fn fields(schema: Table<'_>) -> Result<Vec<Field>> {
    if schema.integer::<2>(0, 0)? != 0 {
        return Err(damaged("it was written by a big-endian machine"));
    }
    let mut left = FIELDS_MAX;
    schema.tables(1)?.into_iter().map(|table| field(table, DEPTH_MAX, &mut left)).collect()
}

fn field(table: Table<'_>, depth: usize, left: &mut usize) -> Result<Field> {
    if depth == 0 || *left == 0 {
        return Err(damaged("its columns are nested too deeply, or too many"));
    }
    *left -= 1;
    let children = table.tables(5)?.into_iter().map(|child| field(child, depth - 1, left));
    Ok(Field {
        children: children.collect::<Result<_>>()?,
        name: table.text(0)?.unwrap_or_default().to_owned(),
        kind: kind(table.integer::<1>(2, 0)?, table.table_needed(3)?)?,
        dictionary: table.table(4)?.map(dictionary).transpose()?,
    })
}

fn dictionary(table: Table<'_>) -> Result<(i64, Plain)> {
    let index = match table.table(1)? {
        Some(table) => integer(table)?,
        None => Plain::Signed { width: 4 },
    };
    Ok((table.integer::<8>(0, 0)?, index))
}

/// The type of this number in the format's union.
fn kind(number: i64, table: Table<'_>) -> Result<Kind> {
    let plain = match number {
        1 => Plain::Null,
        2 => integer(table)?,
        3 => match table.integer::<2>(0, 0)? {
            0 => Plain::Half,
            1 => Plain::Single,
            _ => Plain::Double,
        },
        4 | 5 => Plain::Bytes { is_wide: false },
        6 => Plain::Bool,
        7 => return decimal(table),
        8 if table.integer::<2>(0, 1)? == 0 => Plain::Days,
        8 => Plain::DateMillis,
        9 => {
            Plain::Clock { width: bytes(table.integer::<4>(1, 32)?)?, unit: unit(table.integer::<2>(0, 1)?)? }
        }
        10 => {
            let is_utc = table.text(1)?.is_some_and(|zone| !zone.is_empty());
            Plain::Instant { unit: unit(table.integer::<2>(0, 0)?)?, is_utc }
        }
        15 => Plain::Fixed { width: usize::try_from(table.integer::<4>(0, 0)?).map_err(damaged)? },
        // A duration: a number of its units.
        18 => Plain::Signed { width: 8 },
        19 | 20 => Plain::Bytes { is_wide: true },
        23 | 24 => Plain::View,
        _ => return Ok(Kind::Other { buffers: nested(number, table)? }),
    };
    Ok(Kind::Plain(plain))
}

/// How many buffers a type takes that is not plain, without those of its parts.
fn nested(number: i64, table: Table<'_>) -> Result<usize> {
    match number {
        // A run-end encoding.
        22 => Ok(0),
        // A struct, a list of fixed length.
        13 | 16 => Ok(1),
        // An interval, a list, a map, a long list.
        11 | 12 | 17 | 21 => Ok(2),
        // List views.
        25 | 26 => Ok(3),
        // A sparse union, a dense union.
        14 if table.integer::<2>(0, 0)? == 0 => Ok(1),
        14 => Ok(2),
        _ => Err(damaged(format!("it has a column of the unknown type {number}"))),
    }
}

fn integer(table: Table<'_>) -> Result<Plain> {
    let width = bytes(table.integer::<4>(0, 0)?)?;
    Ok(if table.flag(1)? { Plain::Signed { width } } else { Plain::Unsigned { width } })
}

/// Decimals of up to 38 digits are plain.
fn decimal(table: Table<'_>) -> Result<Kind> {
    match table.integer::<4>(2, 128)? {
        256 => Ok(Kind::Other { buffers: 2 }),
        128 => {
            let scale = i32::try_from(table.integer::<4>(1, 0)?).map_err(damaged)?;
            Ok(Kind::Plain(Plain::Decimal { width: 16, scale }))
        }
        bits => {
            let scale = i32::try_from(table.integer::<4>(1, 0)?).map_err(damaged)?;
            Ok(Kind::Plain(Plain::Decimal { width: bytes(bits)?, scale }))
        }
    }
}

/// How many bytes a number of this many bits takes.
fn bytes(bits: i64) -> Result<usize> {
    match bits {
        8 => Ok(1),
        16 => Ok(2),
        32 => Ok(4),
        64 => Ok(8),
        _ => Err(damaged(format!("it has a column of numbers of {bits} bits"))),
    }
}

fn unit(number: i64) -> Result<Unit> {
    match number {
        0 => Ok(Unit::Seconds),
        1 => Ok(Unit::Millis),
        2 => Ok(Unit::Micros),
        3 => Ok(Unit::Nanos),
        _ => Err(damaged(format!("it has a column of times of the unknown unit {number}"))),
    }
}
