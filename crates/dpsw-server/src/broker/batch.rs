//! Records that are handed over together, with where they end.

use crate::broker::connector::Record;
use crate::broker::values::{Layout, Reading};
use crate::events::Events;
use crate::input::{InputError, InputLimits, Wanted};
use crate::store::position::{Position, Step};

/// A batch wants no more from this many bytes of values on.
const BYTES_MAX: usize = 1 << 20;

/// Records that are handed over together.
pub(crate) struct Batch<'w> {
    reading: Reading<'w>,
    step: Step,
    len: usize,
    bytes: usize,
}

impl<'w> Batch<'w> {
    /// Begins where the source stands, or will stand with the batches before.
    pub(crate) fn new(layout: &'w Layout, wanted: &'w Wanted, limits: InputLimits, from: &Position) -> Self {
        let step = Step { from: from.clone(), to: from.clone() };
        Self { reading: Reading::new(layout, wanted, limits, 0), step, len: 0, bytes: 0 }
    }

    /// Takes a record, unless it was taken before. Whether more are wanted.
    pub(crate) fn take(&mut self, record: Record<'_>) -> Result<bool, InputError> {
        let taken = &mut self.step.to.taken;
        match taken.get_mut(&record.partition) {
            Some(last) if record.offset <= *last => return Ok(true),
            Some(last) => *last = record.offset,
            None => _ = taken.insert(record.partition, record.offset),
        }
        self.reading.push(&record)?;
        self.len += 1;
        self.bytes += record.value.map_or(0, <[u8]>::len);
        Ok(self.bytes < BYTES_MAX)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn finish(self) -> Result<(Events, Step), InputError> {
        Ok((self.reading.finish()?, self.step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ColumnKind;
    use crate::input::testing::{LIMITS, show, wanted};

    fn one_column() -> Wanted {
        let columns = vec![("page".to_owned(), ColumnKind::Text)];
        Wanted { columns, time: None, user: None, ..wanted() }
    }

    #[test]
    fn what_was_taken_before_is_dropped_and_partitions_do_not_disturb_each_other() {
        let wanted = one_column();
        let from = Position { taken: [(0, 4), (2, 9)].into(), begins_at_end: false, term: 3 };
        let mut batch = Batch::new(&Layout::Text, &wanted, LIMITS, &from);
        let records = [(0, 4), (1, 0), (0, 5), (1, 0), (2, 7), (2, 12), (0, 5), (1, 3), (2, 9), (0, 6)];
        for (partition, offset) in records {
            let value = format!("{partition}/{offset}");
            let record = Record { partition, offset, time_ms: 0, value: Some(value.as_bytes()) };
            assert!(batch.take(record).expect("few"));
        }
        let (events, step) = batch.finish().expect("one column");
        assert_eq!(show(&events), ["1/0", "0/5", "2/12", "1/3", "0/6"]);
        assert_eq!(step.to, Position { taken: [(0, 6), (1, 3), (2, 12)].into(), ..from.clone() });
        assert_eq!(step.from, from);
    }
}
