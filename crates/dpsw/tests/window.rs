//! What a window answers, against exact models with the noise off, and with noise against the truth.

use std::collections::VecDeque;
use std::ops::Range;

use dpsw::error::*;
use dpsw::noise::Law;
use dpsw::plan::{CounterLayout, Grid, Method, NoiseChoice, PaperMethod, Shares, SubstreamLen, TunedMethod};
use dpsw::sealed::Shape;
use dpsw::*;
use proptest::prelude::*;

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).expect("in range")
}

fn threshold(value: f64) -> Threshold {
    Threshold::new(value).expect("in range")
}

fn settings(window_len: u64, method: Method) -> Settings {
    Settings {
        window: Window::Items(window_len),
        unit: Unit::ReplaceOne,
        epsilon: epsilon(1.0),
        delta: Delta::new(1e-9).ok(),
        domain: Domain::Public(Keys::Range(8)),
        method: Some(method),
        retention: 1,
    }
}

fn paper(substream_len: u64, alpha: f64, grid: Grid) -> Method {
    Method::Paper(PaperMethod {
        substream: SubstreamLen::Items(substream_len),
        alpha: Ratio::from_decimal(alpha).expect("a ratio"),
        grid,
        counters: CounterLayout::Identity,
        shares: Shares::Printed,
    })
}

fn tuned(substreams: u64) -> Method {
    Method::Tuned(TunedMethod { substreams, counters: CounterLayout::Identity, ..TunedMethod::default() })
}

fn sketch(settings: Settings) -> DpswSketch {
    DpswSketch::with_noise(Plan::new(settings).expect("a valid plan"), Noise::off()).expect("noise is off")
}

/// A stream over 0..8 that drifts.
fn stream(len: u64) -> Vec<u64> {
    (0..len).map(|i| (i * i / 7 + i / 50 + (i % 3) * (i % 5)) % 8).collect()
}

fn count(items: &[u64], range: &Range<u64>, item: u64) -> f64 {
    items[range.start as usize..range.end as usize].iter().filter(|&&x| x == item).count() as f64
}

/// The oldest substream by its share inside the window, and for what runs since the last seal what the next one is predicted to
/// hold.
fn interpolated(items: &[u64], window: &Range<u64>, len: u64, item: u64, predicted: f64) -> f64 {
    let sealed = window.end / len;
    let inside = |k: u64| {
        (window.end.min((k + 1) * len)).saturating_sub(window.start.max(k * len)) as f64 / len as f64
    };
    let whole = |k: u64| count(items, &(k * len..(k + 1) * len), item);
    let sum: f64 = (0..sealed).filter(|&k| 0.0 < inside(k)).map(|k| inside(k) * whole(k)).sum();
    let ahead = (window.end - window.start.max(sealed * len)) as f64 / len as f64;
    if 0 < sealed { sum + ahead * predicted } else { 0.0 }
}

/// What is sealed of eight keys, without noise, in a window of `slices` substreams that noise of variance `noise` is claimed for.
struct Sealed {
    counts: Vec<[f64; 8]>,
    window: f64,
    slices: f64,
    noise: f64,
}

impl Sealed {
    /// The count of the next substream by the mean of the last `span`, before the one with this index.
    fn mean(&self, end: usize, span: usize, item: usize) -> f64 {
        let last = &self.counts[end.saturating_sub(span)..end];
        last.iter().map(|counts| counts[item]).sum::<f64>() / last.len() as f64
    }

    /// Keys with less than a sixteenth and a quarter of what finer slices would be worth are told apart.
    fn class(&self, item: usize) -> usize {
        let walk = 0.875 * 0.2056 * 0.4;
        let unit = ((0.25 + 4.0 * walk * self.noise).sqrt() - 0.5) / (2.0 * walk);
        let rate = self.mean(self.counts.len(), usize::MAX, item);
        [16.0, 4.0].iter().filter(|part| unit * self.slices / *part < rate).count()
    }

    /// How far off predictions of the last four substreams are from so many before them.
    fn costs(&self, class: usize, span: usize) -> Vec<f64> {
        let last = self.counts.len().saturating_sub(20);
        let judged = self.counts.len().saturating_sub(4).max(last + span)..self.counts.len();
        let keys = (0..8).filter(|&item| self.class(item) == class);
        let cost = |item: usize, slice: usize| {
            let predicted = self.mean(slice, span, item);
            let error = (self.counts[slice][item] - predicted).powi(2);
            (error / (self.noise + predicted.max(1.0))).min(25.0)
        };
        keys.flat_map(|item| judged.clone().map(move |slice| cost(item, slice))).collect()
    }

    /// The spans with the smallest mean cost of twenty or more; where they are as good, rounding decides which is taken.
    fn spans(&self, class: usize, len: f64) -> Vec<usize> {
        let spans = [1, 2, 4, 8, 16].into_iter().filter(|&span| span as f64 * len <= 0.8 * self.window);
        let costs = spans.map(|span| (self.costs(class, span), span)).filter(|(costs, _)| 20 <= costs.len());
        let mean = |costs: &[f64]| costs.iter().sum::<f64>() / costs.len() as f64;
        let means: Vec<(f64, usize)> = costs.map(|(costs, span)| (mean(&costs), span)).collect();
        let least = means.iter().map(|(mean, _)| *mean).fold(f64::INFINITY, f64::min);
        let best: Vec<usize> =
            means.iter().filter(|(mean, _)| *mean < least + 1e-9).map(|(_, span)| *span).collect();
        if best.is_empty() { vec![1] } else { best }
    }

    /// What the next substream will hold: as much as the newest one if that is far off.
    fn next(&self, item: usize, len: f64) -> Vec<f64> {
        let end = self.counts.len();
        let next = |span: usize| {
            let [newest, predicted] = [1, span].map(|span| self.mean(end, span, item));
            let variance = (self.noise + predicted) * (1.0 + 1.0 / span as f64);
            if 3.5 * variance.sqrt() < (newest - predicted).abs() { newest } else { predicted }
        };
        self.spans(self.class(item), len).into_iter().map(next).collect()
    }
}

/// What the next substream is predicted to hold, from those of the last window: more than one value where these are as good.
fn next(items: &[u64], plan: &Plan, item: u64) -> Vec<f64> {
    let (end, window, len) = (items.len() as u64, plan.settings().window.len(), plan.substream_len());
    // Substreams leave when others are sealed.
    let retained = (end / len * len).saturating_sub(window) / len..end / len;
    let counts = |k: u64| std::array::from_fn(|item| count(items, &(k * len..(k + 1) * len), item as u64));
    let counts: Vec<[f64; 8]> = retained.map(counts).collect();
    if counts.is_empty() {
        return vec![0.0];
    }
    let (slices, noise) = (window.div_ceil(len) as f64, plan.ranges()[0].law().variance());
    Sealed { counts, window: window as f64, slices, noise }.next(item as usize, len as f64)
}

/// Substreams of ten with a checkpoint at every item.
fn everywhere() -> Method {
    Method::Paper(PaperMethod {
        substream: SubstreamLen::Items(10),
        alpha: Ratio::from_decimal(0.05).expect("a ratio"),
        grid: Grid::Items,
        counters: CounterLayout::Identity,
        shares: Shares::Explicit(vec![Ratio::new(1, 20).expect("not zero"); 10]),
    })
}

/// Plans whose checkpoints lie at every position, so that nothing is rounded.
#[test]
fn with_a_checkpoint_everywhere_the_answer_is_the_exact_window_at_every_position() {
    for (window_len, method) in [
        (30, paper(1, 0.5, Grid::Items)),
        (30, everywhere()),
        (37, everywhere()),
        (7, everywhere()),
        (25, tuned(25)),
    ] {
        let mut sketch = sketch(settings(window_len, method.clone()));
        let mut model: VecDeque<u64> = VecDeque::new();
        for item in stream(200) {
            sketch.add(item).expect("a valid item");
            model.push_back(item);
            if window_len < model.len() as u64 {
                model.pop_front();
            }
            let view = sketch.view();
            for item in 0..8 {
                let wanted = model.iter().filter(|&&x| x == item).count() as f64;
                let got = view.frequency(item).expect("a valid question");
                // A window inside one substream can only be covered from the substream's start.
                if got.covered == got.window {
                    assert_eq!(got.value, wanted, "{method:?}, w {window_len}, t {}", sketch.position());
                } else {
                    assert!(window_len < 10, "{method:?}: {:?} for {:?}", got.covered, got.window);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_answer_counts_exactly_the_span_that_it_names(
        window_len in 1_u64..100,
        substream_len in 1_u64..30,
        units in 1_u64..6,
        flat in any::<bool>(),
        batches in prop::collection::vec(0_usize..40, 1..12),
    ) {
        let method = if flat {
            tuned(window_len.div_ceil(substream_len))
        } else {
            paper(substream_len.max(units), 0.6, Grid::Units(units))
        };
        let mut sketch = sketch(settings(window_len, method));
        let items = stream(batches.iter().sum::<usize>() as u64);
        let mut taken = 0;
        for batch in batches {
            sketch.extend(Batch::integers(&items[taken..taken + batch])).expect("valid items");
            taken += batch;
            let view = sketch.view();
            prop_assert_eq!(sketch.position(), taken as u64);
            prop_assert_eq!(view.window(), (taken as u64).saturating_sub(window_len)..taken as u64);
            for shorter in [1, window_len / 2 + 1, window_len, 10 * window_len] {
                let Ok(view) = view.last(shorter) else { continue };
                for item in 0..8 {
                    let got = view.frequency(item).expect("a valid question");
                    prop_assert!(got.covered.end <= taken as u64);
                    if flat {
                        let predicted = next(&items[..taken], view.plan(), item);
                        let len = view.plan().substream_len();
                        let wanted = |predicted| interpolated(&items, &got.window, len, item, predicted);
                        let wanted: Vec<f64> = predicted.into_iter().map(wanted).collect();
                        let is_one = wanted.iter().any(|wanted| (got.value - wanted).abs() < 1e-6);
                        prop_assert!(is_one, "{} for {:?}", got.value, wanted);
                        continue;
                    }
                    prop_assert_eq!(got.value, count(&items, &got.covered, item));
                    let off = (got.value - count(&items, &got.window, item)).abs();
                    prop_assert!(off <= got.error_bound, "{} off, bound {}", off, got.error_bound);
                }
            }
        }
    }
}

proptest! {
    /// Noise is off, and claims to be next to nothing: what is left of the error is where items lie inside a substream.
    #[test]
    fn however_items_are_spread_the_count_lies_in_any_order(
        items in prop::collection::vec(0_u64..3, 1..120),
        window_len in 1_u64..60,
        substreams in 1_u64..8,
        levels in 1_u32..4,
        len in 1_u64..60,
        back in 0_u64..60,
    ) {
        let substreams = substreams.min(window_len);
        let levels = levels.min(window_len.div_ceil(substreams).ilog2() + 1);
        let counters = CounterLayout::Identity;
        let method = TunedMethod { substreams, counters, levels, ..TunedMethod::default() }.into();
        let settings = Settings { epsilon: epsilon(60.0), retention: 2, ..settings(window_len, method) };
        let mut sketch = sketch(settings);
        sketch.extend(Batch::integers(&items)).expect("valid items");
        let end = (items.len() as u64).saturating_sub(back).max(1);
        let view = sketch.view();
        let Ok(view) = view.as_of(end).and_then(|view| view.last(len)) else { return Ok(()) };
        for item in 0..3 {
            let got = view.frequency(item).expect("a key");
            let truth = count(&items, &got.window, item);
            prop_assert!((got.any_order.start..=got.any_order.end).contains(&truth), "{truth}: {got:?}");
        }
    }
}

#[test]
fn a_burst_that_no_substream_shows_lies_in_any_order_and_outside_the_error_bound() {
    let mut sketch = sketch(Settings { epsilon: epsilon(60.0), ..settings(4_000, tuned(4)) });
    // A hundred at the end of each substream of a thousand.
    let items: Vec<u64> = (0..4_500).map(|i| u64::from(i % 1_000 < 900)).collect();
    sketch.extend(Batch::integers(&items)).expect("valid items");
    let got = sketch.view().last(400).expect("a window").frequency(0).expect("a key");
    assert!(got.error_bound < got.value && got.any_order == (0.0..400.0), "{got:?}");
    let whole = sketch.view().frequency(0).expect("a key");
    let [least, most] = [whole.any_order.start, whole.any_order.end].map(|end| (10.0 * end).round() / 10.0);
    assert_eq!((whole.value.round(), least, most), (400.0, 299.5, 900.5));
}

/// The vectors of the paper's window arithmetic: w = 10⁶, substreams of 10⁵, checkpoints {10⁵, 3·10⁴, 10⁴}.
#[test]
fn the_covered_spans_are_those_of_the_published_vectors() {
    let method = |len| settings(len, paper(100_000, 0.75, Grid::Units(10)));
    let cases: [(u64, u64, Range<u64>); 8] = [
        (1_000_000, 9_999, 9_999..9_999),
        (1_000_000, 10_000, 0..10_000),
        (1_000_000, 35_000, 0..30_000),
        (1_000_000, 1_000_000, 0..1_000_000),
        (1_000_000, 1_234_567, 200_000..1_230_000),
        (1_000_000, 1_280_001, 270_000..1_230_000),
        (1_000_000, 1_290_000, 290_000..1_230_000),
        (950_000, 1_234_567, 270_000..1_230_000),
    ];
    for (window_len, t, wanted) in cases {
        let mut sketch = sketch(settings(window_len, method(window_len).method.expect("given")));
        sketch.extend(Batch::integers(&vec![3; t as usize])).expect("valid items");
        let view = sketch.view();
        assert_eq!(view.covered(), wanted, "t = {t}, w = {window_len}");
        let value = view.frequency(3).expect("a valid question").value;
        assert_eq!(value, (wanted.end - wanted.start) as f64);
    }
}

#[test]
fn items_in_one_batch_or_many_are_counted_alike() {
    let text: Vec<String> = stream(500).iter().map(u64::to_string).collect();
    let domain = Domain::Public(Keys::text((0..8).map(|i| i.to_string())));
    for counters in [CounterLayout::Identity, CounterLayout::Hashed { rows: 6, columns: 50 }] {
        let method = Method::Tuned(TunedMethod { substreams: 5, counters, ..TunedMethod::default() });
        let settings = Settings { domain: domain.clone(), ..settings(100, method) };
        let plan = Plan::new(settings).expect("a valid plan");
        let [mut once, mut many] =
            [(); 2].map(|()| DpswSketch::with_noise(plan.clone(), Noise::seeded(1)).expect("seeded"));
        once.extend(Batch::bytes(&text)).expect("valid items");
        for item in &text {
            many.add(item.as_str()).expect("a valid item");
        }
        for key in &text[..8] {
            let answers = [&once, &many].map(|sketch| sketch.view().frequency(key.as_str()).expect("a key"));
            assert_eq!(answers[0], answers[1]);
        }
    }
}

#[test]
fn items_outside_an_identity_domain_take_their_position_and_count_nowhere() {
    let mut sketch = sketch(settings(10, tuned(2)));
    sketch.extend(Batch::integers(&[1, 1_000_000, 1, u64::MAX, 1])).expect("null items are taken");
    let view = sketch.view();
    assert_eq!(sketch.position(), 5);
    assert_eq!(view.frequency(1).expect("in the domain").value, 3.0);
    assert_eq!(view.frequency(1_000_000), Err(QueryError::NotInDomain));
    let empty = DpswSketch::with_noise(sketch.plan().clone(), Noise::off()).expect("off").view();
    assert_eq!(empty.frequency(1_000_000), Err(QueryError::NotInDomain));
    assert_eq!(view.top(9).expect("public").all().map(|r| r.estimate.value).sum::<f64>(), 3.0);
}

#[test]
fn nothing_is_answered_before_the_first_seal() {
    let mut sketch = sketch(settings(100, tuned(10)));
    sketch.extend(Batch::integers(&[5; 9])).expect("valid items");
    let estimate = sketch.view().frequency(5).expect("a valid question");
    assert_eq!((estimate.value, estimate.error_bound, estimate.covered), (0.0, 9.0, 9..9));
    sketch.add(5).expect("a valid item");
    assert_eq!(sketch.view().frequency(5).expect("a valid question").value, 10.0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Two streams that differ only after the last boundary give the same answers: what has not been sealed does
    /// not show. With a peek into the running counters this fails at the first differing item.
    #[test]
    fn inside_a_segment_answers_change_through_the_position_alone(
        common in 0_u64..300,
        tails in prop::collection::vec((0_u64..8, 0_u64..8), 1..9),
        flat in any::<bool>(),
    ) {
        let method = if flat { tuned(10) } else { paper(10, 0.75, Grid::Units(10)) };
        let plan = Plan::new(settings(100, method)).expect("a valid plan");
        let mut pair = [(); 2].map(|()| DpswSketch::with_noise(plan.clone(), Noise::seeded(common)).expect("seeded"));
        // The checkpoints lie at offsets 1, 3, 7, 9 and 10; flat plans seal at 10 alone.
        let (start, room) = if flat { (common / 10 * 10, 9) } else { (common / 10 * 10 + 3, 3) };
        for sketch in &mut pair {
            sketch.extend(Batch::integers(&stream(start))).expect("valid items");
        }
        for &(left, right) in tails.iter().take(room) {
            pair[0].add(left).expect("a valid item");
            pair[1].add(right).expect("a valid item");
            let views = [pair[0].view(), pair[1].view()];
            for item in 0..8 {
                prop_assert_eq!(views[0].frequency(item), views[1].frequency(item));
            }
            prop_assert_eq!(views[0].top(8), views[1].top(8));
        }
    }
}

#[test]
fn the_paper_threshold_stays_fixed_while_the_window_fills() {
    let method = Method::Paper(PaperMethod {
        counters: CounterLayout::Hashed { rows: 3, columns: 100 },
        ..PaperMethod::default()
    });
    let mut sketch = sketch(settings(1000, method));
    sketch.extend(Batch::integers(&[7; 100])).expect("valid items");
    // (0.12 - 0.01) * 1000 = 110 > 100 >= (0.11 - 0.01) * 1000.
    assert!(sketch.view().heavy_hitters(threshold(0.12)).expect("public").is_empty());
    assert_eq!(sketch.view().heavy_hitters(threshold(0.11)).expect("public").len(), 1);
}

#[test]
fn the_tuned_threshold_is_a_share_of_what_has_been_seen() {
    let mut sketch = sketch(settings(1000, tuned(10)));
    sketch.extend(Batch::integers(&[7; 60])).expect("valid items");
    sketch.extend(Batch::integers(&[1; 40])).expect("valid items");
    let keys = |share| {
        let view = sketch.view();
        let ranked = view.heavy_hitters(threshold(share)).expect("public");
        ranked.iter().map(|r| r.item.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(keys(0.5), ["7"]);
    assert_eq!(keys(0.4), ["7", "1"]);
}

#[test]
fn top_is_sorted_and_cut() {
    let mut sketch = sketch(settings(100, tuned(1)));
    let items: Vec<u64> = (0..8_u64).flat_map(|i| vec![i; i as usize + 1]).chain([0; 64]).collect();
    sketch.extend(Batch::integers(&items)).expect("valid items");
    let view = sketch.view();
    let top: Vec<String> = view.top(4).expect("public").all().map(|r| r.item.to_string()).collect();
    assert_eq!(top, ["0", "7", "6", "5"]);
    assert_eq!(view.top(0).expect("public").all().count(), 0);
    assert_eq!(view.top(100).expect("public").all().count(), 8);
}

#[test]
fn without_a_public_domain_only_named_candidates_are_answered() {
    let method = Method::Tuned(TunedMethod {
        counters: CounterLayout::Hashed { rows: 2, columns: 64 },
        substreams: 2,
        ..TunedMethod::default()
    });
    let settings = Settings { domain: Domain::Asked(Kind::Bytes), ..settings(10, method) };
    let mut sketch = sketch(settings);
    sketch.extend(Batch::bytes(&["a", "a", "a", "b", "c", "a", "a", "a", "b", "c"])).expect("valid items");
    let view = sketch.view();
    assert_eq!(view.top(3), Err(QueryError::NoDomain));
    assert_eq!(view.heavy_hitters(threshold(0.1)), Err(QueryError::NoDomain));
    let candidates = ["b", "a", "zebra"].map(Item::from);
    let heavy = view.heavy_hitters_among(&candidates, threshold(0.5)).expect("named");
    assert_eq!(heavy.iter().map(|r| r.item).collect::<Vec<_>>(), [Item::from("a")]);
    // Without a list of keys the bias of the minimum is measured on random buckets, 1,024 of them.
    assert!((heavy[0].estimate.value - 6.0).abs() < 0.5);
}

#[test]
fn shorter_and_past_windows_come_from_the_same_sketches() {
    let items = stream(100);
    let mut sketch = sketch(Settings { retention: 2, ..settings(40, tuned(4)) });
    sketch.extend(Batch::integers(&items)).expect("valid items");
    let view = sketch.view();
    assert_eq!(view.retained(), 20..100);
    for (view, wanted) in [
        (view.last(10).expect("retained"), 90..100),
        (view.last(80).expect("retained"), 20..100),
        (view.as_of(70).expect("retained"), 30..70),
        (view.as_of(60).expect("retained").last(20).expect("retained"), 40..60),
        (view.last(20).expect("retained").as_of(50).expect("retained"), 30..50),
        (view.last(60).expect("retained").as_of(90).expect("retained"), 30..90),
    ] {
        assert_eq!((view.window(), view.covered()), (wanted.clone(), wanted.clone()));
        for item in 0..8 {
            assert_eq!(view.frequency(item).expect("a key").value, count(&items, &wanted, item));
        }
    }
    let error = view.last(81).expect_err("too long");
    assert_eq!(error, QueryError::NotRetained { asked: 19..100, retained: 20..100 });
    assert!(error.to_string().contains("20..100"));
    assert!(view.as_of(101).is_err() && view.as_of(59).is_err());
    assert_eq!(view.last(0).map(|_| ()), Err(QueryError::EmptyWindow));
}

#[test]
fn an_old_view_keeps_answering_the_same() {
    let mut sketch = sketch(settings(40, tuned(4)));
    sketch.extend(Batch::integers(&stream(100))).expect("valid items");
    let view = sketch.view();
    let before: Vec<_> = (0..8).map(|item| view.frequency(item)).collect();
    sketch.extend(Batch::integers(&stream(500))).expect("valid items");
    let after: Vec<_> = (0..8).map(|item| view.frequency(item)).collect();
    assert_eq!(before, after);
}

#[test]
fn the_wrong_kind_of_item_is_refused_and_nothing_is_taken() {
    let mut sketch = sketch(settings(10, tuned(2)));
    sketch.extend(Batch::integers(&[1, 2])).expect("valid items");
    let error = sketch.extend(Batch::bytes(&["1"])).expect_err("integers are counted");
    assert_eq!(error.to_string(), "this stream counts integers, got bytes or text; nothing was taken");
    assert_eq!(sketch.position(), 2);
    let error = sketch.view().frequency("1").expect_err("integers are counted");
    assert_eq!(error.to_string(), "this stream counts integers, asked for bytes or text");
}

#[track_caller]
fn check_refused(settings: Settings, message: &str) {
    let error = Plan::new(settings).expect_err(message);
    assert_eq!(error.to_string(), message);
}

#[test]
fn plans_that_cannot_be_are_refused_with_the_reason() {
    let good = settings(1000, Method::Paper(PaperMethod::default()));
    let method = |change: fn(&mut PaperMethod)| {
        let mut method = PaperMethod::default();
        change(&mut method);
        Settings { method: Some(Method::Paper(method)), ..good.clone() }
    };
    check_refused(
        Settings { window: Window::Items(0), unit: Unit::ReplaceOne, ..good.clone() },
        "window length must lie between 1 and 1099511627776, got 0",
    );
    check_refused(Settings { retention: 0, ..good.clone() }, "retention must lie between 1 and 1000, got 0");
    check_refused(
        Settings { delta: None, ..good.clone() },
        "the paper's method needs a delta: give one below 1/(items per window x retention)",
    );
    check_refused(
        Settings { delta: Delta::new(0.01).ok(), ..good.clone() },
        "delta must not exceed 1/(items per window x retention) = 1e-3, got 1e-2",
    );
    check_refused(method(|m| m.alpha = Ratio::ONE), "alpha must lie strictly between 0 and 1, got 1");
    check_refused(
        method(|m| {
            m.substream = SubstreamLen::Items(1 << 30);
            m.grid = Grid::Items;
            m.alpha = Ratio::from_decimal(0.0001).expect("a ratio");
        }),
        "number of checkpoints must lie between 1 and 200, got 201 or more; use a larger alpha or a coarser grid",
    );
    check_refused(
        method(|m| m.grid = Grid::Units(101)),
        "number of grid units must lie between 1 and 100, got 101; a unit is at least one item",
    );
    check_refused(
        method(|m| m.counters = CounterLayout::Hashed { rows: 17, columns: 10 }),
        "number of rows must lie between 1 and 16, got 17",
    );
    check_refused(
        method(|m| m.substream = SubstreamLen::Items(0)),
        "substream length must lie between 1 and 1099511627776, got 0",
    );
    check_refused(
        Settings {
            window: Window::Items(1 << 40),
            delta: Delta::new(1e-13).ok(),
            ..method(|m| m.substream = SubstreamLen::PerWindow(1023))
        },
        "number of items in a substream must lie between 0 and 1073741824, got 1074791426; use a shorter window, or more \
        substreams in it",
    );
    check_refused(
        method(|m| m.substream = SubstreamLen::Exponent(1.0)),
        "beta must lie strictly between 0 and 1, got 1",
    );
    let share = |value| Ratio::from_decimal(value).expect("a ratio");
    let shares = |list: &[f64]| {
        let shares = Shares::Explicit(list.iter().map(|&value| share(value)).collect());
        Settings {
            method: Some(Method::Paper(PaperMethod { shares, ..PaperMethod::default() })),
            ..good.clone()
        }
    };
    check_refused(
        shares(&[0.8, 0.2]),
        "3 checkpoints need 3 budget shares (whole first, then one per checkpoint), got 2",
    );
    check_refused(
        shares(&[0.8, 0.15, 0.05001]),
        "the budget shares that one event can touch add up to 1.00001, more than 1",
    );
    assert!(Plan::new(shares(&[0.8, 0.15, 0.05])).is_ok());
    check_refused(
        Settings { domain: Domain::Asked(Kind::Bytes), ..settings(10, tuned(2)) },
        "identity counters need a public domain; give one, or rows and columns",
    );
    check_refused(
        Settings { domain: Domain::Public(Keys::integers([4, 4])), ..good.clone() },
        "key 1 of the domain repeats key 0; list each key once",
    );
    check_refused(settings(10, tuned(11)), "number of substreams must lie between 1 and 10, got 11");
}

#[test]
fn the_paper_plan_has_the_printed_structure() {
    let settings = Settings {
        delta: Delta::new(10_f64.powf(-10.5)).ok(),
        domain: Domain::Public(Keys::Range(25_600)),
        ..settings(1_000_000, Method::Paper(PaperMethod::default()))
    };
    let plan = Plan::new(settings.clone()).expect("a valid plan");
    let ranges: Vec<_> = plan.ranges().iter().map(|r| (r.role(), r.offsets())).collect();
    use dpsw::plan::paper::checkpoint::Role::{Prefix, Suffix, Whole};
    assert_eq!(
        ranges,
        [
            (Whole, 0..100_000),
            (Prefix, 0..30_000),
            (Suffix, 70_000..100_000),
            (Prefix, 0..10_000),
            (Suffix, 90_000..100_000),
        ]
    );
    // sigma = 20.5 / 225 / 260 at epsilon 1 with four rows.
    let deviations: Vec<f64> = plan.ranges().iter().map(|r| r.law().variance().sqrt().round()).collect();
    assert_eq!(deviations, [21.0, 225.0, 225.0, 260.0, 260.0]);
    // 35 sketches of 8,000 counters of four bytes.
    assert_eq!(plan.sketch_bytes(), 1_120_000);
    let (spent, _) = plan.ledger().spent();
    assert!(0.9 < spent && spent <= 1.0, "spent {spent}");
    let text = plan.to_string();
    for part in ["epsilon = 1, delta = ", "a window's count is off by at most"] {
        assert!(text.contains(part), "{text}");
    }
    let bounds = plan.paper_bounds().expect("the paper's method");
    assert!(0.0 < bounds.sketch && bounds.sketch < bounds.frequency && bounds.main.is_some());

    let literal = PaperMethod {
        substream: SubstreamLen::Exponent(0.5),
        grid: Grid::Items,
        counters: CounterLayout::Accuracy { relative_error: 0.001, failure_probability: 0.01 },
        shares: Shares::Explicit(vec![Ratio::from_decimal(0.1).expect("a ratio"); 6]),
        ..PaperMethod::default()
    };
    let plan =
        Plan::new(Settings { method: Some(Method::Paper(literal)), ..settings }).expect("a valid plan");
    assert_eq!(plan.substream_len(), 1000);
    assert_eq!(plan.shape(), Shape { rows: 5, columns: 2719 });
    assert_eq!(plan.ranges().len(), 11);
}

#[test]
fn a_laplace_plan_is_pure_and_a_gaussian_plan_is_not() {
    let flat = |noise| Method::Tuned(TunedMethod { noise, ..TunedMethod::default() });
    let plan = Plan::new(settings(1000, flat(NoiseChoice::Laplace))).expect("a valid plan");
    assert_eq!(plan.claim(), Claim::Pure(epsilon(1.0)));
    assert_eq!(plan.ranges()[0].law(), Law::Laplace { scale: Ratio::new(4, 1).expect("a ratio") });
    let tiny = Delta::new(10_f64.powf(-10.5)).ok();
    let plan = Plan::new(Settings { delta: tiny, ..settings(1000, flat(NoiseChoice::Gaussian)) });
    let plan = plan.expect("a valid plan");
    assert_eq!(plan.ranges()[0].law(), Law::Gaussian { variance: 147 });
    assert_eq!(plan.claim(), Claim::Approximate(epsilon(1.0), tiny.expect("given")));
}

#[test]
fn seeded_noise_claims_nothing_and_system_noise_claims_the_plan() {
    let plan = Plan::new(settings(1000, tuned(10))).expect("a valid plan");
    let seeded = DpswSketch::with_noise(plan.clone(), Noise::seeded(1)).expect("seeded");
    assert_eq!(seeded.view().claim(), Claim::None);
    let system = DpswSketch::new(plan).expect("the system has randomness");
    assert_eq!(system.view().claim(), Claim::Pure(epsilon(1.0)));
}

/// Over 200 seeds the true count must lie within the bound as often as promised; in the paper's method the bound adds
/// up worst cases, so it is met nearly always. The check also fails if noise or collisions were left out of the bound: then
/// the estimates of a single sketch would break it about every other time.
#[test]
fn the_error_bound_is_kept_and_is_not_empty() {
    let wide = |counters, noise| {
        Method::Tuned(TunedMethod { substreams: 4, counters, noise, ..TunedMethod::default() })
    };
    let hashed = CounterLayout::Hashed { rows: 2, columns: 40 };
    let paper =
        PaperMethod { counters: CounterLayout::Hashed { rows: 3, columns: 40 }, ..PaperMethod::default() };
    for method in [
        wide(CounterLayout::Identity, NoiseChoice::Laplace),
        wide(hashed, NoiseChoice::Laplace),
        wide(hashed, NoiseChoice::Gaussian),
        Method::Paper(paper),
    ] {
        let domain = Domain::Public(Keys::Range(300));
        let plan = Plan::new(Settings { domain, ..settings(4000, method) }).expect("a valid plan");
        let items: Vec<u64> = (0..6000_u64).map(|i| i * i % 307 % 300).collect();
        let (mut kept, mut off) = (0, 0.0);
        let seeds = 200;
        for seed in 0..seeds {
            let mut sketch = DpswSketch::with_noise(plan.clone(), Noise::seeded(seed)).expect("seeded");
            sketch.extend(Batch::integers(&items)).expect("valid items");
            let item = seed % 300;
            let estimate = sketch.view().frequency(item).expect("a key");
            let error = (estimate.value - count(&items, &estimate.window, item)).abs();
            kept += u64::from(error <= estimate.error_bound);
            off += error / seeds as f64;
            assert!(estimate.error_bound < 4000.0);
        }
        // Five standard errors below the promise; the fixed seeds make it repeatable.
        let least = CONFIDENCE * seeds as f64 - 5.0 * (seeds as f64 * CONFIDENCE * (1.0 - CONFIDENCE)).sqrt();
        assert!(least <= kept as f64, "{plan}: kept {kept} of {seeds}");
        assert!(1.0 < off, "{plan}: mean error {off} with noise on");
    }
}

#[test]
fn noise_has_the_planned_spread_in_the_sealed_counters() {
    // An empty key of an identity plan shows noise alone: sum of 4 draws of scale 2, variance 4 * 7.8354. The sample
    // variance of 2,000 draws stays within 5 standard errors (fourth moment below 6 variances squared).
    let domain = Domain::Public(Keys::Range(2001));
    let plan = Plan::new(Settings { domain, ..settings(40, tuned(4)) }).expect("a valid plan");
    let mut sketch = DpswSketch::new(plan).expect("the system has randomness");
    sketch.extend(Batch::integers(&[2000; 40])).expect("valid items");
    let view = sketch.view();
    let values: Vec<f64> = (0..2000).map(|i| view.frequency(i).expect("a key").value).collect();
    let variance = values.iter().map(|v| v * v).sum::<f64>() / 2000.0;
    assert!((variance / (4.0 * 7.8354) - 1.0).abs() < 5.0 * (5.0_f64 / 2000.0).sqrt(), "variance {variance}");
}

#[test]
fn a_seeded_run_gives_the_pinned_answers() {
    let plan = Plan::new(settings(1000, Method::Paper(PaperMethod::default()))).expect("a valid plan");
    let mut sketch = DpswSketch::with_noise(plan, Noise::seeded(42)).expect("seeded");
    sketch.extend(Batch::integers(&stream(2345))).expect("valid items");
    let view = sketch.view();
    let values: Vec<f64> = (0..8).map(|item| view.frequency(item).expect("a key").value).collect();
    assert_eq!(values, PINNED);
}

const PINNED: [f64; 8] = [-500.0, -170.0, -419.0, -232.0, -284.0, -325.0, -226.0, -319.0];

#[test]
fn views_can_be_shared_between_threads() {
    fn is_shareable<T: Clone + Send + Sync>() {}
    is_shareable::<WindowView>();
}

fn trending(retention: u32) -> WindowView {
    let plan = Plan::new(Settings { retention, ..settings(4000, tuned(20)) }).expect("a valid plan");
    let mut sketch = DpswSketch::with_noise(plan, Noise::seeded(5)).expect("seeded");
    let items: Vec<u64> = (0..8000_u64)
        .map(|i| match i % 4 {
            0 => 0,
            1 if 6000 <= i => 1,
            2 if i < 6000 => 2,
            _ => 3 + i % 5,
        })
        .collect();
    sketch.extend(Batch::integers(&items)).expect("valid items");
    sketch.view()
}

#[test]
fn trends_are_reported_beyond_their_interval_only() {
    for retention in [1, 2] {
        let view = trending(retention);
        let direction = |item| view.trend(item).expect("a key").direction;
        assert_eq!(direction(1), Direction::Rising, "retention {retention}");
        assert_eq!(direction(2), Direction::Falling, "retention {retention}");
        assert_eq!(direction(0), Direction::Steady, "retention {retention}");
    }
    assert_eq!(trending(1).trend(0).expect("a key").before.window, 4000..6000);
    assert_eq!(trending(2).trend(0).expect("a key").before.window, 0..4000);
}

#[test]
fn the_history_of_an_item_is_its_estimate_in_each_substream() {
    let view = trending(2);
    let history = view.history(1).expect("a key");
    assert_eq!(history.len(), 40);
    for (number, estimate) in (0..).zip(&history) {
        assert_eq!(estimate.window, number * 200..(number + 1) * 200);
        let wanted = if number < 30 { 0.0 } else { 50.0 };
        assert!((estimate.value - wanted).abs() < 40.0, "{number}: {}", estimate.value);
    }
}

#[test]
fn sure_heavy_hitters_are_plain_ones_and_plain_ones_are_possible() {
    let view = trending(1);
    let line = threshold(0.13);
    let keys = |certainty| {
        let ranked = view.heavy_hitters_with(line, certainty).expect("public");
        ranked.iter().map(|r| r.item.to_string()).collect::<Vec<_>>()
    };
    let [sure, plain, possible] = [Certainty::Sure, Certainty::Plain, Certainty::Possible].map(keys);
    assert!(sure.iter().all(|key| plain.contains(key)) && plain.iter().all(|key| possible.contains(key)));
    assert_eq!(plain.len(), view.heavy_hitters(line).expect("public").len());
    assert!(sure.contains(&"0".to_owned()) && sure.len() < possible.len());
}

#[test]
fn intervals_widen_with_confidence_and_values_below_noise_say_so() {
    let estimate = trending(1).frequency(0).expect("a key");
    let width = |confidence| {
        let interval = estimate.interval(confidence).expect("in range");
        interval.end - interval.start
    };
    assert!((width(0.95) - 2.0 * estimate.error_bound).abs() < 1e-3);
    assert!(width(0.5) < width(0.95) && width(0.95) < width(0.999));
    assert!(estimate.interval(1.0).is_err());
    assert!(!estimate.is_below_noise());
    let parts = estimate.deviations.expect("tuned");
    assert!(0.0 < parts.noise && parts.collisions == 0.0);
    let domain = Domain::Public(Keys::Range(2000));
    let plan = Plan::new(Settings { domain, ..settings(4000, tuned(20)) }).expect("a valid plan");
    let mut sketch = DpswSketch::with_noise(plan, Noise::seeded(5)).expect("seeded");
    sketch.extend(Batch::integers(&vec![3; 4000])).expect("valid items");
    let below = (0..2000).filter(|&i| sketch.view().frequency(i).expect("a key").is_below_noise()).count();
    // Of 1,999 absent keys about 2.5 % lie above their bound by chance; five standard errors are 35.
    assert!((1999 - 50 - 35..=1999).contains(&below), "{below}");
}

/// Among 5,000 keys, many share counters with two of the 40 heavy ones. Without noise the fit of the heavy ones alone is
/// exact, up to pairs of them that share all their counters in a substream; keys that only seem heavy would take from it.
#[test]
fn keys_that_only_seem_frequent_take_nothing_from_frequent_ones() {
    let counters = CounterLayout::Hashed { rows: 2, columns: 250 };
    let method = Method::Tuned(TunedMethod { substreams: 20, counters, ..TunedMethod::default() });
    let domain = Domain::Public(Keys::Range(5000));
    let plan = Plan::new(Settings { domain, ..settings(40_000, method) }).expect("a valid plan");
    let mut worst = Vec::new();
    for key in 0..10 {
        let mut sketch = DpswSketch::with_key(plan.clone(), StreamKey::from_bytes([key; 32]), Noise::off());
        sketch.extend(Batch::integers(&(0..40_000).map(|i| i % 40).collect::<Vec<u64>>())).expect("integers");
        let errors = (0..40).map(|item| (sketch.view().frequency(item).expect("known").value - 1000.0).abs());
        worst.push(errors.fold(0.0, f64::max));
    }
    assert!(worst.iter().all(|&worst| worst < 10.0), "{worst:?}");
}
