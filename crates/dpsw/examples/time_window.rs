//! The last hour of a service, in seconds. Events may come 30 seconds late, and errors burst in the last 25 minutes.

use std::ops::Range;

use dpsw::{Batch, Direction, DpswSketch, Estimate, Settings, WindowView};

const HOUR: u64 = 3_600;
const NINE: u64 = 1_772_442_000; // 2026-03-02 09:00 UTC
const BURST: u64 = NINE + 3 * HOUR - 1_500;

/// Counts three hours of events and prints private answers beside the truth.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Two windows are kept, so that this hour can be compared with the one before.
    let settings = Settings::last_ticks(HOUR, 36_000, 1.0)?
        .with_lateness(30)
        .with_retention(2)
        .with_keys(["ok", "slow", "error"]);
    let mut sketch = DpswSketch::new(settings.plan()?)?;
    let events = events();
    for batch in events.chunks(500) {
        let (times, items): (Vec<u64>, Vec<&str>) = batch.iter().copied().unzip();
        let taken = sketch.extend(Batch::text(&items).at(&times))?;
        assert_eq!(taken.counted, batch.len(), "no event is more than 30 seconds late");
    }

    let view = sketch.view();
    let last_minutes = view.last(1_200)?;
    let until_eleven = view.as_of(NINE + 2 * HOUR)?;
    println!("{:<24}{:>12}{:>8}", "errors", "estimate", "truth");
    show("in the last hour", &view.frequency("error")?, &events);
    show("in the last 20 minutes", &last_minutes.frequency("error")?, &events);
    show("from ten to eleven", &until_eleven.frequency("error")?, &events);

    let trend = view.trend("error")?;
    println!("\nerrors are {:?}: {} this hour, {} the hour before", trend.direction, trend.now, trend.before);
    // 5,876 more errors are about a hundred standard errors.
    assert_eq!(trend.direction, Direction::Rising);

    let bytes = view.to_bytes();
    let loaded = WindowView::from_bytes(&bytes)?;
    println!("a view of {} bytes, which may be published, gives the same answers", bytes.len());
    assert_eq!(loaded.frequency("slow")?, view.frequency("slow")?);
    Ok(())
}

fn show(what: &str, errors: &Estimate, events: &[(u64, &str)]) {
    let Range { start, end } = errors.window;
    let truth = events.iter().filter(|(time, item)| (start..end).contains(time) && *item == "error").count();
    println!("{what:<24}{errors:>12}{truth:>8}");
    // The events are the same in every run, so only the noise varies: it passes ten standard errors with
    // probability below 1e-7.
    assert!((errors.value - truth as f64).abs() < 10.0 * errors.standard_error());
}

/// Ten events per second, of which one is an error, and five after the burst begins. Every third event arrives late.
fn events() -> Vec<(u64, &'static str)> {
    let event = |arrival: u64| {
        let second = NINE + arrival / 10;
        let time = if arrival.is_multiple_of(3) { second - arrival * 7 % 30 } else { second };
        let errors = if time < BURST { 1 } else { 5 };
        let item = match arrival % 10 {
            digit if digit < errors => "error",
            9 => "slow",
            _ => "ok",
        };
        (time, item)
    };
    (300..3 * HOUR * 10).map(event).collect()
}
