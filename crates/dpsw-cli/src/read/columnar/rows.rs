//! Some rows of a file: their items as bytes, their times, and their users.

use anyhow::Result;

use crate::args::TimeUnit;
use crate::read::columnar::value::Value;
use crate::read::{Problem, Record, Sink, feed_batches};

const ROWS_AT_ONCE: usize = 8192;

/// One thing for each column that was asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen<C> {
    pub(super) item: C,
    pub(super) time: Option<C>,
    /// Of times that are numbers without one.
    pub(super) time_unit: Option<TimeUnit>,
    pub(super) user: Option<C>,
}

impl<C> Chosen<C> {
    pub(super) fn try_map<D>(self, mut each: impl FnMut(C) -> Result<D>) -> Result<Chosen<D>> {
        Ok(Chosen {
            item: each(self.item)?,
            time: self.time.map(&mut each).transpose()?,
            time_unit: self.time_unit,
            user: self.user.map(&mut each).transpose()?,
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &C> {
        [Some(&self.item), self.time.as_ref(), self.user.as_ref()].into_iter().flatten()
    }
}

impl<C: Column> Chosen<C> {
    /// Hands over so many rows, some at a time; false if nobody listens any more.
    pub(super) fn hand_over(&mut self, count: usize, mut rows: impl FnMut(Rows) -> bool) -> Result<bool> {
        let mut left = count;
        while 0 < left {
            let count = left.min(ROWS_AT_ONCE);
            left -= count;
            if !rows(self.rows(count)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The next rows.
    fn rows(&mut self, count: usize) -> Result<Rows> {
        let times = || Times { unit: self.time_unit, values: Vec::new() };
        Ok(Rows {
            items: fill(Texts::default(), &mut self.item, count)?,
            times: self.time.as_mut().map(|column| fill(times(), column, count)).transpose()?,
            users: self.user.as_mut().map(|column| fill(Texts::default(), column, count)).transpose()?,
        })
    }
}

fn fill<T: Cells>(mut cells: T, column: &mut impl Column, count: usize) -> Result<T> {
    column.read(count, &mut cells)?;
    Ok(cells)
}

/// A column that is read from its start to its end.
pub(super) trait Column {
    /// Hands over the next `count` values.
    fn read(&mut self, count: usize, cells: &mut impl Cells) -> Result<()>;
}

/// A collection that takes the values of a column.
pub(super) trait Cells {
    fn push(&mut self, value: Value<'_>);
}

/// Values as text, one after the other.
#[derive(Debug, Default)]
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Indices, ascending.
    nulls: Vec<usize>,
}

impl Cells for Texts {
    fn push(&mut self, value: Value<'_>) {
        match value {
            Value::Bytes(bytes) => self.bytes.extend_from_slice(bytes),
            Value::Null => self.nulls.push(self.ends.len()),
            _ => value.write(&mut self.bytes),
        }
        self.ends.push(self.bytes.len());
    }
}

impl Texts {
    fn value(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    fn get(&self, index: usize) -> Result<&[u8], Problem> {
        match self.nulls.binary_search(&index) {
            Ok(_) => Err(Problem::new("the value is null")),
            Err(_) => Ok(self.value(index)),
        }
    }
}

/// Values as milliseconds since 1970.
struct Times {
    /// Of numbers without one.
    unit: Option<TimeUnit>,
    values: Vec<Result<u64, Problem>>,
}

impl Cells for Times {
    fn push(&mut self, value: Value<'_>) {
        self.values.push(value.millis(self.unit));
    }
}

/// Some rows, in memory.
pub(crate) struct Rows {
    items: Texts,
    times: Option<Times>,
    users: Option<Texts>,
}

impl Rows {
    pub(crate) fn len(&self) -> usize {
        self.items.ends.len()
    }

    /// Hands the rows over; the first one has this number.
    pub(crate) fn feed(&self, row: u64, sink: &mut impl Sink) -> Result<()> {
        if self.times.is_none() && self.users.is_none() && self.items.nulls.is_empty() {
            return feed_batches((0..self.len()).map(|index| self.items.value(index)), &[], sink);
        }
        for index in 0..self.len() {
            let time = self.times.as_ref().map(|times| times.values[index].clone());
            let user = self.users.as_ref().map(|users| users.get(index));
            sink.record(row + index as u64, Record { item: self.items.get(index), time, user })?;
        }
        Ok(())
    }
}
