//! The tiny plan of an audit, with the calibration of the real one on few counters and short substreams, and how it is fed.

use crate::audit::report::AuditError;
use crate::item::batch::Batch;
use crate::item::domain::Domain;
use crate::item::hash::StreamKey;
use crate::item::keys::Keys;
use crate::item::value::{Item, Kind};
use crate::noise::generator::Noise;
use crate::plan::budget::Budget;
use crate::plan::checkpoint::checkpoints;
use crate::plan::settings::{
    Clock, CounterLayout, Grid, Method, PaperMethod, Settings, Shares, SubstreamLen, TimeWindow, TunedMethod,
    Window,
};
use crate::plan::structure::Plan;
use crate::stream::sketch::DpswSketch;

/// Counters in a row, and keys in the domain.
pub(super) const COLUMNS: u32 = 64;
/// Substreams in the window; the changed event lies in the last one.
pub(super) const SUBSTREAMS: u64 = 2;
/// About how many items or ticks a substream holds.
const SUBSTREAM_LEN: u64 = 20;
/// The longest substream that can be run often enough.
const SUBSTREAM_LEN_MAX: u64 = 4096;
/// The longest wait for late events, in ticks.
const LATENESS_MAX: u64 = 2;

/// The same budget, unit, method, rows, noise and kind of window, made small.
pub(super) fn tiny(settings: &Settings) -> Result<Settings, AuditError> {
    let plan = Plan::new(settings.clone())?;
    let layout = |identity| match identity {
        CounterLayout::Identity => CounterLayout::Identity,
        _ => CounterLayout::Hashed { rows: plan.shape().rows, columns: COLUMNS },
    };
    let (method, len) = match plan.method() {
        Method::Paper(method) => {
            let units = tiny_units(method, plan.substream_len());
            let len = units * SUBSTREAM_LEN.div_ceil(units).max(2);
            let (substream, grid) = (SubstreamLen::Items(len), Grid::Units(units));
            let counters = layout(method.counters);
            (Method::Paper(PaperMethod { substream, grid, counters, ..method.clone() }), len)
        }
        Method::Tuned(method) => {
            let counters = layout(method.counters);
            // Room for what a user may send, and more.
            let room = settings.unit.per_substream().map_or(0, |each| u64::from(each) + 4);
            let len = SUBSTREAM_LEN.max(room);
            (Method::Tuned(TunedMethod { substreams: SUBSTREAMS, counters, ..method.clone() }), len)
        }
    };
    if SUBSTREAM_LEN_MAX < len {
        return Err(AuditError::TooManyCheckpoints);
    }
    let window = tiny_window(settings.window, len * SUBSTREAMS);
    let domain = match &settings.domain {
        Domain::Public(_) => Domain::Public(tiny_keys(&settings.domain)),
        Domain::Asked(kind) => Domain::Asked(*kind),
        Domain::Discovered(discovery) => Domain::Asked(discovery.kind),
    };
    // Found keys have a budget of their own and are audited by themselves.
    let budget = Budget::of(settings, method.noise())?;
    let (epsilon, delta) = match settings.domain {
        Domain::Discovered(_) => (budget.epsilon, budget.delta),
        _ => (settings.epsilon, settings.delta),
    };
    Ok(Settings { window, domain, method: Some(method), epsilon, delta, retention: 1, ..settings.clone() })
}

/// Keys of the same kind as those of the domain.
pub(super) fn tiny_keys(domain: &Domain) -> Keys {
    let numbers = 0..u64::from(COLUMNS);
    match domain {
        Domain::Public(Keys::Range(_)) => Keys::Range(numbers.end),
        other => match other.kind() {
            Kind::Bytes => Keys::text(numbers.map(|number| format!("key {number}"))),
            Kind::Integers => Keys::integers(numbers.map(|number| number * 1_000_003 + 17)),
        },
    }
}

/// The grid, or a smaller one: printed shares depend on alpha alone, explicit ones need as many checkpoints.
fn tiny_units(method: &PaperMethod, substream_len: u64) -> u64 {
    let units = match method.grid {
        Grid::Items => substream_len,
        Grid::Units(units) => units,
    };
    let count = |units| checkpoints(units, method.alpha).count();
    match method.shares {
        _ if units <= SUBSTREAM_LEN => units,
        Shares::Printed => SUBSTREAM_LEN,
        Shares::Explicit(_) => (1..units)
            .find(|&fewer| count(fewer) == count(units) || SUBSTREAM_LEN_MAX < fewer)
            .unwrap_or(units),
    }
}

pub(super) fn tiny_window(window: Window, len: u64) -> Window {
    match window {
        Window::Items(_) => Window::Items(len),
        Window::Time(time) => Window::Time(TimeWindow {
            len,
            lateness: time.lateness.min(LATENESS_MAX),
            expected_items: time.expected_items.min(len),
            ..time
        }),
    }
}

/// How many ticks the watermark stays behind the next event.
pub(super) fn lag(window: Window) -> u64 {
    match window.time() {
        Some(TimeWindow { clock: Clock::Events, lateness, .. }) => lateness + 1,
        _ => 0,
    }
}

/// A new sketch at position or tick 0.
pub(super) fn start(plan: &Plan, hash_key: [u8; 32]) -> Result<DpswSketch, AuditError> {
    let key = StreamKey::from_bytes(hash_key);
    let mut sketch = DpswSketch::with_key(plan.clone(), key, Noise::from_system());
    if is_callers(plan.settings().window.time()) {
        sketch.advance(0)?;
    }
    Ok(sketch)
}

/// One position or tick: the event of a user, and then the clock. Without an item a position has a null item, a tick
/// nothing.
pub(super) fn arrive(
    sketch: &mut DpswSketch,
    at: u64,
    user: u64,
    item: Option<Item<'_>>,
) -> Result<(), AuditError> {
    let time = sketch.plan().settings().window.time();
    let (integer, bytes);
    let batch = match item {
        Some(Item::Integer(item)) => {
            integer = [item];
            Some(Batch::integers(&integer))
        }
        Some(Item::Bytes(item)) => {
            bytes = [item];
            Some(Batch::bytes(&bytes))
        }
        None => time.is_none().then(|| Batch::nulls(1)),
    };
    let (times, users) = ([at], [user]);
    if let Some(batch) = batch {
        let batch = if time.is_some() { batch.at(&times) } else { batch };
        let by_users = sketch.plan().settings().unit.per_substream().is_some();
        sketch.extend(if by_users { batch.by(&users) } else { batch })?;
    }
    if is_callers(time) {
        sketch.advance(at + 1)?;
    }
    Ok(())
}

fn is_callers(time: Option<TimeWindow>) -> bool {
    time.is_some_and(|time| time.clock == Clock::Caller)
}
