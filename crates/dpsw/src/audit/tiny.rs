//! The small plan of an audit, with the calibration of the real one on few counters and short substreams.

use crate::audit::report::AuditError;
use crate::item::domain::Domain;
use crate::item::keys::Keys;
use crate::item::value::Kind;
use crate::plan::budget::Budget;
use crate::plan::paper::checkpoint::checkpoints;
use crate::plan::range::WHOLE;
use crate::plan::search::SearchPlan;
use crate::plan::settings::{
    CounterLayout, Grid, Method, PaperMethod, Settings, Shares, SubstreamLen, TimeWindow, TunedMethod, Window,
};
use crate::plan::structure::Plan;

/// The size of a small plan.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    /// Counters of a row, and keys of the domain.
    pub(super) columns: u32,
    /// W, where events are protected.
    pub(super) substreams: u64,
    /// About how many items or ticks a substream holds.
    pub(super) substream_len: u64,
    /// The longest wait for late events, in ticks.
    pub(super) lateness: u64,
    /// Windows that are kept.
    pub(super) retention: u32,
}

impl Size {
    /// Small enough to be run tens of thousands of times.
    pub(super) const TINY: Self =
        Self { columns: 64, substreams: 3, substream_len: 20, lateness: 2, retention: 1 };
}

/// The most substreams of a window in which users are protected: what a user costs grows with them.
const USER_SUBSTREAMS_MAX: u64 = 12;
/// The same where keys are cut into slices or pinned: how many items it takes to be cut finely grows with the square of this.
const CUT_SUBSTREAMS_MAX: u64 = 3;
/// The longest substream that can be run often enough.
const SUBSTREAM_LEN_MAX: u64 = 4096;
/// The most levels.
const LEVELS_MAX: u32 = 3;
/// The most pinned keys: enough for the two that neighbours differ in and for one more frequent than both.
const PINNED_MAX: u32 = 3;
/// A key with this share of the items is cut in two, or pinned, about as often as not.
const FREQUENT_SHARE: f64 = 2.0 / 13.0;
/// By how much rates that stand are seen to walk in two or three substreams, as some walk is expected.
const STEADY_WALK: f64 = 0.28;
/// A key with this many deviations of the noise in a substream is pinned about as often as not.
const PINNED_DEVIATIONS: f64 = 2.5;
/// The longest substream that is made for that. Where epsilon is so small that it would take a longer one, noise alone
/// decides which keys are cut.
const CUT_LEN_MAX: u64 = 512;

/// The same budget, unit, method, rows, noise and kind of window, made small.
pub(super) fn tiny_settings(settings: &Settings, size: Size) -> Result<Settings, AuditError> {
    let small = shrink_to(settings, size)?;
    match &small.method {
        Some(Method::Tuned(method)) if 1 < method.levels || 0 < method.pinned => {
            let count = count_to_be_cut(&Plan::new(small.clone())?, method);
            // The slices of the finest level must have equal lengths.
            let step = 1 << (method.levels - 1);
            let steps = count / FREQUENT_SHARE / step as f64;
            let len = (steps.round() as u64 * step).clamp(3 * step, CUT_LEN_MAX);
            let lateness = size.lateness * len / size.substream_len;
            shrink_to(settings, Size { substream_len: len, lateness, ..size })
        }
        _ => Ok(small),
    }
}

/// How often a key comes in a substream that is cut in two, or pinned, about as often as not.
fn count_to_be_cut(plan: &Plan, method: &TunedMethod) -> f64 {
    match method.levels {
        1 => PINNED_DEVIATIONS * plan.ranges()[WHOLE].law().variance().sqrt(),
        _ => plan.levels().clone().for_walk(STEADY_WALK).first_threshold() / method.substreams as f64,
    }
}

/// A method with the length and number of the substreams of its window.
struct TinyMethod {
    method: Method,
    substream_len: u64,
    substreams: u64,
}

fn shrink_to(settings: &Settings, size: Size) -> Result<Settings, AuditError> {
    let plan = Plan::new(settings.clone())?;
    let tiny = match plan.method() {
        Method::Paper(method) => tiny_paper(&plan, method, size),
        Method::Tuned(method) => tiny_tuned(&plan, method, size),
    };
    if SUBSTREAM_LEN_MAX < tiny.substream_len {
        return Err(AuditError::TooManyCheckpoints);
    }
    // Found keys have a budget of their own and are audited by themselves.
    let share = plan.search_plan().map(SearchPlan::share);
    let budget = Budget::for_sketches(settings, share, tiny.method.noise())?;
    let is_found = matches!(settings.domain, Domain::Found(_));
    Ok(Settings {
        window: tiny_window(settings.window, tiny.substream_len * tiny.substreams, size.lateness),
        domain: tiny_domain(&plan, size),
        method: Some(tiny.method),
        epsilon: if is_found { budget.epsilon } else { settings.epsilon },
        delta: if is_found { budget.delta } else { settings.delta },
        retention: size.retention,
        ..settings.clone()
    })
}

fn tiny_paper(plan: &Plan, method: &PaperMethod, size: Size) -> TinyMethod {
    let units = tiny_units(method, plan.substream_len(), size.substream_len);
    // With at least two items per unit some arrivals seal nothing; the changed event is one of them.
    let substream_len = units * size.substream_len.div_ceil(units).max(2);
    let method = PaperMethod {
        substream: SubstreamLen::Items(substream_len),
        grid: Grid::Units(units),
        counters: tiny_layout(plan, method.counters, size),
        ..method.clone()
    };
    TinyMethod { method: Method::Paper(method), substream_len, substreams: size.substreams }
}

fn tiny_tuned(plan: &Plan, method: &TunedMethod, size: Size) -> TinyMethod {
    let levels = method.levels.min(LEVELS_MAX);
    let pinned = method.pinned.min(PINNED_MAX);
    let is_cut = 1 < levels || 0 < pinned;
    // Room for the two items beyond the cap that a user sends, and for others before and after them.
    let room = plan.settings().unit.per_substream().map(|each| u64::from(each) + 4);
    let substream_len = if is_cut {
        size.substream_len.max(room.unwrap_or(0)).next_multiple_of(1 << (levels - 1))
    } else {
        room.unwrap_or(size.substream_len)
    };
    let most = if is_cut { CUT_SUBSTREAMS_MAX } else { USER_SUBSTREAMS_MAX };
    let substreams = room.map_or(size.substreams, |_| method.substreams.min(most));
    let counters = tiny_layout(plan, method.counters, size);
    let method = TunedMethod { substreams, counters, levels, pinned, ..method.clone() };
    TinyMethod { method: Method::Tuned(method), substream_len, substreams }
}

fn tiny_layout(plan: &Plan, counters: CounterLayout, size: Size) -> CounterLayout {
    match counters {
        CounterLayout::Identity => CounterLayout::Identity,
        _ => CounterLayout::Hashed { rows: plan.shape().rows, columns: size.columns },
    }
}

fn tiny_domain(plan: &Plan, size: Size) -> Domain {
    let domain = &plan.settings().domain;
    match domain {
        Domain::Public(_) => Domain::Public(tiny_keys(domain, size.columns)),
        Domain::Asked(kind) => Domain::Asked(*kind),
        // Pinned keys are those of a list.
        Domain::Found(_) if 0 < plan.pinned() => Domain::Public(tiny_keys(domain, size.columns)),
        Domain::Found(search_plan) => Domain::Asked(search_plan.kind),
    }
}

/// This many keys, of the same kind as those of the domain.
pub(super) fn tiny_keys(domain: &Domain, keys: u32) -> Keys {
    let numbers = 0..u64::from(keys);
    match domain {
        Domain::Public(Keys::Range(_)) => Keys::Range(numbers.end),
        other => match other.kind() {
            Kind::Bytes => Keys::text(numbers.map(|number| format!("key {number}"))),
            Kind::Integers => Keys::integers(numbers.map(|number| number * 1_000_003 + 17)),
        },
    }
}

/// The grid, or a smaller one: printed shares depend on alpha alone, explicit ones need as many checkpoints.
fn tiny_units(method: &PaperMethod, substream_len: u64, tiny_len: u64) -> u64 {
    let units = match method.grid {
        Grid::Items => substream_len,
        Grid::Units(units) => units,
    };
    let wanted = checkpoints(units, method.alpha).count();
    match method.shares {
        _ if units <= tiny_len => units,
        Shares::Printed => tiny_len,
        Shares::Explicit(_) => (1..units)
            // Past this length `shrink_to` refuses the plan, so the search can stop.
            .find(|&fewer| checkpoints(fewer, method.alpha).count() == wanted || SUBSTREAM_LEN_MAX < fewer)
            .unwrap_or(units),
    }
}

pub(super) fn tiny_window(window: Window, len: u64, lateness_max: u64) -> Window {
    match window {
        Window::Items(_) => Window::Items(len),
        Window::Time(time) => Window::Time(TimeWindow {
            len,
            lateness: time.lateness.min(lateness_max),
            expected_items: time.expected_items.min(len),
            ..time
        }),
    }
}
