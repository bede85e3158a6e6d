//! Whether the keys that are found give an event away: the real sketch on small streams made for each usual mistake.
//!
//! The epochs are short, so that δ can be large and the threshold low enough to be seen: ε = 2 goes to the keys. Once the
//! keys and the counters share ε as in the real plan, and are looked at together.

use crate::audit::conversation::log_ratio;
use crate::audit::feed::{Arrival, Choices, feed, lag, start};
use crate::audit::report::{AuditError, Check, Claimed, Effort, Test};
use crate::audit::statistics::{Event, Scores, Share, judge, judge_beyond};
use crate::audit::tiny::{Size, tiny_keys, tiny_window};
use crate::item::domain::{Discovery, Domain, Tracking};
use crate::item::keys::Keys;
use crate::plan::settings::{CounterLayout, Method, NoiseChoice, Settings, TunedMethod, Unit};
use crate::plan::structure::Plan;
use crate::privacy::parameters::{Delta, Epsilon};
use crate::ratio::Ratio;
use crate::view::window_view::WindowView;

/// ε of the keys and of everything.
const KEYS_EPSILON: f64 = 2.0;
const EPSILON: f64 = 2.5;
/// Substreams of the window and of an epoch.
const SUBSTREAMS: u64 = 2;
/// Items of an epoch: enough for the streams, and few enough for a large δ.
const ITEMS: u64 = 40;
const ITEMS_OF_USERS: u64 = 240;
/// The threshold for single events, at which δ is just met.
const THRESHOLD: f64 = 6.0;

/// Keys of a map or summary that is called full.
pub(super) const FEW_KEYS: usize = 8;

/// The keys that streams differ in, and others.
const FIRST: usize = 0;
const SECOND: usize = 1;
const HEAVY: usize = 2;
const FILLER: usize = 10;

/// Counters, so that the two keys rarely share one.
const COLUMNS: u32 = 64;

/// Which item arrives at each position; `None` is a null item.
type Stream = Vec<Option<usize>>;

/// What is small about a finder.
#[derive(Debug, Clone, Copy)]
struct Small {
    items: u64,
    delta: f64,
    share: Ratio,
    tracking: Tracking,
}

/// What finding keys showed.
pub(super) struct Verdict {
    pub(super) tests: Vec<Test>,
    pub(super) checks: Vec<Check>,
}

/// A plan whose keys are audited.
struct Finder {
    plan: Plan,
    keys: Keys,
    /// Positions whose items differ between neighbours; those of one user where users are protected.
    changed: Vec<usize>,
}

impl Finder {
    /// One whose threshold is low, as the keys have most of ε.
    fn new(settings: &Settings, discovery: Discovery, tracking: Tracking) -> Result<Self, AuditError> {
        let is_of_users = settings.unit.per_substream().is_some();
        let items = if is_of_users { ITEMS_OF_USERS } else { ITEMS };
        let tight = (1.0 + EPSILON.exp()) * (-THRESHOLD * KEYS_EPSILON / 2.0).exp()
            / (1.0 + (-KEYS_EPSILON / 2.0).exp());
        let delta = (tight * (1.0 + 1e-8)).min(1.0 / items as f64);
        let share = Ratio::from_decimal(KEYS_EPSILON / EPSILON)?;
        Self::small(settings, discovery, Small { items, delta, share, tracking })
    }

    /// One that shares ε as the plan does, on an epoch in which two keys reach the threshold.
    fn with_own_share(settings: &Settings, discovery: Discovery) -> Result<Self, AuditError> {
        let with = |items: u64| {
            let tracking = Tracking::Exact;
            let (delta, share) = (1.0 / items as f64, discovery.share);
            Self::small(settings, discovery, Small { items, delta, share, tracking })
        };
        let mut finder = with(ITEMS)?;
        while finder.items() < 2 * (finder.threshold() + 1 + finder.changed.len()) {
            finder = with(2 * finder.items() as u64)?;
        }
        Ok(finder)
    }

    fn small(settings: &Settings, discovery: Discovery, small: Small) -> Result<Self, AuditError> {
        let Small { items, delta, share, tracking } = small;
        let counters = CounterLayout::Hashed { rows: 1, columns: COLUMNS };
        let method = TunedMethod { substreams: SUBSTREAMS, counters, noise: NoiseChoice::Laplace };
        let plan = Plan::new(Settings {
            window: tiny_window(settings.window, items, Size::TINY.lateness),
            unit: settings.unit,
            epsilon: Epsilon::new(EPSILON)?,
            delta: Some(Delta::new(delta)?),
            domain: Domain::Discovered(Discovery { share, epoch: Some(SUBSTREAMS), tracking, ..discovery }),
            method: Some(Method::Tuned(method)),
            retention: 1,
        })?;
        let keys = tiny_keys(&settings.domain, Size::TINY.columns);
        let users = settings.unit.per_substream();
        let each = users.unwrap_or(1) as usize;
        let half = items as usize / 2;
        let changed = if users.is_some() { (0..each).chain(half..half + each).collect() } else { vec![0] };
        Ok(Self { plan, keys, changed })
    }

    fn threshold(&self) -> usize {
        self.plan.discovery().map_or(0, |discovery| discovery.threshold() as usize)
    }

    fn items(&self) -> usize {
        self.plan.settings().window.len() as usize
    }

    /// Two streams that have these items at the changed positions, or none where presence is protected, and the same others.
    fn neighbours(&self, first: usize, second: usize, others: &[(usize, usize)]) -> [Stream; 2] {
        let hidden = self.plan.settings().unit == Unit::AddRemove;
        [Some(first).filter(|_| !hidden), Some(second)].map(|item| {
            let mut stream = vec![None; self.items()];
            self.changed.iter().for_each(|&position| stream[position] = item);
            let mut free = (0..stream.len()).filter(|position| !self.changed.contains(position));
            for (key, count) in others {
                free.by_ref().take(*count).for_each(|position| stream[position] = Some(*key));
            }
            stream
        })
    }

    /// What one run on a stream shows.
    fn view(&self, stream: &Stream, number: u64, choices: &mut Choices) -> Result<WindowView, AuditError> {
        let mut hash_key = [0; 32];
        hash_key[..8].copy_from_slice(&number.to_le_bytes());
        let mut sketch = start(&self.plan, hash_key)?;
        let end = stream.len() + lag(self.plan.settings().window) as usize;
        let arrival = |position: usize| {
            let user = if self.changed.contains(&position) { u64::MAX } else { position as u64 };
            let key = stream.get(position).copied().unwrap_or(Some(FILLER));
            Arrival { at: position as u64, user, key }
        };
        let arrivals: Vec<Arrival> = (0..end).map(arrival).collect();
        feed(&mut sketch, &self.keys, &arrivals, choices)?;
        Ok(sketch.view())
    }

    /// The keys that a view lists, by index, and whether they come in the order of their keyed hashes.
    fn found(&self, view: &WindowView) -> (Vec<usize>, bool) {
        let found: Vec<_> = view
            .readable
            .released
            .found()
            .iter()
            .flat_map(|f| (0..f.keys.len()).map(|i| f.keys.get(i)))
            .collect();
        let key = view.readable.released.mapping().fingerprint_key;
        let is_sorted = found.is_sorted_by_key(|&item| key.item(item));
        let index = |item| (0..self.keys.len()).find(|&index| self.keys.get(index) == item);
        (found.into_iter().filter_map(index).collect(), is_sorted)
    }

    /// The logarithm of how much likelier the counters of the two keys are under the second stream.
    fn loss(&self, view: &WindowView, streams: &[Stream; 2]) -> f64 {
        let len = self.plan.substream_len() as usize;
        let mut loss = 0.0;
        for sealed in view.sealed() {
            let start = sealed.substream() as usize * len;
            let law = self.plan.ranges()[sealed.range()].law();
            let cells = [FIRST, SECOND].map(|key| sealed.cells(self.keys.get(key))[0]);
            if cells[0] == cells[1] {
                continue;
            }
            for (key, cell) in [FIRST, SECOND].into_iter().zip(cells) {
                let exact = |stream: &Stream| {
                    stream.iter().skip(start).take(len).filter(|at| **at == Some(key)).count()
                };
                let noisy = f64::from(sealed.sketch().cells()[cell]);
                let [first, second] = [0, 1].map(|stream| noisy - exact(&streams[stream]) as f64);
                loss += log_ratio(law, first, second);
            }
        }
        loss
    }

    /// The most that the planned noise lets the counters of the two keys say.
    fn most_of_counters(&self, streams: &[Stream; 2]) -> f64 {
        let differing = streams[0].iter().zip(&streams[1]).filter(|(one, other)| one != other);
        let moved: usize = differing.map(|(one, other)| [one, other].into_iter().flatten().count()).sum();
        let scale = self.plan.ranges()[0].law().scale().unwrap_or(f64::INFINITY);
        moved as f64 / scale
    }

    /// How often each stream shows an event.
    fn scores(
        &self,
        streams: &[Stream; 2],
        runs: usize,
        unsorted: &mut u64,
        is_shown: impl Fn(&[usize]) -> bool,
    ) -> Result<Scores, AuditError> {
        let mut choices = Choices::new()?;
        let mut of = |stream: &Stream| -> Result<Vec<f64>, AuditError> {
            (0..runs as u64)
                .map(|number| {
                    let (found, is_sorted) = self.found(&self.view(stream, number, &mut choices)?);
                    *unsorted += u64::from(!is_sorted);
                    Ok(f64::from(is_shown(&found)))
                })
                .collect()
        };
        Ok(Scores { first: of(&streams[0])?, second: of(&streams[1])? })
    }
}

/// Audits the keys of a plan that finds them.
pub(super) fn audit(
    settings: &Settings,
    discovery: Discovery,
    effort: Effort,
) -> Result<Verdict, AuditError> {
    // More keys than items: the summary then loses nothing, and all streams mean the same for both ways of counting.
    let tracking = match discovery.tracking {
        Tracking::Exact => Tracking::Exact,
        Tracking::Summary { .. } => Tracking::Summary { keys: 2 * ITEMS_OF_USERS },
    };
    let finder = Finder::new(settings, discovery, tracking)?;
    let mut unsorted = 0;
    let mut tests = Vec::new();
    tests.extend(lone_key(&finder, effort, &mut unsorted)?);
    tests.extend(near_threshold(&finder, effort, &mut unsorted)?);
    tests.extend(many_keys(&finder, effort, &mut unsorted)?);
    if let (Tracking::Summary { .. }, None) = (discovery.tracking, settings.window.time()) {
        tests.extend(null_items(settings, discovery, effort, &mut unsorted)?);
        tests.extend(lowered_counts(settings, discovery, effort, &mut unsorted)?);
    }
    tests.extend(together(&Finder::with_own_share(settings, discovery)?, effort)?);
    let off = at_threshold(&finder, effort, &mut unsorted)?;
    let checks = vec![
        Check { name: "a key at the threshold is found as often as planned", violations: u64::from(off) },
        Check { name: "found keys come in the order of their keyed hashes", violations: unsorted },
    ];
    Ok(Verdict { tests, checks })
}

const LIMIT: Claimed = Claimed::Epsilon(KEYS_EPSILON);

/// A key that only the changed items bring in comes out with probability at most δ / (1 + exp ε).
fn lone_key(finder: &Finder, effort: Effort, unsorted: &mut u64) -> Result<[Test; 1], AuditError> {
    let streams = finder.neighbours(FIRST, SECOND, &[]);
    let scores = finder.scores(&streams, effort.runs, unsorted, |found| found.contains(&SECOND))?;
    let hits = scores.second.iter().filter(|shown| **shown == 1.0).count();
    let share = Share { hits, runs: effort.runs };
    let delta = finder.plan.settings().delta.map_or(0.0, Delta::get);
    let limit = delta / (1.0 + EPSILON.exp());
    let bound = share.low(effort.doubt());
    let (tpr, upper) = (hits as f64 / effort.runs as f64, share.high(effort.doubt()));
    let name = "a key of one event alone is found";
    Ok([Test { name, forward: true, tpr, fpr: 0.0, bound, upper, limit, ok: bound <= limit }])
}

/// Two keys around the threshold, one up and one down.
fn near_threshold(finder: &Finder, effort: Effort, unsorted: &mut u64) -> Result<[Test; 2], AuditError> {
    let around = finder.threshold() + 1 - finder.changed.len().min(finder.threshold());
    let streams = finder.neighbours(FIRST, SECOND, &[(FIRST, around), (SECOND, around)]);
    let is_shown = |found: &[usize]| found.contains(&SECOND) && !found.contains(&FIRST);
    let scores = finder.scores(&streams, effort.runs, unsorted, is_shown)?;
    Ok(judge("keys around the threshold", LIMIT, Event::AtLeast(1.0), &scores, effort.doubt()))
}

/// The two keys around the threshold, and their counters: one spends what the other one leaves.
fn together(finder: &Finder, effort: Effort) -> Result<[Test; 2], AuditError> {
    let around = finder.threshold() + 1 - finder.changed.len().min(finder.threshold());
    let streams = finder.neighbours(FIRST, SECOND, &[(FIRST, around), (SECOND, around)]);
    let mut choices = Choices::new()?;
    let mut of = |stream: &Stream| -> Result<Vec<f64>, AuditError> {
        let one = |number| {
            let view = finder.view(stream, number, &mut choices)?;
            let (found, _) = finder.found(&view);
            let loss = finder.loss(&view, &streams);
            Ok(match [FIRST, SECOND].map(|key| found.contains(&key)) {
                [false, true] => loss.max(0.0),
                [true, false] => loss.min(0.0),
                _ => 0.0,
            })
        };
        (0..effort.runs as u64).map(one).collect()
    };
    let scores = Scores { first: of(&streams[0])?, second: of(&streams[1])? };
    let most = finder.most_of_counters(&streams) * (1.0 - 1e-9);
    let delta = finder.plan.settings().delta.map_or(0.0, Delta::get);
    let (name, whole) = ("keys and counters together", Claimed::Epsilon(EPSILON));
    Ok(judge_beyond(delta, name, whole, Event::AtLeast(most), &scores, effort.doubt()))
}

/// One key more or less must not decide about another one.
fn many_keys(finder: &Finder, effort: Effort, unsorted: &mut u64) -> Result<[Test; 2], AuditError> {
    let few = FEW_KEYS - 1;
    let mut others: Vec<(usize, usize)> = (0..few).map(|index| (FILLER + index, 1)).collect();
    others.push((HEAVY, finder.threshold() + 1));
    let streams = finder.neighbours(FILLER + few, FILLER, &others);
    let scores = finder.scores(&streams, effort.runs, unsorted, |found| found.contains(&HEAVY))?;
    Ok(judge("a key beside many or more", LIMIT, Event::AtLeast(1.0), &scores, effort.doubt()))
}

/// A null item more must not lower what is taken off every count.
fn null_items(
    settings: &Settings,
    discovery: Discovery,
    effort: Effort,
    unsorted: &mut u64,
) -> Result<[Test; 2], AuditError> {
    let keys = FEW_KEYS as u64;
    let finder = Finder::new(settings, discovery, Tracking::Summary { keys })?;
    let taken = finder.items() / (FEW_KEYS + 1);
    let heavy = finder.threshold() + taken;
    let heavies = [HEAVY, HEAVY + 1, HEAVY + 2];
    // With the changed item the items that are not null are a multiple of the keys plus one.
    let known = 3 * heavy + 1;
    let spare = known.next_multiple_of(FEW_KEYS + 1) - known;
    let mut others: Vec<(usize, usize)> = heavies.iter().map(|&key| (key, heavy)).collect();
    others.push((FILLER, spare));
    let mut streams = finder.neighbours(SECOND, SECOND, &others);
    finder.changed.iter().for_each(|&position| streams[0][position] = None);
    let is_shown = |found: &[usize]| heavies.iter().all(|key| !found.contains(key));
    let scores = finder.scores(&streams, effort.runs, unsorted, is_shown)?;
    Ok(judge("keys beside null items", LIMIT, Event::AtLeast(1.0), &scores, effort.doubt()))
}

/// One key more fills a summary and lowers all its counts.
fn lowered_counts(
    settings: &Settings,
    discovery: Discovery,
    effort: Effort,
    unsorted: &mut u64,
) -> Result<[Test; 2], AuditError> {
    let finder = Finder::new(settings, discovery, Tracking::Summary { keys: FEW_KEYS as u64 })?;
    let heavy = finder.threshold() + 1 + finder.items() / (FEW_KEYS + 1);
    let heavies = [HEAVY, HEAVY + 1, HEAVY + 2];
    let mut others: Vec<(usize, usize)> = heavies.iter().map(|&key| (key, heavy)).collect();
    others.extend((0..FEW_KEYS - heavies.len()).map(|index| (FILLER + index, 1)));
    let streams = finder.neighbours(SECOND, FILLER, &others);
    let is_shown = |found: &[usize]| heavies.iter().all(|key| found.contains(key));
    let scores = finder.scores(&streams, effort.runs, unsorted, is_shown)?;
    Ok(judge("keys of a full summary", LIMIT, Event::AtLeast(1.0), &scores, effort.doubt()))
}

/// Whether P[found | count = threshold] is not q / (1 + q).
fn at_threshold(finder: &Finder, effort: Effort, unsorted: &mut u64) -> Result<bool, AuditError> {
    let streams = finder.neighbours(FILLER, FILLER, &[(HEAVY, finder.threshold())]);
    let scores = finder.scores(&streams, effort.runs, unsorted, |found| found.contains(&HEAVY))?;
    let hits = scores.first.iter().chain(&scores.second).filter(|shown| **shown == 1.0).count();
    let share = Share { hits, runs: 2 * effort.runs };
    let events = finder.plan.settings().unit.events(SUBSTREAMS + 1).of_window;
    let q = (-KEYS_EPSILON / (2.0 * events as f64)).exp();
    let planned = q / (1.0 + q);
    Ok(planned < share.low(effort.doubt()) || share.high(effort.doubt()) < planned)
}
