//! The small plan of an audit, with the calibration of the real one on few counters and short substreams.

use crate::audit::report::AuditError;
use crate::item::domain::Domain;
use crate::item::keys::Keys;
use crate::item::value::Kind;
use crate::plan::budget::Budget;
use crate::plan::checkpoint::checkpoints;
use crate::plan::discovery::PlannedDiscovery;
use crate::plan::range::WHOLE;
use crate::plan::settings::{
    CounterLayout, Grid, Method, PaperMethod, Settings, Shares, SubstreamLen, TimeWindow, TunedMethod, Window,
};
use crate::plan::structure::Plan;

/// How small a plan is made.
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
/// The same where keys are cut into nodes or tracked: how many items it takes to be cut finely grows with the square of this.
const CUT_SUBSTREAMS_MAX: u64 = 3;
/// The longest substream that can be run often enough.
const SUBSTREAM_LEN_MAX: u64 = 4096;
/// The most rungs.
const RUNGS_MAX: u32 = 3;
/// The most tracked keys: enough for the two that neighbours differ in and for one more frequent than both.
const TRACKED_MAX: u32 = 3;
/// A key with this share of the items is cut in two, or tracked, about as often as not.
const FREQUENT_SHARE: f64 = 2.0 / 13.0;
/// By how much rates that stand are seen to walk in two or three substreams, as some walk is expected.
const STEADY_WALK: f64 = 0.28;
/// A key with so many deviations of the noise in a substream is tracked about as often as not.
const TRACKED_DEVIATIONS: f64 = 2.5;
/// The longest substream that is made for that. Where epsilon is so small that it would take a longer one, noise alone
/// decides which keys are cut.
const CUT_LEN_MAX: u64 = 512;

/// The same budget, unit, method, rows, noise and kind of window, made small.
pub(super) fn tiny(settings: &Settings, size: Size) -> Result<Settings, AuditError> {
    let small = made(settings, size)?;
    match &small.method {
        Some(Method::Tuned(method)) if 1 < method.rungs || 0 < method.tracked => {
            let count = frequent(&Plan::new(small.clone())?, method);
            let step = 1 << (method.rungs - 1);
            let steps = count / FREQUENT_SHARE / step as f64;
            let len = (steps.round() as u64 * step).clamp(3 * step, CUT_LEN_MAX);
            let lateness = size.lateness * len / size.substream_len;
            made(settings, Size { substream_len: len, lateness, ..size })
        }
        _ => Ok(small),
    }
}

/// How often a key comes in a substream that is cut in two, or tracked, about as often as not.
fn frequent(plan: &Plan, method: &TunedMethod) -> f64 {
    match method.rungs {
        1 => TRACKED_DEVIATIONS * plan.ranges()[WHOLE].law().variance().sqrt(),
        _ => plan.rungs().clone().for_walk(STEADY_WALK).first() / method.substreams as f64,
    }
}

fn made(settings: &Settings, size: Size) -> Result<Settings, AuditError> {
    let plan = Plan::new(settings.clone())?;
    let layout = |identity| match identity {
        CounterLayout::Identity => CounterLayout::Identity,
        _ => CounterLayout::Hashed { rows: plan.shape().rows, columns: size.columns },
    };
    let (method, len, substreams) = match plan.method() {
        Method::Paper(method) => {
            let units = tiny_units(method, plan.substream_len(), size.substream_len);
            let len = units * size.substream_len.div_ceil(units).max(2);
            let (substream, grid) = (SubstreamLen::Items(len), Grid::Units(units));
            let counters = layout(method.counters);
            (Method::Paper(PaperMethod { substream, grid, counters, ..method.clone() }), len, size.substreams)
        }
        Method::Tuned(method) => {
            let counters = layout(method.counters);
            let (rungs, tracked) = (method.rungs.min(RUNGS_MAX), method.tracked.min(TRACKED_MAX));
            let is_cut = 1 < rungs || 0 < tracked;
            // Room for what a user may send, and more.
            let each = settings.unit.per_substream().map(u64::from);
            let room = each.map(|each| each + 4);
            let len = match is_cut {
                false => room.unwrap_or(size.substream_len),
                true => size.substream_len.max(room.unwrap_or(0)).next_multiple_of(1 << (rungs - 1)),
            };
            let most = if is_cut { CUT_SUBSTREAMS_MAX } else { USER_SUBSTREAMS_MAX };
            let substreams = each.map_or(size.substreams, |_| method.substreams.min(most));
            let method = TunedMethod { substreams, counters, rungs, tracked, ..method.clone() };
            (Method::Tuned(method), len, substreams)
        }
    };
    if SUBSTREAM_LEN_MAX < len {
        return Err(AuditError::TooManyCheckpoints);
    }
    let window = tiny_window(settings.window, len * substreams, size.lateness);
    let domain = match &settings.domain {
        Domain::Public(_) => Domain::Public(tiny_keys(&settings.domain, size.columns)),
        Domain::Asked(kind) => Domain::Asked(*kind),
        // Tracked keys are those of a list.
        Domain::Discovered(_) if 0 < plan.tracked() => {
            Domain::Public(tiny_keys(&settings.domain, size.columns))
        }
        Domain::Discovered(discovery) => Domain::Asked(discovery.kind),
    };
    // Found keys have a budget of their own and are audited by themselves.
    let share = plan.discovery().map(PlannedDiscovery::share);
    let budget = Budget::of(settings, share, method.noise())?;
    let (epsilon, delta) = match settings.domain {
        Domain::Discovered(_) => (budget.epsilon, budget.delta),
        _ => (settings.epsilon, settings.delta),
    };
    Ok(Settings {
        window,
        domain,
        method: Some(method),
        epsilon,
        delta,
        retention: size.retention,
        ..settings.clone()
    })
}

/// So many keys of the same kind as those of the domain.
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
    let count = |units| checkpoints(units, method.alpha).count();
    match method.shares {
        _ if units <= tiny_len => units,
        Shares::Printed => tiny_len,
        Shares::Explicit(_) => (1..units)
            .find(|&fewer| count(fewer) == count(units) || SUBSTREAM_LEN_MAX < fewer)
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
