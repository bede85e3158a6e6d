//! The fits of all sealed substreams, and the estimates of keys that come from them.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::item::hash::FingerprintKey;
use crate::item::keys::Keys;
use crate::item::value::Item;
use crate::noise::tail::Moments;
use crate::plan::limits::LEFT_MAX;
use crate::sealed::substream::SealedSubstream;
use crate::view::fit::{Candidates, Fitted, Observed, Partly, by_blocks, fit};
use crate::view::paths::Paths;
use crate::view::reading::{Answer, KeySums, Reading, Running, Seen, Step};
use crate::view::source::Source;
use crate::view::spans::Classes;
use crate::view::weights::{Ends, Node, WHOLE};

/// How often candidates are looked for again in what the others leave.
const MORE_ROUNDS: usize = 2;

/// Keys that are added up side by side.
const LANES: usize = 4;
/// Substreams that are added up at a time, so that the sums of a key stay in the processor.
const NODES_AT_ONCE: usize = 8;

/// The fits of all sealed substreams, made once when a view is first asked.
#[derive(Debug, Default)]
pub(crate) struct Fits {
    /// Of a view before this one.
    earlier: Option<Earlier>,
    made: OnceLock<Made>,
    /// For the whole window, by the substreams at its ends.
    sums: Mutex<Option<(Ends, Arc<Vec<KeySums>>)>>,
}

/// The sum over some substreams of the smallest counter of each key. Integers, so that taking one substream away and
/// adding another gives the same as adding all.
#[derive(Debug)]
struct Totals {
    substreams: Range<u64>,
    sums: Vec<i64>,
}

/// Totals of which some substreams have left since.
#[derive(Debug, Clone)]
struct Earlier {
    totals: Arc<Totals>,
    left: Vec<Arc<SealedSubstream>>,
}

/// Fingerprints are hashes already.
#[derive(Debug, Default, Clone, Copy)]
struct FingerprintHasher(u64);

impl Hasher for FingerprintHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only fingerprints are hashed")
    }

    fn write_u64(&mut self, fingerprint: u64) {
        self.0 = fingerprint;
    }
}

#[derive(Debug)]
struct Made {
    totals: Option<Arc<Totals>>,
    /// By fingerprint.
    candidates: HashMap<u64, Candidate, BuildHasherDefault<FingerprintHasher>>,
    /// By index of the node.
    fitted: Vec<Fitted>,
    /// The keys that are cut more finely.
    paths: Paths,
    /// From how many nodes others are predicted, where keys have counters of their own.
    classes: Option<Classes>,
}

/// A key that is fitted.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    /// Its place in the list of keys.
    place: u32,
    /// Its place among the candidates.
    rank: u32,
}

impl<'a> Source<'a> {
    fn observe(&self, substream: &'a SealedSubstream, range: usize, length: f64) -> Option<Observed<'a>> {
        let noise = Moments::of(self.plan.ranges()[range].law(), self.noises);
        let sketch = substream.sketch(range)?;
        let (mapping, number) = (&substream.mapping, substream.number);
        Some(Observed { sketch, mapping, noise, number, length, leases: self.leases })
    }

    /// What they hold.
    fn observed(&self) -> Vec<Observed<'a>> {
        let observed = |node: &Node| self.observe(&self.substreams[node.substream], node.range, node.length);
        self.nodes().iter().map_while(observed).collect()
    }

    /// The keys that are or were tracked, with their places in the list.
    fn tracked(&self, fingerprints: &[u64]) -> Vec<(u64, usize)> {
        let leased: HashSet<u64, BuildHasherDefault<FingerprintHasher>> =
            self.leases.iter().map(|(fingerprint, _, _)| fingerprint).collect();
        if leased.is_empty() {
            return Vec::new();
        }
        let listed = fingerprints.iter().enumerate().filter(|(_, fingerprint)| leased.contains(fingerprint));
        listed.map(|(place, &fingerprint)| (fingerprint, place)).collect()
    }

    /// The keys with nodes of their own, where nothing hashed is sealed.
    fn own_paths(self) -> Paths {
        let Some(first) = self.substreams.first().filter(|_| 0 < self.plan.tracked()) else {
            return Paths::own(self);
        };
        let by = first.mapping.fingerprint_key;
        let places = self.keys.map_or_else(Vec::new, |keys| self.tracked(&fingerprints(by, keys)));
        Paths::tracked(self, &places, |_, _| 0.0, |_| unreachable!("no whole substream is sealed"))
    }

    /// The smallest counters of all keys, summed over the substreams.
    fn totals(&self, observed: &[Observed<'_>], fingerprints: &[u64], earlier: Option<&Earlier>) -> Totals {
        let numbers = observed.first().map_or(0, |o| o.number)..observed.last().map_or(0, |o| o.number + 1);
        let mut sums = earlier.map_or_else(|| vec![0; fingerprints.len()], |e| e.totals.sums.clone());
        let known = earlier.map_or(numbers.start, |e| e.totals.substreams.end);
        let left = earlier.iter().flat_map(|e| &e.left).filter_map(|left| self.observe(left, WHOLE, 1.0));
        let left: Vec<Observed<'_>> = left.collect();
        by_blocks(fingerprints, &mut sums, |_, block, sums| {
            for left in &left {
                left.minima(block, |place, minimum| sums[place] -= i64::from(minimum));
            }
            for new in observed.iter().filter(|o| known <= o.number) {
                new.minima(block, |place, minimum| sums[place] += i64::from(minimum));
            }
        });
        Totals { substreams: numbers, sums }
    }
}

impl Fits {
    /// Those of the view after this one, which no longer has the substreams before `first`.
    pub(crate) fn next(&self, substreams: &[Arc<SealedSubstream>], first: u64) -> Self {
        let earlier = match self.made.get() {
            Some(made) => made.totals.as_ref().map(|t| Earlier { totals: Arc::clone(t), left: Vec::new() }),
            None => self.earlier.clone(),
        };
        let earlier = earlier.and_then(|mut earlier| {
            let known = &earlier.totals.substreams;
            let leaves = |s: &&Arc<SealedSubstream>| s.number < first && known.contains(&s.number);
            earlier.left.extend(substreams.iter().filter(leaves).cloned());
            (earlier.left.len() <= LEFT_MAX).then_some(earlier)
        });
        Self { earlier, ..Self::default() }
    }

    fn made(&self, source: Source<'_>) -> &Made {
        self.made.get_or_init(|| {
            let observed = source.observed();
            let keys = source.keys.filter(|keys| !keys.is_empty() || 0 < source.plan.tracked());
            match (observed.first(), keys) {
                (Some(first), Some(keys)) if first.can_separate() || source.plan.has_few_keys() => {
                    Made::with_candidates(source, &observed, keys, self.earlier.as_ref())
                }
                _ => {
                    let (candidates, paths) = (HashMap::default(), source.own_paths());
                    let classes = source.plan.is_identity().then(|| Classes::new(source, &source.nodes()));
                    Made { totals: None, candidates, fitted: fit(&observed), paths, classes }
                }
            }
        })
    }

    /// The keys that are cut more finely than most.
    pub(crate) fn paths(&self, source: Source<'_>) -> &Paths {
        &self.made(source).paths
    }

    /// How a window is read.
    pub(crate) fn reading(&self, source: Source<'_>, window: &Range<u64>) -> Reading {
        let made = self.made(source);
        let spread = |node: &Node| made.fitted[node.index].spread(source.plan.shape());
        Reading::new(source, window, made.classes, spread)
    }

    /// The estimate of any item, from the substreams themselves.
    pub(crate) fn answer(&self, source: Source<'_>, reading: &Reading, item: Item<'_>) -> Answer {
        reading.answer(&self.made(source).key_sums(source, reading, item))
    }

    /// The estimates of all keys of the public list, in its order.
    pub(crate) fn all(&self, source: Source<'_>, reading: &Reading, keys: &Keys) -> Vec<KeySums> {
        self.made(source).all_sums(source, reading, keys)
    }

    /// The same for the whole window, computed when it is first needed and again when its ends reach other substreams.
    pub(crate) fn whole<'r>(&self, source: Source<'_>, reading: &'r Reading, keys: &Keys) -> &'r [KeySums] {
        reading.whole.get_or_init(|| self.cached(source, reading, keys))
    }

    fn cached(&self, source: Source<'_>, reading: &Reading, keys: &Keys) -> Arc<Vec<KeySums>> {
        let ends = reading.weights().ends();
        let mut cached = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, sums)) = cached.as_ref().filter(|(known, _)| *known == ends) {
            return Arc::clone(sums);
        }
        let sums = Arc::new(self.all(source, reading, keys));
        *cached = Some((ends, Arc::clone(&sums)));
        sums
    }
}

impl Made {
    fn with_candidates(
        source: Source<'_>,
        observed: &[Observed<'_>],
        keys: &Keys,
        earlier: Option<&Earlier>,
    ) -> Self {
        let fingerprints = fingerprints(observed[0].mapping.fingerprint_key, keys);
        let totals = source.totals(observed, &fingerprints, earlier);
        let cells = source.plan.shape().cells();
        let places = source.tracked(&fingerprints);
        let tracked: Vec<Partly> = places.iter().map(|&(key, place)| partly(observed, key, place)).collect();
        // Found keys all stand out; in a public list the bulk of the keys does not.
        let (mut candidates, rounds) = match (source.plan.discovery(), observed[0].can_separate()) {
            (Some(_), _) => (Candidates::all(totals.sums.clone(), &tracked, cells), 0),
            (None, true) => (Candidates::new(totals.sums.clone(), &tracked, cells), MORE_ROUNDS),
            (None, false) => (Candidates::default(), 0),
        };
        let mut fitted = candidates.fit(observed, keys);
        for _ in 0..rounds {
            if !candidates.add(observed, &fitted, &fingerprints) {
                break;
            }
            fitted = candidates.fit(observed, keys);
        }
        let candidate = |(rank, &place): (usize, &usize)| {
            (fingerprints[place], Candidate { place: place as u32, rank: rank as u32 })
        };
        let candidates = candidates.places.iter().enumerate().map(candidate).collect();
        let (totals, paths) = (Some(Arc::new(totals)), Paths::default());
        let made = Self { totals, candidates, fitted, paths, classes: None };
        let hashed = |node: &Node, fingerprint: u64| made.estimate(source, node, fingerprint);
        let spread = |node: &Node| made.fitted[node.index].spread(source.plan.shape());
        let paths = Paths::tracked(source, &places, hashed, spread);
        Self { paths, ..made }
    }

    /// What hashed counters of a substream hold of a key.
    fn estimate(&self, source: Source<'_>, node: &Node, fingerprint: u64) -> f64 {
        let candidate = self.candidates.get(&fingerprint).map(|candidate| candidate.rank as usize);
        let cells = source.substreams[node.substream].mapping.hashed_cells(fingerprint);
        self.fitted[node.index].estimate(source.sketch(node), cells, candidate)
    }

    fn key_sums(&self, source: Source<'_>, reading: &Reading, item: Item<'_>) -> KeySums {
        let Some(substream) = source.substreams.first() else { return KeySums::default() };
        let fingerprint = substream.mapping.fingerprint_key.item(item);
        let candidate = self.candidates.get(&fingerprint).map(|candidate| candidate.rank as usize);
        let (mut seen, mut running) = (Seen::default(), Running::NONE);
        for node in &reading.weights().seen {
            let substream = &source.substreams[node.substream];
            let sketch = substream.sketch(node.range).expect("weights name sealed nodes");
            let cells = substream.mapping.cells_of(item, fingerprint);
            let estimate = self.fitted[node.index].estimate(sketch, cells, candidate);
            running.add([estimate], seen.step(node, reading));
        }
        let [sums] = running.sums(&seen, reading);
        sums
    }

    /// The same for all keys.
    fn all_sums(&self, source: Source<'_>, reading: &Reading, keys: &Keys) -> Vec<KeySums> {
        let observed = source.observed();
        let Some(first) = observed.first() else { return vec![KeySums::default(); keys.len()] };
        let fingerprints = fingerprints(first.mapping.fingerprint_key, keys);
        let mut seen = Seen::default();
        let steps: Vec<Step> = reading.weights().seen.iter().map(|node| seen.step(node, reading)).collect();
        let (mut all, mut estimates) = (vec![KeySums::default(); keys.len()], Vec::new());
        by_blocks(&fingerprints, &mut all, |first, block, all| {
            let read = Read { observed: &observed, nodes: &reading.weights().seen, steps: &steps };
            let running = self.running(read, (first, block), &mut estimates);
            for (running, all) in running.iter().zip(all.chunks_mut(LANES)) {
                all.copy_from_slice(&running.sums(&seen, reading)[..all.len()]);
            }
        });
        all
    }

    /// The estimates of a block of keys: the place of the first in the list, and the fingerprints.
    fn running(
        &self,
        read: Read<'_>,
        (first, block): (usize, &[u64]),
        estimates: &mut Vec<[f64; LANES]>,
    ) -> Vec<Running<LANES>> {
        let inside = |candidate: &Candidate| {
            let place = (candidate.place as usize).checked_sub(first).filter(|place| *place < block.len())?;
            Some((place, candidate.rank as usize))
        };
        let ranks: Vec<(usize, usize)> = self.candidates.values().filter_map(inside).collect();
        let lanes = block.len().div_ceil(LANES);
        estimates.resize(lanes * NODES_AT_ONCE, [0.0; LANES]);
        let mut running = vec![Running::NONE; lanes];
        for (nodes, steps) in read.nodes.chunks(NODES_AT_ONCE).zip(read.steps.chunks(NODES_AT_ONCE)) {
            for (node, estimates) in nodes.iter().zip(estimates.chunks_mut(lanes)) {
                let (fitted, estimates) = (&self.fitted[node.index], estimates.as_flattened_mut());
                fitted.estimate_all(read.observed[node.index], block, first, estimates);
                ranks.iter().for_each(|&(place, rank)| estimates[place] += fitted.count(rank));
            }
            for (lane, running) in running.iter_mut().enumerate() {
                let mut so_far = *running;
                for (step, estimates) in steps.iter().zip(estimates.chunks(lanes)) {
                    so_far.add(estimates[lane], *step);
                }
                *running = so_far;
            }
        }
        running
    }
}

/// A key that is tracked in some of these substreams.
fn partly(observed: &[Observed<'_>], fingerprint: u64, place: usize) -> Partly {
    let (mut sum, mut count) = (0, 0);
    for observed in observed.iter().filter(|observed| observed.counts(fingerprint)) {
        observed.minima(&[fingerprint], |_, minimum| sum += i64::from(minimum));
        count += 1;
    }
    Partly { place, sum, share: f64::from(count) / observed.len() as f64 }
}

/// The substreams that are seen, and what is to be done with each.
#[derive(Clone, Copy)]
struct Read<'a> {
    observed: &'a [Observed<'a>],
    nodes: &'a [Node],
    steps: &'a [Step],
}

fn fingerprints(key: FingerprintKey, keys: &Keys) -> Vec<u64> {
    match keys {
        Keys::Range(end) => (0..*end).map(|value| key.integer(value)).collect(),
        _ => (0..keys.len()).map(|place| key.item(keys.get(place))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::domain::Domain;
    use crate::item::hash::StreamKey;
    use crate::item::mapping::{Columns, Mapping};
    use crate::noise::generator::{Generator, Noise};
    use crate::plan::settings::{CounterLayout, Method, Settings, TunedMethod, Unit, Window};
    use crate::plan::structure::Plan;
    use crate::privacy::parameters::Epsilon;
    use crate::sealed::leases::Leases;
    use crate::sealed::sketch::SealedSketch;

    const KEYS: u64 = 400;
    const SUBSTREAM_LEN: u64 = 100;
    static ENDLESS: Range<u64> = 0..u64::MAX;
    const TWO_ROWS: CounterLayout = CounterLayout::Hashed { rows: 2, columns: 100 };

    /// A plan, and the substreams of a stream with some frequent keys.
    struct Stream {
        plan: Plan,
        keys: Keys,
        substreams: Vec<Arc<SealedSubstream>>,
    }

    impl Stream {
        fn new(counters: CounterLayout) -> Self {
            let keys = Keys::Range(KEYS);
            let settings = Settings {
                window: Window::Items(8 * SUBSTREAM_LEN),
                unit: Unit::ReplaceOne,
                epsilon: Epsilon::new(1.0).expect("in range"),
                delta: None,
                domain: Domain::Public(keys.clone()),
                method: Some(Method::Tuned(TunedMethod {
                    substreams: 8,
                    counters,
                    ..TunedMethod::default()
                })),
                retention: 1,
            };
            let plan = Plan::new(settings).expect("a valid plan");
            let mut generator = generator(5);
            let substreams = (0..12).map(|number| substream(&plan, number, &mut generator)).collect();
            Self { plan, keys, substreams }
        }

        fn source(&self, substreams: Range<usize>) -> Source<'_> {
            let (substreams, keys) = (&self.substreams[substreams], Some(&self.keys));
            Source {
                plan: &self.plan,
                substreams,
                stream: &ENDLESS,
                keys,
                leases: Leases::none(),
                noises: 1.0,
            }
        }

        fn reading(&self, fits: &Fits, source: Source<'_>) -> Reading {
            let end = source.substreams.last().map_or(0, |s| s.number + 1) * SUBSTREAM_LEN;
            let window = end - 7 * SUBSTREAM_LEN - 30..end + 40;
            fits.reading(Source { stream: &(0..window.end), ..source }, &window)
        }
    }

    fn generator(seed: u64) -> Generator {
        Noise::seeded(seed).generator().expect("seeded")
    }

    /// Key k occurs 200 / (k + 1) times, rounded down.
    fn substream(plan: &Plan, number: u64, generator: &mut Generator) -> Arc<SealedSubstream> {
        let (shape, stream) = (plan.shape(), StreamKey::from_bytes([3; 32]));
        let columns = match plan.is_identity() {
            true => Columns::Range,
            false => Columns::Hashed(stream.row_keys(number, shape.rows as usize).into()),
        };
        let fingerprint_key = stream.fingerprint_key();
        let mapping = Mapping { shape, fingerprint_key, columns, tracked: None };
        let law = plan.ranges()[WHOLE].law();
        let mut cells: Vec<i32> = (0..shape.cells()).map(|_| law.draw_exactly(generator) as i32).collect();
        for key in 0..KEYS {
            mapping.cells(key.into()).for_each(|cell| cells[cell] += 200 / (key as i32 + 1));
        }
        let whole = SealedSketch::of_released(shape, &cells, None, plan.width());
        Arc::new(SealedSubstream::from_parts(number, mapping, vec![(WHOLE, Arc::new(whole))]))
    }

    fn layouts() -> [CounterLayout; 4] {
        let hashed = |rows| CounterLayout::Hashed { rows, columns: 100 };
        [CounterLayout::Identity, hashed(1), TWO_ROWS, hashed(4)]
    }

    #[test]
    fn estimates_of_all_keys_equal_those_of_one() {
        for counters in layouts() {
            let (stream, fits) = (Stream::new(counters), Fits::default());
            let source = stream.source(0..8);
            let reading = stream.reading(&fits, source);
            let all = fits.all(source, &reading, &stream.keys);
            for (key, sums) in (0..KEYS).zip(&all) {
                let of_one = fits.answer(source, &reading, key.into());
                assert_eq!(reading.answer(sums), of_one, "{counters:?}");
            }
            let candidates = fits.made(source).candidates.len();
            assert_eq!(1 < stream.plan.shape().rows, 0 < candidates, "several rows tell keys apart");
        }
    }

    #[test]
    fn the_estimate_of_a_window_is_the_weighted_sum_of_those_of_its_substreams() {
        for counters in layouts() {
            let (stream, fits) = (Stream::new(counters), Fits::default());
            let source = stream.source(0..8);
            let reading = stream.reading(&fits, source);
            let made = fits.made(source);
            let (mut value, mut variance, mut noise) = (0.0, 0.0, 0.0);
            for &Node { index, weight, .. } in &reading.weights().nodes {
                let (substream, fitted) = (&stream.substreams[index], &made.fitted[index]);
                let fingerprint = substream.mapping.fingerprint_key.integer(3);
                let candidate = made.candidates.get(&fingerprint).map(|candidate| candidate.rank as usize);
                let sketch = substream.sketch(WHOLE).expect("sealed");
                let cells = substream.mapping.cells(3_u64.into());
                value += weight * fitted.estimate(sketch, cells, candidate);
                let spread = fitted.spread(stream.plan.shape());
                variance += weight.powi(2) * spread.all.variance;
                noise += weight.powi(2) * spread.noise;
            }
            let answer = fits.answer(source, &reading, 3_u64.into());
            let off = [answer.value - value, answer.noise - noise, answer.base.variance - variance];
            assert!(off.iter().all(|off| off.abs() < 1e-6), "{counters:?}: {off:?}");
        }
    }

    /// All that the fits of some substreams hold, to the last bit.
    fn contents(fits: &Fits, source: Source<'_>) -> String {
        let made = fits.made(source);
        let totals = made.totals.as_ref().map(|totals| (&totals.substreams, &totals.sums));
        format!("{totals:?} {:?}", made.fitted)
    }

    #[test]
    fn the_fit_that_goes_on_from_an_earlier_one_equals_the_fresh_one() {
        let stream = Stream::new(TWO_ROWS);
        let fresh = |substreams| contents(&Fits::default(), stream.source(substreams));
        let mut fits = Fits::default();
        fits.made(stream.source(0..8));
        for first in 1..=3 {
            fits = fits.next(&stream.substreams[first - 1..first + 7], first as u64);
            assert!(fits.earlier.is_some());
            assert_eq!(contents(&fits, stream.source(first..first + 8)), fresh(first..first + 8));
        }
    }

    #[test]
    fn a_fit_goes_on_over_views_that_were_not_asked_while_few_substreams_have_left() {
        let stream = Stream::new(TWO_ROWS);
        let mut fits = Fits::default();
        fits.made(stream.source(0..8));
        for (first, goes_on) in [(1, true), (2, true), (3, false)] {
            fits = fits.next(&stream.substreams[first - 1..first + 7], first as u64);
            assert_eq!(fits.earlier.is_some(), goes_on);
            let asked = Fits { earlier: fits.earlier.clone(), ..Fits::default() };
            let fresh = contents(&Fits::default(), stream.source(first..first + 8));
            assert_eq!(contents(&asked, stream.source(first..first + 8)), fresh);
        }
    }

    #[test]
    fn a_substream_that_came_and_left_between_two_questions_is_not_taken_off() {
        let stream = Stream::new(TWO_ROWS);
        let fits = Fits::default();
        fits.made(stream.source(0..1));
        let fits = fits.next(&stream.substreams[0..1], 1).next(&stream.substreams[1..2], 2);
        assert_eq!(fits.earlier.as_ref().map(|earlier| earlier.left.len()), Some(1));
        let fresh = contents(&Fits::default(), stream.source(2..3));
        assert_eq!(contents(&fits, stream.source(2..3)), fresh);
    }
}
