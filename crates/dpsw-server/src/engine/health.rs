//! Whether batches can be taken, and what the operator should know.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::engine::report::Health;

/// What may be wrong for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ailment {
    Storage,
    Marker,
    Randomness,
    Thread,
    Closing,
}

/// What is wrong now, and what happened before.
#[derive(Debug, Default)]
pub(crate) struct Vitals(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    ailments: BTreeMap<Ailment, String>,
    notices: Vec<String>,
    /// By source.
    brokers: BTreeMap<String, String>,
}

impl Vitals {
    /// Something is wrong; said once in the log.
    pub(crate) fn ail(&self, ailment: Ailment, reason: &str) {
        let before = self.lock().ailments.insert(ailment, reason.to_owned());
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
        if let Some(reason) = self.lock().ailments.remove(&ailment) {
            tracing::info!(reason, "ready again");
        }
    }

    pub(crate) fn notice(&self, notice: String) {
        tracing::warn!(notice, "notice");
        self.lock().notices.push(notice);
    }

    /// Why a source does not read its broker; `None` if it does. Others are not kept from anything by it.
    pub(crate) fn note_broker(&self, source: &str, trouble: Option<String>) {
        let mut state = self.lock();
        let Some(trouble) = trouble else {
            state.brokers.remove(source);
            return;
        };
        let before = state.brokers.insert(source.to_owned(), trouble.clone());
        if before.as_ref() != Some(&trouble) {
            tracing::warn!(source, trouble, "does not read its broker");
        }
    }

    /// What is wrong beside this.
    pub(crate) fn ailing(&self, beside: Ailment) -> Option<String> {
        let state = self.lock();
        state.ailments.iter().find_map(|(ailment, reason)| (*ailment != beside).then(|| reason.clone()))
    }

    pub(crate) fn health(&self) -> Health {
        let state = self.lock();
        let troubles = state.brokers.iter().map(|(source, trouble)| format!("source {source:?} {trouble}"));
        Health {
            reasons: state.ailments.values().cloned().collect(),
            brokers: troubles.collect(),
            notices: state.notices.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
