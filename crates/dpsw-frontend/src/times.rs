//! How times go, as far as they were looked at: that says how many records a window of time may hold. It is public wherever
//! arrivals are.

/// The steps in which times may go, in milliseconds: days, hours, minutes. Shorter ones are no matter in most windows.
const STEPS: [u64; 3] = [86_400_000, 3_600_000, 60_000];
/// More than this many times the usual number of records are rarely in a window.
const BUSY: u128 = 2;

/// The step of times, and how many of them a window has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// About how many records a busy window holds.
    pub expected_items: u64,
    /// All times are whole numbers of so many milliseconds.
    pub step: u64,
}

/// The records that were seen, and what their times say. Not `Debug`: that would show an exact number of records.
#[derive(Clone)]
pub struct Seen {
    records: u64,
    /// The first and the last time.
    span: Option<(u64, u64)>,
    /// Which of the steps all times go in.
    are_whole: [bool; STEPS.len()],
}

impl Default for Seen {
    fn default() -> Self {
        Self { records: 0, span: None, are_whole: [true; STEPS.len()] }
    }
}

impl Seen {
    /// Looks at the time of a record, in milliseconds since 1970.
    pub fn look(&mut self, time: u64) {
        self.records += 1;
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
        for (is_whole, step) in self.are_whole.iter_mut().zip(STEPS) {
            *is_whole &= time.is_multiple_of(step);
        }
    }

    /// Looks at the times of several records.
    pub fn look_all(&mut self, times: &[u64]) {
        for time in times {
            self.look(*time);
        }
    }

    /// Passes over records whose times are not known.
    pub fn pass(&mut self, records: u64) {
        self.records += records;
    }

    /// How many records were looked at or passed over.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// How times go in a window of so many milliseconds, if there are about so many records in all and they are like those
    /// that were seen. `None` if no time was looked at.
    pub fn times(&self, all_records: u128, window: u64) -> Option<Times> {
        let (first, last) = self.span?;
        let step = self.step();
        let usual =
            u128::from(self.records) * u128::from(window) / (u128::from(last - first) + u128::from(step));
        let expected_items = all_records.min(usual.saturating_mul(BUSY)).max(1);
        Some(Times { expected_items: u64::try_from(expected_items).unwrap_or(u64::MAX), step })
    }

    fn step(&self) -> u64 {
        let whole = STEPS.into_iter().zip(self.are_whole).find(|(_, is_whole)| *is_whole);
        whole.map_or(1, |(step, _)| step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;

    fn seen(times: &[u64]) -> Seen {
        let mut seen = Seen::default();
        seen.look_all(times);
        seen
    }

    fn times(seen: &Seen, window: u64) -> Option<(u64, u64)> {
        seen.times(u128::MAX, window).map(|Times { expected_items, step }| (expected_items, step))
    }

    #[test]
    fn a_step_is_the_longest_in_which_all_times_go() {
        let step = |of: &[u64]| times(&seen(of), DAY).map(|(_, step)| step);
        assert_eq!(step(&[0, DAY, 5 * DAY]), Some(DAY));
        assert_eq!(step(&[DAY, 5 * HOUR]), Some(HOUR));
        assert_eq!(step(&[DAY, 5 * HOUR, 7 * MINUTE]), Some(MINUTE));
        assert_eq!(step(&[DAY, 5 * HOUR, 7 * MINUTE + 1_000]), Some(1));
    }

    #[test]
    fn a_busy_window_holds_twice_the_usual_number_of_records() {
        let hourly: Vec<u64> = (0..100).map(|hour| hour * HOUR).collect();
        assert_eq!(times(&seen(&hourly), 10 * HOUR), Some((20, HOUR)));
        let mut unordered = hourly;
        unordered.swap(0, 99);
        assert_eq!(times(&seen(&unordered), 10 * HOUR), Some((20, HOUR)));
    }

    #[test]
    fn no_more_is_expected_than_there_is_and_never_nothing() {
        let hourly = seen(&[HOUR, 2 * HOUR]);
        assert_eq!(hourly.times(3, DAY), Some(Times { expected_items: 3, step: HOUR }));
        assert_eq!(hourly.times(1_000, DAY), Some(Times { expected_items: 48, step: HOUR }));
        assert_eq!(times(&hourly, 1), Some((1, HOUR)));
    }

    #[test]
    fn times_one_by_one_are_those_of_a_slice() {
        let mut one_by_one = Seen::default();
        one_by_one.look(5 * HOUR);
        one_by_one.look(HOUR);
        let slice = seen(&[5 * HOUR, HOUR]);
        assert_eq!((one_by_one.records(), slice.records()), (2, 2));
        assert_eq!(times(&one_by_one, DAY), Some((18, HOUR)));
        assert_eq!(times(&slice, DAY), Some((18, HOUR)));
    }

    #[test]
    fn records_that_were_passed_count_and_say_nothing_of_times() {
        let mut seen = seen(&[]);
        seen.pass(6);
        assert_eq!((seen.records(), times(&seen, HOUR)), (6, None));
        seen.look_all(&[0, HOUR]);
        assert_eq!((seen.records(), times(&seen, HOUR)), (8, Some((8, HOUR))));
    }

    #[test]
    fn the_farthest_times_are_no_matter() {
        assert_eq!(times(&seen(&[0, u64::MAX]), u64::MAX), Some((2, 1)));
        let mut many = seen(&[1]);
        many.pass(u64::MAX - 1);
        assert_eq!(times(&many, u64::MAX), Some((u64::MAX, 1)));
    }
}
