//! Every kind of plan, made small.

use crate::item::domain::{Domain, SearchCounts, SearchSettings};
use crate::item::keys::Keys;
use crate::item::value::Kind as ItemKind;
use crate::plan::search::ListLimits;
use crate::plan::settings::{
    Clock, CounterLayout, Grid, Method, NoiseChoice, PaperMethod, Settings, SubstreamLen, TimeWindow,
    TunedMethod, Unit, Window,
};
use crate::plan::structure::Plan;
use crate::privacy::parameters::{Delta, Epsilon};
use crate::testing::replay::dice::Dice;

/// What all streams hash with.
pub(super) const STREAM_KEY: [u8; 32] = [3; 32];
/// Keys of a list.
pub(super) const KEYS: u64 = 40;
/// Longer keys are never found.
pub(super) const KEY_LEN_MAX: u32 = 8;

/// What makes a plan of another kind: each combination that there is a plan for is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    window: Windows,
    unit: Units,
    method: Methods,
    domain: Domains,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Windows {
    Items,
    CallersClock,
    CallersClockByItem,
    EventsClock,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Units {
    ReplaceOne,
    AddRemove,
    Users,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Methods {
    Identity,
    IdentityGaussian,
    Hashed,
    HashedGaussian,
    Paper,
    PaperIdentity,
    Levels,
    Pinned,
    PinnedLevels,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Domains {
    Numbers,
    Texts,
    Question,
    FoundNumbers,
    FoundTexts,
    FoundBySummary,
}

const WINDOWS: [Windows; 4] =
    [Windows::Items, Windows::CallersClock, Windows::EventsClock, Windows::CallersClockByItem];
const UNITS: [Units; 3] = [Units::ReplaceOne, Units::AddRemove, Units::Users];
const METHODS: [Methods; 9] = [
    Methods::Identity,
    Methods::IdentityGaussian,
    Methods::Hashed,
    Methods::HashedGaussian,
    Methods::Paper,
    Methods::PaperIdentity,
    Methods::Levels,
    Methods::Pinned,
    Methods::PinnedLevels,
];
const DOMAINS: [Domains; 6] = [
    Domains::Numbers,
    Domains::Texts,
    Domains::Question,
    Domains::FoundNumbers,
    Domains::FoundTexts,
    Domains::FoundBySummary,
];

/// All kinds that there are plans of.
pub(super) fn kinds() -> Vec<Kind> {
    let mut kinds = Vec::new();
    for window in WINDOWS {
        for unit in UNITS {
            for method in METHODS {
                for domain in DOMAINS {
                    kinds.push(Kind { window, unit, method, domain });
                }
            }
        }
    }
    kinds.retain(Kind::is_planned);
    kinds
}

impl Kind {
    fn is_planned(&self) -> bool {
        Plan::new(self.settings(&mut Dice::new(0))).is_ok()
    }

    /// A small plan of this kind.
    pub(super) fn plan(&self, dice: &mut Dice) -> Plan {
        let plan = Plan::new(self.settings(dice)).expect("whether there is a plan depends on its kind alone");
        // A list that is full at once.
        if dice.once_in(2) { plan.with_list(ListLimits { keys: 1, bytes: 100 }) } else { plan }
    }

    fn settings(&self, dice: &mut Dice) -> Settings {
        let substreams = 2 + dice.below(3);
        // With three levels a substream is cut in four.
        let len = 4 * (2 + dice.below(4));
        let per_substream = 1 + dice.below(2) as u32;
        Settings {
            window: self.window(substreams * len, len, dice),
            unit: match self.unit {
                Units::ReplaceOne => Unit::ReplaceOne,
                Units::AddRemove => Unit::AddRemove,
                Units::Users => Unit::Users { per_substream },
            },
            epsilon: Epsilon::new(*dice.one_of(&[1.0, 10.0, 60.0])).expect("in range"),
            delta: Delta::new(0.001).ok(),
            domain: self.domain(dice),
            method: Some(self.method(substreams, len, dice)),
            retention: 1 + dice.below(3) as u32,
        }
    }

    fn window(&self, window: u64, substream: u64, dice: &mut Dice) -> Window {
        let clock = match self.window {
            Windows::Items => return Window::Items(window),
            Windows::CallersClock => Clock::Caller,
            Windows::CallersClockByItem => Clock::CallerByItem,
            Windows::EventsClock => Clock::Events,
        };
        let lateness = *dice.one_of(&[0, substream / 2, substream, window]);
        Window::Time(TimeWindow { len: window, lateness, clock, expected_items: window })
    }

    fn domain(&self, dice: &mut Dice) -> Domain {
        let search_len = Some(*dice.one_of(&[1, 3]));
        let found = |kind, counting| {
            Domain::Found(SearchSettings {
                counting,
                search_len,
                key_len_max: KEY_LEN_MAX,
                ..SearchSettings::new(kind)
            })
        };
        match self.domain {
            Domains::Numbers => Domain::Public(Keys::Range(KEYS)),
            Domains::Texts => Domain::Public(Keys::from((0..KEYS).map(text).collect::<Vec<_>>())),
            Domains::Question => Domain::Asked(ItemKind::Bytes),
            Domains::FoundNumbers => found(ItemKind::Integers, SearchCounts::Exact),
            Domains::FoundTexts => found(ItemKind::Bytes, SearchCounts::Exact),
            Domains::FoundBySummary => found(ItemKind::Bytes, SearchCounts::Summary { keys: 6 }),
        }
    }

    fn method(&self, substreams: u64, len: u64, dice: &mut Dice) -> Method {
        let hashed = CounterLayout::Hashed { rows: 1 + dice.below(3) as u32, columns: 16 };
        let tuned = |counters, noise, levels, pinned| {
            Method::Tuned(TunedMethod { substreams, counters, noise, levels, pinned })
        };
        let paper = |counters| {
            let (substream, grid) = (SubstreamLen::Items(len), Grid::Units(len / 2));
            Method::Paper(PaperMethod { substream, grid, counters, ..PaperMethod::default() })
        };
        match self.method {
            Methods::Identity => tuned(CounterLayout::Identity, NoiseChoice::Laplace, 1, 0),
            Methods::IdentityGaussian => tuned(CounterLayout::Identity, NoiseChoice::Gaussian, 1, 0),
            Methods::Hashed => tuned(hashed, NoiseChoice::Laplace, 1, 0),
            Methods::HashedGaussian => tuned(hashed, NoiseChoice::Gaussian, 1, 0),
            Methods::Paper => paper(hashed),
            Methods::PaperIdentity => paper(CounterLayout::Identity),
            Methods::Levels => tuned(CounterLayout::Identity, NoiseChoice::Laplace, 3, 0),
            Methods::Pinned => tuned(hashed, NoiseChoice::Laplace, 1, 4),
            Methods::PinnedLevels => tuned(hashed, NoiseChoice::Laplace, 3, 4),
        }
    }
}

/// A key of a list of texts.
pub(super) fn text(key: u64) -> String {
    format!("key {key}")
}
