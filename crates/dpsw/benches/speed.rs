//! How fast the sketch is, as ratios to bare loops in the same run: `cargo bench -p dpsw --bench speed`, with
//! `-- --json` for one JSON object a row. A number after `--` limits the rows to names that contain it.
#![expect(unsafe_code, reason = "a counting allocator is the only way to see the live heap")]
#![allow(missing_docs, clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use asap_sketchlib::{DataInput, FastPath, Vector2D};
use dpsw::noise::{Law, Table};
use dpsw::plan::{CounterLayout, Method, PaperMethod, TunedMethod};
use dpsw::*;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const DOMAIN: u64 = 25_600;
const WINDOW: u64 = 1_000_000;
/// Pairs of measurements; the ratio reported is their median.
const ROUNDS: usize = 31;

struct CountingHeap;

static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system allocator unchanged; the counter is only read by the bench.
unsafe impl GlobalAlloc for CountingHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static HEAP: CountingHeap = CountingHeap;

struct Row {
    name: &'static str,
    value: f64,
    unit: &'static str,
    ratio: Option<f64>,
    reach: Reach,
}

enum Reach {
    AtLeast(f64),
    AtMost(f64),
}

impl Row {
    fn is_ok(&self) -> bool {
        let measured = self.ratio.unwrap_or(self.value);
        match self.reach {
            Reach::AtLeast(reach) => reach <= measured,
            Reach::AtMost(reach) => measured <= reach,
        }
    }

    fn print(&self, json: bool) {
        let Self { name, value, unit, .. } = self;
        let (sign, reach) = match self.reach {
            Reach::AtLeast(reach) => (">=", reach),
            Reach::AtMost(reach) => ("<=", reach),
        };
        let ok = self.is_ok();
        if json {
            let ratio = self.ratio.map_or("null".to_owned(), |ratio| format!("{ratio:.4}"));
            println!(
                r#"{{"name":"{name}","value":{value:.4},"unit":"{unit}","ratio":{ratio},"reach":{reach},"ok":{ok}}}"#
            );
        } else {
            let ratio = self.ratio.map_or(String::new(), |ratio| format!("ratio {ratio:.3}"));
            let verdict = if ok { "ok" } else { "SHORT" };
            println!("{name:<28} {value:>12.3} {unit:<10} {ratio:<14} reach {sign} {reach:<6} {verdict}");
        }
    }
}

fn feed(sketch: &mut DpswSketch, batch: Batch<'_>) {
    sketch.extend(batch).unwrap();
}

fn time(run: &mut dyn FnMut()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

/// Median seconds of `ours`, and the median over the rounds of ours/theirs, in alternating order.
fn paired(ours: &mut dyn FnMut(), theirs: &mut dyn FnMut()) -> (f64, f64) {
    let (mut seconds, mut ratios) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS + 2 {
        let (a, b) = if round % 2 == 0 {
            let a = time(ours);
            (a, time(theirs))
        } else {
            let b = time(theirs);
            (time(ours), b)
        };
        if 2 <= round {
            seconds.push(a.as_secs_f64());
            ratios.push(a.as_secs_f64() / b.as_secs_f64());
        }
    }
    (median(seconds), median(ratios))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn zipf(count: usize) -> Vec<u64> {
    zipf_over(DOMAIN, count)
}

/// Zipf(1) over a domain, shuffled by a multiplicative permutation so that frequent keys are not neighbours.
fn zipf_over(domain: u64, count: usize) -> Vec<u64> {
    let mut cumulative = Vec::new();
    let mut sum = 0.0;
    for rank in 1..=domain {
        sum += 1.0 / rank as f64;
        cumulative.push(sum);
    }
    let mut state = 1_u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let u = (state >> 11) as f64 / 2_f64.powi(53) * sum;
        cumulative.partition_point(|&c| c < u) as u64 * 7919 % domain
    };
    (0..count).map(|_| draw()).collect()
}

fn plan(method: Method, domain: Domain) -> Plan {
    Plan::new(Settings {
        window: Window::Items(WINDOW),
        unit: Unit::ReplaceOne,
        epsilon: Epsilon::new(1.0).unwrap(),
        delta: Delta::new(1e-10).ok(),
        domain,
        method: Some(method),
        retention: 1,
    })
    .unwrap()
}

fn tuned(counters: CounterLayout) -> Method {
    Method::Tuned(TunedMethod { substreams: 20, counters, ..TunedMethod::default() })
}

fn hashed_plan() -> Plan {
    plan(tuned(CounterLayout::Hashed { rows: 2, columns: 6666 }), Domain::Public(Keys::Range(DOMAIN)))
}

fn identity_plan() -> Plan {
    identity_plan_of(DOMAIN)
}

fn identity_plan_of(keys: u64) -> Plan {
    plan(tuned(CounterLayout::Identity), Domain::Public(Keys::Range(keys)))
}

/// Frequent keys are cut more finely.
fn levels_plan() -> Plan {
    let method = TunedMethod {
        substreams: 12,
        counters: CounterLayout::Identity,
        levels: 5,
        ..TunedMethod::default()
    };
    plan(method.into(), Domain::Public(Keys::Range(DOMAIN)))
}

/// The counters of [`hashed_plan`], and a thousand of frequent keys.
fn pinned_plan() -> Plan {
    let counters = CounterLayout::Hashed { rows: 2, columns: 6666 };
    let method = TunedMethod { substreams: 10, counters, levels: 5, pinned: 1000, ..TunedMethod::default() };
    plan(method.into(), Domain::Public(Keys::Range(DOMAIN)))
}

fn paper_plan() -> Plan {
    plan(Method::Paper(PaperMethod::default()), Domain::Public(Keys::Range(DOMAIN)))
}

fn finding_plan() -> Plan {
    let method = tuned(CounterLayout::Hashed { rows: 2, columns: 6666 });
    plan(method, Domain::Found(SearchSettings::new(Kind::Integers)))
}

fn sketch(plan: Plan) -> DpswSketch {
    DpswSketch::new(plan).unwrap()
}

const FINGERPRINT_KEY: u64 = 0x5dce_289d_e5ee_85d5;
const ROW_KEYS: [u64; 4] =
    [0x6a19_c5d9_7d2b_fd39, 0x494a_dcb8_7703_bd8d, 0x32b8_dbe9_3f44_0f49, 0xf79a_f24f_1a75_0a57];

fn fingerprint(item: u64) -> u64 {
    let product = u128::from(item ^ FINGERPRINT_KEY) * 0x9e37_79b9_7f4a_7c15;
    product as u64 ^ (product >> 64) as u64
}

/// A count-min sketch and nothing else, with the hash of the library.
#[inline(never)]
fn bare_count_min<const ROWS: usize>(cells: &mut [i32], columns: u64, items: &[u64]) {
    for &item in items {
        let fingerprint = fingerprint(item);
        for row in 0..ROWS {
            let upper = fingerprint.wrapping_mul(ROW_KEYS[row]) >> 32;
            cells[row * columns as usize + ((upper * columns) >> 32) as usize] += 1;
        }
    }
}

#[inline(never)]
fn bare_histogram(cells: &mut [i32], items: &[u64]) {
    for &item in items {
        cells[item as usize] += 1;
    }
}

/// Items a second, and the speed relative to the bare loop.
fn ingest(name: &'static str, plan: Plan, bare: &mut dyn FnMut(&[u64]), reach: f64) -> Row {
    let items = zipf(WINDOW as usize);
    let mut sketch = sketch(plan);
    let (seconds, ratio) = paired(&mut || feed(&mut sketch, Batch::integers(&items)), &mut || bare(&items));
    let value = items.len() as f64 / seconds / 1e6;
    Row { name, value, unit: "M items/s", ratio: Some(1.0 / ratio), reach: Reach::AtLeast(reach) }
}

fn ingest_hashed() -> Row {
    let mut cells = vec![0; 2 * 6666];
    ingest(
        "ingest_hashed",
        hashed_plan(),
        &mut |items| bare_count_min::<2>(black_box(&mut cells), 6666, items),
        0.6,
    )
}

fn ingest_identity() -> Row {
    let mut cells = vec![0; DOMAIN as usize];
    ingest(
        "ingest_identity",
        identity_plan(),
        &mut |items| bare_histogram(black_box(&mut cells), items),
        0.35,
    )
}

/// With the steps of frequent keys.
fn ingest_levels() -> Row {
    let mut cells = vec![0; DOMAIN as usize];
    ingest("ingest_levels", levels_plan(), &mut |items| bare_histogram(black_box(&mut cells), items), 0.35)
}

fn ingest_pinned() -> Row {
    let mut cells = vec![0; 2 * 6666];
    ingest(
        "ingest_pinned",
        pinned_plan(),
        &mut |items| bare_count_min::<2>(black_box(&mut cells), 6666, items),
        0.6,
    )
}

fn ingest_paper() -> Row {
    let mut cells = vec![0; 4 * 2000];
    ingest(
        "ingest_paper",
        paper_plan(),
        &mut |items| bare_count_min::<4>(black_box(&mut cells), 2000, items),
        0.35,
    )
}

fn ingest_strings() -> Row {
    let items: Vec<String> =
        zipf(WINDOW as usize / 4).iter().map(|item| format!("/page/{item:06}")).collect();
    let method = tuned(CounterLayout::Hashed { rows: 2, columns: 6666 });
    let mut sketch = sketch(plan(method, Domain::Asked(Kind::Bytes)));
    let mut hash = || {
        let mut sum = 0;
        for item in &items {
            sum ^= xxh3_64_with_seed(item.as_bytes(), FINGERPRINT_KEY);
        }
        black_box(sum);
    };
    let (seconds, ratio) = paired(&mut || feed(&mut sketch, Batch::bytes(&items)), &mut hash);
    Row {
        name: "ingest_strings",
        value: items.len() as f64 / seconds / 1e6,
        unit: "M items/s",
        ratio: Some(1.0 / ratio),
        reach: Reach::AtLeast(0.35),
    }
}

/// Items a second while keys are found, and the speed relative to counting alone.
fn ingest_discovered() -> Row {
    let items = zipf(WINDOW as usize);
    let mut finding = sketch(finding_plan());
    let mut counting = sketch(hashed_plan());
    let (seconds, ratio) = paired(&mut || feed(&mut finding, Batch::integers(&items)), &mut || {
        feed(&mut counting, Batch::integers(&items));
    });
    let value = items.len() as f64 / seconds / 1e6;
    let reach = Reach::AtLeast(0.18);
    Row { name: "ingest_discovered", value, unit: "M items/s", ratio: Some(1.0 / ratio), reach }
}

/// The same for short strings.
fn ingest_discovered_strings() -> Row {
    let items: Vec<String> =
        zipf(WINDOW as usize / 4).iter().map(|item| format!("/page/{item:06}")).collect();
    let method = || tuned(CounterLayout::Hashed { rows: 2, columns: 6666 });
    let mut finding = sketch(plan(method(), Domain::Found(SearchSettings::new(Kind::Bytes))));
    let mut counting = sketch(plan(method(), Domain::Asked(Kind::Bytes)));
    let (seconds, ratio) = paired(&mut || feed(&mut finding, Batch::bytes(&items)), &mut || {
        feed(&mut counting, Batch::bytes(&items));
    });
    let value = items.len() as f64 / seconds / 1e6;
    let reach = Reach::AtLeast(0.18);
    Row { name: "ingest_discovered_strings", value, unit: "M items/s", ratio: Some(1.0 / ratio), reach }
}

/// Nanoseconds a draw, relative to one u64 of the same generator.
fn noise(name: &'static str, law: Law) -> Row {
    let table = Table::new(law);
    let mut generators = [(); 2].map(|()| Noise::from_system().generator().unwrap());
    let [draws, words] = &mut generators;
    let mut cells = vec![0; 100_000];
    let count = cells.len();
    let mut next = || {
        let mut sum = 0;
        for _ in 0..count {
            sum ^= words.next_u64();
        }
        black_box(sum);
    };
    let (seconds, ratio) = paired(&mut || table.add_to(black_box(&mut cells), draws), &mut next);
    Row {
        name,
        value: seconds / count as f64 * 1e9,
        unit: "ns",
        ratio: Some(ratio),
        reach: Reach::AtMost(1.2),
    }
}

/// Our counting alone: one substream that never ends, so nothing is sealed.
fn never_sealing(rows: u32, columns: u32) -> DpswSketch {
    let counters = CounterLayout::Hashed { rows, columns };
    let settings = Settings {
        window: Window::Items(1 << 30),
        unit: Unit::ReplaceOne,
        epsilon: Epsilon::new(1.0).unwrap(),
        delta: None,
        domain: Domain::Asked(Kind::Integers),
        method: Some(Method::Tuned(TunedMethod { substreams: 1, counters, ..TunedMethod::default() })),
        retention: 1,
    };
    sketch(Plan::new(settings).unwrap())
}

fn count_min(name: &'static str, theirs: &mut dyn FnMut(&[u64])) -> Row {
    let items = zipf(WINDOW as usize / 4);
    let mut ours = never_sealing(4, 2048);
    let (seconds, ratio) = paired(&mut || feed(&mut ours, Batch::integers(&items)), &mut || theirs(&items));
    Row {
        name,
        value: items.len() as f64 / seconds / 1e6,
        unit: "M items/s",
        ratio: Some(1.0 / ratio),
        reach: Reach::AtLeast(1.5),
    }
}

fn count_min_vs_asap_sketchlib() -> Row {
    let mut theirs = asap_sketchlib::CountMinSketch::<Vector2D<i32>, FastPath>::with_dimensions(4, 2048);
    count_min("count_min_vs_asap_sketchlib", &mut |items| {
        for &item in items {
            theirs.update(&DataInput::U64(item));
        }
        black_box(&mut theirs);
    })
}

fn count_min_vs_datasketches() -> Row {
    let mut theirs = datasketches::countmin::CountMinSketch::<u64>::new(4, 2048).unwrap();
    count_min("count_min_vs_datasketches", &mut |items| {
        for &item in items {
            theirs.update(item);
        }
        black_box(&mut theirs);
    })
}

fn full_view() -> WindowView {
    full_view_of(hashed_plan())
}

fn full_view_of(plan: Plan) -> WindowView {
    let mut sketch = sketch(plan);
    sketch.extend(Batch::integers(&zipf(WINDOW as usize + 12_345))).unwrap();
    sketch.view()
}

/// Microseconds, the median over rounds of `count` calls.
fn each(name: &'static str, count: u64, reach: f64, mut run: impl FnMut(u64)) -> Row {
    let round = |_| {
        let took = time(&mut || (0..count).for_each(&mut run));
        took.as_secs_f64() / count as f64 * 1e6
    };
    let value = median((0..ROUNDS).map(round).collect());
    Row { name, value, unit: "us", ratio: None, reach: Reach::AtMost(reach) }
}

fn frequency_any() -> Row {
    let view = full_view();
    each("frequency_any", 10_000, 3.0, |i| {
        black_box(view.frequency(black_box(DOMAIN + i * 7919)).unwrap());
    })
}

fn frequency_cached() -> Row {
    let view = full_view();
    view.frequency(0).unwrap();
    each("frequency_cached", 10_000, 0.2, |i| {
        black_box(view.frequency(black_box(i * 7919 % DOMAIN)).unwrap());
    })
}

/// Milliseconds of the first list after a seal.
fn first_list(name: &'static str, plan: Plan, items: &[u64], rows: usize, reach: f64) -> Row {
    let mut sketch = sketch(plan);
    sketch.extend(Batch::integers(items)).unwrap();
    let round = |_| {
        sketch.extend(Batch::integers(&items[..WINDOW as usize / 20])).unwrap();
        let view = sketch.view();
        let first = &mut || {
            black_box(view.top(rows).unwrap());
        };
        time(first).as_secs_f64() * 1e3
    };
    let value = median((0..ROUNDS).map(round).collect());
    Row { name, value, unit: "ms", ratio: None, reach: Reach::AtMost(reach) }
}

/// Candidates, fits and caches.
fn refresh() -> Row {
    first_list("refresh", hashed_plan(), &zipf(WINDOW as usize), 1, 5.0)
}

fn refresh_levels() -> Row {
    first_list("refresh_levels", levels_plan(), &zipf(WINDOW as usize), 1, 5.0)
}

fn refresh_pinned() -> Row {
    first_list("refresh_pinned", pinned_plan(), &zipf(WINDOW as usize), 1, 5.0)
}

/// A counter for each of a million keys, and what 20 rows of them probably count.
fn refresh_lists_million() -> Row {
    let (keys, items) = (1_000_000, WINDOW as usize);
    first_list("refresh_lists_million", identity_plan_of(keys), &zipf_over(keys, items), 20, 150.0)
}

fn heavy_hitters(name: &'static str, plan: Plan) -> Row {
    let view = full_view_of(plan);
    let threshold = Threshold::new(0.005).unwrap();
    each(name, 20, 100.0, |_| {
        black_box(view.heavy_hitters(threshold).unwrap());
    })
}

/// Milliseconds of the last item of a substream.
fn seal(name: &'static str, plan: Plan) -> Row {
    let items = zipf(plan.substream_len() as usize);
    let mut sketch = sketch(plan);
    let mut times = Vec::new();
    for _ in 0..60 {
        let (last, rest) = items.split_last().unwrap();
        sketch.extend(Batch::integers(rest)).unwrap();
        times.push(time(&mut || feed(&mut sketch, Batch::integers(&[*last]))).as_secs_f64() * 1e3);
    }
    Row { name, value: median(times), unit: "ms", ratio: None, reach: Reach::AtMost(0.5) }
}

/// The largest ratio of live heap to planned bytes over the plans of this bench.
fn heap() -> Row {
    let items = zipf(WINDOW as usize * 5 / 4);
    let mut worst = (0.0, 0.0);
    for plan in [hashed_plan, identity_plan, paper_plan, finding_plan, levels_plan, pinned_plan] {
        let before = LIVE.load(Relaxed);
        let mut sketch = sketch(plan());
        for chunk in items.chunks(10_000) {
            sketch.extend(Batch::integers(chunk)).unwrap();
            black_box(sketch.view().top(10).unwrap());
            let live = (LIVE.load(Relaxed) - before) as f64;
            let planned = sketch.plan().resident_bytes() + sketch.plan().search_bytes();
            let ratio = live / planned as f64;
            if worst.1 < ratio {
                worst = (live / 1e6, ratio);
            }
        }
    }
    Row { name: "heap", value: worst.0, unit: "MB", ratio: Some(worst.1), reach: Reach::AtMost(1.25) }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    let only = arguments.iter().find(|argument| !argument.starts_with("--"));
    let laplace = Law::Laplace { scale: Ratio::new(4, 1).unwrap() };
    type Bench = Box<dyn Fn() -> Row>;
    let benches: [(&str, Bench); 25] = [
        ("ingest_hashed", Box::new(ingest_hashed)),
        ("ingest_identity", Box::new(ingest_identity)),
        ("ingest_levels", Box::new(ingest_levels)),
        ("ingest_pinned", Box::new(ingest_pinned)),
        ("ingest_paper", Box::new(ingest_paper)),
        ("ingest_strings", Box::new(ingest_strings)),
        ("noise_laplace", Box::new(move || noise("noise_laplace", laplace))),
        ("noise_gaussian", Box::new(|| noise("noise_gaussian", Law::Gaussian { variance: 147 }))),
        ("ingest_discovered", Box::new(ingest_discovered)),
        ("ingest_discovered_strings", Box::new(ingest_discovered_strings)),
        ("count_min_vs_asap_sketchlib", Box::new(count_min_vs_asap_sketchlib)),
        ("count_min_vs_datasketches", Box::new(count_min_vs_datasketches)),
        ("frequency_any", Box::new(frequency_any)),
        ("frequency_cached", Box::new(frequency_cached)),
        ("heavy_hitters", Box::new(|| heavy_hitters("heavy_hitters", hashed_plan()))),
        ("heavy_hitters_levels", Box::new(|| heavy_hitters("heavy_hitters_levels", levels_plan()))),
        ("heavy_hitters_pinned", Box::new(|| heavy_hitters("heavy_hitters_pinned", pinned_plan()))),
        ("seal", Box::new(|| seal("seal", hashed_plan()))),
        ("seal_levels", Box::new(|| seal("seal_levels", levels_plan()))),
        ("seal_pinned", Box::new(|| seal("seal_pinned", pinned_plan()))),
        ("refresh", Box::new(refresh)),
        ("refresh_levels", Box::new(refresh_levels)),
        ("refresh_pinned", Box::new(refresh_pinned)),
        ("refresh_lists_million", Box::new(refresh_lists_million)),
        ("heap", Box::new(heap)),
    ];
    for (name, bench) in benches {
        if only.is_none_or(|part| name.contains(part.as_str())) {
            bench().print(json);
        }
    }
}
