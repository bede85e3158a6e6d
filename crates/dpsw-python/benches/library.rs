//! The library on data that `speed.py` wrote: what Python is compared with. Prints nanoseconds per item.
//!
//! `library integers|text own|shared|found FILE`

use std::time::Instant;

use dpsw::{Batch, Domain, DpswSketch, Keys, Kind, Plan, SearchSettings, Unit, Window};
use dpsw_frontend::plan_request::PlanRequest;

const WINDOW: u64 = 1_000_000;
const KEYS: u64 = 25_600;
const ROUNDS: usize = 3;

fn main() {
    // `cargo bench` adds an option of its own, and `cargo test --benches` none of these.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [kind, counters, file] = &arguments[..] else { return };
    let data = std::fs::read(file).expect("the data that speed.py wrote");
    let time = match kind.as_str() {
        "integers" => {
            let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
            let items: Vec<u64> = data.chunks_exact(8).map(word).collect();
            best(&plan(domain(counters, Kind::Integers)), || Batch::integers(&items))
        }
        _ => {
            let text = std::str::from_utf8(&data).expect("text");
            let items: Vec<&str> = text.lines().collect();
            best(&plan(domain(counters, Kind::Bytes)), || Batch::text(&items))
        }
    };
    println!("{time}");
}

fn domain(counters: &str, kind: Kind) -> Domain {
    match (counters, kind) {
        ("own", Kind::Integers) => Domain::Public(Keys::Range(KEYS)),
        ("own", Kind::Bytes) => Domain::Public(Keys::text((0..KEYS).map(|key| format!("/page/{key}")))),
        ("found", _) => Domain::Found(SearchSettings::new(kind)),
        _ => Domain::Asked(kind),
    }
}

fn plan(domain: Domain) -> Plan {
    let request = PlanRequest::new(Window::Items(WINDOW), Unit::ReplaceOne, 1.0, domain);
    request.plan().expect("a plan").0.plan
}

/// The best of some rounds, in nanoseconds per item.
fn best<'a>(plan: &Plan, batch: impl Fn() -> Batch<'a>) -> f64 {
    let round = |_| {
        let mut sketch = DpswSketch::new(plan.clone()).expect("randomness");
        let (start, batch) = (Instant::now(), batch());
        let items = batch.len() as f64;
        sketch.extend(batch).expect("items of the plan's kind");
        start.elapsed().as_secs_f64() * 1e9 / items
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}
