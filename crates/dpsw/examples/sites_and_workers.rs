//! Beyond one process: two sites merge their views; two workers count for one sealer, which is saved and restored.

use std::error::Error;

use dpsw::plan::Request;
use dpsw::store::MemoryStore;
use dpsw::worker::{PartialId, Worker};
use dpsw::{Batch, Clock, DpswSketch, Noise, Plan, Settings, StateKey, StreamKey, WindowView};

const START: u64 = 1_772_442_000;
const WINDOW: u64 = 600;
/// Whoever runs the stream draws both keys; all who count share the first, and the sealer alone has the second.
const STREAM_KEY: [u8; 32] = [17; 32];
const STATE_KEY: [u8; 32] = [42; 32];

/// Counts the same events both ways and prints private answers beside the truth.
pub fn main() -> Result<(), Box<dyn Error>> {
    // The last ten minutes, by a clock that does not depend on the events.
    let settings = Settings::last_ticks(WINDOW, 60_000, 1.0)?.with_clock(Clock::Caller).with_lateness(60);
    let request = Request::new(settings.with_keys(["bus", "train", "bike"]));
    let plan = request.plan()?.plan;
    let merged = WindowView::merge(&[site(&plan, 1)?, site(&plan, 2)?])?;
    for (who, view) in [("two sites, noise of each", merged), ("two workers, noise once", workers(&plan)?)] {
        let bikes = view.frequency("bike")?;
        println!("{who:<25} {bikes} bikes in the last ten minutes; the truth is 12,000");
        // The events are the same in every run, so only the noise varies: it passes ten standard errors with
        // probability below 1e-11.
        assert!((bikes.value - 12_000.0).abs() < 10.0 * bikes.standard_error());
    }
    Ok(())
}

/// A site that shows its exact counts to nobody: it seals what happens there and hands out a view.
fn site(plan: &Plan, number: u64) -> Result<WindowView, Box<dyn Error>> {
    let key = StreamKey::from_bytes(STREAM_KEY);
    let mut sketch = DpswSketch::with_key(plan.clone(), key, Noise::from_system()).at_site(number);
    for now in (START..START + 2 * WINDOW).step_by(60) {
        sketch.advance(now)?;
        let (times, items) = events(now, number);
        sketch.extend(Batch::text(&items).at(&times))?;
    }
    sketch.advance(START + 2 * WINDOW)?;
    Ok(sketch.view())
}

/// Two workers of a trusted cluster, and a sealer that restarts halfway.
fn workers(plan: &Plan) -> Result<WindowView, Box<dyn Error>> {
    let stream_key = || StreamKey::from_bytes(STREAM_KEY);
    let workers = [Worker::new(plan.clone(), stream_key())?, Worker::new(plan.clone(), stream_key())?];
    let mut sealer = DpswSketch::with_key(plan.clone(), stream_key(), Noise::from_system());
    for now in (START..START + 2 * WINDOW).step_by(60) {
        sealer.advance(now)?;
        for (partition, worker) in (1..).zip(&workers) {
            let id = PartialId { source: 0, batch: now, partition };
            let (times, items) = events(now, partition);
            // The minute is public: it decides which substreams are reported, whatever happened in them.
            let counted = worker.count(id, now..now + 60, Batch::text(&items).at(&times))?;
            counted.partials.into_iter().try_for_each(|partial| sealer.absorb(partial).map(drop))?;
        }
        if now == START + WINDOW {
            sealer = restarted(sealer)?;
        }
    }
    sealer.advance(START + 2 * WINDOW)?;
    Ok(sealer.view())
}

/// The sketch that is saved ends, and its state is restored once: a second one would seal the same events again.
fn restarted(sealer: DpswSketch) -> Result<DpswSketch, Box<dyn Error>> {
    let (key, mut store) = (StateKey::from_bytes(STATE_KEY), MemoryStore::default());
    let saved = sealer.save(&key, &mut store)?;
    let restored = DpswSketch::restore(&saved.bytes, &key, Noise::from_system(), &mut store)?;
    assert!(DpswSketch::restore(&saved.bytes, &key, Noise::from_system(), &mut store).is_err());
    Ok(restored)
}

/// Fifty events per second at each of two places; every fifth is a bike.
fn events(minute: u64, place: u64) -> (Vec<u64>, Vec<&'static str>) {
    let item = |number: u64| ["bus", "train", "bus", "bus", "bike"][((number * 2 + place) % 5) as usize];
    (0..3_000).map(|number| (minute + number / 50, item(number))).unzip()
}
