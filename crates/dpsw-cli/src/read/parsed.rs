//! Records on their way from the thread that parses them to the one that counts them.

use std::ops::Range;

use anyhow::Result;

use crate::read::parser::Parser;
use crate::read::{Problem, Record, Sink, feed_batches};

/// A block of bytes and the records that were complete with it.
#[derive(Default)]
pub(crate) struct Parsed {
    block: Vec<u8>,
    records: Records,
}

/// The finds of a parser, as places in the block.
#[derive(Default)]
struct Records {
    /// How many records of this and the following blocks nobody asks about.
    unasked: u64,
    /// How many of them were in this block, before all others.
    passed: u64,
    /// Where the block lies.
    block: Range<usize>,
    /// What does not lie in the block: fields without their quotes, records that began in an earlier block.
    more: Vec<u8>,
    items: Vec<Place>,
    /// As many as items, or none.
    times: Vec<u64>,
    /// As many as items, or none; with the lines of their records.
    users: Vec<(Place, u64)>,
    unreadable: Vec<Unreadable>,
}

/// The place of some bytes: in the block, or as far behind its end as in `more`.
#[derive(Debug, Clone, Copy)]
struct Place {
    start: u32,
    len: u32,
}

/// A record that cannot be read, or not as a whole.
struct Unreadable {
    /// How many readable ones come before it.
    after: usize,
    line: u64,
    problem: Problem,
    time: Option<u64>,
    user: Option<Place>,
}

impl Parsed {
    /// The block, to be filled.
    pub(crate) fn block(&mut self) -> &mut Vec<u8> {
        &mut self.block
    }

    /// Parses the block. Nobody asks about so many records from the next one on: says how many are left of them.
    pub(crate) fn push_to(&mut self, parser: &mut Parser, unasked: u64) -> Result<u64> {
        self.records.begin(&self.block, unasked);
        parser.push(&self.block, &mut self.records)?;
        Ok(self.records.unasked)
    }

    /// The same of what is left when no block follows.
    pub(crate) fn finish(&mut self, parser: &mut Parser, unasked: u64) -> Result<u64> {
        self.block.clear();
        self.records.begin(&self.block, unasked);
        parser.finish(&mut self.records)?;
        Ok(self.records.unasked)
    }

    /// Hands the records over, in order.
    pub(crate) fn feed(&self, sink: &mut impl Sink) -> Result<()> {
        if 0 < self.records.passed {
            sink.pass(self.records.passed)?;
        }
        let mut done = 0;
        for Unreadable { after, line, problem, time, user } in &self.records.unreadable {
            self.feed_readable(done..*after, sink)?;
            done = *after;
            let user = user.map(|user| Ok(self.bytes(user)));
            sink.record(*line, Record { item: Err(problem.clone()), time: time.map(Ok), user })?;
        }
        self.feed_readable(done..self.records.items.len(), sink)
    }

    fn feed_readable(&self, range: Range<usize>, sink: &mut impl Sink) -> Result<()> {
        let Records { items, times, users, .. } = &self.records;
        if users.is_empty() {
            let places = &items[range.clone()];
            let times = times.get(range).unwrap_or_default();
            return feed_batches(places.iter().map(|place| self.bytes(*place)), times, sink);
        }
        for index in range {
            let (user, line) = users[index];
            let item = Ok(self.bytes(items[index]));
            let time = times.get(index).map(|time| Ok(*time));
            sink.record(line, Record { item, time, user: Some(Ok(self.bytes(user))) })?;
        }
        Ok(())
    }

    #[inline]
    fn bytes(&self, place: Place) -> &[u8] {
        let start = place.start as usize;
        let len = place.len as usize;
        match start.checked_sub(self.block.len()) {
            None => &self.block[start..start + len],
            Some(start) => &self.records.more[start..start + len],
        }
    }
}

impl Records {
    fn begin(&mut self, block: &[u8], unasked: u64) {
        (self.unasked, self.passed) = (unasked, 0);
        let start = block.as_ptr() as usize;
        self.block = start..start + block.len();
        self.more.clear();
        self.items.clear();
        self.times.clear();
        self.users.clear();
        self.unreadable.clear();
    }

    /// Most fields lie in the block as they are and need not be copied.
    #[inline]
    fn place(&mut self, bytes: &[u8]) -> Place {
        let start = (bytes.as_ptr() as usize).wrapping_sub(self.block.start);
        let is_inside = start < self.block.len() && bytes.len() <= self.block.len() - start;
        let start = if is_inside { start } else { self.copy(bytes) };
        Place { start: start as u32, len: bytes.len() as u32 }
    }

    fn copy(&mut self, bytes: &[u8]) -> usize {
        let start = self.block.len() + self.more.len();
        self.more.extend(bytes);
        start
    }
}

impl Sink for Records {
    fn items(&mut self, items: &[&[u8]], times: &[u64]) -> Result<()> {
        let passed = self.unasked.min(items.len() as u64);
        self.pass(passed)?;
        let asked = &items[passed as usize..];
        self.items.reserve(asked.len());
        for item in asked {
            let place = self.place(item);
            self.items.push(place);
        }
        self.times.extend(times.iter().skip(passed as usize));
        Ok(())
    }

    fn record(&mut self, line: u64, record: Record<'_>) -> Result<()> {
        let (item, of_item) = apart(record.item.map(Some));
        let (time, of_time) = apart(record.time.transpose());
        let (user, of_user) = apart(record.user.transpose());
        let user = user.map(|user| self.place(user));
        if let Some(problem) = of_item.or(of_time).or(of_user) {
            let after = self.items.len();
            self.unreadable.push(Unreadable { after, line, problem, time, user });
            self.unasked = self.unasked.saturating_sub(1);
        } else if 0 < self.unasked {
            self.pass(1)?;
        } else {
            let item = item.map(|item| self.place(item));
            self.items.extend(item);
            self.times.extend(time);
            self.users.extend(user.map(|user| (user, line)));
        }
        Ok(())
    }

    fn unasked(&self) -> u64 {
        self.unasked
    }

    fn pass(&mut self, records: u64) -> Result<()> {
        self.unasked -= records;
        self.passed += records;
        Ok(())
    }
}

/// What was read, and why it was not.
fn apart<T>(read: Result<Option<T>, Problem>) -> (Option<T>, Option<Problem>) {
    match read {
        Ok(read) => (read, None),
        Err(problem) => (None, Some(problem)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Format;
    use crate::read::columnar::Selection;
    use crate::read::parser::Wanted;

    /// What is handed over, in words.
    #[derive(Default)]
    struct Heard(Vec<String>);

    impl Sink for Heard {
        fn items(&mut self, items: &[&[u8]], times: &[u64]) -> Result<()> {
            self.0.push(format!("{} items, {times:?}", items.len()));
            Ok(())
        }

        fn record(&mut self, line: u64, record: Record<'_>) -> Result<()> {
            let Record { item, time, user } = record;
            let user = user.map(|user| user.map(|user| String::from_utf8_lossy(user).into_owned()));
            self.0.push(format!("line {line}: {}, {time:?}, {user:?}", item.is_ok()));
            Ok(())
        }

        fn pass(&mut self, records: u64) -> Result<()> {
            self.0.push(format!("{records} passed over"));
            Ok(())
        }
    }

    fn heard(text: &[u8], user: Option<&str>, unasked: u64) -> (Vec<String>, u64) {
        let column = |name: &str| Some(name.to_owned());
        let selection = Selection {
            item: column("k"),
            times: true,
            time: column("t"),
            user: user.map(str::to_owned),
            ..Selection::default()
        };
        let wanted = Wanted { selection, header: None, delimiter: None, unasked };
        let mut parser = Parser::new(Format::Csv, &wanted, &[]).expect("a parser");
        let (mut parsed, mut heard) = (Parsed::default(), Heard::default());
        *parsed.block() = text.to_vec();
        let unasked = parsed.push_to(&mut parser, unasked).expect("parsed");
        parsed.feed(&mut heard).expect("it takes all");
        (heard.0, unasked)
    }

    #[test]
    fn a_record_that_cannot_be_read_keeps_its_line_its_time_and_its_user() {
        let text = b"t,k,u\n1,a,x\n2,\"b\",y\nz,c,x\n4\n5,d,y\n";
        assert_eq!(
            heard(text, None, 0).0,
            [
                "2 items, [1000, 2000]",
                "line 4: false, None, None",
                "line 5: false, Some(Ok(4000)), None",
                "1 items, [5000]"
            ]
        );
        assert_eq!(
            heard(text, Some("u"), 0).0,
            [
                "line 2: true, Some(Ok(1000)), Some(Ok(\"x\"))",
                "line 3: true, Some(Ok(2000)), Some(Ok(\"y\"))",
                "line 4: false, None, Some(Ok(\"x\"))",
                "line 5: false, Some(Ok(4000)), None",
                "line 6: true, Some(Ok(5000)), Some(Ok(\"y\"))",
            ]
        );
    }

    #[test]
    fn records_that_nobody_asks_about_are_passed_over_and_those_that_cannot_be_read_are_still_told() {
        let text = b"t,k,u\n1,a,x\n2,\"b\",y\nz,c,x\n4,d,x\n5,e,y\n";
        let bad = "line 4: false, None, None".to_owned();
        let passed = |records: u64| format!("{records} passed over");
        assert_eq!(
            heard(text, None, 1),
            (
                vec![
                    passed(1),
                    "1 items, [2000]".to_owned(),
                    bad.clone(),
                    "2 items, [4000, 5000]".to_owned()
                ],
                0
            )
        );
        assert_eq!(heard(text, None, 4), (vec![passed(3), bad.clone(), "1 items, [5000]".to_owned()], 0));
        assert_eq!(heard(text, None, 7), (vec![passed(4), bad], 2));
    }
}
