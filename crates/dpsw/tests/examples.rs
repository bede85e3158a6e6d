//! The examples run, and what they check of themselves holds.

#![expect(clippy::missing_errors_doc, reason = "examples are written as users would write them")]

#[path = "../examples/found_keys.rs"]
pub mod found_keys;
#[path = "../examples/sites_and_workers.rs"]
pub mod sites_and_workers;
#[path = "../examples/time_window.rs"]
pub mod time_window;
#[path = "../examples/web_log.rs"]
pub mod web_log;
#[path = "../examples/whole_users.rs"]
pub mod whole_users;

#[test]
fn the_top_pages_of_a_log_are_near_the_truth() {
    web_log::main().expect("the example runs");
}

#[test]
fn the_last_hour_is_near_the_truth_however_it_is_asked() {
    time_window::main().expect("the example runs");
}

#[test]
fn frequent_terms_are_found_and_those_of_one_search_are_not() {
    found_keys::main().expect("the example runs");
}

#[test]
fn of_each_user_as_many_items_count_as_the_cap_allows() {
    whole_users::main().expect("the example runs");
}

#[test]
fn sites_and_workers_answer_like_one_stream() {
    sites_and_workers::main().expect("the example runs");
}
