//! Keys of a real web log, found without a list of them.

use std::collections::HashMap;
use std::path::PathBuf;

use dpsw::{Delta, Discovery, Domain, DpswSketch, Epsilon, Expectation, Kind, Noise, Request, Unit, Window};
use dpsw_eval::dataset::{self, Column};

const WINDOW: usize = 10_000;

fn log() -> Option<PathBuf> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("DPSW_DATA").map_or_else(beside, PathBuf::from);
    Some(folder.join("web-http/nasa-1995-08-01.tsv.zst")).filter(|path| path.exists())
}

#[test]
fn the_top_of_a_web_log_is_found() {
    let Some(path) = log() else {
        eprintln!("skipped: the folder of real streams is not there");
        return;
    };
    let column = Column { column: Some("2".to_owned()), header: false };
    let log = dataset::read(&path, None, &column).expect("a log");
    let items = log.items;
    let request = Request {
        window: Window::Items(WINDOW as u64),
        unit: Unit::ReplaceOne,
        epsilon: Epsilon::new(1.0).expect("in range"),
        delta: Delta::new((items.len() as f64).powf(-1.5)).ok(),
        domain: Domain::Discovered(Discovery { epoch: 0, ..Discovery::new(Kind::Integers) }),
        retention: 1,
        bytes: 1_120_000,
        expectation: Expectation::zipf(2000),
    };
    let planned = request.plan().expect("a plan");
    let seeds = 20;
    let mut hits = 0;
    for seed in 0..seeds {
        let mut sketch = DpswSketch::new(planned.plan.clone(), Noise::seeded(seed)).expect("seeded");
        sketch.extend(&items).expect("integers");
        let mut counts: HashMap<u64, u64> = HashMap::new();
        items[items.len() - WINDOW..].iter().for_each(|&item| *counts.entry(item).or_default() += 1);
        let mut truth: Vec<(u64, u64)> = counts.into_iter().map(|(item, count)| (count, item)).collect();
        truth.sort_unstable_by(|a, b| b.cmp(a));
        let view = sketch.view();
        let found: Vec<String> = view.top(10).expect("keys").iter().map(|r| r.item.to_string()).collect();
        let right = truth[..10].iter().filter(|(_, item)| found.contains(&item.to_string())).count();
        println!("seed {seed}: {right} of the true top 10");
        assert!(8 <= right, "{planned}\n{found:?}\n{:?}", &truth[..12]);
        hits += right;
    }
    println!("{:.2} of 10 on average", f64::from(hits as u32) / seeds as f64);
}
