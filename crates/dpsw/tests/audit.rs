//! The audit of every kind of plan: all claims hold and all controls are caught.

use dpsw::audit::{Effort, run};
use dpsw::plan::{CounterLayout, Method, NoiseChoice, PaperMethod, Request, Shares, TunedMethod};
use dpsw::*;

/// A correct build fails each audit with probability at most 1e-7, and misses the control with a short seed, which
/// repeats 19 times on average, with 4e-9.
const EFFORT: Effort = Effort { runs: 4_000, seals: 36_000, false_alarm: 1e-7 };

fn settings(epsilon: f64, method: Method) -> Settings {
    Settings {
        window: Window::Items(100_000),
        unit: Unit::ReplaceOne,
        epsilon: Epsilon::new(epsilon).expect("in range"),
        delta: Delta::new(1e-6).ok(),
        domain: Domain::Public(Keys::Range(1000)),
        method: Some(method),
        retention: 2,
    }
}

fn tuned(counters: CounterLayout, noise: NoiseChoice) -> Method {
    Method::Tuned(TunedMethod { counters, noise, ..TunedMethod::default() })
}

fn hashed(rows: u32) -> CounterLayout {
    CounterLayout::Hashed { rows, columns: 5000 }
}

fn timed(unit: Unit, clock: Clock, method: Method) -> Settings {
    let window = TimeWindow { len: 86_400_000, lateness: 5_000, clock, expected_items: 100_000 };
    Settings { window: Window::Time(window), unit, ..settings(1.0, method) }
}

#[track_caller]
fn check_holds(settings: &Settings) {
    let report = run(settings, EFFORT).expect("an audit");
    assert!(report.holds(), "{report}");
    assert!(0.0 < report.observed, "the audit sees nothing: {report}");
}

#[test]
fn the_papers_method_holds_with_printed_and_with_explicit_shares() {
    let shares = [0.8, 0.05, 0.05].map(|share| Ratio::from_decimal(share).expect("a ratio")).to_vec();
    for shares in [Shares::Printed, Shares::Explicit(shares)] {
        check_holds(&settings(4.0, Method::Paper(PaperMethod { shares, ..PaperMethod::default() })));
    }
}

#[test]
fn laplace_noise_holds_on_identity_and_on_hashed_counters() {
    check_holds(&settings(1.0, tuned(CounterLayout::Identity, NoiseChoice::Laplace)));
    check_holds(&settings(1.0, tuned(hashed(2), NoiseChoice::Laplace)));
}

#[test]
fn gaussian_noise_in_one_sketch_holds() {
    check_holds(&settings(4.0, tuned(hashed(3), NoiseChoice::Gaussian)));
}

#[test]
fn time_windows_hold_under_both_units_and_clocks() {
    let laplace = || tuned(CounterLayout::Identity, NoiseChoice::Laplace);
    check_holds(&timed(Unit::ReplaceOne, Clock::Caller, laplace()));
    check_holds(&timed(Unit::ReplaceOne, Clock::Events, laplace()));
    check_holds(&timed(Unit::AddRemove, Clock::Caller, laplace()));
}

#[test]
fn texts_without_a_public_domain_hold() {
    let domain = Domain::Asked(Kind::Bytes);
    check_holds(&Settings { domain, ..settings(1.0, tuned(hashed(1), NoiseChoice::Laplace)) });
}

#[test]
fn what_the_planner_chooses_holds() {
    let plan = |bytes, unit, window| {
        let settings = Settings::new(window, 1.0).expect("in range").with_keys(0..1000).with_unit(unit);
        Request::new(settings).with_bytes(bytes).plan().expect("a plan").plan
    };
    let window = TimeWindow { len: 3600, lateness: 0, clock: Clock::Caller, expected_items: 100_000 };
    let identity = plan(500_000, Unit::ReplaceOne, Window::Items(100_000));
    let hashed = plan(10_000, Unit::ReplaceOne, Window::Items(100_000));
    let timed = plan(10_000, Unit::AddRemove, Window::Time(window));
    assert!(identity.is_identity() && !hashed.is_identity() && !timed.is_identity());
    [identity, hashed, timed].iter().for_each(|plan| check_holds(plan.settings()));
}

#[test]
fn gaussian_noise_on_identity_counters_holds() {
    check_holds(&settings(4.0, tuned(CounterLayout::Identity, NoiseChoice::Gaussian)));
}

#[test]
fn plans_of_several_levels_hold() {
    let levels = |levels| {
        let counters = CounterLayout::Identity;
        Method::Tuned(TunedMethod { counters, noise: NoiseChoice::Laplace, levels, ..TunedMethod::default() })
    };
    check_holds(&settings(1.0, levels(5)));
    check_holds(&timed(Unit::AddRemove, Clock::Caller, levels(2)));
    check_holds(&Settings { unit: Unit::Users { per_substream: 2 }, ..settings(4.0, levels(3)) });
}

#[test]
fn plans_with_pinned_keys_hold() {
    let pinned = |levels| {
        let noise = NoiseChoice::Laplace;
        Method::Tuned(TunedMethod {
            counters: hashed(2),
            noise,
            levels,
            pinned: 100,
            ..TunedMethod::default()
        })
    };
    check_holds(&settings(1.0, pinned(5)));
    check_holds(&timed(Unit::AddRemove, Clock::Caller, pinned(1)));
    check_holds(&Settings { unit: Unit::Users { per_substream: 1 }, ..settings(4.0, pinned(2)) });
}
