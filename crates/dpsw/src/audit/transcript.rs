//! Everything that a view answers, in words that can be compared.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::item::keys::Keys;
use crate::plan::range::WHOLE;
use crate::privacy::parameters::Threshold;
use crate::sealed::pins::Pins;
use crate::sealed::released::Released;
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;
use crate::view::cached_release::CachedRelease;
use crate::view::estimate::{Certainty, Estimate};
use crate::view::window_view::WindowView;

/// Keys that are asked for, as indices.
const ASKED_KEYS: [usize; 4] = [0, 1, 2, 5];
/// Bytes at the end of a view that depend on all others.
const CHECKSUM_LEN: usize = 4;
/// Thresholds for heavy hitters.
const SHARES: [f64; 2] = [0.05, 0.3];

/// Every answer, to the last digit: values, error bounds, deviations, spans, totals, lists and errors.
pub(crate) fn write_answers(view: &WindowView, keys: &Keys) -> String {
    let mut said = String::new();
    for window in asked_windows(view) {
        let _ = writeln!(said, "{:?} {:?} {:?}", window.window(), window.covered(), window.items());
        for item in ASKED_KEYS.map(|key| keys.get(key)) {
            let _ = writeln!(said, "{:?} {:?}", window.frequency(item), window.trend(item));
        }
    }
    let item = keys.get(ASKED_KEYS[1]);
    let _ = writeln!(said, "{:?} {:?}", view.history(item), view.top(7));
    for share in SHARES.map(|share| Threshold::new(share).expect("a share lies between 0 and 1")) {
        let _ = writeln!(said, "{:?}", view.heavy_hitters_with(share, Certainty::Possible));
        let _ = writeln!(said, "{:?}", view.heavy_hitters_among(&[item], share));
    }
    for sealed in view.sealed() {
        let _ = writeln!(said, "{} {} {:?}", sealed.substream(), sealed.range(), sealed.sketch());
    }
    let _ = writeln!(said, "{:?} {:?} {:?}", view.claim(), view.sites(), view.retained());
    let _ = writeln!(said, "{:?}", view.finished());
    said
}

/// Whether a view answers like the one that was loaded from its bytes, if there is one.
pub(super) fn answers_agree(view: &WindowView, loaded: Option<&WindowView>, keys: &Keys) -> bool {
    loaded.is_some_and(|loaded| write_answers(loaded, keys) == write_answers(view, keys))
}

/// What of the answers does not depend on counters: which windows can be asked, and what they cover. How many events the caps
/// left out of a window is no part of it: the share of the newest substream that is carried on follows from noisy counters.
/// Per substream that number is in the bytes, and compared there.
pub(super) fn write_spans(view: &WindowView, keys: &Keys) -> String {
    let mut spans = String::new();
    let span = |estimate: Estimate| (estimate.covered, estimate.window);
    for window in asked_windows(view) {
        let _ = writeln!(spans, "{:?} {:?} {:?}", window.window(), window.covered(), window.retained());
        for item in ASKED_KEYS.map(|key| keys.get(key)) {
            let trend = window.trend(item).map(|trend| (span(trend.now), span(trend.before)));
            let _ = writeln!(spans, "{:?} {trend:?}", window.frequency(item).map(span));
        }
    }
    let history = view.history(keys.get(ASKED_KEYS[1]));
    let history = history.map(|history| history.into_iter().map(span).collect::<Vec<_>>());
    let _ = writeln!(spans, "{history:?} {:?}", view.top(7).map(|top| top.all().count()));
    let _ = writeln!(spans, "{:?} {:?} {:?}", view.claim(), view.sites(), view.finished());
    spans
}

/// The view, with shorter windows and as of the past.
fn asked_windows(view: &WindowView) -> Vec<WindowView> {
    let len = view.plan().substream_len();
    let shorter = [len + len / 2, len].map(|len| view.last(len));
    let end = view.window().end;
    let past = [len / 2, 2 * len, 4 * len].map(|back| view.as_of(end.saturating_sub(back)));
    [view.clone()].into_iter().chain(shorter.into_iter().chain(past).flatten()).collect()
}

/// The bytes of a view without its counters: every byte that counters can reach is blank.
pub(super) fn blank_counters(view: &WindowView) -> Vec<u8> {
    // 0 and -1 differ in every bit, so every byte of a counter differs.
    let [zeros, ones] = [0, -1].map(|cell| with_cells(view, cell).to_bytes());
    let bytes = view.to_bytes();
    (0..bytes.len() - CHECKSUM_LEN)
        .map(|place| if zeros.get(place) == ones.get(place) { bytes[place] } else { 0 })
        .collect()
}

/// What of a view can be equal on neighbours: where keys are cut into slices, which slices there are depends on earlier noise,
/// so the whole of each complete substream is left, and nothing of its levels; and of who is pinned, for which substreams it
/// is decided.
pub(super) fn strip_slices(view: &WindowView) -> WindowView {
    if !view.plan().has_slices() {
        return view.clone();
    }
    let whole = |substream: &Arc<SealedSubstream>| {
        let whole = substream.sketches().iter().find(|(range, _)| *range == WHOLE)?.clone();
        let only = SealedSubstream::from_parts(substream.number, substream.mapping.clone(), vec![whole]);
        Some(Arc::new(only.with_capped(substream.capped())))
    };
    let released = &view.cached.released;
    // Noise decides who is pinned; the clock alone decides for which substreams that is known.
    let nobody = Arc::new(released.pins().of_nobody());
    with_substreams(view, released.substreams().iter().filter_map(whole).collect(), nobody)
}

/// The same view with the same value in each counter.
fn with_cells(view: &WindowView, cell: i32) -> WindowView {
    let released = &view.cached.released;
    let mut substreams = Vec::with_capacity(released.substreams().len());
    for substream in released.substreams() {
        let mut sketches = Vec::with_capacity(substream.sketches().len());
        for (range, sketch) in substream.sketches() {
            let cells = vec![cell; sketch.shape().cells()];
            let filled = SealedSketch::of_released(sketch.shape(), &cells, sketch.items(), sketch.width());
            sketches.push((*range, Arc::new(filled)));
        }
        let filled = SealedSubstream::from_parts(substream.number, substream.mapping.clone(), sketches);
        substreams.push(Arc::new(filled));
    }
    with_substreams(view, substreams, Arc::clone(released.pins()))
}

fn with_substreams(view: &WindowView, substreams: Vec<Arc<SealedSubstream>>, pins: Arc<Pins>) -> WindowView {
    let released = &view.cached.released;
    let others = Released::new(substreams, released.mapping().clone())
        .with_found(Arc::clone(released.found()))
        .with_pins(pins);
    let (plan, cached) = (Arc::clone(&view.plan), Arc::new(CachedRelease::new(others)));
    let others = WindowView::new(plan, cached, view.claim, view.stream.clone(), view.sites.clone());
    if view.finished().is_some() { others.into_finished() } else { others }
}
