//! The library as a newcomer meets it.

use dpsw::worker::{PartialCounters, Worker};
use dpsw::*;

/// A sketch is moved into the thread that owns it; views are shared.
#[test]
fn sketches_move_between_threads_and_views_are_shared() {
    fn moves<T: Send>() {}
    fn is_shared<T: Send + Sync>() {}
    moves::<DpswSketch>();
    moves::<PartialCounters>();
    is_shared::<WindowView>();
    is_shared::<Plan>();
    is_shared::<Worker>();
}

#[test]
fn parameters_come_from_numbers_and_texts() {
    assert_eq!("0.5".parse::<Epsilon>(), Epsilon::new(0.5));
    assert_eq!(Epsilon::try_from(0.5).expect("in range").to_string(), "0.5");
    assert_eq!("1e-9".parse::<Delta>(), Delta::new(1e-9));
    assert_eq!(" 0.01 ".parse::<Threshold>(), Threshold::new(0.01));
    let error = "half".parse::<Epsilon>().expect_err("no number");
    assert_eq!(error.to_string(), "\"half\" is not a number");
    let error = Settings::last_items(10, -1.0).expect_err("negative");
    assert_eq!(error.to_string(), "epsilon must lie between 1e-6 and 1e6, got -1");
}

#[test]
fn keys_come_from_the_usual_lists() {
    let texts = vec!["a".to_owned(), "b".to_owned()];
    for keys in [Keys::from(["a", "b"]), Keys::from(&texts[..]), Keys::from(texts.clone())] {
        assert!(keys.iter().eq(["a", "b"].map(Item::from)));
    }
    assert_eq!(Keys::from(0..3), Keys::Range(3));
    assert!(Keys::from(5..7).iter().eq([5, 6].map(Item::from)));
}

#[test]
fn a_short_list_of_keys_gets_counters_of_its_own() {
    let plan = |keys: u64| Settings::last_items(100_000, 1.0).expect("in range").with_keys(0..keys).plan();
    assert!(plan(100_000).expect("a plan").is_identity());
    let hashed = plan(2_000_000).expect("a plan");
    assert!(!hashed.is_identity() && hashed.sketch_bytes() <= 400_000, "{hashed}");
}

#[test]
fn what_the_planner_chose_is_in_the_settings_of_the_plan() {
    let settings = Settings::last_items(100_000, 1.0).expect("in range");
    let found = settings.with_found_keys().with_delta(1e-9).expect("in range");
    let plan = found.plan().expect("a plan");
    assert_eq!(plan.settings().method.as_ref(), Some(plan.method()));
    let found = plan.search_plan().expect("keys are found");
    let chosen = plan.settings().domain.search().expect("keys are found");
    assert_eq!((chosen.share, chosen.search_len), (Some(found.share()), Some(found.search_len())));
    // A plan made again from what it chose is the same.
    assert_eq!(Plan::new(plan.settings().clone()).expect("a plan").to_string(), plan.to_string());
}

#[test]
fn thresholds_out_of_range_are_refused_where_they_are_asked() {
    let plan = Settings::last_items(100, 1.0).expect("in range").with_keys(["a"]).plan().expect("a plan");
    let view = DpswSketch::new(plan).expect("randomness").view();
    let error = view.heavy_hitters(1.5).expect_err("above 1");
    assert_eq!(error.to_string(), "threshold must lie between 0 (exclusive) and 1, got 1.5");
}
