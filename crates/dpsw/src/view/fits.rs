//! The fits of all sealed substreams, and the estimates of keys that come from them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::item::keys::Keys;
use crate::item::value::Item;
use crate::noise::tail::{Moments, Tail};
use crate::plan::limits::LEFT_MAX;
use crate::plan::structure::Plan;
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;
use crate::view::estimate::WHOLE_COUNTS;
use crate::view::fit::{Candidates, Fitted, Observed, Spread, by_blocks, fit};
use crate::view::paths::Paths;
use crate::view::prior::Errors;
use crate::view::spans::{CLASSES, Classed, Classes};
use crate::view::weights::{AnyOrder, Changes, Ends, Node, Parts, WHOLE, Weights};

/// How often candidates are looked for again in what the others leave.
const MORE_ROUNDS: usize = 2;

/// Keys that are added up side by side.
const LANES: usize = 4;
/// Substreams that are added up at a time, so that the sums of a key stay in the processor.
const NODES_AT_ONCE: usize = 8;

/// An estimate and the variances behind it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) value: f64,
    pub(crate) noise: f64,
    pub(crate) collisions: f64,
    pub(crate) misfit: f64,
    /// The part of the misfit that comes from changes; below 0 if there are fewer than by chance.
    pub(crate) unrest: f64,
    pub(crate) tail: Tail,
    /// The least and the most that it may be, whatever the order of the items is.
    pub(crate) any_order: [f64; 2],
    /// By how much keys that are cut alike are off.
    pub(crate) errors: Errors,
    /// The part of the window that is sealed.
    pub(crate) covered: Range<u64>,
}

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
    /// How far others are predicted, where each has a counter.
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

/// The estimates of a key in the oldest and the newest substream of a window, the sum of those between, and how it changes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KeySums {
    oldest: f64,
    between: f64,
    newest: f64,
    /// What the next node will hold.
    predicted: f64,
    walk: f32,
    clumps: f32,
    class: u8,
}

impl KeySums {
    /// With so much of the ends of the window.
    pub(crate) fn value(&self, parts: Parts) -> f64 {
        self.sealed(parts.outer) + parts.ahead * self.predicted
    }

    /// Without what is not sealed.
    fn sealed(&self, [oldest, newest]: [f64; 2]) -> f64 {
        oldest * self.oldest + self.between + newest * self.newest
    }

    pub(crate) fn changes(&self) -> Changes {
        Changes { walk: self.walk.into(), clumps: self.clumps.into() }
    }
}

/// Variances of the estimates of a window.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Variances {
    all: Moments,
    noise: f64,
    /// Of one substream, on average.
    mean: f64,
    /// How far the count of all that the window touches may be off.
    reach_touched: f64,
}

impl Variances {
    /// Of nodes with these errors.
    fn new(weights: &Weights, spread: impl Fn(&Node) -> Spread) -> Self {
        let (mut variances, mut touched) = (Self::default(), Moments::default());
        for node in &weights.nodes {
            let (Spread { all, noise }, square) = (spread(node), node.weight * node.weight);
            variances.all += all.times_root(square);
            variances.noise += square * noise;
            touched += all;
        }
        variances.reach_touched = Tail::new(touched).reach_95() * touched.variance.sqrt() + WHOLE_COUNTS;
        let one = |node: &Node| spread(node).all.variance;
        variances.mean = weights.seen.iter().map(one).sum::<f64>() / weights.seen.len().max(1) as f64;
        variances
    }
}

/// What an estimate is made from.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) substreams: &'a [Arc<SealedSubstream>],
    /// Where the stream began and how far it has come.
    pub(crate) stream: &'a Range<u64>,
    /// The keys that may be listed.
    pub(crate) keys: Option<&'a Keys>,
    /// How many independent noises are in each counter.
    pub(crate) noises: f64,
}

impl<'a> Source<'a> {
    fn observe(&self, substream: &'a SealedSubstream, range: usize, length: f64) -> Option<Observed<'a>> {
        let noise = Moments::of(self.plan.ranges()[range].law(), self.noises);
        let sketch = substream.sketch(range)?;
        let (mapping, number) = (&substream.mapping, substream.number);
        Some(Observed { sketch, mapping, noise, number, length })
    }

    /// The counters of a node.
    pub(crate) fn sketch(&self, node: &Node) -> &'a SealedSketch {
        self.substreams[node.substream].sketch(node.range).expect("nodes are sealed")
    }

    /// The sealed nodes of most keys.
    pub(crate) fn nodes(&self) -> Vec<Node> {
        Node::all(self.substreams, self.plan, self.stream)
    }

    /// What they hold.
    fn observed(&self) -> Vec<Observed<'a>> {
        let observed = |node: &Node| self.observe(&self.substreams[node.substream], node.range, node.length);
        self.nodes().iter().map_while(observed).collect()
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
            match (observed.first(), source.keys.filter(|keys| !keys.is_empty())) {
                (Some(first), Some(keys)) if first.can_separate() || source.plan.discovery().is_some() => {
                    Made::with_candidates(source, &observed, keys, self.earlier.as_ref())
                }
                _ => {
                    let (candidates, paths) = (HashMap::default(), Paths::new(source));
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

    /// What all estimates of a window have in common.
    pub(crate) fn variances(&self, source: Source<'_>, weights: &Weights) -> Variances {
        let made = self.made(source);
        Variances::new(weights, |node| made.fitted[node.index].spread(source.plan.shape()))
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
        reading.sums.get_or_init(|| self.cached(source, reading, keys))
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

/// The weights of a window, and the variances that follow from them.
#[derive(Debug)]
struct Class {
    weights: Weights,
    variances: Variances,
}

/// How a window is read.
#[derive(Debug)]
pub(crate) struct Reading {
    /// Keys of different classes are predicted from different spans, and else read alike.
    classes: Vec<Class>,
    by: Option<Classes>,
    /// Of all keys, where the window is the whole one.
    sums: OnceLock<Arc<Vec<KeySums>>>,
}

impl Reading {
    pub(crate) fn new(fits: &Fits, source: Source<'_>, window: &Range<u64>) -> Self {
        let (nodes, by) = (source.nodes(), fits.made(source).classes);
        let class = |span: u32| {
            let weights = Weights::new(&nodes, source.plan, window, span);
            Class { variances: fits.variances(source, &weights), weights }
        };
        let spans = by.iter().flat_map(|classes| classes.spans).chain([1]);
        Self { classes: spans.map(class).collect(), by, sums: OnceLock::new() }
    }

    /// Of nodes that a key has for itself, with this noise on each.
    pub(crate) fn of_own(weights: Weights, noise: Moments) -> Self {
        let spread = |_: &Node| Spread { all: noise, noise: noise.variance };
        let class = Class { variances: Variances::new(&weights, spread), weights };
        Self { classes: vec![class], by: None, sums: OnceLock::new() }
    }

    /// What is the same for all classes: where the window lies, and what is sealed of it.
    pub(crate) fn weights(&self) -> &Weights {
        &self.classes[0].weights
    }

    /// The parts of the ends that count.
    pub(crate) fn parts(&self) -> Parts {
        self.weights().parts()
    }

    /// Of a key with these counts, by node.
    pub(crate) fn sums_of(&self, counts: &[f64]) -> KeySums {
        let (mut seen, mut running) = (Seen::default(), Running::NONE);
        for node in &self.weights().seen {
            running.add([counts[node.index]], seen.step(node, self));
        }
        let [sums] = running.sums(&seen, self);
        sums
    }

    /// Those of rare keys, as most of a list are.
    pub(crate) fn errors(&self) -> Errors {
        self.classes[0].errors()
    }

    /// The place of the oldest node that is read.
    fn first(&self) -> usize {
        self.weights().ends().map_or(0, |(oldest, _)| oldest)
    }

    pub(crate) fn answer(&self, sums: &KeySums) -> Answer {
        self.classes[usize::from(sums.class)].answer(sums)
    }
}

impl Class {
    fn errors(&self) -> Errors {
        Errors { base: self.variances.all, chance_per_item: self.weights.chance_per_item }
    }

    fn answer(&self, sums: &KeySums) -> Answer {
        let Variances { all, noise, .. } = self.variances;
        let (value, unrest) = (sums.value(self.weights.parts()), self.weights.unrest(sums.changes()));
        // The count may well be a standard error larger than its estimate.
        let known = all.variance + unrest.max(0.0) + self.weights.chance(value);
        let misfit = unrest.max(0.0) + self.weights.chance(value.max(0.0) + known.sqrt());
        let tail = Tail::new(Moments { variance: all.variance + misfit, ..all });
        let any_order = self.any_order(sums);
        let (collisions, covered) = (all.variance - noise, self.weights.span.clone());
        let errors = self.errors();
        Answer { value, noise, collisions, misfit, unrest, tail, any_order, errors, covered }
    }

    fn any_order(&self, sums: &KeySums) -> [f64; 2] {
        let (AnyOrder { least, most, beyond, items }, reach) =
            (&self.weights.any_order, self.variances.reach_touched);
        let most = sums.sealed(*most) + reach + beyond;
        [(sums.sealed(*least) - reach).max(0.0), most.clamp(0.0, *items)]
    }
}

impl Made {
    fn with_candidates(
        source: Source<'_>,
        observed: &[Observed<'_>],
        keys: &Keys,
        earlier: Option<&Earlier>,
    ) -> Self {
        let fingerprints = fingerprints(&observed[0], keys);
        let totals = source.totals(observed, &fingerprints, earlier);
        let cells = source.plan.shape().cells();
        // Found keys all stand out; in a public list the bulk of the keys does not.
        let (mut candidates, rounds) = match source.plan.discovery() {
            Some(_) => (Candidates::all(&totals.sums, cells), 0),
            None => (Candidates::new(&totals.sums, cells), MORE_ROUNDS),
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
        let paths = Paths::default();
        Self { totals: Some(Arc::new(totals)), candidates, fitted, paths, classes: None }
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
        let fingerprints = fingerprints(first, keys);
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

/// The substreams that are seen, and what is to be done with each.
#[derive(Clone, Copy)]
struct Read<'a> {
    observed: &'a [Observed<'a>],
    nodes: &'a [Node],
    steps: &'a [Step],
}

fn fingerprints(observed: &Observed<'_>, keys: &Keys) -> Vec<u64> {
    let key = observed.mapping.fingerprint_key;
    match keys {
        Keys::Range(end) => (0..*end).map(|value| key.integer(value)).collect(),
        _ => (0..keys.len()).map(|place| key.item(keys.get(place))).collect(),
    }
}

/// The nodes that are seen one after the other, whatever the key.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// How many are read.
    read: u32,
    /// Of all, in planned substreams.
    length: f64,
    /// The lengths of the last two, if they are whole.
    last: [Option<f64>; 2],
    /// One compared with the one before it, and with the one before that.
    compared: [Compared; 2],
}

/// Nodes of the same length that are compared. A change counts by its square over that of the length.
#[derive(Debug, Clone, Copy, Default)]
struct Compared {
    pairs: f64,
    /// What noise of variance 1 on each count adds to the squares.
    noise: f64,
    /// What chance adds for an item that comes once in a substream.
    chance: f64,
}

/// What is to be done with the estimates of a node.
#[derive(Debug, Clone, Copy)]
struct Step {
    is_read: bool,
    is_oldest: bool,
    /// By how much the squares of the changes count.
    factors: [f64; 2],
    /// How much of it the next node is predicted to hold, by class.
    predicted: [f64; CLASSES],
}

impl Seen {
    /// A shorter node is as noisy as others and holds less, so that its change would show little but noise: only those between
    /// whole nodes of the same length are looked at.
    fn step(&mut self, node: &Node, reading: &Reading) -> Step {
        let is_read = reading.first() <= node.index;
        let length = node.is_whole.then_some(node.length);
        let factor = |last: Option<f64>| match (last, length) {
            (Some(last), Some(length)) if last == length => length.powi(-2),
            _ => 0.0,
        };
        let factors = self.last.map(factor);
        for (compared, factor) in self.compared.iter_mut().zip(factors).filter(|(_, factor)| 0.0 < *factor) {
            compared.pairs += 1.0;
            compared.noise += 2.0 * factor;
            compared.chance += 2.0 * factor * node.length;
        }
        let is_oldest = is_read && self.read == 0;
        self.last = [length, self.last[0]];
        self.length += node.length;
        self.read += u32::from(is_read);
        let mut predicted = [0.0; CLASSES];
        let shares = reading.classes.iter().map(|class| class.weights.predicted(node));
        predicted.iter_mut().zip(shares).for_each(|(predicted, share)| *predicted = share);
        Step { is_read, is_oldest, factors, predicted }
    }

    /// How counts change beyond noise and chance, by the squares of the changes. `noise` is the variance of one count, `rate`
    /// how often the item comes in a substream. A walk makes counts two apart differ by 5/2 of what neighbours do; clumps make
    /// both differ alike, and are taken for real beyond one deviation.
    fn changes(&self, squares: [f64; 2], noise: f64, rate: f64) -> Changes {
        let [next, after] = &self.compared;
        if next.pairs < 2.0 || after.pairs == 0.0 {
            return Changes::default();
        }
        let by_chance = |compared: &Compared| noise * compared.noise + rate * compared.chance;
        let beyond = |compared: &Compared, squares: f64| (squares - by_chance(compared)) / compared.pairs;
        let deviation = CLUMPS_DEVIATION * by_chance(next) / (2.0 * next.pairs * (next.pairs + 1.0).sqrt());
        let [next, after] = [beyond(next, squares[0]), beyond(after, squares[1])];
        let clumps = (5.0 * next - 2.0 * after) / 6.0 - deviation;
        // A change over the square of the length is one of the rate: a walk makes it grow with the length, clumps with 1 over it.
        let length = self.last.iter().flatten().next().copied().unwrap_or(1.0);
        Changes { walk: WALK_PER_CHANGE * next / length, clumps: clumps * length }
    }
}

/// The estimates of some keys side by side, one substream after the other.
#[derive(Debug, Clone, Copy)]
struct Running<const KEYS: usize> {
    /// Of those that are seen and are not read.
    before: [f64; KEYS],
    sums: [f64; KEYS],
    /// Of the changes of each substream to the next, and to the one after it.
    squares: [[f64; KEYS]; 2],
    oldest: [f64; KEYS],
    predicted: [[f64; KEYS]; CLASSES],
    /// The last two.
    last: [[f64; KEYS]; 2],
}

impl<const KEYS: usize> Running<KEYS> {
    const NONE: Self = {
        let zeros = [0.0; KEYS];
        Self {
            before: zeros,
            sums: zeros,
            squares: [zeros; 2],
            oldest: zeros,
            predicted: [zeros; CLASSES],
            last: [zeros; 2],
        }
    };

    #[inline]
    fn add(&mut self, estimates: [f64; KEYS], step: Step) {
        for ((squares, last), factor) in self.squares.iter_mut().zip(&self.last).zip(step.factors) {
            if 0.0 < factor {
                add(squares, std::array::from_fn(|key| factor * (estimates[key] - last[key]).powi(2)));
            }
        }
        if step.is_oldest {
            self.oldest = estimates;
        }
        if step.is_read {
            add(&mut self.sums, estimates);
        } else {
            add(&mut self.before, estimates);
        }
        for (sums, share) in self.predicted.iter_mut().zip(step.predicted) {
            if 0.0 < share {
                add(sums, estimates.map(|estimate| share * estimate));
            }
        }
        self.last = [estimates, self.last[0]];
    }

    fn sums(&self, seen: &Seen, reading: &Reading) -> [KeySums; KEYS] {
        let variance = reading.classes[0].variances.mean;
        std::array::from_fn(|key| {
            let (sum, oldest, newest) = (self.sums[key], self.oldest[key], self.last[0][key]);
            let between = if seen.read < 2 { 0.0 } else { sum - oldest - newest };
            let rate = (self.before[key] + sum).max(0.0) / seen.length;
            let Changes { walk, clumps } =
                seen.changes(self.squares.map(|squares| squares[key]), variance, rate);
            let predicted = self.predicted.map(|predicted| predicted[key]);
            let alone = Classed { class: 0, predicted: predicted[0] };
            let Classed { class, predicted } =
                reading.by.map_or(alone, |classes| classes.of(rate, newest, predicted));
            KeySums { oldest, between, newest, predicted, walk: walk as f32, clumps: clumps as f32, class }
        })
    }
}

fn add<const KEYS: usize>(sums: &mut [f64; KEYS], values: [f64; KEYS]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

/// Counts of neighbouring substreams differ by 2/3 of the variance with which the rate walks over one; see
/// docs/estimation.md.
const WALK_PER_CHANGE: f64 = 1.5;

/// The deviation of what is taken for clumps where there are none, in variances of a count over the root of how many
/// substreams there are; see docs/estimation.md.
const CLUMPS_DEVIATION: f64 = 2.3;

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::item::domain::Domain;
    use crate::item::hash::StreamKey;
    use crate::item::mapping::{Columns, Mapping};
    use crate::noise::generator::{Generator, Noise};
    use crate::noise::law::Law;
    use crate::plan::settings::{CounterLayout, Method, Settings, TunedMethod, Unit, Window};
    use crate::privacy::parameters::Epsilon;
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
            Source { plan: &self.plan, substreams, stream: &ENDLESS, keys, noises: 1.0 }
        }

        fn reading(&self, fits: &Fits, source: Source<'_>) -> Reading {
            let end = source.substreams.last().map_or(0, |s| s.number + 1) * SUBSTREAM_LEN;
            let window = end - 7 * SUBSTREAM_LEN - 30..end + 40;
            Reading::new(fits, Source { stream: &(0..window.end), ..source }, &window)
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
        let mapping = Mapping { shape, fingerprint_key: stream.fingerprint_key(), columns };
        let law = plan.ranges()[WHOLE].law();
        let mut cells: Vec<i32> = (0..shape.cells()).map(|_| law.draw_exactly(generator) as i32).collect();
        for key in 0..KEYS {
            mapping.cells(key.into()).for_each(|cell| cells[cell] += 200 / (key as i32 + 1));
        }
        let whole = SealedSketch::new(shape, &cells, None, plan.width());
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
            let off =
                [answer.value - value, answer.noise - noise, answer.noise + answer.collisions - variance];
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

    const WALKS: usize = 20_000;
    const SUBSTREAMS: usize = 20;

    fn normal(variance: u64, generator: &mut Generator) -> f64 {
        Law::Gaussian { variance }.draw_exactly(generator) as f64
    }

    /// One key, whose estimates have this variance.
    struct Key {
        reading: Reading,
        seen: Seen,
        running: Running<1>,
    }

    impl Key {
        fn new(variance: f64) -> Self {
            static PLAN: LazyLock<Plan> = LazyLock::new(|| Stream::new(TWO_ROWS).plan);
            let mut reading = Reading::of_own(Weights::new(&[], &PLAN, &(0..1), 1), Moments::default());
            reading.classes[0].variances.mean = variance;
            Self { reading, seen: Seen::default(), running: Running::NONE }
        }

        fn add(&mut self, estimate: f64, length: f64) {
            let node = Node {
                index: 0,
                substream: 0,
                range: WHOLE,
                span: 0..1,
                length,
                is_whole: length == 1.0,
                part: 1.0,
                weight: 1.0,
            };
            self.running.add([estimate], self.seen.step(&node, &self.reading));
        }

        fn changes(&self) -> Changes {
            let [sums] = self.running.sums(&self.seen, &self.reading);
            sums.changes()
        }
    }

    /// The changes found in many keys, each with its own row of estimates.
    fn found(mut steps: impl FnMut() -> [f64; SUBSTREAMS], variance: f64) -> Vec<Changes> {
        let mut found = || {
            let mut key = Key::new(variance);
            steps().into_iter().for_each(|step| key.add(step, 1.0));
            key.changes()
        };
        (0..WALKS).map(|_| found()).collect()
    }

    /// Counts around 50,000 with as much variance by chance, noise of the same variance, and a rate that walks with variance
    /// 10⁶ per substream, of which each substream sees the mean.
    ///
    /// A mean of 19 squared changes deviates by 0.4, so the mean of 20,000 by 0.3 %: 2 % is exceeded by chance with
    /// probability 1e-10.
    #[test]
    fn the_drift_estimate_is_unbiased_for_a_random_walk() {
        const WALK: u64 = 1_000_000;
        let mut generator = generator(7);
        let walk = || {
            let mut rate = 50_000.0;
            std::array::from_fn(|_| {
                // Over a substream the mean of a walk is the middle of its ends and a twelfth of its variance.
                let step = normal(WALK, &mut generator);
                let mean = rate + step / 2.0 + normal(WALK / 12, &mut generator);
                rate += step;
                mean + normal(100_000, &mut generator)
            })
        };
        let found = found(walk, 50_000.0);
        let mean = found.iter().map(|changes| changes.walk).sum::<f64>() / WALKS as f64;
        assert!((mean / WALK as f64 - 1.0).abs() < 0.02, "{mean}");
        let clumps = found.iter().filter(|changes| 0.0 < changes.clumps).count() as f64 / WALKS as f64;
        assert!(clumps < 0.4, "a walk is rarely taken for clumps: {clumps}");
    }

    /// Chance and noise are taken off, so that about half of the keys show no drift: a little more, as a mean of squares lies
    /// below its expectation more often than above. The share of 20,000 keys deviates by 0.0035 and was 0.556 before:
    /// twelve deviations from either bound.
    #[test]
    fn the_drift_estimate_is_zero_for_a_standing_stream() {
        let mut generator = generator(8);
        let standing = || std::array::from_fn(|_| 50_000.0 + normal(100_000, &mut generator));
        let found = found(standing, 50_000.0);
        let share = |is_none: fn(&Changes) -> bool| {
            found.iter().filter(|changes| is_none(changes)).count() as f64 / WALKS as f64
        };
        let none = share(|changes| changes.walk <= 0.0);
        assert!((0.5..0.6).contains(&none), "{none}");
        // One deviation below: 84 % for a normal law.
        let none = share(|changes| changes.clumps <= 0.0);
        assert!((0.8..0.9).contains(&none), "{none}");
    }

    /// Counts that deviate by 1,000 beyond chance and noise, independently. Of the clumps found, whose mean deviates by 0.5 of
    /// their size each and 0.4 % together, one deviation is taken off: 2.3 / √20 of them and of the chance.
    #[test]
    fn the_clumps_estimate_is_right_for_independent_counts() {
        const CLUMPS: u64 = 1_000_000;
        let mut generator = generator(9);
        let clumpy = || std::array::from_fn(|_| 50_000.0 + normal(CLUMPS + 100_000, &mut generator));
        let found = found(clumpy, 50_000.0);
        let mean = found.iter().map(|changes| changes.clumps).sum::<f64>() / WALKS as f64;
        let wanted = CLUMPS as f64 - 2.3 / 20_f64.sqrt() * 100_000.0;
        assert!((mean / wanted - 1.0).abs() < 0.03, "{mean} {wanted}");
    }

    #[test]
    fn two_substreams_show_no_drift() {
        let mut key = Key::new(1.0);
        key.add(0.0, 1.0);
        key.add(100.0, 1.0);
        assert_eq!(key.changes(), Changes::default());
        key.add(0.0, 1.0);
        // Changes of 100 on average, with a chance of 2 and 66.7 taken off their squares.
        let wanted = 1.5 * (10_000.0 - 2.0 - 2.0 * 100.0 / 3.0);
        assert!((key.changes().walk - wanted).abs() < 0.01);
    }

    #[test]
    fn a_shorter_substream_at_either_end_shows_no_drift() {
        let mut key = Key::new(0.0);
        for (step, length) in [(30.0, 0.3), (100.0, 1.0), (100.0, 1.0), (100.0, 1.0), (1.0, 0.01)] {
            key.add(step, length);
        }
        assert!(key.changes().walk < 0.0, "less than chance");
        assert_eq!(key.seen.compared[0].pairs, 2.0);
        assert!((key.running.sums[0] / key.seen.length - 100.0).abs() < 1e-9);
    }
}
