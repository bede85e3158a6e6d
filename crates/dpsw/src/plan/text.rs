//! A plan in words.

use std::fmt;
use std::ops::Range;

use crate::plan::paper::bounds::PaperBounds;
use crate::plan::paper::checkpoint::Role;
use crate::plan::range::PlannedRange;
use crate::plan::release::Release;
use crate::plan::search::SearchPlan;
use crate::plan::settings::Unit;
use crate::plan::structure::Plan;
use crate::words::{count, decimal, grouped, percent, size, tiny};

/// Lengths of time windows are in ticks, whatever a tick is; [`Plan::in_words`] takes the caller's words for them.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(|ticks| count(ticks, "tick")))
    }
}

/// Shares of the items for which a plan says how soon a key is listed.
const SHARES: [f64; 4] = [0.6, 0.1, 0.03, 0.01];

/// A label and what it says, in lines.
type Part = (&'static str, Vec<String>);

impl Plan {
    /// What the plan does, takes and promises, line by line; so many ticks are written as `time` says.
    #[must_use]
    pub fn in_words(&self, time: impl Fn(u64) -> String) -> String {
        let length = |len: u64| match self.settings().window.time() {
            Some(_) => time(len),
            None => count(len, "item"),
        };
        let parts: [Part; 9] = [
            ("window", self.window_words(&length)),
            ("counters", self.counter_words()),
            ("noise", self.noise_words(&length)),
            ("users", self.user_words()),
            ("memory", vec![self.memory_words()]),
            ("cost", vec![self.cost_words()]),
            ("bounds", self.bound_words()),
            (
                "keys",
                self.search_plan().map_or_else(Vec::new, |search_plan| self.key_words(search_plan, &length)),
            ),
            ("promise", vec![self.contract()]),
        ];
        let lines = parts.into_iter().flat_map(|(label, lines)| {
            let labels = [label].into_iter().chain(std::iter::repeat(""));
            labels.zip(lines).map(|(label, line)| format!("{label:<10} {line}")).collect::<Vec<_>>()
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn window_words(&self, length: &impl Fn(u64) -> String) -> Vec<String> {
        let settings = self.settings();
        let window = settings.window.len();
        let expected = match settings.window.time() {
            Some(time) => format!(", with about {}", count(time.expected_items, "item")),
            None => String::new(),
        };
        let mut lines = vec![
            format!("the last {}{expected}", length(window)),
            format!(
                "cut into substreams of {}, each counted by itself and sealed with noise; {} are kept",
                length(self.substream_len()),
                grouped(self.substreams_kept() as f64)
            ),
        ];
        if 1 < settings.retention {
            lines.push(format!("{} are kept, this one included", count(settings.retention.into(), "window")));
        }
        lines
    }

    fn counter_words(&self) -> Vec<String> {
        let (rows, columns) = (self.shape().rows, self.shape().columns);
        let shape = match (self.is_identity(), rows) {
            (true, _) => {
                format!("each of the {} has its own in every substream", count(columns.into(), "key"))
            }
            (false, 1) => format!("{} per substream, which keys share", grouped(columns.into())),
            (false, _) => {
                format!("{rows} rows of {} per substream, which keys share", grouped(columns.into()))
            }
        };
        let mut lines = vec![format!("{shape} (method {})", self.method().name())];
        if 0 < self.pinned() {
            let pinned = count(self.pinned().into(), "frequent key");
            lines.push(format!("up to {pinned} have their own, with {}", self.own_law()));
        }
        if 1 < self.levels().count() {
            let slices = 1 << (self.levels().count() - 1);
            let first = grouped(self.levels().first_threshold());
            lines.push(format!(
                "keys above {first} items are counted in up to {slices} parts of a substream, which errs less at the edges"
            ));
        }
        lines
    }

    fn noise_words(&self, length: &impl Fn(u64) -> String) -> Vec<String> {
        let ranges: Vec<&PlannedRange> =
            self.ranges().iter().filter(|range| range.role() != Role::Slice).collect();
        if let [only] = ranges[..] {
            // Keys with counters of their own have other noise there.
            let which = if 0 < self.pinned() { "every shared counter" } else { "every counter" };
            return vec![format!("{} on {which}", only.law())];
        }
        let mut lines = Vec::with_capacity(ranges.len());
        for range in ranges {
            let Range { start, end } = range.offsets();
            let what = match range.role() {
                Role::Prefix => format!("its first {}", length(end - start)),
                Role::Suffix => format!("its last {}", length(end - start)),
                _ => "a whole substream".to_owned(),
            };
            lines.push(format!("{} on {what}", range.law()));
        }
        lines
    }

    fn user_words(&self) -> Vec<String> {
        let (Unit::Users { per_substream }, Some(room)) = (self.settings().unit, self.user_room()) else {
            return Vec::new();
        };
        let (items, users) = (count(per_substream.into(), "item"), count(room, "user"));
        vec![format!("{items} of each count per substream, of the first {users} in it")]
    }

    fn memory_words(&self) -> String {
        format!("{} of counters, at most {} in all", size(self.sketch_bytes()), size(self.resident_bytes()))
    }

    fn cost_words(&self) -> String {
        let (epsilon, delta) = self.ledger().spent();
        let whom = match self.settings().unit {
            Unit::Users { .. } => "for a user in a window",
            _ => "for one event",
        };
        let (epsilon, delta) = (decimal(epsilon), tiny(delta));
        format!("epsilon {epsilon}, delta {delta} {whom}; the budget is {}", self.claim())
    }

    fn bound_words(&self) -> Vec<String> {
        let Some(bounds) = self.paper_bounds() else { return Vec::new() };
        let PaperBounds { sketch, sketch_failure, frequency, frequency_failure, main } = bounds;
        let mut lines = vec![
            bound_line("a substream's count", sketch, sketch_failure),
            bound_line("a window's count", frequency, frequency_failure),
        ];
        lines.extend(
            main.map(|main| format!("the paper's main theorem: {}, up to a constant", grouped(main))),
        );
        lines
    }

    fn key_words(&self, search_plan: &SearchPlan, length: &impl Fn(u64) -> String) -> Vec<String> {
        let (checks, search_len) = (search_plan.checks(), search_plan.search_len());
        let Release { lasting, fresh, threshold, .. } = search_plan.release();
        let search = length(search_len.saturating_mul(self.substream_len()));
        let mut lines = vec![
            format!(
                "found in the stream with {} of epsilon, in at most {} more",
                percent(search_plan.share().to_f64()),
                size(self.search_bytes())
            ),
            format!("counted over {search} and looked at {}", count(checks, "time")),
            format!(
                "their counts get noise of scale {} once and {} at each look; listed from {} on",
                decimal(lasting.to_f64()),
                decimal(fresh.to_f64()),
                grouped(*threshold as f64)
            ),
        ];
        let share = search_plan.share_listed(self.settings().window.expected_items(), 0.9);
        if 1.0 < share {
            lines.push("no key can be frequent enough in a window to be usually found by its end".to_owned());
            return lines;
        }
        lines.push(format!(
            "a key with {} of a window is found by its end with 90 % probability",
            percent(share)
        ));
        lines.push("how soon a new key is listed, with 50 % and with 99 % probability:".to_owned());
        lines.extend(SHARES.into_iter().map(|share| listing_line(search_plan, share)));
        lines
    }

    /// What is promised, in one sentence.
    #[must_use]
    pub fn contract(&self) -> String {
        let claim = self.claim();
        match self.settings().unit {
            Unit::ReplaceOne => {
                format!(
                    "all that is ever released, taken together, has {claim} for one event replaced by another"
                )
            }
            Unit::AddRemove => {
                format!(
                    "all that is ever released, taken together, has {claim} for one event added or removed"
                )
            }
            Unit::Users { per_substream } => format!(
                "all that is ever released, taken together, has {claim} for all items of one user inside any one \
                window, of which {per_substream} per substream count; who sends when is public; over n windows a \
                user's epsilon adds up n-fold, and delta grows faster"
            ),
        }
    }
}

fn bound_line(what: &str, bound: f64, failure: f64) -> String {
    format!("{what} is off by at most {}, with {} probability", grouped(bound), percent(1.0 - failure))
}

/// How soon a key is listed that comes up and takes this share of the items.
fn listing_line(search_plan: &SearchPlan, share: f64) -> String {
    let after = |probability| search_plan.items_until_listed(share, probability).map(grouped);
    let soon = match (after(0.5), after(0.99)) {
        (Some(half), Some(most)) => format!("after {half} and {most} items"),
        (Some(half), None) => format!("after {half} items, and never"),
        _ => "never".to_owned(),
    };
    format!("with {} of the items {soon}", percent(share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::settings::{CounterLayout, Settings, TunedMethod};

    fn plan(settings: Settings) -> Plan {
        settings.plan().expect("a plan")
    }

    #[test]
    fn a_plan_is_written_in_plain_words() {
        let settings = Settings::last_items(100_000, 1.0).expect("settings").with_keys(["a", "b", "c"]);
        let text = plan(settings).to_string();
        for part in [
            "window     the last 100,000 items",
            "each of the 3 keys has its own in every substream (method tuned)",
            "discrete Laplace noise of scale 2 on every counter",
            "cost       epsilon 1, delta 0 for one event; the budget is epsilon = 1, delta = 0",
            "promise    all that is ever released, taken together, has epsilon = 1, delta = 0 for one event replaced",
        ] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }

    #[test]
    fn where_keys_have_counters_of_their_own_the_noise_of_both_kinds_is_said() {
        let counters = CounterLayout::Hashed { rows: 2, columns: 64 };
        let method = TunedMethod { substreams: 5, counters, pinned: 4, ..TunedMethod::default() };
        let settings =
            Settings::last_items(1000, 1.0).expect("settings").with_keys(0..500).with_method(method);
        let text = plan(settings).to_string();
        assert!(text.contains("discrete Laplace noise of scale 4 on every shared counter"), "{text}");
        assert!(text.contains("have their own, with discrete Laplace noise of scale 2"), "{text}");
    }

    #[test]
    fn times_are_written_as_the_caller_says() {
        let settings =
            Settings::last_ticks(900_000, 500_000, 1.0).expect("settings").with_keys(["a", "b", "c"]);
        let plan = plan(settings);
        assert!(plan.to_string().contains("the last 900,000 ticks, with about "), "{plan}");
        let text = plan.in_words(|ticks| format!("{} s", ticks / 1000));
        assert!(text.contains("the last 900 s, with about ") && !text.contains("tick"), "{text}");
    }
}
