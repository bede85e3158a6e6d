//! How keys are found.

use crate::error::{ParameterError, PlanError, Quantity};
use crate::item::domain::{SearchCounts, SearchSettings};
use crate::item::value::Kind;
use crate::noise::law::Law;
use crate::noise::table::Table;
use crate::plan::budget::Budget;
use crate::plan::layout::{count_touched, open_max, substream_items};
use crate::plan::limits::{
    KEY_LEN_MAX, KEYS_MAX, LIST_BYTES, LIST_KEYS, ROOM, SEARCH_BYTES, SEARCH_ITEMS, SEARCH_ITEMS_MAX,
    SEARCH_LEN_MAX, SEARCH_ROOM, SEARCH_WINDOWS, SEARCHED_LEN, check_range,
};
use crate::plan::range::LazyTable;
use crate::plan::release::Release;
use crate::plan::settings::{NoiseChoice, Settings, Window};
use crate::ratio::Ratio;

/// The plan of the search for keys: everything that follows from a [`SearchSettings`].
#[derive(Debug, Clone)]
pub struct SearchPlan {
    search: SearchSettings,
    share: Ratio,
    delta: f64,
    search_len: u64,
    substream_items: u64,
    items_max: u64,
    running: u64,
    release: Release,
    list: ListLimits,
    lasting: LazyTable,
    fresh: LazyTable,
}

/// The most keys of the list of found ones, and the most bytes that they have together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListLimits {
    pub(crate) keys: usize,
    pub(crate) bytes: usize,
}

impl SearchPlan {
    /// Substreams per search.
    #[must_use]
    pub fn search_len(&self) -> u64 {
        self.search_len
    }

    /// How often a search looks at its keys: whenever a substream is sealed, or with a summary at its end alone.
    #[must_use]
    pub fn checks(&self) -> u64 {
        self.release.checks
    }

    /// The items of a search that are looked at: all of them, or in a time window the first ones, at most this many.
    #[must_use]
    pub fn items_max(&self) -> u64 {
        self.items_max
    }

    /// About how many items a search has.
    fn search_items(&self) -> u64 {
        self.substream_items.saturating_mul(self.search_len)
    }

    /// The share of ε that finding keys takes.
    #[must_use]
    pub fn share(&self) -> Ratio {
        self.share
    }

    /// The δ that finding keys takes.
    #[must_use]
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// A key is released if its count, three less, with the noise of the search taken off and that of the check added,
    /// reaches this.
    #[must_use]
    pub fn threshold(&self) -> u64 {
        self.release.threshold
    }

    /// The scale of the noise that a key keeps for a search: it is at least i with probability exp(-i / scale).
    #[must_use]
    pub fn lasting_scale(&self) -> Ratio {
        self.release.lasting
    }

    /// The scale of the noise that is drawn at each check; its law is of the same form.
    #[must_use]
    pub fn fresh_scale(&self) -> Ratio {
        self.release.fresh
    }

    pub(crate) fn release(&self) -> &Release {
        &self.release
    }

    /// The smallest count in a search with which one look finds a key with this probability; later ones only help.
    #[must_use]
    pub fn count_found(&self, probability: f64) -> f64 {
        self.release.count_found(probability) + self.missing_count()
    }

    /// What a summary may have lost of a count.
    fn missing_count(&self) -> f64 {
        match self.search.counting {
            SearchCounts::Exact => 0.0,
            // Taken off however full the summary is (PRIVACY.md: rule 15).
            SearchCounts::Summary { keys } => (self.items_max / (keys + 1)) as f64,
        }
    }

    /// The smallest share of a search that is found with this probability; above 1 if none is.
    #[must_use]
    pub fn share_found(&self, probability: f64) -> f64 {
        self.count_found(probability) / self.search_items() as f64
    }

    /// The smallest share of so many items, in which it comes evenly, that lists a key by their end with this probability at
    /// least; the first of them may be any of a search. Above 1 if none does.
    #[must_use]
    pub fn share_listed(&self, items: u64, probability: f64) -> f64 {
        let items = items as f64;
        self.least_share(|share| probability <= self.listed_within(share, items))
    }

    /// The same where these are all items of a stream that is over with them.
    #[must_use]
    pub fn share_listed_in_all(&self, items: u64, probability: f64) -> f64 {
        let items = items as f64;
        self.least_share(|share| probability <= 1.0 - self.chance_missed(share, 0.0, items))
    }

    /// The smallest share that is enough, to a thousandth of it; 2 if none is.
    fn least_share(&self, is_enough: impl Fn(f64) -> bool) -> f64 {
        if !is_enough(1.0) {
            return 2.0;
        }
        // In the logarithm, as shares of interest lie many powers of ten apart.
        let (mut low, mut high) = (f64::MIN_POSITIVE, 1.0);
        while 1.001 * low < high {
            let middle = (low * high).sqrt();
            if is_enough(middle) { high = middle } else { low = middle }
        }
        high
    }

    /// With which probability a key is listed that has this share of so many items, averaged over where they begin.
    fn listed_within(&self, share: f64, items: f64) -> f64 {
        let step = self.search_items() as f64 / f64::from(PHASES);
        let starts = (0..PHASES).map(|phase| (f64::from(phase) + 0.5) * step);
        starts.map(|start| self.chance_listed(share, start, start + items)).sum::<f64>() / f64::from(PHASES)
    }

    /// How many items pass until a key is listed, with this probability at least, that takes this share of the items from
    /// some moment on; the moment may be any of a search. `None` if it may never be.
    #[must_use]
    pub fn items_until_listed(&self, share: f64, probability: f64) -> Option<f64> {
        let is_listed = |items: f64| probability <= self.listed_within(share, items);
        let enough = (0..50).map(|power| 2_f64.powi(power)).find(|&items| is_listed(items))?;
        let (mut low, mut high) = (enough / 2.0, enough);
        while 1.0 < high - low {
            let middle = f64::midpoint(low, high);
            if is_listed(middle) { high = middle } else { low = middle }
        }
        Some(high.ceil())
    }

    /// With which probability a key is listed at position `end` that has this share of the items from `start` on, both
    /// counted from the beginning of a search.
    fn chance_listed(&self, share: f64, start: f64, end: f64) -> f64 {
        let step = match self.search.counting {
            SearchCounts::Exact => self.substream_items as f64,
            SearchCounts::Summary { .. } => self.search_items() as f64,
        };
        1.0 - self.chance_missed(share, start, (end / step).floor() * step)
    }

    /// With which probability it is not, if all searches are looked at when they end and at position `checked`.
    fn chance_missed(&self, share: f64, start: f64, checked: f64) -> f64 {
        let search = self.search_items() as f64;
        let missed =
            |items: f64| 1.0 - self.release.chance_found(share * items.max(0.0), self.missing_count());
        if checked <= search {
            return missed(checked - start);
        }
        let (whole, rest) = ((checked / search).floor() - 1.0, checked % search);
        // Searches share no noise, so that the chances to be missed multiply.
        missed(search - start) * missed(search).powf(whole) * missed(rest)
    }

    /// The table of the noise that a key keeps for a search.
    pub(crate) fn lasting_table(&self) -> &Table {
        self.lasting.get_or_init(|| Table::new(Law::Laplace { scale: self.release.lasting }))
    }

    /// The table of the noise that is drawn at each check.
    pub(crate) fn fresh_table(&self) -> &Table {
        self.fresh.get_or_init(|| Table::new(Law::Laplace { scale: self.release.fresh }))
    }

    /// Bytes of both tables.
    pub(crate) fn table_bytes(&self) -> u64 {
        let scales = [self.release.lasting, self.release.fresh];
        scales.iter().map(|&scale| Table::bytes(Law::Laplace { scale }) as u64).sum()
    }

    pub(crate) fn kind(&self) -> Kind {
        self.search.kind
    }

    /// The most keys of a summary.
    pub(crate) fn summary_limit(&self) -> Option<usize> {
        match self.search.counting {
            SearchCounts::Exact => None,
            SearchCounts::Summary { keys } => usize::try_from(keys).ok(),
        }
    }

    pub(crate) fn key_len_max(&self) -> usize {
        self.search.key_len_max as usize
    }

    pub(crate) fn list_limits(&self) -> ListLimits {
        self.list
    }

    /// The search that a substream belongs to.
    pub(crate) fn number_at(&self, substream: u64) -> u64 {
        substream / self.search_len
    }

    /// Whether a search ends with this substream.
    pub(crate) fn ends_with(&self, substream: u64) -> bool {
        (substream + 1).is_multiple_of(self.search_len)
    }

    /// Whether the keys are looked at when this substream is sealed.
    pub(crate) fn checks_at(&self, substream: u64) -> bool {
        self.summary_limit().is_none() || self.ends_with(substream)
    }

    /// The most searches that run at a time.
    pub(crate) fn running_max(&self) -> u64 {
        self.running
    }

    fn entry_len(&self) -> u64 {
        match self.search.kind {
            Kind::Integers => 16,
            Kind::Bytes => SEARCHED_LEN as u64,
        }
    }

    /// The most bytes that the keys of a running search take: entries at the least load of the map, and key bytes.
    fn one_search_bytes(&self) -> u64 {
        let entries = self.summary_limit().map_or(self.items_max, |limit| self.items_max.min(limit as u64));
        // Lists grow by doubling; the map of places holds 8 bytes per slot.
        let slots = (entries * 4 / 3 + 1).next_power_of_two();
        let keys = match self.search.kind {
            Kind::Integers => 0,
            Kind::Bytes => entries * u64::from(self.search.key_len_max),
        };
        slots * 8 + entries.next_power_of_two() * self.entry_len() + keys + SEARCH_ROOM as u64
    }

    /// The most bytes that the keys of all running searches take.
    pub(crate) fn search_bytes(&self) -> u64 {
        self.running.saturating_mul(self.one_search_bytes())
    }
}

/// Moments of a search at which a key may begin.
const PHASES: u32 = 256;

/// Where the share of ε is not given, it is the first of these that finds keys with a small share of the window.
const SHARES: [(u64, u64); 3] = [(1, 20), (1, 10), (1, 5)];
const SHARE_WANTED: f64 = 0.0005;
const SHARE_PROBABILITY: f64 = 0.9;

/// Where the length of a search with a summary is not given, it finds keys with this share, with this probability.
const SUMMARY_SHARE: f64 = 0.001;
const SUMMARY_PROBABILITY: f64 = 0.99;

impl SearchPlan {
    /// How keys are found beside sketches with this noise, in substreams of this length.
    pub(crate) fn new(
        settings: &Settings,
        search: SearchSettings,
        noise: NoiseChoice,
        substream_len: u64,
    ) -> Result<Self, PlanError> {
        let draft = Draft { settings, search, noise, substream_len };
        if let Some(share) = search.share {
            return draft.with_share(share);
        }
        let window = settings.window.expected_items();
        let finds = |planned: &Self| {
            let items = window.min(planned.search_items()) as f64;
            planned.count_found(SHARE_PROBABILITY) <= SHARE_WANTED * items
        };
        let planned = |(numerator, denominator)| {
            draft.with_share(Ratio::new(numerator, denominator).expect("no denominator is zero"))
        };
        // From the smallest share on: what keys do not take makes all estimates better.
        let good = SHARES.into_iter().map(planned).find(|planned| planned.as_ref().is_ok_and(finds));
        good.unwrap_or_else(|| planned(SHARES[SHARES.len() - 1]))
    }

    /// What was asked for, with the share and the search that were chosen.
    pub(crate) fn chosen_settings(&self) -> SearchSettings {
        SearchSettings { share: Some(self.share), search_len: Some(self.search_len), ..self.search }
    }

    /// The same with a shorter list, for audits.
    pub(crate) fn with_list(self, list: ListLimits) -> Self {
        Self { list, ..self }
    }
}

/// The inputs of a [`SearchPlan`].
#[derive(Clone, Copy)]
struct Draft<'s> {
    settings: &'s Settings,
    search: SearchSettings,
    noise: NoiseChoice,
    substream_len: u64,
}

impl Draft<'_> {
    fn with_share(&self, share: Ratio) -> Result<SearchPlan, PlanError> {
        match self.search.search_len {
            Some(search_len) => self.plan_search(share, search_len),
            None => self.plan_search(share, self.search_len(share)?),
        }
    }

    /// The length of a search where none is given. Keys are never refused because there is no room, so the room is what
    /// decides how long it can be.
    fn search_len(&self, share: Ratio) -> Result<u64, PlanError> {
        let window = self.settings.window.len().div_ceil(self.substream_len);
        let one = self.plan_search(share, 1)?;
        let wanted = match self.search.counting {
            SearchCounts::Exact => SEARCH_ITEMS / one.substream_items.max(1),
            SearchCounts::Summary { .. } => {
                let wanted = (one.share_found(SUMMARY_PROBABILITY) / SUMMARY_SHARE).ceil() as u64;
                wanted.min(window)
            }
        };
        let wanted = wanted.clamp(1, SEARCH_WINDOWS.saturating_mul(window).min(SEARCH_LEN_MAX));
        // Bytes follow from these two numbers alone: no noise has to be calibrated again for each length.
        let fits = |search_len: u64| {
            let planned = SearchPlan { items_max: self.items_max(search_len), ..one.clone() };
            let running = self.running_max(search_len);
            SearchPlan { running, ..planned }.search_bytes() <= SEARCH_BYTES
        };
        let (mut longest, mut too_long) = (1, wanted + 1);
        while 1 < too_long - longest {
            let middle = u64::midpoint(longest, too_long);
            if fits(middle) { longest = middle } else { too_long = middle }
        }
        Ok(longest)
    }

    fn plan_search(&self, share: Ratio, search_len: u64) -> Result<SearchPlan, PlanError> {
        let Self { settings, search, noise, substream_len } = *self;
        let items_max = self.items_max(search_len);
        check_search(search, search_len, items_max)?;
        let budget = Budget::of_keys(settings, share, noise)?;
        let events =
            settings.unit.protected_events(count_touched(settings.window.len(), substream_len)).of_window;
        let checks = match search.counting {
            SearchCounts::Exact => search_len,
            // Which key a replaced item raises can change in a summary as it goes on.
            SearchCounts::Summary { .. } => 1,
        };
        let refused = ParameterError::Epsilon(budget.epsilon.to_f64());
        let release = Release::new(&budget, checks, events).ok_or(refused)?;
        Ok(SearchPlan {
            search,
            share,
            delta: budget.delta,
            search_len,
            substream_items: substream_items(settings.window, substream_len),
            items_max,
            running: self.running_max(search_len),
            release,
            list: ListLimits { keys: LIST_KEYS, bytes: LIST_BYTES.max(search.key_len_max as usize) },
            lasting: LazyTable::default(),
            fresh: LazyTable::default(),
        })
    }

    /// The items of a search that are looked at.
    fn items_max(&self, search_len: u64) -> u64 {
        let room = match self.settings.window {
            Window::Items(_) => 1,
            Window::Time(_) => ROOM,
        };
        let items = substream_items(self.settings.window, self.substream_len);
        // Fixed by the plan: arrivals beyond it are null items for the search (PRIVACY.md: rule 15).
        items.saturating_mul(search_len).saturating_mul(room)
    }

    /// The most searches that run at a time.
    fn running_max(&self, search_len: u64) -> u64 {
        match self.settings.window {
            Window::Items(_) => 1,
            // Substreams that are open at the same time may belong to neighbouring searches.
            Window::Time(_) => open_max(self.settings.window, self.substream_len).div_ceil(search_len) + 1,
        }
    }
}

fn check_search(search: SearchSettings, search_len: u64, items_max: u64) -> Result<(), PlanError> {
    check_range(Quantity::SearchLen, search_len, 1, SEARCH_LEN_MAX)?;
    check_range(Quantity::KeyLen, search.key_len_max.into(), 1, KEY_LEN_MAX)?;
    check_range(Quantity::SearchItems, items_max, 1, SEARCH_ITEMS_MAX)?;
    let entries = match search.counting {
        SearchCounts::Exact => items_max,
        SearchCounts::Summary { keys } => {
            check_range(Quantity::SummaryKeys, keys, 1, KEYS_MAX)?;
            keys.min(items_max)
        }
    };
    match search.kind {
        Kind::Integers => Ok(()),
        Kind::Bytes => {
            let bytes = entries.saturating_mul(search.key_len_max.into());
            check_range(Quantity::SearchBytes, bytes, 1, u32::MAX.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::domain::Domain;
    use crate::plan::settings::{Clock, CounterLayout, Method, TimeWindow, TunedMethod, Unit};
    use crate::plan::structure::Plan;
    use crate::privacy::parameters::{Delta, Epsilon};

    fn settings(items: u64, substreams: u64, search: SearchSettings) -> Settings {
        Settings {
            window: Window::Items(items),
            unit: Unit::ReplaceOne,
            epsilon: Epsilon::new(1.0).expect("in range"),
            delta: Delta::new(1e-10).ok(),
            domain: Domain::Found(search),
            method: Some(Method::Tuned(TunedMethod {
                substreams,
                counters: CounterLayout::Hashed { rows: 1, columns: 2 },
                ..TunedMethod::default()
            })),
            retention: 1,
        }
    }

    fn planned(settings: Settings) -> SearchPlan {
        Plan::new(settings).expect("a plan").search_plan().expect("keys are found").clone()
    }

    fn chosen(items: u64, substreams: u64, kind: Kind) -> SearchPlan {
        planned(settings(items, substreams, SearchSettings::new(kind)))
    }

    #[test]
    fn a_search_has_a_million_items_at_most_eight_windows_and_64_mebibytes() {
        // Window, substreams, and substreams of a search.
        for (items, substreams, search_len) in
            [(1_000_000, 20, 20), (100_000, 20, 160), (20_000, 10, 80), (1 << 30, 4, 1)]
        {
            let found = chosen(items, substreams, Kind::Integers);
            assert_eq!(found.search_len(), search_len, "{items} items, {substreams} substreams");
            assert_eq!(found.checks(), search_len);
        }
        let texts = chosen(1_000_000, 50, Kind::Bytes);
        let longer =
            SearchSettings { search_len: Some(texts.search_len() + 1), ..SearchSettings::new(Kind::Bytes) };
        let longer = planned(settings(1_000_000, 50, longer));
        assert!(texts.search_bytes() <= SEARCH_BYTES && SEARCH_BYTES < longer.search_bytes());
    }

    #[test]
    fn a_search_may_outlast_what_is_retained_and_late_events_are_counted_twice() {
        let window = TimeWindow { len: 1000, lateness: 100, clock: Clock::Caller, expected_items: 1000 };
        let timed = settings(1000, 10, SearchSettings::new(Kind::Integers));
        let found = planned(Settings { window: Window::Time(window), ..timed });
        assert_eq!((found.search_len(), found.items_max(), found.running_max()), (80, 2 * 8000, 2));
        assert_eq!(found.search_bytes(), 2 * found.one_search_bytes());
        assert_eq!(found.share_found(0.5), found.count_found(0.5) / 8000.0);
    }

    #[test]
    fn the_share_is_the_first_that_finds_rare_keys() {
        let share = |items, epsilon| {
            let settings = settings(items, 20, SearchSettings::new(Kind::Integers));
            planned(Settings { epsilon: Epsilon::new(epsilon).expect("in range"), ..settings }).share()
        };
        let ratio = |denominator| Ratio::new(1, denominator).expect("a ratio");
        assert_eq!(share(1_000_000, 1.0), ratio(10));
        assert_eq!(share(1_000_000, 2.0), ratio(20));
        assert_eq!(share(10_000, 1.0), ratio(5));
        let given = SearchSettings { share: Ratio::new(2, 7).ok(), ..SearchSettings::new(Kind::Integers) };
        assert_eq!(planned(settings(1_000_000, 20, given)).share(), Ratio::new(2, 7).expect("a ratio"));
    }

    #[test]
    fn what_is_found_and_what_it_takes_follow_from_the_threshold() {
        let search = SearchSettings {
            share: Ratio::new(1, 5).ok(),
            search_len: Some(1),
            counting: SearchCounts::Summary { keys: 9 },
            ..SearchSettings::new(Kind::Bytes)
        };
        let found = planned(settings(1000, 10, search));
        assert_eq!((found.search_len(), found.items_max(), found.summary_limit()), (1, 100, Some(9)));
        assert_eq!(found.count_found(0.99), found.release().count_found(0.99) + 100.0 / 10.0);
        assert_eq!(found.share_found(0.99), found.count_found(0.99) / 100.0);
        // Nine keys: sixteen slots of 8 bytes, room for sixteen entries, 256 bytes a key, and those met lately.
        assert_eq!(found.search_bytes(), 16 * 8 + 16 * 24 + 9 * 256 + (1 << 16));
        assert_eq!(found.chosen_settings(), search);
    }

    #[test]
    fn a_summary_is_looked_at_when_its_search_ends_and_a_map_at_every_seal() {
        let counting = SearchCounts::Summary { keys: 100 };
        let summary = SearchSettings { counting, search_len: Some(3), ..SearchSettings::new(Kind::Integers) };
        let exact = SearchSettings { counting: SearchCounts::Exact, ..summary };
        let looks = |search| {
            let found = planned(settings(1_000_000, 20, search));
            ((0..6).map(|substream| found.checks_at(substream)).collect::<Vec<_>>(), found.checks())
        };
        assert_eq!(looks(summary), (vec![false, false, true, false, false, true], 1));
        assert_eq!(looks(exact), (vec![true; 6], 3));
    }

    #[test]
    fn keys_with_more_of_the_items_are_listed_sooner_and_rare_ones_never() {
        let found = chosen(100_000, 20, Kind::Integers);
        let until = |share, probability| found.items_until_listed(share, probability).expect("listed");
        for probability in [0.5, 0.99] {
            let items = [0.6, 0.1, 0.03, 0.01].map(|share| until(share, probability));
            assert!(items.is_sorted(), "{items:?}");
        }
        assert!(until(0.1, 0.5) < until(0.1, 0.99));
        // A key with no more than the least count in a search is above by one at most.
        assert_eq!(found.items_until_listed(3.0 / found.search_items() as f64, 0.5), None);
    }

    /// Substreams of 100 items, searches of four.
    fn four_looks(counting: SearchCounts) -> SearchPlan {
        let share = Ratio::new(1, 5).ok();
        let search =
            SearchSettings { share, search_len: Some(4), counting, ..SearchSettings::new(Kind::Integers) };
        planned(Settings { epsilon: Epsilon::new(8.0).expect("in range"), ..settings(1000, 10, search) })
    }

    #[test]
    fn a_key_is_listed_if_one_of_the_searches_since_its_beginning_finds_it() {
        let found = four_looks(SearchCounts::Exact);
        let share = 0.17;
        let missed = |items: f64| 1.0 - found.release().chance_found(share * items, 0.0);
        let is_open = |items: f64| 1e-9 < missed(items) && missed(items) < 0.999;
        assert!([150.0, 350.0, 400.0, 200.0].into_iter().all(is_open), "the cases say something");
        for (start, end, listed) in [
            (50.0, 299.0, 1.0 - missed(150.0)),
            (50.0, 400.0, 1.0 - missed(350.0)),
            (50.0, 1050.0, 1.0 - missed(350.0) * missed(400.0) * missed(200.0)),
            (150.0, 99.0, 0.0),
        ] {
            let got = found.chance_listed(share, start, end);
            assert!((got - listed).abs() < 1e-12, "{start} to {end}: {got}, not {listed}");
        }
        let summary = four_looks(SearchCounts::Summary { keys: 1000 });
        assert_eq!(
            summary.chance_listed(0.9, 0.0, 399.0),
            0.0,
            "a summary is looked at when its search ends"
        );
    }

    #[test]
    fn the_share_of_some_items_that_is_listed_agrees_with_the_items_until_a_share_is() {
        let found = four_looks(SearchCounts::Exact);
        for (share, probability) in [(0.1, 0.5), (0.1, 0.9), (0.5, 0.99)] {
            let items = found.items_until_listed(share, probability).expect("listed");
            let again = found.share_listed(items as u64, probability);
            assert!((0.98..=1.001).contains(&(again / share)), "{share}: {again} of {items}");
        }
        // A stream of its own has a look at its end, in one search if it is short.
        let all = found.share_listed_in_all(250, 0.9);
        assert!((all * 250.0 / found.count_found(0.9) - 1.0).abs() < 0.2, "{all}");
        assert!(found.share_listed_in_all(4, 0.5) > 1.0, "fewer items than any key needs");
    }

    #[test]
    fn the_items_until_a_key_is_listed_are_the_fewest_that_suffice_on_average_over_its_beginning() {
        let found = four_looks(SearchCounts::Exact);
        for (share, probability) in [(0.1, 0.5), (0.1, 0.9), (0.5, 0.99)] {
            let mean = |items: f64| {
                let listed = |half: u32| {
                    let start = f64::from(2 * half + 1) * 400.0 / 512.0;
                    found.chance_listed(share, start, start + items)
                };
                (0..256).map(listed).sum::<f64>() / 256.0
            };
            let items = found.items_until_listed(share, probability).expect("listed");
            assert!(probability <= mean(items) && mean(items - 1.0) < probability, "{share}: {items}");
        }
    }

    #[test]
    fn what_finding_keys_takes_is_counted() {
        let counting = SearchCounts::Summary { keys: 48 };
        let found =
            planned(settings(1000, 10, SearchSettings { counting, ..SearchSettings::new(Kind::Integers) }));
        // 48 keys fill three quarters of 64 slots: one more would not fit. Room for 64 entries of 16 bytes.
        assert_eq!(found.one_search_bytes(), 128 * 8 + 64 * 16 + (1 << 16));
        let bytes = |table: &Table| Table::bytes(table.law()) as u64;
        assert_eq!(found.table_bytes(), bytes(found.lasting_table()) + bytes(found.fresh_table()));
        assert_eq!((found.list_limits().keys, found.list_limits().bytes), (1024, 32 * 1024));
    }

    #[test]
    fn the_search_of_a_summary_is_as_long_as_finds_a_small_share() {
        let counting = SearchCounts::Summary { keys: 10_000 };
        let search =
            SearchSettings { counting, share: Ratio::new(1, 5).ok(), ..SearchSettings::new(Kind::Integers) };
        let one = planned(settings(400_000, 40, SearchSettings { search_len: Some(1), ..search }));
        let wanted = (one.share_found(0.99) / 0.001).ceil() as u64;
        assert!(1 < wanted && wanted < 40, "{wanted}");
        assert_eq!(planned(settings(400_000, 40, search)).search_len(), wanted);
    }

    /// A late event can reach back over several short searches, and over one long one.
    #[test]
    fn a_search_is_as_long_as_the_room_of_all_that_run_allows() {
        let window =
            TimeWindow { len: 1 << 20, lateness: 1 << 18, clock: Clock::Caller, expected_items: 1 << 20 };
        let of = |search_len| {
            let search = SearchSettings { search_len, key_len_max: 16, ..SearchSettings::new(Kind::Bytes) };
            let timed = settings(1 << 20, 50, search);
            planned(Settings { window: Window::Time(window), ..timed })
        };
        let (chosen, short) = (of(None), of(Some(1)));
        assert!(chosen.search_bytes() <= SEARCH_BYTES);
        assert!(chosen.running_max() < short.running_max());
        assert!(SEARCH_BYTES < short.running_max() * chosen.one_search_bytes(), "fewer run at a time");
    }
}
