//! Hostile bytes for every decoder: errors, never a panic, a hang or a large allocation. Each target runs for a few
//! seconds as a test; `cargo bolero test -p dpsw --features reproducible NAME` runs it under a fuzzer.

#![expect(
    unsafe_code,
    reason = "an allocator that refuses is the only way to see that nothing large is asked for"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::time::Duration;

use dpsw::plan::{CounterLayout, Method, PaperMethod, SubstreamLen};
use dpsw::store::MemoryStore;
use dpsw::worker::{PartialCounters, PartialId, Worker};
use dpsw::*;

/// Far above what the small frames here need, far below what their lengths can be changed to say.
const ALLOCATION_MAX: usize = 32 << 20;

struct SmallHeap;

// SAFETY: every call within the limit goes to the system allocator unchanged; beyond it null says that there is no
// memory, which ends the test.
unsafe impl GlobalAlloc for SmallHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ALLOCATION_MAX < layout.size() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static HEAP: SmallHeap = SmallHeap;

/// How long a target runs: a few seconds, or `DPSW_FUZZ_SECONDS`.
fn run() -> Duration {
    let seconds = std::env::var("DPSW_FUZZ_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(4))
}

fn plan() -> Plan {
    let time = TimeWindow { len: 100, lateness: 20, clock: Clock::Caller, expected_items: 1000 };
    let counters = CounterLayout::Hashed { rows: 2, columns: 8 };
    let settings = Settings {
        window: Window::Time(time),
        unit: Unit::ReplaceOne,
        epsilon: Epsilon::new(1.0).expect("in range"),
        delta: Delta::new(1e-9).ok(),
        domain: Domain::Public(Keys::integers([3, 1, 4])),
        method: Some(Method::Paper(PaperMethod {
            counters,
            substream: SubstreamLen::PerWindow(4),
            ..PaperMethod::default()
        })),
        retention: 1,
    };
    Plan::new(settings).expect("a valid plan")
}

fn views() -> Vec<Vec<u8>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let golden =
        ["view.bin", "view-sites.bin"].map(|name| std::fs::read(folder.join(name)).expect("a golden file"));
    [golden.to_vec(), vec![paper_view(), user_view()]].concat()
}

/// The paper's ranges and an open substream.
fn paper_view() -> Vec<u8> {
    let mut sketch = DpswSketch::with_key(plan(), StreamKey::from_bytes([7; 32]), Noise::seeded(1));
    for time in 1000..1130 {
        sketch.advance(time).expect("a clock");
        sketch.add_at(time, time % 5).expect("in time");
    }
    sketch.view().to_bytes()
}

/// A counter for each key, and events over the cap of their users.
fn user_view() -> Vec<u8> {
    let settings = Settings::last_items(100, 30.0).expect("settings").with_keys(0..9).with_users(1);
    let plan = settings.plan().expect("a valid plan");
    let mut sketch = DpswSketch::with_noise(plan, Noise::seeded(1)).expect("seeded");
    let items: Vec<u64> = (0..250).map(|position| position % 9).collect();
    let users: Vec<u64> = (0..250).map(|position| position % 20).collect();
    sketch.extend(Batch::integers(&items).by(&users)).expect("valid items");
    sketch.view().to_bytes()
}

fn partials() -> Vec<Vec<u8>> {
    let worker = Worker::new(plan(), StreamKey::from_bytes([7; 32])).expect("a time window");
    let id = PartialId { source: 1, batch: 2, partition: 3 };
    let batch = Batch::integers(&[3, 1, 4, 1]).at(&[1000, 1004, 1013, 1030]);
    let counted = worker.count(id, 1000..1040, batch).expect("valid items");
    counted.partials.iter().map(PartialCounters::to_bytes).collect()
}

/// A valid frame with a few bytes overwritten and perhaps cut, as the input says, under a right checksum: so that the
/// decoder is reached behind it.
fn mutate(bases: &[Vec<u8>], input: &[u8]) -> Vec<u8> {
    let Some((&choice, edits)) = input.split_first() else { return Vec::new() };
    let mut bytes = bases[usize::from(choice) % bases.len()].clone();
    bytes.truncate(bytes.len() - 4);
    for edit in edits.chunks_exact(4) {
        let position = usize::from(u16::from_le_bytes([edit[0], edit[1]]));
        match edit[3] % 8 {
            0 => bytes.truncate(position.max(10).min(bytes.len())),
            1 => bytes.push(edit[2]),
            _ => {
                let position = position % bytes.len();
                bytes[position] = edit[2];
            }
        }
    }
    let checksum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Every eight bytes of a frame in turn become a huge number, as a length would be.
#[test]
fn lengths_that_lie_are_found_before_anything_is_allocated() {
    let plan = plan();
    for (bases, is_view) in [(views(), true), (partials(), false)] {
        for base in bases {
            for position in 10..base.len() - 12 {
                for value in [u64::MAX, 1 << 60, 1 << 40, 1 << 33, 1 << 28] {
                    let mut bytes = base[..base.len() - 4].to_vec();
                    bytes[position..position + 8].copy_from_slice(&value.to_le_bytes());
                    let checksum = crc32fast::hash(&bytes);
                    bytes.extend_from_slice(&checksum.to_le_bytes());
                    if is_view {
                        let _ = WindowView::from_bytes(&bytes);
                    } else {
                        let _ = PartialCounters::from_bytes(&bytes, &plan);
                    }
                }
            }
        }
    }
}

/// Asks everything of a view that was accepted.
fn ask(view: &WindowView) {
    // The first question looks at every key of the domain, however long the bytes say that it is.
    if 1 << 16 < view.plan().settings().domain.keys().map_or(0, Keys::len) {
        return;
    }
    for view in
        [Some(view.clone()), view.last(7).ok(), view.as_of(view.window().start).ok()].into_iter().flatten()
    {
        let _ = (view.covered(), view.retained(), view.claim(), view.frequency(3), view.frequency("3"));
        let _ = (view.top(3), view.heavy_hitters(Threshold::new(0.1).expect("in range")));
        let _ = WindowView::merge(&[view.clone(), view.clone()]);
    }
    let again =
        WindowView::from_bytes(&view.to_bytes()).expect("an accepted view can be written and read again");
    assert_eq!(again.to_bytes(), view.to_bytes());
}

#[test]
fn views_from_random_bytes() {
    bolero::check!().with_test_time(run() / 4).for_each(|input: &[u8]| {
        assert!(WindowView::from_bytes(input).is_err());
    });
}

#[test]
fn views_from_changed_bytes() {
    let bases = views();
    bolero::check!().with_test_time(run()).with_max_len(41).for_each(|input: &[u8]| {
        if let Ok(view) = WindowView::from_bytes(&mutate(&bases, input)) {
            ask(&view);
        }
    });
}

#[test]
fn partial_counters_from_changed_bytes() {
    let (bases, plan) = (partials(), plan());
    bolero::check!().with_test_time(run()).with_max_len(41).for_each(|input: &[u8]| {
        let Ok(partial) = PartialCounters::from_bytes(&mutate(&bases, input), &plan) else { return };
        let mut sketch = DpswSketch::with_key(plan.clone(), StreamKey::from_bytes([7; 32]), Noise::off());
        sketch.advance(1000).expect("a clock");
        let _ = sketch.absorb(partial);
        sketch.advance(1100).expect("a clock");
        let _ = sketch.view().top(3);
    });
}

#[test]
fn states_from_random_bytes() {
    let key = StateKey::from_bytes([9; 32]);
    bolero::check!().with_test_time(run() / 4).for_each(|input: &[u8]| {
        assert!(DpswSketch::restore(input, &key, Noise::off(), &mut MemoryStore::default()).is_err());
    });
}
