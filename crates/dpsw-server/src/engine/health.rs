//! Whether batches can be taken, and what the operator should know.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::engine::report::HealthReport;
use crate::sync::LockAnyway;

/// A failure that may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ailment {
    Storage,
    Marker,
    Randomness,
    Thread,
    Closing,
}

/// The most different notices that are kept; the log has all.
const NOTICES_MAX: usize = 200;

/// The failures of now, and notices of what happened before.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    ailments: BTreeMap<Ailment, String>,
    /// Each with how often it was given, oldest first.
    notices: Vec<(String, u64)>,
    /// How many there were for which there was no room.
    unkept_notices: u64,
    /// By source.
    brokers: BTreeMap<String, String>,
}

impl State {
    /// How often it was given by now; those for which there is no room are counted together.
    fn note(&mut self, notice: &str) -> u64 {
        if let Some((_, times)) = self.notices.iter_mut().find(|(kept, _)| kept == notice) {
            *times += 1;
            return *times;
        }
        if NOTICES_MAX <= self.notices.len() {
            self.unkept_notices += 1;
            return self.unkept_notices;
        }
        self.notices.push((notice.to_owned(), 1));
        1
    }

    fn notices(&self) -> Vec<String> {
        let line = |(notice, times): &(String, u64)| match times {
            1 => notice.clone(),
            times => format!("{notice} ({times} times)"),
        };
        let unkept = (0 < self.unkept_notices).then(|| {
            format!("there were {} more notices, for which there is no room here", self.unkept_notices)
        });
        self.notices.iter().map(line).chain(unkept).collect()
    }
}

impl Health {
    /// Something is wrong; said once in the log.
    pub(crate) fn ail(&self, ailment: Ailment, reason: &str) {
        let before = self.0.lock_anyway().ailments.insert(ailment, reason.to_owned());
        if before.as_deref() == Some(reason) {
            return;
        }
        match ailment {
            Ailment::Closing => tracing::info!(reason, "not ready"),
            _ => tracing::error!(reason, "not ready"),
        }
    }

    /// It is right again.
    pub(crate) fn heal(&self, ailment: Ailment) {
        if let Some(reason) = self.0.lock_anyway().ailments.remove(&ailment) {
            tracing::info!(reason, "ready again");
        }
    }

    /// The operator should know this. What comes again and again, as with a connection that is cut, is counted: the log has it at
    /// the first time, the second, the fourth and so on.
    pub(crate) fn notice(&self, notice: &str) {
        let times = self.0.lock_anyway().note(notice);
        if times.is_power_of_two() {
            tracing::warn!(notice, times, "notice");
        }
    }

    /// Why a source does not read its broker; `None` if it does. Others are not kept from anything by it.
    pub(crate) fn note_broker(&self, source: &str, reason: Option<String>) {
        let mut state = self.0.lock_anyway();
        let Some(reason) = reason else {
            state.brokers.remove(source);
            return;
        };
        let before = state.brokers.insert(source.to_owned(), reason.clone());
        if before.as_ref() != Some(&reason) {
            tracing::warn!(source, trouble = reason, "does not read its broker");
        }
    }

    /// What is wrong beside this.
    pub(crate) fn ailing(&self, beside: Ailment) -> Option<String> {
        let state = self.0.lock_anyway();
        state.ailments.iter().find_map(|(ailment, reason)| (*ailment != beside).then(|| reason.clone()))
    }

    pub(crate) fn report(&self) -> HealthReport {
        let state = self.0.lock_anyway();
        let brokers = state.brokers.iter().map(|(source, reason)| format!("source {source:?} {reason}"));
        HealthReport {
            reasons: state.ailments.values().cloned().collect(),
            brokers: brokers.collect(),
            streams: Vec::new(),
            notices: state.notices(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noticed_again_and_again_is_counted_and_there_is_room_for_so_many() {
        let health = Health::default();
        (0..1000).for_each(|_| health.notice("the connection was cut"));
        health.notice("once");
        assert_eq!(health.report().notices, ["the connection was cut (1000 times)", "once"]);
        (0..1000).for_each(|number| health.notice(&format!("number {number}")));
        let notices = health.report().notices;
        assert_eq!(notices.len(), NOTICES_MAX + 1);
        assert_eq!(notices[NOTICES_MAX], "there were 802 more notices, for which there is no room here");
    }
}
