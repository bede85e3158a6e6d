//! The service holds its claims, and services with a planted leak are caught, each by the check that is made for it.

use crate::conversation::{Audit, EPSILON, Kind, REPLIES, SEALED};
use crate::judge::Findings;
use crate::world::Slip;

const ROUNDS: u64 = 60;

#[track_caller]
fn check_holds(kind: Kind) {
    let findings = Audit::new(kind, Slip::Nothing).run(ROUNDS);
    println!(
        "{kind:?}: {} of {} guesses are right, {} replies",
        findings.right, findings.guesses, findings.plain
    );
    assert!(findings.violations.is_empty(), "{}", findings.examples.join("\n"));
    assert!(!findings.beats(EPSILON), "{} of {} guesses are right", findings.right, findings.guesses);
    // The audit has power: a claim of a quarter of this would be beaten. Of T guesses, at least 1,400, a share of q = e / (1 + e) =
    // 0.731 is right where the counters tell as much as they may, and 0.65 would do. Fewer are right with probability
    // at most exp(-T · KL(0.65 || 0.731)) < exp(-1400 · 0.0158) < 1e-9.
    assert!(findings.beats(EPSILON / 4.0), "{} of {} guesses are right", findings.right, findings.guesses);
}

#[test]
fn neighbours_that_differ_in_an_item_cannot_be_told_apart_beyond_the_claim() {
    check_holds(Kind::Replaced);
}

#[test]
fn neighbours_that_differ_in_the_presence_of_an_event_cannot_be_told_apart_beyond_the_claim() {
    check_holds(Kind::Present);
}

/// What is found in a service with a slip.
fn caught(kind: Kind, slip: Slip, rounds: u64) -> Findings {
    Audit::new(kind, slip).run(rounds)
}

#[test]
fn noise_that_is_drawn_again_after_a_restart_is_caught_twice() {
    // Counters that are seen twice with different noise tell as much as ε = 2. About 17 % of 5,040 trials are guessed, of which
    // e² / (1 + e²) = 0.88 are right; 0.81 would do, which is more than six standard errors less.
    let findings = caught(Kind::Replaced, Slip::Redrawn, 90);
    assert!(findings.violations.contains(SEALED), "{findings:?}");
    assert!(findings.beats(EPSILON), "{} of {} guesses are right", findings.right, findings.guesses);
}

#[test]
fn receipts_that_tell_which_items_are_missing_are_caught() {
    let findings = caught(Kind::Replaced, Slip::ReceiptCountsItems, 4);
    assert!(findings.violations.contains(REPLIES), "{findings:?}");
}

#[test]
fn a_batch_that_moves_the_clock_is_caught() {
    let findings = caught(Kind::Present, Slip::BatchMovesClock, 2);
    assert!(findings.violations.contains(REPLIES), "{findings:?}");
}

#[test]
fn a_field_that_depends_on_an_open_event_is_caught() {
    for kind in [Kind::Replaced, Kind::Present] {
        let findings = caught(kind, Slip::HealthOfOpenEvents, 4);
        assert!(findings.violations.contains(REPLIES), "{findings:?}");
    }
}
