//! Keys of a real web log, found without a list of them.

use std::sync::Arc;

use dpsw::plan::{Expectation, Request};
use dpsw::{Batch, Domain, DpswSketch, Item, Kind, Noise, SearchSettings, Settings};
use dpsw_eval::dataset::Dataset;
use dpsw_eval::method::delta_for;
use dpsw_eval::source::data_folder;
use dpsw_eval::stream::{Shelf, Stream};
use dpsw_eval::truth::Truth;

const WINDOW: usize = 10_000;
const TOP: usize = 10;

/// The log, or `None` with a message where it is absent.
fn log() -> Option<Arc<Dataset>> {
    let folder = data_folder(None);
    let log = Stream::new("nasa", 0, usize::MAX, 0, 0);
    if log.files(Some(&folder)).expect("a folder").is_empty() {
        eprintln!("skipped: no web log in {}; DPSW_DATA names the data folder", folder.display());
        return None;
    }
    Some(Shelf::new(Some(folder)).get(&log).expect("a log"))
}

#[test]
fn the_top_of_a_web_log_is_found() {
    let Some(log) = log() else { return };
    let items = &log.items;
    let mut truth = Truth::new(items, log.domain_len, WINDOW);
    truth.advance(items.len());
    let top = truth.top(TOP);
    let settings = Settings::last_items(WINDOW as u64, 1.0).expect("in range");
    let settings = settings.with_delta(delta_for(items.len())).expect("in range");
    let settings = settings.with_domain(Domain::Found(SearchSettings::new(Kind::Integers)));
    let request = Request::new(settings).with_bytes(1_120_000).with_expectation(Expectation::zipf(2000));
    let planned = request.plan().expect("a plan");
    let seeds = 20;
    let mut hits = 0;
    for seed in 0..seeds {
        let mut sketch = DpswSketch::with_noise(planned.plan.clone(), Noise::seeded(seed)).expect("seeded");
        sketch.extend(Batch::integers(items)).expect("integers");
        let view = sketch.view();
        let found = view.top(TOP).expect("keys");
        let is_found = |item: &&u64| found.iter().any(|ranked| ranked.item == Item::Integer(**item));
        let right = top.iter().filter(is_found).count();
        println!("seed {seed}: {right} of the true top {TOP}");
        assert!(8 <= right, "{planned}\n{found:?}\n{top:?}");
        hits += right;
    }
    println!("{:.2} of {TOP} on average", f64::from(hits as u32) / seeds as f64);
}
