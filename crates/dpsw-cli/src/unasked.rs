//! Records that can change no answer, where only the last window is asked of a file whose records were counted.

use anyhow::Result;
use dpsw::{Method, Plan, TunedMethod, Unit};

use crate::fault::{Fault, Kind};
use crate::run::End;

/// How many of these records, from the first one on, lie before the oldest substream that is kept. None, if anything is
/// carried on from one substream to the next.
pub(crate) fn records(plan: &Plan, records: u64) -> u64 {
    let settings = plan.settings();
    let Method::Tuned(TunedMethod { rungs: 1, tracked: 0, .. }) = plan.method() else { return 0 };
    if plan.discovery().is_some() || settings.unit != Unit::ReplaceOne {
        return 0;
    }
    // No substream is longer than a window.
    let kept = settings.window.len().saturating_mul(u64::from(settings.retention) + 1);
    records.saturating_sub(kept)
}

/// Refuses to answer where the last window is not what it was taken for: there are fewer records than were counted before.
pub(crate) fn check_complete(end: End, records: u64, counted: u64) -> Result<()> {
    match end {
        _ if counted <= records => Ok(()),
        End::Interrupted => Err(Fault::of(Kind::Interrupted, "interrupted before the last window was read")),
        End::Complete | End::Left => {
            Err(Fault::data("the input has changed while it was read; run it again"))
        }
    }
}

#[cfg(test)]
mod tests {
    use dpsw::{CounterLayout, Settings};

    use super::*;

    #[test]
    fn records_are_passed_over_only_where_nothing_is_carried_on() {
        let flat = TunedMethod { substreams: 2, counters: CounterLayout::Identity, ..TunedMethod::default() };
        let settings = Settings::last_items(1000, 1.0).expect("in range").with_keys(["a", "b"]);
        let plan = |method: &TunedMethod, settings: &Settings| {
            let method = Some(Method::Tuned(method.clone()));
            Settings { method, ..settings.clone() }.plan().expect("a plan")
        };
        assert_eq!(
            [1500, 2000, 2001, 9000].map(|all| records(&plan(&flat, &settings), all)),
            [0, 0, 1, 7000]
        );
        let kept = Settings { retention: 3, ..settings.clone() };
        assert_eq!(records(&plan(&flat, &kept), 9000), 5000);
        let cut = TunedMethod { rungs: 2, ..flat.clone() };
        assert_eq!(records(&plan(&cut, &settings), 9000), 0);
        let users = Settings { unit: Unit::Users { per_substream: 1 }, ..settings };
        assert_eq!(records(&plan(&flat, &users), 9000), 0);
    }

    #[test]
    fn a_window_that_was_not_read_is_not_answered() {
        let words = |end, records| check_complete(end, records, 100).map_err(|error| error.to_string());
        assert_eq!(words(End::Complete, 100), Ok(()));
        assert_eq!(words(End::Interrupted, 101), Ok(()));
        assert!(words(End::Complete, 99).is_err_and(|error| error.contains("changed")));
        assert!(words(End::Interrupted, 99).is_err_and(|error| error.contains("interrupted")));
    }
}
