//! Why an answer has no row, and what to do about it.

use dpsw::{Plan, Window, WindowView};
use dpsw_frontend::quantity::grouped;
use serde::Serialize;

use crate::count::feed::Counts;
use crate::show::words::{count, percent, stretch};

/// The first thing that keeps rows away.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Why {
    pub(crate) cause: Cause,
    /// What is missing.
    pub(crate) message: String,
    /// What would help.
    pub(crate) advice: String,
}

impl Why {
    /// The reason and the advice, a line each.
    pub(crate) fn lines(&self) -> [String; 2] {
        [format!("nothing to show: {}", self.message), format!("what helps: {}", self.advice)]
    }
}

/// The causes, in the order in which they are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Cause {
    /// There is no record.
    NothingRead,
    /// Every record was skipped, late or early.
    NothingCounted,
    /// The first substream is not complete.
    NothingSealed,
    /// There is no list of keys, and none was found yet.
    NothingFound,
    /// No row reaches the threshold.
    BelowThreshold,
    /// All rows may be noise alone.
    BelowNoise,
}

/// An answer without rows, and what is known about it.
pub(crate) struct Empty<'a> {
    pub(crate) view: &'a WindowView,
    /// Whether it was saved: then options take effect in another run alone.
    pub(crate) is_saved: bool,
    /// What was read, where that is known and public.
    pub(crate) read: Option<Counts>,
    pub(crate) threshold: Option<f64>,
    /// About the count below which nothing stands out.
    pub(crate) below_noise: Option<u64>,
    pub(crate) hidden: usize,
}

/// With this probability a key is usually found.
pub(crate) const USUALLY: f64 = 0.9;

impl Empty<'_> {
    pub(crate) fn why(&self) -> Why {
        let causes = [
            Self::nothing_read,
            Self::nothing_counted,
            Self::nothing_sealed,
            Self::nothing_found,
            Self::below_threshold,
        ];
        let why = causes.iter().find_map(|cause| cause(self)).unwrap_or_else(|| self.below_noise());
        match why.cause {
            Cause::BelowThreshold => why,
            _ if self.is_saved => Why { advice: format!("in another run, {}", why.advice), ..why },
            _ => why,
        }
    }

    fn nothing_read(&self) -> Option<Why> {
        // In a window of time the clock goes on without records, and how many there are may be private.
        let is_empty = match self.read {
            Some(read) => read.records == 0,
            None => self.items_of_stream() == Some(0),
        };
        is_empty.then(|| Why {
            cause: Cause::NothingRead,
            message: "no record was read".into(),
            advice: "check the name of the file, and that it has more than a header".into(),
        })
    }

    fn nothing_counted(&self) -> Option<Why> {
        let Counts { records, skipped, late, early, .. } = self.read?;
        let mut left_out = Vec::new();
        for (number, what) in
            [(skipped, "cannot be read"), (late, "came too late"), (early, "lie too far ahead")]
        {
            if 0 < number {
                left_out.push(format!("{} {what}", count(number, "record")));
            }
        }
        (skipped + late + early == records).then(|| Why {
            cause: Cause::NothingCounted,
            message: format!("no record counts: {}", left_out.join(", ")),
            advice: "check --format, --column and --time-column; --lateness waits for late records".into(),
        })
    }

    fn nothing_sealed(&self) -> Option<Why> {
        let plan = self.view.plan();
        let read = self.read.map(|read| read.records).or_else(|| self.items_of_stream());
        let so_far = read.map_or_else(String::new, |read| format!("; {} so far", count(read, "record")));
        self.view.covered().is_empty().then(|| Why {
            cause: Cause::NothingSealed,
            message: format!(
                "nothing can be answered before the first {} are complete{so_far}",
                stretch(plan, plan.substream_len())
            ),
            advice: "read more, or use a shorter --window".into(),
        })
    }

    fn nothing_found(&self) -> Option<Why> {
        let plan = self.view.plan();
        let found = plan.search_plan()?;
        let is_none = self.view.keys().is_ok_and(dpsw::Keys::is_empty);
        let needed = count(found.count_found(USUALLY).ceil() as u64, "time");
        let within = stretch(plan, found.search_len().saturating_mul(plan.substream_len()));
        let so_far = match self.items_of_stream() {
            Some(items) => format!("; so far: {}", count(items, "record")),
            None => String::new(),
        };
        is_none.then(|| Why {
            cause: Cause::NothingFound,
            message: format!(
                "no key is listed yet: one is found when it occurs about {needed} within {within}{so_far}"
            ),
            advice: format!(
                "{}read more, raise --epsilon, or list public keys with --domain; check that --format and --column \
                name the right part of a record",
                expected(plan, self.view.items())
            ),
        })
    }

    fn below_threshold(&self) -> Option<Why> {
        let threshold = self.threshold?;
        let total = self.view.items()?;
        let rows = self.view.top(1).ok()?;
        let largest = rows.first()?.shown.value / total as f64;
        (largest < threshold).then(|| Why {
            cause: Cause::BelowThreshold,
            message: format!(
                "no item has {} of the window; the largest has about {}",
                percent(threshold),
                percent(largest)
            ),
            advice: "use a smaller --threshold".into(),
        })
    }

    fn below_noise(&self) -> Why {
        let plan = self.view.plan();
        let total = self.view.items();
        let takes = self
            .below_noise
            .map_or_else(String::new, |least| format!(": that takes about {}", count(least, "occurrence")));
        let of =
            total.map_or_else(String::new, |total| format!(", and the window has {}", count(total, "item")));
        let hidden = if 0 < self.hidden { "; --all shows rows that may be noise alone" } else { "" };
        Why {
            cause: Cause::BelowNoise,
            message: format!("no item stands out from the noise{takes}{of}"),
            advice: format!("{}raise --epsilon, or use a longer --window{hidden}", expected(plan, total)),
        }
    }

    /// How many items the stream has, where its window counts them.
    fn items_of_stream(&self) -> Option<u64> {
        match self.view.plan().settings().window {
            Window::Items(_) => Some(self.view.window().end - self.view.began()),
            _ => None,
        }
    }
}

/// A plan for far more or far fewer items than there are serves them badly.
fn expected(plan: &Plan, total: Option<u64>) -> String {
    let (Some(time), Some(total)) = (plan.settings().window.time(), total) else { return String::new() };
    let expected = time.expected_items;
    let total = total.max(1);
    if expected / 4 < total && total / 4 < expected {
        return String::new();
    }
    format!(
        "say --expected-items {total}, as a window holds about that many, not {}; ",
        grouped(expected as f64)
    )
}
