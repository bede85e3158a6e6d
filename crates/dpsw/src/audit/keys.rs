//! Whether the keys that are found give an event away: the real sketch on small streams made for each usual mistake.
//!
//! The searches are short, so that δ can be large and the threshold low enough to be seen: ε = 2 goes to the keys. Once the
//! keys and the counters share ε as in the real plan, and are looked at together.

use crate::audit::conversation::log_ratio;
use crate::audit::feed::{
    Arrival, Choices, feed_batches, restore_state, save_state, start_sketch, watermark_lag,
};
use crate::audit::report::{AuditError, Check, Claimed, Effort, Test};
use crate::audit::search::{
    CHECKS, Outcome, came_back, count_misses, first_check, revealing_paths, sure_count,
};
use crate::audit::statistics::{Event, Judge, Scores, Share};
use crate::audit::tiny::{Size, tiny_keys, tiny_window};
use crate::item::domain::{Domain, SearchCounts, SearchSettings};
use crate::item::keys::Keys;
use crate::plan::release::{COUNT_MIN, Release};
use crate::plan::search::{ListLimits, SearchPlan};
use crate::plan::settings::{CounterLayout, Method, Settings, TunedMethod, Unit};
use crate::plan::structure::Plan;
use crate::privacy::parameters::{Delta, Epsilon};
use crate::ratio::Ratio;
use crate::view::window_view::WindowView;

/// ε of the keys and of everything.
const KEYS_EPSILON: f64 = 2.0;
const EPSILON: f64 = 2.5;
/// Substreams of the window; a search is longer.
const SUBSTREAMS: u64 = 2;
/// Items of a window: enough for the streams, and few enough for a large δ.
const ITEMS: u64 = 40;
const ITEMS_OF_USERS: u64 = 240;

/// Keys of a map or summary that is called full.
pub(super) const FEW_KEYS: usize = 8;

/// The keys that streams differ in, and others.
const FIRST: usize = 0;
const SECOND: usize = 1;
const HEAVY: usize = 2;
const HEAVIES: usize = 5;
const FILLER: usize = 10;

/// Counters, so that the two keys rarely share one, and the most keys with counters of their own.
const COLUMNS: u32 = 64;
const PINNED_MAX: u32 = 3;

/// Which item arrives at each position of a search; `None` is a null item.
type Stream = Vec<Option<usize>>;

/// The sizes of a small finder.
#[derive(Debug, Clone, Copy)]
struct SmallFinder {
    items: u64,
    share: Ratio,
    counting: SearchCounts,
}

/// The outcome of the tests of found keys.
pub(super) struct Verdict {
    pub(super) tests: Vec<Test>,
    pub(super) checks: Vec<Check>,
}

/// Events that never happen in a correct build.
#[derive(Debug, Default)]
struct Wrong {
    unsorted: u64,
    unplanned: u64,
    back: u64,
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
    fn new(
        settings: &Settings,
        search_plan: SearchSettings,
        counting: SearchCounts,
    ) -> Result<Self, AuditError> {
        let is_of_users = settings.unit.per_substream().is_some();
        let items = if is_of_users { ITEMS_OF_USERS } else { ITEMS };
        let share = Ratio::from_decimal(KEYS_EPSILON / EPSILON)?;
        Self::with_sizes(settings, search_plan, SmallFinder { items, share, counting })
    }

    /// One that shares ε as the plan does, with substreams in which two keys reach the threshold.
    fn with_own_share(settings: &Settings, search_plan: SearchSettings) -> Result<Self, AuditError> {
        let plan = Plan::new(settings.clone())?;
        let share = plan.search_plan().map_or(Ratio::ONE, SearchPlan::share);
        let mut small = SmallFinder { items: ITEMS, share, counting: SearchCounts::Exact };
        loop {
            let finder = Self::with_sizes(settings, search_plan, small)?;
            if 2 * finder.sure_count() + finder.changed.len() <= finder.substream_len() {
                return Ok(finder);
            }
            // Delta falls as 1/items, and the threshold grows only with its logarithm: substreams outgrow it.
            small.items *= 2;
        }
    }

    fn with_sizes(
        settings: &Settings,
        search_plan: SearchSettings,
        small: SmallFinder,
    ) -> Result<Self, AuditError> {
        let SmallFinder { items, share, counting } = small;
        let counters = CounterLayout::Hashed { rows: 1, columns: COLUMNS };
        let pinned = Plan::new(settings.clone())?.pinned().min(PINNED_MAX);
        let method = TunedMethod { substreams: SUBSTREAMS, counters, pinned, ..TunedMethod::default() };
        let (share, search_len) = (Some(share), Some(CHECKS as u64));
        let plan = Plan::new(Settings {
            window: tiny_window(settings.window, items, Size::TINY.lateness),
            unit: settings.unit,
            epsilon: Epsilon::new(EPSILON)?,
            // The largest delta that a plan of this many items accepts.
            delta: Some(Delta::new(1.0 / items as f64)?),
            domain: Domain::Found(SearchSettings { share, search_len, counting, ..search_plan }),
            method: Some(Method::Tuned(method)),
            retention: 1,
        })?;
        let keys = tiny_keys(&settings.domain, Size::TINY.columns);
        let users = settings.unit.per_substream();
        let each = users.unwrap_or(1) as usize;
        let last = (CHECKS - 1) * plan.substream_len() as usize;
        // The claim for users is per window: their changes lie in two adjacent substreams, which one window covers.
        let before = last - plan.substream_len() as usize;
        let changed = last..last + each;
        let changed = if users.is_some() {
            (before..before + each).chain(changed).collect()
        } else {
            changed.collect()
        };
        Ok(Self { plan, keys, changed })
    }

    fn search_plan(&self) -> &SearchPlan {
        self.plan.search_plan().expect("a finder finds keys")
    }

    fn delta(&self) -> f64 {
        self.plan.settings().delta.map_or(0.0, Delta::get)
    }

    /// The smallest count with which a key comes out for sure if its lasting noise is zero.
    fn sure_count(&self) -> usize {
        sure_count(self.search_plan().threshold()) as usize
    }

    fn substream_len(&self) -> usize {
        self.plan.substream_len() as usize
    }

    /// Items of a search.
    fn search_items(&self) -> usize {
        CHECKS * self.substream_len()
    }

    /// Two streams that have these items at the changed positions, or none where presence is protected, and the same others
    /// from the last substream on.
    fn make_neighbours(&self, first: usize, second: usize, others: &[(usize, usize)]) -> [Stream; 2] {
        let hidden = self.plan.settings().unit == Unit::AddRemove;
        [Some(first).filter(|_| !hidden), Some(second)].map(|item| {
            let mut stream = vec![None; self.search_items()];
            for &position in &self.changed {
                stream[position] = item;
            }
            let wanted: usize = others.iter().map(|(_, count)| count + self.changed.len()).sum();
            let from = self.search_items() - self.substream_len().max(wanted).min(self.search_items());
            self.fill_free(&mut stream, from, others);
            stream
        })
    }

    /// Neighbours in which the changed items lift the first key to the threshold, or the second.
    fn neighbours_around_threshold(&self) -> [Stream; 2] {
        let around = self.sure_count().saturating_sub(self.changed.len());
        self.make_neighbours(FIRST, SECOND, &[(FIRST, around), (SECOND, around)])
    }

    /// Puts a number of each key at free positions.
    fn fill_free(&self, stream: &mut Stream, from: usize, others: &[(usize, usize)]) {
        let free = (from..stream.len()).filter(|position| !self.changed.contains(position));
        fill_positions(stream, free, others);
    }

    /// What one run on a stream shows at the end of each substream, with saved states between them if asked for.
    fn collect_views(
        &self,
        stream: &Stream,
        number: u64,
        choices: &mut Choices,
        is_saved: bool,
    ) -> Result<Vec<WindowView>, AuditError> {
        let mut hash_key = [0; 32];
        // Each run has its own hash keys, so two keys that collide do so in few runs.
        hash_key[..8].copy_from_slice(&number.to_le_bytes());
        let mut sketch = start_sketch(&self.plan, hash_key)?;
        let (len, lag) = (self.substream_len(), watermark_lag(self.plan.settings().window) as usize);
        let arrival = |position: usize| {
            let user = if self.changed.contains(&position) { u64::MAX } else { position as u64 };
            Arrival { at: position as u64, user, key: stream.get(position).copied().flatten() }
        };
        let mut views = Vec::with_capacity(CHECKS);
        for check in 0..CHECKS {
            let from = if check == 0 { 0 } else { check * len + lag };
            let arrivals: Vec<Arrival> = (from..(check + 1) * len + lag).map(arrival).collect();
            feed_batches(&mut sketch, &self.keys, &arrivals, choices)?;
            views.push(sketch.view());
            if is_saved {
                sketch = restore_state(&save_state(sketch)?)?;
            }
        }
        Ok(views)
    }

    fn last_view(
        &self,
        stream: &Stream,
        number: u64,
        choices: &mut Choices,
    ) -> Result<WindowView, AuditError> {
        Ok(self.collect_views(stream, number, choices, false)?.swap_remove(CHECKS - 1))
    }

    /// The keys that a view lists, by index, and whether they come in the order of their keyed hashes.
    fn found_keys(&self, view: &WindowView) -> (Vec<usize>, bool) {
        let found = view.cached.released.found().keys();
        let key = view.cached.released.mapping().fingerprint_key;
        // The order must not depend on arrivals or counts, so it is that of keyed hashes.
        let is_sorted = found.iter().is_sorted_by_key(|item| key.hash_item(item));
        let places =
            found.iter().filter_map(|item| (0..self.keys.len()).find(|&index| self.keys.get(index) == item));
        (places.collect(), is_sorted)
    }

    /// Whether each view lists a key.
    fn is_listed(&self, views: &[WindowView], key: usize) -> Vec<bool> {
        views.iter().map(|view| self.found_keys(view).0.contains(&key)).collect()
    }

    /// The logarithm of how much likelier the counters of the two keys are under the second stream.
    fn sum_losses(&self, view: &WindowView, streams: &[Stream; 2]) -> f64 {
        let len = self.substream_len();
        let mut loss = 0.0;
        for sealed in view.sealed() {
            let start = sealed.substream() as usize * len;
            let law = self.plan.ranges()[sealed.range()].law();
            // One row, or where the key is pinned a counter of its own in another range.
            let cells = [FIRST, SECOND].map(|key| sealed.cells(self.keys.get(key)).first().copied());
            if cells[0] == cells[1] {
                continue;
            }
            let counted = [FIRST, SECOND].into_iter().zip(cells);
            for (key, cell) in counted.filter_map(|(key, cell)| Some((key, cell?))) {
                let exact = streams.each_ref().map(|stream| {
                    stream.iter().skip(start).take(len).filter(|at| **at == Some(key)).count() as i32
                });
                loss += log_ratio(law, sealed.sketch().cells()[cell], exact);
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
    fn score_lists(
        &self,
        streams: &[Stream; 2],
        runs: usize,
        wrong: &mut Wrong,
        is_shown: impl Fn(&[usize]) -> bool,
    ) -> Result<Scores, AuditError> {
        let mut choices = Choices::new()?;
        score_runs(streams, runs, |stream, number| {
            let (found, is_sorted) = self.found_keys(&self.last_view(stream, number, &mut choices)?);
            wrong.unsorted += u64::from(!is_sorted);
            Ok(score(is_shown(&found)))
        })
    }

    fn judge_scores(&self, name: &'static str, scores: &Scores, effort: Effort) -> [Test; 2] {
        self.judge(KEYS_EPSILON, effort).judge_both(name, &Event::AtLeast(1.0), scores)
    }

    fn judge(&self, epsilon: f64, effort: Effort) -> Judge {
        Judge { claimed: Claimed::Epsilon(epsilon), delta: self.delta(), doubt: effort.doubt() }
    }
}

/// Puts a number of each key at these positions, in order.
fn fill_positions(
    stream: &mut Stream,
    mut positions: impl Iterator<Item = usize>,
    others: &[(usize, usize)],
) {
    for &(key, count) in others {
        for position in positions.by_ref().take(count) {
            stream[position] = Some(key);
        }
    }
}

/// The scores of `runs` runs on each stream: all on the first one, then all on the second.
fn score_runs(
    streams: &[Stream; 2],
    runs: usize,
    mut score_run: impl FnMut(&Stream, u64) -> Result<f64, AuditError>,
) -> Result<Scores, AuditError> {
    let [first, second] = streams
        .each_ref()
        .map(|stream| (0..runs as u64).map(|number| score_run(stream, number)).collect::<Result<_, _>>());
    Ok(Scores { first: first?, second: second? })
}

/// What speaks for the second stream if something is shown, and for the first if not.
fn score(is_shown: bool) -> f64 {
    if is_shown { 1.0 } else { -1.0 }
}

/// Audits the keys of a plan that finds them.
pub(super) fn audit_keys(
    settings: &Settings,
    search_plan: SearchSettings,
    effort: Effort,
) -> Result<Verdict, AuditError> {
    // More keys than items: the summary then loses nothing, and all streams mean the same for both ways of counting.
    let counting = match search_plan.counting {
        SearchCounts::Exact => SearchCounts::Exact,
        SearchCounts::Summary { .. } => SearchCounts::Summary { keys: 4 * ITEMS_OF_USERS },
    };
    let finder = Finder::new(settings, search_plan, counting)?;
    let mut wrong = Wrong::default();
    let mut tests = Vec::new();
    tests.extend(lone_key(&finder, effort, &mut wrong)?);
    tests.extend(near_threshold(&finder, effort, &mut wrong)?);
    tests.extend(many_keys(&finder, effort, &mut wrong)?);
    // A summary is checked once, at the end of its search: no key grows between two checks or comes back.
    if let SearchCounts::Exact = search_plan.counting {
        tests.extend(grown_key(&finder, effort)?);
        returned_key(&finder, &mut wrong)?;
    }
    if let (SearchCounts::Summary { .. }, None) = (search_plan.counting, settings.window.time()) {
        let finder = Finder::new(settings, search_plan, SearchCounts::Summary { keys: FEW_KEYS as u64 })?;
        tests.extend(null_items(&finder, effort, &mut wrong)?);
        tests.extend(lowered_counts(&finder, effort, &mut wrong)?);
    }
    tests.extend(keys_with_counters(&Finder::with_own_share(settings, search_plan)?, effort)?);
    on_paths(&finder, effort, &mut wrong)?;
    let checks = vec![
        Check::new("keys come out as often as planned on every path of counts", wrong.unplanned),
        Check::new("a key that left the list is not looked at again in its search", wrong.back),
        Check::new("found keys come in the order of their keyed hashes", wrong.unsorted),
    ];
    Ok(Verdict { tests, checks })
}

/// A key that has too few items without the changed ones comes out with probability at most δ.
fn lone_key(finder: &Finder, effort: Effort, wrong: &mut Wrong) -> Result<[Test; 1], AuditError> {
    let streams = finder.make_neighbours(FIRST, SECOND, &[(SECOND, COUNT_MIN as usize - 1)]);
    let scores = finder.score_lists(&streams, effort.runs, wrong, |found| found.contains(&SECOND))?;
    // Without the changed items this key stays below `COUNT_MIN` and never comes out, so every hit counts against delta.
    let share = Share::of(&scores.second, 1.0);
    let limit = finder.delta();
    let (bound, upper) = (share.lower_limit(effort.doubt()), share.upper_limit(effort.doubt()));
    let name = "a key that one event makes frequent enough is found";
    Ok([Test { name, forward: true, tpr: share.plain(), fpr: 0.0, bound, upper, limit, ok: bound <= limit }])
}

/// Two keys around the threshold, one up and one down.
fn near_threshold(finder: &Finder, effort: Effort, wrong: &mut Wrong) -> Result<[Test; 2], AuditError> {
    let streams = finder.neighbours_around_threshold();
    let scores = finder.score_lists(&streams, effort.runs, wrong, |found| {
        found.contains(&SECOND) && !found.contains(&FIRST)
    })?;
    Ok(finder.judge_scores("keys around the threshold", &scores, effort))
}

/// A key of the first substream that the changed items raise in the last one: they must not be what lets it out then.
fn grown_key(finder: &Finder, effort: Effort) -> Result<[Test; 2], AuditError> {
    let streams = finder.make_neighbours(FILLER, HEAVY, &[]).map(|mut stream| {
        finder.fill_free(&mut stream, 0, &[(HEAVY, finder.sure_count() - 1)]);
        stream
    });
    let mut choices = Choices::new()?;
    let last = finder.changed[0] / finder.substream_len();
    let scores = score_runs(&streams, effort.runs, |stream, number| {
        let views = finder.collect_views(stream, number, &mut choices, false)?;
        let first = first_check(&finder.is_listed(&views, HEAVY));
        Ok(score(first.is_some_and(|check| last <= check)))
    })?;
    Ok(finder.judge_scores("a key that grows between two looks", &scores, effort))
}

/// The two keys around the threshold, and their counters: one spends what the other one leaves.
fn keys_with_counters(finder: &Finder, effort: Effort) -> Result<[Test; 2], AuditError> {
    let streams = finder.neighbours_around_threshold();
    let mut choices = Choices::new()?;
    let scores = score_runs(&streams, effort.runs, |stream, number| {
        let view = finder.last_view(stream, number, &mut choices)?;
        let (found, _) = finder.found_keys(&view);
        let loss = finder.sum_losses(&view, &streams);
        // Losses add up only if keys and counters point to the same stream.
        Ok(match [FIRST, SECOND].map(|key| found.contains(&key)) {
            [false, true] => loss.max(0.0),
            [true, false] => loss.min(0.0),
            _ => 0.0,
        })
    })?;
    let most = Event::AtLeast(finder.most_of_counters(&streams) * (1.0 - 1e-9));
    Ok(finder.judge(EPSILON, effort).judge_both("keys and counters together", &most, &scores))
}

/// One key more or less must not decide about another one.
fn many_keys(finder: &Finder, effort: Effort, wrong: &mut Wrong) -> Result<[Test; 2], AuditError> {
    let few = FEW_KEYS - 1;
    let mut others: Vec<(usize, usize)> = (0..few).map(|index| (FILLER + index, 1)).collect();
    others.push((HEAVY, finder.sure_count() + 2));
    let streams = finder.make_neighbours(FILLER + few, FILLER, &others);
    let scores = finder.score_lists(&streams, effort.runs, wrong, |found| found.contains(&HEAVY))?;
    Ok(finder.judge_scores("a key beside many or more", &scores, effort))
}

/// Keys of a summary with the same count, which all move if one item more or less moves them.
fn heavy_keys(count: usize) -> Vec<(usize, usize)> {
    (HEAVY..HEAVY + HEAVIES).map(|key| (key, count)).collect()
}

/// Whether most of those keys come out.
fn most_heavies(found: &[usize]) -> bool {
    let heavies = found.iter().filter(|key| (HEAVY..HEAVY + HEAVIES).contains(key)).count();
    HEAVIES < 2 * heavies
}

/// A null item more must not lower what is taken off every count.
fn null_items(finder: &Finder, effort: Effort, wrong: &mut Wrong) -> Result<[Test; 2], AuditError> {
    // By what is taken off one event more, all of them would be one below the threshold.
    let known = |count: usize| HEAVIES * count + 1;
    let heavy = finder.sure_count() - 1
        + known(finder.sure_count() + finder.search_items() / (FEW_KEYS + 1)) / (FEW_KEYS + 1);
    let mut others = heavy_keys(heavy);
    // With the changed item the items that are not null are a multiple of the keys plus one.
    others.push((FILLER, known(heavy).next_multiple_of(FEW_KEYS + 1) - known(heavy)));
    let mut streams = finder.make_neighbours(SECOND, SECOND, &others);
    for &position in &finder.changed {
        streams[1][position] = None;
    }
    let scores = finder.score_lists(&streams, effort.runs, wrong, most_heavies)?;
    Ok(finder.judge_scores("keys beside null items", &scores, effort))
}

/// One key more fills a summary and lowers all its counts.
fn lowered_counts(finder: &Finder, effort: Effort, wrong: &mut Wrong) -> Result<[Test; 2], AuditError> {
    let mut others = heavy_keys(finder.sure_count() + finder.search_items() / (FEW_KEYS + 1));
    others.extend((0..FEW_KEYS - HEAVIES).map(|index| (FILLER + index, 1)));
    let streams = finder.make_neighbours(SECOND, FILLER, &others);
    let scores = finder.score_lists(&streams, effort.runs, wrong, most_heavies)?;
    Ok(finder.judge_scores("keys of a full summary", &scores, effort))
}

/// Holds the check at which keys come out against its law, in streams that are saved and restored between checks.
fn on_paths(finder: &Finder, effort: Effort, wrong: &mut Wrong) -> Result<(), AuditError> {
    let paths = revealing_paths(finder.search_plan().threshold());
    let mut stream: Stream = vec![None; finder.search_items()];
    for check in 0..CHECKS {
        let before = paths.map(|path| if check == 0 { 0 } else { path[check - 1] });
        let more = paths.iter().zip(before).map(|(path, before)| (path[check] - before) as usize);
        let others: Vec<(usize, usize)> = (HEAVY..).zip(more).collect();
        let wanted: usize = others.iter().map(|(_, count)| count).sum();
        debug_assert!(wanted <= finder.substream_len(), "{wanted} items in one substream");
        // Late enough that no earlier check can see them.
        fill_positions(&mut stream, (check + 1) * finder.substream_len() - wanted.., &others);
    }
    let mut choices = Choices::new()?;
    let mut outcomes: [Vec<Outcome>; 3] = Default::default();
    for number in 0..effort.runs as u64 {
        // Every other run is saved and restored: the lasting noise must come back unchanged (PRIVACY.md: rule 32).
        let views = finder.collect_views(&stream, number, &mut choices, number % 2 == 0)?;
        for (key, outcomes) in (HEAVY..).zip(&mut outcomes) {
            outcomes.push(first_check(&finder.is_listed(&views, key)));
        }
    }
    for (path, outcomes) in paths.iter().zip(&outcomes) {
        wrong.unplanned += count_misses(outcomes, &outcome_law(finder.search_plan(), path), effort.doubt());
    }
    Ok(())
}

/// The law of the check at which a key comes out; of a summary, at the end alone.
fn outcome_law(search_plan: &SearchPlan, path: &[u64; CHECKS]) -> Vec<f64> {
    let release: &Release = search_plan.release();
    match search_plan.summary_limit() {
        None => release.outcome_law(path),
        Some(_) => [vec![0.0; CHECKS - 1], release.outcome_law(&path[CHECKS - 1..])].concat(),
    }
}

/// Runs in which a key may come back to a list with room for one.
const RETURNS: u64 = 500;

/// A key comes out, another one takes its place in the list, and the first grows: it must not come back.
fn returned_key(finder: &Finder, wrong: &mut Wrong) -> Result<(), AuditError> {
    let plan = finder.plan.clone().with_list(ListLimits { keys: 1, bytes: usize::MAX });
    let finder = Finder { plan, keys: finder.keys.clone(), changed: Vec::new() };
    let len = finder.substream_len();
    let mut stream: Stream = vec![None; finder.search_items()];
    finder.fill_free(&mut stream, 0, &[(HEAVY, len / 2)]);
    finder.fill_free(&mut stream, len, &[(SECOND, len)]);
    finder.fill_free(&mut stream, 2 * len, &[(HEAVY, len)]);
    let mut choices = Choices::new()?;
    for number in 0..RETURNS {
        let views = finder.collect_views(&stream, number, &mut choices, false)?;
        wrong.back += u64::from(came_back(&finder.is_listed(&views, HEAVY)));
    }
    Ok(())
}
