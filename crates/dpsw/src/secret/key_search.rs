//! The keys of a search: counted in secret while it runs, looked at whenever a substream is sealed, and those whose noisy
//! counts reach the threshold are released, each once.

use crate::bytes::codec::{Reader, Writer};
use crate::error::SnapshotError;
use crate::item::hash::FingerprintKey;
use crate::item::keys::Keys;
use crate::item::run::Run;
use crate::item::value::{Item, Kind};
use crate::noise::generator::Generator;
use crate::noise::one_sided::OneSided;
use crate::plan::release::COUNT_MIN;
use crate::plan::search::SearchPlan;
use crate::sealed::found::FoundKeys;
use crate::secret::key_counts::{ARRIVALS_MAX, BLOCK, Key, KeyState, KeyTable, Placed};
#[cfg(test)]
use crate::testing::tape;

/// Calls the same of whichever kind of keys is counted.
macro_rules! each_kind {
    ($counts:expr, $each:ident => $do:expr) => {
        match $counts {
            AnyKeyTable::Integers($each) => $do,
            AnyKeyTable::Bytes($each) => $do,
        }
    };
}

enum AnyKeyTable {
    Integers(KeyTable<u64>),
    Bytes(KeyTable<Placed>),
}

/// The keys of a running search, with their exact counts and the lasting noise of each.
///
/// At the end of every substream each key is compared with the threshold: its count, less its lasting noise, plus fresh noise
/// of that check. The lasting noise is drawn once per key and saved with the search, because drawing it again after a restore
/// would give a rare key another chance to come out (PRIVACY.md: rule 32).
///
/// A key that came out is never tested again in its search. Whether keys are counted exactly or in a summary is fixed by the
/// plan; how many keys there are never changes it (PRIVACY.md: rule 15). Where a search ends is fixed by the plan as well.
/// Secret, like counters: no `Clone`, a `Debug` that shows nothing, wiped when dropped.
pub(crate) struct KeySearch {
    counts: AnyKeyTable,
    /// The most entries; a summary that is full lowers all counts instead.
    limit: Option<usize>,
    /// Items of the search so far, null items included.
    arrivals: u64,
    /// How often a full summary lowered all counts.
    lowered: u64,
}

impl std::fmt::Debug for KeySearch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeySearch")
    }
}

impl Drop for KeySearch {
    fn drop(&mut self) {
        self.clear();
    }
}

impl KeySearch {
    pub(crate) fn new(plan: &SearchPlan, by: FingerprintKey) -> Self {
        let counts = match plan.kind() {
            Kind::Integers => AnyKeyTable::Integers(KeyTable::new(by)),
            Kind::Bytes => AnyKeyTable::Bytes(KeyTable::new(by)),
        };
        Self { counts, limit: plan.summary_limit(), arrivals: 0, lowered: 0 }
    }

    /// Wipes everything.
    fn clear(&mut self) {
        each_kind!(&mut self.counts, counts => counts.clear());
        (self.arrivals, self.lowered) = (0, 0);
    }

    /// The same, empty, for another search.
    pub(crate) fn into_empty(mut self) -> Self {
        // The room is used again; counts and lasting noise end with their search (PRIVACY.md: rule 32).
        self.clear();
        self
    }

    /// Takes items of the search in order; `admitted` are the places of those that count, unless all do. Those beyond the
    /// search's length, which is a constant of the plan, and keys that are too long are null items here.
    pub(crate) fn take_run(&mut self, run: Run<'_>, admitted: Option<&[usize]>, plan: &SearchPlan) {
        // Null items move the search on as well: where it ends follows from arrivals, not from items (PRIVACY.md: rule 15).
        let room = usize::try_from(plan.items_max().saturating_sub(self.arrivals)).unwrap_or(usize::MAX);
        let room = room.min(run.len());
        let places = match admitted {
            None => Places::First(room),
            Some(places) => Places::These(&places[..places.partition_point(|&place| place < room)]),
        };
        self.count_all(run, &places, plan);
        self.arrivals += run.len() as u64;
    }

    fn count_all(&mut self, run: Run<'_>, places: &Places<'_>, plan: &SearchPlan) {
        let (limit, lowered) = (self.limit, &mut self.lowered);
        match &mut self.counts {
            AnyKeyTable::Integers(counts) => {
                let by = counts.by;
                let at = |index| {
                    let word = run.words[places.get(index)];
                    Some((by.hash_integer(word), word))
                };
                count_all(counts, places.len(), at, limit, lowered);
            }
            AnyKeyTable::Bytes(counts) => {
                let at = |index| {
                    let place = places.get(index);
                    let key = run.bytes[place];
                    // Too long a key is a null item here; the counters of its substream take it all the same (PRIVACY.md: rule 13).
                    (key.len() <= plan.key_len_max()).then_some((run.words[place], key))
                };
                count_all(counts, places.len(), at, limit, lowered);
            }
        }
    }

    /// What is taken off every count of a summary, so that one event moves a count by at most one.
    fn reduction(&self, plan: &SearchPlan) -> u64 {
        // A constant of the plan, whatever came: a reduction that followed the items would show them (PRIVACY.md: rule 15).
        self.limit.map_or(0, |limit| plan.items_max() / (limit as u64 + 1))
    }

    /// From a stored count to the one that gets noise.
    fn value_of_count(&self, plan: &SearchPlan) -> impl Fn(u32) -> u64 + use<> {
        let (lowered, reduction) = (self.lowered, self.reduction(plan));
        planted!(let (lowered, reduction) = fault::reduced(lowered, reduction, &self.stored_counts(), plan));
        move |count| u64::from(count).saturating_add(lowered).saturating_sub(reduction)
    }

    /// Looks at the keys once: those that come out and are not listed. They are not looked at again. Their order is that of
    /// arrival, which must not be shown.
    pub(crate) fn check_keys(
        &mut self,
        plan: &SearchPlan,
        listed: &FoundKeys,
        generator: &mut Generator,
    ) -> Keys {
        let value = self.value_of_count(plan);
        each_kind!(&mut self.counts, counts => check_keys(counts, value, plan, listed, generator))
    }

    /// Items of the search so far, null items included.
    pub(crate) fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// The most bytes of the keys after this many arrivals.
    pub(crate) fn len_max(plan: &SearchPlan, arrivals: u64) -> u64 {
        let items = arrivals.min(plan.items_max());
        let entries = plan.summary_limit().map_or(items, |limit| items.min(limit as u64));
        let key = match plan.kind() {
            Kind::Integers => 8,
            Kind::Bytes => 8 + plan.key_len_max() as u64,
        };
        entries * (4 + 4 + key)
    }

    /// The stored counts, for planted mistakes.
    #[cfg(test)]
    fn stored_counts(&self) -> Vec<u32> {
        each_kind!(&self.counts, counts => counts.entries.iter().map(|entry| entry.count).collect())
    }

    /// What gets noise, in the order of arrival.
    #[cfg(test)]
    pub(crate) fn values_by_key(&self, plan: &SearchPlan) -> tape::Counts {
        let value = self.value_of_count(plan);
        each_kind!(&self.counts, counts => {
            let values = counts.entries.iter().map(|entry| (entry.key.to_item(&counts.arena), value(entry.count)));
            values.map(|(item, value)| (tape::name(item), value)).collect()
        })
    }

    pub(crate) fn write_to(&self, writer: &mut Writer) {
        writer.put_u64(self.arrivals);
        writer.put_u64(self.lowered);
        each_kind!(&self.counts, counts => {
            writer.put_len(counts.entries.len());
            for entry in &counts.entries {
                writer.put_u32(entry.count);
                writer.put_u32(entry.standing.to_word());
                writer.put_item(entry.key.to_item(&counts.arena));
            }
        });
    }

    pub(crate) fn read_from(
        reader: &mut Reader<'_>,
        plan: &SearchPlan,
        by: FingerprintKey,
    ) -> Result<Self, SnapshotError> {
        let mut search = Self::new(plan, by);
        search.arrivals = reader.read_u64()?;
        search.lowered = reader.read_u64()?;
        let len = reader.read_len(4 + 4 + 8)?;
        let most = search.limit.map_or(plan.items_max(), |limit| limit as u64);
        // Each round of lowering takes one item more than the summary has keys.
        let rounds = search.limit.map_or(0, |limit| plan.items_max() / (limit as u64 + 1));
        if ARRIVALS_MAX < search.arrivals || most < len as u64 || rounds < search.lowered {
            return Err(SnapshotError::invalid("its keys are more than a search can hold"));
        }
        for _ in 0..len {
            let count = reader.read_u32()?;
            // As it was: lasting noise that is drawn again gives its key another chance (PRIVACY.md: rule 32).
            let standing = KeyState::from_word(reader.read_u32()?);
            planted!(let standing = fault::restored(standing));
            let item = reader.read_item(plan.kind())?;
            let is_short = !matches!(item, Item::Bytes(bytes) if plan.key_len_max() < bytes.len());
            let fits = is_short && 0 < count && u64::from(count) <= plan.items_max();
            if !fits || !search.restore_key(by.hash_item(item), item, count, standing) {
                return Err(SnapshotError::invalid("a key has no right count, is too long or occurs twice"));
            }
        }
        Ok(search)
    }

    /// Puts back a key; `false` if it is there.
    fn restore_key(&mut self, hash: u64, item: Item<'_>, count: u32, standing: KeyState) -> bool {
        match (&mut self.counts, item) {
            (AnyKeyTable::Integers(counts), Item::Integer(key)) => {
                counts.restore_key(hash, key, count, standing)
            }
            (AnyKeyTable::Bytes(counts), Item::Bytes(key)) => counts.restore_key(hash, key, count, standing),
            _ => false,
        }
    }
}

/// The items of a run that count.
enum Places<'a> {
    First(usize),
    /// Ascending.
    These(&'a [usize]),
}

impl Places<'_> {
    fn len(&self) -> usize {
        match self {
            Self::First(len) => *len,
            Self::These(places) => places.len(),
        }
    }

    #[inline]
    fn get(&self, index: usize) -> usize {
        match self {
            Self::First(_) => index,
            Self::These(places) => places[index],
        }
    }
}

/// Counts the keys from 0 up to `len`. A summary takes them one by one, as its counts depend on their order; exact counts
/// do not.
fn count_all<'b, K: Key>(
    counts: &mut KeyTable<K>,
    len: usize,
    at: impl Fn(usize) -> Option<(u64, K::Borrowed<'b>)>,
    limit: Option<usize>,
    lowered: &mut u64,
) {
    let Some(limit) = limit else {
        return (0..len)
            .step_by(BLOCK)
            .for_each(|start| counts.count_block(start..len.min(start + BLOCK), &at));
    };
    for (hash, key) in (0..len).filter_map(at) {
        if counts.count_known(hash, key) {
            continue;
        }
        if limit <= counts.entries.len() {
            // The key that has no room is not stored.
            *lowered += 1;
            counts.lower_all();
        } else {
            counts.insert_key(hash, key, 1, KeyState::NEW);
        }
    }
}

fn check_keys<K: Key>(
    counts: &mut KeyTable<K>,
    value: impl Fn(u32) -> u64,
    plan: &SearchPlan,
    listed: &FoundKeys,
    generator: &mut Generator,
) -> Keys {
    let mut found: Vec<Item<'_>> = Vec::new();
    let mut look = KeyCheck::new(plan, generator);
    let entries = counts.entries.iter_mut();
    planted!(let entries = fault::looked_at(entries));
    for entry in entries {
        if !look.comes_out(value(entry.count), &mut entry.standing) {
            continue;
        }
        let (hash, item) = (entry.key.hash_by(counts.by), entry.key.to_item(&counts.arena));
        // A listed key is looked at like any other, and the outcome is thrown away: who is listed is known.
        if listed.contains(hash, item, counts.by) {
            continue;
        }
        found.push(item);
        planted!(let before = fault::standing(entry.standing));
        // Not looked at again in this search, even if it leaves the list (PRIVACY.md: rule 32).
        entry.standing = KeyState::OUT;
        planted!(fault::released_key(&mut entry.standing, before));
    }
    Keys::collect_kind(plan.kind(), found.into_iter())
}

/// One look at the keys of a search.
struct KeyCheck<'a> {
    threshold: u64,
    lasting: OneSided<'a>,
    fresh: OneSided<'a>,
    generator: &'a mut Generator,
}

impl<'a> KeyCheck<'a> {
    fn new(plan: &'a SearchPlan, generator: &'a mut Generator) -> Self {
        let threshold = plan.threshold();
        planted!(let threshold = fault::threshold(threshold));
        let (lasting, fresh) = (OneSided::new(plan.lasting_table()), OneSided::new(plan.fresh_table()));
        Self { threshold, lasting, fresh, generator }
    }

    fn draw_fresh(&mut self) -> u64 {
        let fresh = self.fresh.draw(self.generator).into();
        planted!(let fresh = fault::fresh(fresh));
        fresh
    }

    /// Whether a key with this count comes out. It gets its lasting noise when it is first looked at.
    #[inline]
    fn comes_out(&mut self, count: u64, standing: &mut KeyState) -> bool {
        // The n - 3 of PRIVACY.md, "Found keys". Rarer keys get no noise, as if they had never come.
        let Some(counted) = (count + 1).checked_sub(COUNT_MIN).filter(|&counted| 0 < counted) else {
            return false;
        };
        planted!(fault::checked(standing));
        // Once per key and search, also across restores (PRIVACY.md: rule 32).
        if *standing == KeyState::NEW {
            *standing = KeyState::with_lasting(self.lasting.draw(self.generator));
        }
        let above = standing.lasting_noise().and_then(|lasting| counted.checked_sub(lasting.into()));
        match above {
            // No fresh noise lets a key out that its lasting noise has lowered to 0: the delta is calculated for that.
            None | Some(0) => false,
            Some(above) => self.threshold <= above + self.draw_fresh(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::item::domain::{Domain, SearchCounts, SearchSettings};
    use crate::item::hash::StreamKey;
    use crate::noise::generator::Noise;
    use crate::plan::settings::{CounterLayout, Method, Settings, TunedMethod, Unit, Window};
    use crate::plan::structure::Plan;
    use crate::privacy::parameters::{Delta, Epsilon};
    use crate::ratio::Ratio;
    use crate::sealed::found::FoundKey;

    /// One search of this many items.
    fn plan(counting: SearchCounts, kind: Kind, items: u64) -> Plan {
        let counters = CounterLayout::Hashed { rows: 1, columns: 2 };
        let share = Ratio::new(1, 5).ok();
        Plan::new(Settings {
            window: Window::Items(items),
            unit: Unit::ReplaceOne,
            epsilon: Epsilon::new(1.0).expect("in range"),
            delta: Delta::new(1e-9).ok(),
            domain: Domain::Found(SearchSettings {
                share,
                search_len: Some(1),
                counting,
                ..SearchSettings::new(kind)
            }),
            method: Some(Method::Tuned(TunedMethod { substreams: 1, counters, ..TunedMethod::default() })),
            retention: 1,
        })
        .expect("a plan")
    }

    fn key() -> FingerprintKey {
        StreamKey::from_bytes([3; 32]).fingerprint_key()
    }

    /// What each key counts for; `NULL` items arrive and count nowhere.
    const NULL: u64 = u64::MAX;

    fn values(items: &[u64], plan: &SearchPlan) -> BTreeMap<u64, u64> {
        let mut search = KeySearch::new(plan, key());
        for &item in items {
            if item == NULL {
                search.take_run(Run::nulls(1), Some(&[]), plan);
            } else {
                search.take_run(Run::integers(&[item]), None, plan);
            }
        }
        assert_eq!(search.arrivals, items.len() as u64);
        let value = search.value_of_count(plan);
        let AnyKeyTable::Integers(counts) = &search.counts else { unreachable!("integers") };
        let all = counts.entries.iter().map(|entry| (entry.key, value(entry.count)));
        all.filter(|(_, value)| 0 < *value).collect()
    }

    /// One replacement moves one count up by one and one down by one at most, and a key on one side alone counts 1.
    #[track_caller]
    fn check_neighbours(one: &BTreeMap<u64, u64>, other: &BTreeMap<u64, u64>) {
        let keys: std::collections::BTreeSet<&u64> = one.keys().chain(other.keys()).collect();
        let value = |map: &BTreeMap<u64, u64>, key| map.get(key).copied().unwrap_or(0) as i64;
        let changes: Vec<i64> =
            keys.iter().map(|key| value(one, key) - value(other, key)).filter(|c| *c != 0).collect();
        let up = changes.iter().filter(|change| 0 < **change).sum::<i64>();
        let down = changes.iter().filter(|change| **change < 0).sum::<i64>();
        assert!(up <= 1 && -1 <= down, "{one:?} {other:?}");
        let alone = |map: &BTreeMap<u64, u64>, rest: &BTreeMap<u64, u64>| {
            map.iter().filter(|(key, _)| !rest.contains_key(key)).map(|(_, value)| *value).sum::<u64>()
        };
        assert!(alone(one, other) <= 1 && alone(other, one) <= 1, "{one:?} {other:?}");
    }

    /// A null item that becomes a key moves one count up by one at most, and none down.
    #[track_caller]
    fn check_one_up(null: &BTreeMap<u64, u64>, item: &BTreeMap<u64, u64>) {
        let value = |map: &BTreeMap<u64, u64>, key: &u64| map.get(key).copied().unwrap_or(0);
        assert!(null.keys().all(|key| value(null, key) <= value(item, key)), "{null:?} {item:?}");
        let up: u64 = item.keys().map(|key| value(item, key) - value(null, key)).sum();
        assert!(up <= 1, "{null:?} {item:?}");
    }

    #[test]
    fn a_replaced_item_moves_reduced_counts_by_one() {
        // All streams of n items over m keys and null, all replacements.
        for (limit, keys, len) in [(1, 2, 6), (2, 3, 6), (3, 4, 5)] {
            let plan = plan(SearchCounts::Summary { keys: limit }, Kind::Integers, len);
            let search_plan = plan.search_plan().expect("search_plan");
            let symbol = |number: u64| if number == keys { NULL } else { number };
            let stream = |mut number: u64| -> Vec<u64> {
                let mut next = || {
                    let item = symbol(number % (keys + 1));
                    number /= keys + 1;
                    item
                };
                (0..len).map(|_| next()).collect()
            };
            for number in 0..(keys + 1).pow(len as u32) {
                let items = stream(number);
                let before = values(&items, search_plan);
                for position in 0..len as usize {
                    for other in (0..=keys).map(symbol) {
                        let mut neighbour = items.clone();
                        neighbour[position] = other;
                        let after = values(&neighbour, search_plan);
                        check_neighbours(&before, &after);
                        if items[position] == NULL {
                            check_one_up(&before, &after);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_published_vectors_hold() {
        // a b a c d a with two keys: a:2, d:1, lowered once; 6 / 3 = 2 is taken off.
        let summary = plan(SearchCounts::Summary { keys: 2 }, Kind::Integers, 6);
        let search_plan = summary.search_plan().expect("search_plan");
        assert_eq!(values(&[0, 1, 0, 2, 3, 0], search_plan), BTreeMap::from([(0, 1)]));
        let exact = plan(SearchCounts::Exact, Kind::Integers, 6);
        let all = values(&[0, 1, 0, 2, 3, 0], exact.search_plan().expect("search_plan"));
        assert_eq!(all, BTreeMap::from([(0, 3), (1, 1), (2, 1), (3, 1)]));
    }

    #[test]
    fn a_summary_is_too_small_by_at_most_its_error() {
        let plan = plan(SearchCounts::Summary { keys: 20 }, Kind::Integers, 5000);
        let search_plan = plan.search_plan().expect("search_plan");
        let items: Vec<u64> = (0..5000_u64).map(|i| (i * i * 7919) % 1009 % (1 + i % 97)).collect();
        let mut exact: BTreeMap<u64, u64> = BTreeMap::new();
        items.iter().for_each(|&item| *exact.entry(item).or_default() += 1);
        let reduced = values(&items, search_plan);
        assert!(!reduced.is_empty());
        for (item, count) in exact {
            let value = reduced.get(&item).copied().unwrap_or(0);
            assert!(value <= count && count <= value + 5000 / 21, "{item}: {value} of {count}");
        }
    }

    fn counts(search: &KeySearch) -> Vec<(u64, u32)> {
        let AnyKeyTable::Integers(counts) = &search.counts else { unreachable!("integers") };
        counts.entries.iter().map(|entry| (entry.key, entry.count)).collect()
    }

    #[test]
    fn arrivals_beyond_the_search_count_nowhere_also_after_a_restore() {
        for counting in [SearchCounts::Exact, SearchCounts::Summary { keys: 3 }] {
            let plan = plan(counting, Kind::Integers, 10);
            let search_plan = plan.search_plan().expect("search_plan");
            let mut search = KeySearch::new(search_plan, key());
            search.take_run(Run::integers(&[1, 1, 1, 2, 1, 1]), None, search_plan);
            let mut writer = Writer::new(b"TESTTEST", 1);
            search.write_to(&mut writer);
            let bytes = writer.finish();
            let mut reader = Reader::new(&bytes, b"TESTTEST", 1).expect("a frame");
            let mut restored = KeySearch::read_from(&mut reader, search_plan, key()).expect("a search");
            for search in [&mut search, &mut restored] {
                search.take_run(Run::integers(&[5; 9]), None, search_plan);
                assert_eq!(counts(search), [(1, 5), (2, 1), (5, 4)], "of nine, four are within the search");
                assert_eq!(search.arrivals, 15);
            }
        }
    }

    #[test]
    fn items_that_count_are_looked_at_up_to_the_end_of_the_search() {
        let plan = plan(SearchCounts::Exact, Kind::Integers, 4);
        let search_plan = plan.search_plan().expect("search_plan");
        let mut search = KeySearch::new(search_plan, key());
        // Of six arrivals those at 0, 3, 4 and 5 count, and the last two lie beyond the search.
        search.take_run(Run::integers(&[7, 8, 8, 7, 9, 7]), Some(&[0, 3, 4, 5]), search_plan);
        assert_eq!((counts(&search), search.arrivals), (vec![(7, 2)], 6));
    }

    /// The keys that a look lets out, beside the keys of this list.
    fn look(search: &mut KeySearch, plan: &SearchPlan, listed: &FoundKeys, noise: Noise) -> Vec<u64> {
        let mut noise = noise;
        let mut generator = noise.generator().expect("no system is needed");
        let found = search.check_keys(plan, listed, &mut generator);
        found.iter().filter_map(|item| if let Item::Integer(key) = item { Some(key) } else { None }).collect()
    }

    fn standings(search: &KeySearch) -> Vec<(u64, KeyState)> {
        let AnyKeyTable::Integers(counts) = &search.counts else { unreachable!("integers") };
        counts.entries.iter().map(|entry| (entry.key, entry.standing)).collect()
    }

    #[test]
    fn keys_below_the_least_count_are_not_looked_at() {
        let exact = plan(SearchCounts::Exact, Kind::Integers, 100);
        let search_plan = exact.search_plan().expect("search_plan");
        let mut search = KeySearch::new(search_plan, key());
        search.take_run(Run::integers(&[1, 1, 1, 2, 2, 2, 2]), None, search_plan);
        look(&mut search, search_plan, &FoundKeys::default(), Noise::seeded(1));
        let [(1, rare), (2, frequent)] = standings(&search)[..] else { panic!("two keys") };
        assert!(rare == KeyState::NEW && frequent.lasting_noise().is_some());
        // As in the published vector: the first key is left with 1, the other with 0.
        let summary = plan(SearchCounts::Summary { keys: 2 }, Kind::Integers, 6);
        let search_plan = summary.search_plan().expect("search_plan");
        let mut search = KeySearch::new(search_plan, key());
        search.take_run(Run::integers(&[0, 1, 0, 2, 3, 0]), None, search_plan);
        look(&mut search, search_plan, &FoundKeys::default(), Noise::seeded(1));
        assert!(standings(&search).iter().all(|(_, standing)| *standing == KeyState::NEW));
    }

    #[test]
    fn the_noise_of_a_search_is_drawn_once_also_after_a_restore() {
        let plan = plan(SearchCounts::Exact, Kind::Integers, 10_000);
        let search_plan = plan.search_plan().expect("search_plan");
        let mut search = KeySearch::new(search_plan, key());
        let items: Vec<u64> = (0..4000).map(|item| item % 1000).collect();
        search.take_run(Run::integers(&items), None, search_plan);
        look(&mut search, search_plan, &FoundKeys::default(), Noise::seeded(1));
        let before = standings(&search);
        assert!(before.iter().any(|(_, standing)| *standing != before[0].1), "keys have noise of their own");
        let mut writer = Writer::new(b"TESTTEST", 1);
        search.write_to(&mut writer);
        let bytes = writer.finish();
        let mut reader = Reader::new(&bytes, b"TESTTEST", 1).expect("a frame");
        let mut restored = KeySearch::read_from(&mut reader, search_plan, key()).expect("a search");
        for (seed, search) in [(2, &mut search), (3, &mut restored)] {
            look(search, search_plan, &FoundKeys::default(), Noise::seeded(seed));
            assert!(standings(search) == before);
        }
    }

    #[test]
    fn noise_that_is_larger_than_any_count_stays_so() {
        for lasting in [u32::MAX, u32::MAX - 1, u32::MAX - 2, i32::MAX as u32] {
            let standing = KeyState::with_lasting(lasting);
            assert!(standing.lasting_noise().is_some_and(|kept| i32::MAX as u32 <= kept), "{lasting}");
            assert!(KeyState::from_word(standing.to_word()) == standing);
        }
        assert!(KeyState::NEW.lasting_noise().is_none() && KeyState::OUT.lasting_noise().is_none());
    }

    #[test]
    fn a_key_comes_out_once_and_one_that_is_listed_does_not() {
        let plan = plan(SearchCounts::Exact, Kind::Integers, 1000);
        let search_plan = plan.search_plan().expect("search_plan");
        let enough = search_plan.count_found(0.5) as usize;
        let mut search = KeySearch::new(search_plan, key());
        search.take_run(Run::integers(&vec![7; enough]), None, search_plan);
        search.take_run(Run::integers(&vec![8; enough]), None, search_plan);
        let (item, limits) = (Item::Integer(8), search_plan.list_limits());
        let kept = FoundKey { hash: key().hash_item(item), item, sum: 0 };
        let listed = FoundKeys::new(Kind::Integers, vec![kept], limits);
        assert_eq!(look(&mut search, search_plan, &listed, Noise::off()), [7]);
        // The list has lost both.
        let nothing = FoundKeys::default();
        assert_eq!(look(&mut search, search_plan, &nothing, Noise::off()), [8]);
        assert!(look(&mut search, search_plan, &nothing, Noise::off()).is_empty());
        let mut search = search.into_empty();
        search.take_run(Run::integers(&vec![7; enough]), None, search_plan);
        assert_eq!(look(&mut search, search_plan, &nothing, Noise::off()), [7], "another search");
    }

    /// Arrivals, lowered, and keys with their counts, as they would be saved.
    fn read(plan: &SearchPlan, arrivals: u64, lowered: u64, keys: &[(&[u8], u32)]) -> bool {
        let mut writer = Writer::new(b"TESTTEST", 1);
        writer.put_u64(arrivals);
        writer.put_u64(lowered);
        writer.put_len(keys.len());
        for (key, count) in keys {
            writer.put_u32(*count);
            writer.put_u32(KeyState::NEW.to_word());
            writer.put_bytes(key);
        }
        let bytes = writer.finish();
        let mut reader = Reader::new(&bytes, b"TESTTEST", 1).expect("a frame");
        KeySearch::read_from(&mut reader, plan, key()).is_ok()
    }

    #[test]
    fn saved_keys_that_no_search_can_hold_are_refused() {
        let summary = plan(SearchCounts::Summary { keys: 2 }, Kind::Bytes, 12);
        let summary = summary.search_plan().expect("search_plan");
        let exact = plan(SearchCounts::Exact, Kind::Bytes, 3);
        let exact = exact.search_plan().expect("search_plan");
        let long = vec![7; summary.key_len_max() + 1];
        let (a, b, c, d): (&[u8], &[u8], &[u8], &[u8]) = (b"a", b"b", b"c", b"d");
        // Twelve items lower the counts of two keys at most four times.
        assert!(read(summary, ARRIVALS_MAX, 4, &[(a, 12), (&long[1..], 1)]));
        assert!(read(exact, 3, 0, &[(a, 1), (b, 1), (c, 1)]));
        assert!(!read(summary, ARRIVALS_MAX + 1, 0, &[(a, 1)]));
        assert!(!read(summary, 12, 5, &[(a, 1)]));
        assert!(!read(exact, 3, 1, &[(a, 1)]));
        assert!(!read(summary, 12, 0, &[(a, 1), (b, 1), (c, 1)]));
        assert!(!read(exact, 4, 0, &[(a, 1), (b, 1), (c, 1), (d, 1)]));
        for keys in [&[(a, 0)][..], &[(a, 13)], &[(a, 1), (a, 1)], &[(&long[..], 1)]] {
            assert!(!read(summary, 12, 0, keys), "{:?}", keys.len());
        }
    }

    /// 20,000 keys with the same count at two checks. Each number lies within five deviations but with probability 6e-7.
    #[test]
    fn keys_come_out_as_often_as_their_law_says() {
        let keys = 20_000_u64;
        let enough =
            plan(SearchCounts::Exact, Kind::Integers, 1000).search_plan().expect("search_plan").threshold()
                + 3;
        for count in [enough - 1, enough + 10] {
            let plan = plan(SearchCounts::Exact, Kind::Integers, keys * count);
            let search_plan = plan.search_plan().expect("search_plan");
            assert_eq!(search_plan.threshold(), enough - 3);
            let mut search = KeySearch::new(search_plan, key());
            let items: Vec<u64> = (0..keys * count).map(|i| i % keys).collect();
            search.take_run(Run::integers(&items), None, search_plan);
            for probability in &search_plan.release().outcome_law(&[count; 2])[..2] {
                let found =
                    look(&mut search, search_plan, &FoundKeys::default(), Noise::from_system()).len() as f64;
                let expected = keys as f64 * probability;
                let deviation = (expected * (1.0 - probability)).sqrt();
                assert!((found - expected).abs() < 5.0 * deviation, "{found} of {expected}");
            }
        }
    }

    #[test]
    fn texts_are_kept_apart_and_wiped() {
        let plan = plan(SearchCounts::Summary { keys: 3 }, Kind::Bytes, 12);
        let search_plan = plan.search_plan().expect("search_plan");
        let mut search = KeySearch::new(search_plan, key());
        let words = ["ab", "abc", "ab", "d", "e", "ab", "", "ab"];
        for word in words {
            let hash = key().hash_bytes(word.as_bytes());
            search.take_run(Run::strings(&[hash], &[word.as_bytes()]), None, search_plan);
        }
        let AnyKeyTable::Bytes(counts) = &search.counts else { unreachable!("bytes") };
        let entries: Vec<(Item<'_>, u32)> =
            counts.entries.iter().map(|entry| (entry.key.to_item(&counts.arena), entry.count)).collect();
        // "e" found no room: all were lowered, and "abc" and "d" are gone.
        assert_eq!(entries, [(Item::from("ab"), 3), (Item::from(""), 1)]);
        assert_eq!(counts.arena, b"ab");
        let search = search.into_empty();
        let AnyKeyTable::Bytes(counts) = &search.counts else { unreachable!("bytes") };
        assert!(counts.entries.is_empty() && counts.arena.is_empty());
    }

    #[test]
    fn the_room_of_saved_keys_is_that_of_counts_noise_and_names() {
        let integers = plan(SearchCounts::Exact, Kind::Integers, 100);
        let bytes = plan(SearchCounts::Summary { keys: 9 }, Kind::Bytes, 100);
        let [integers, bytes] = [&integers, &bytes].map(|plan| plan.search_plan().expect("search_plan"));
        assert_eq!([40, 200].map(|arrivals| KeySearch::len_max(integers, arrivals)), [40 * 16, 100 * 16]);
        let one = 16 + bytes.key_len_max() as u64;
        assert_eq!([5, 200].map(|arrivals| KeySearch::len_max(bytes, arrivals)), [5 * one, 9 * one]);
    }

    #[test]
    fn debug_output_shows_no_key() {
        let plan = plan(SearchCounts::Exact, Kind::Integers, 10);
        let mut search = KeySearch::new(plan.search_plan().expect("search_plan"), key());
        search.take_run(Run::integers(&[77, 77]), None, plan.search_plan().expect("search_plan"));
        assert_eq!(format!("{search:?}"), "KeySearch");
    }
}
