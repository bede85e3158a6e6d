//! How a window is read: what a key's nodes hold becomes an estimate and its error.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::noise::tail::{Moments, Tail};
use crate::plan::limits::KEY_SUMS_LEN;
use crate::view::estimate::WHOLE_COUNTS;
use crate::view::fit::Spread;
use crate::view::prior::Errors;
use crate::view::source::Source;
use crate::view::spans::{CLASSES, Classed, Classes};
use crate::view::weights::{AnyOrder, Changes, Edges, Node, Parts, Weights};

/// An estimate and what its error is made of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) value: f64,
    /// By how much noise and collisions make it off.
    pub(crate) base: Moments,
    /// The part of that variance that is noise.
    pub(crate) noise: f64,
    pub(crate) edges: Edges,
    pub(crate) changes: Changes,
    pub(crate) order: Order,
    /// The part of the window that is sealed.
    pub(crate) covered: Range<u64>,
    /// Whether anything is sealed that it comes from.
    pub(crate) is_known: bool,
}

/// What is certain of a count whatever the order of the items is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Order {
    /// The estimates of the least and of the most that is sealed of it, and how far these may be off.
    pub(crate) least: f64,
    pub(crate) most: f64,
    pub(crate) reach: f64,
    /// The items that may lie beyond what is sealed.
    pub(crate) beyond: f64,
    /// The items of the window, where that is known.
    pub(crate) items: f64,
}

impl Answer {
    pub(crate) fn collisions(&self) -> f64 {
        self.base.variance - self.noise
    }

    /// The part of the misfit that comes from changes; below 0 if there are fewer than by chance.
    pub(crate) fn unrest(&self) -> f64 {
        self.edges.unrest(self.changes)
    }

    /// The variance that the edges of the window add.
    pub(crate) fn misfit(&self) -> f64 {
        let unrest = self.unrest().max(0.0);
        // The count may well be a standard error larger than its estimate.
        let known = self.base.variance + unrest + self.edges.chance(self.value);
        unrest + self.edges.chance(self.value.max(0.0) + known.sqrt())
    }

    pub(crate) fn tail(&self) -> Tail {
        Tail::new(Moments { variance: self.base.variance + self.misfit(), ..self.base })
    }

    /// By how much keys that are cut alike are off.
    pub(crate) fn errors(&self) -> Errors {
        Errors { base: self.base, chance_per_item: self.edges.chance_per_item }
    }

    /// Where it lies whatever the order of the items is.
    pub(crate) fn any_order(&self) -> Range<f64> {
        let Order { least, most, reach, beyond, items } = self.order;
        (least - reach).max(0.0)..(most + reach + beyond).clamp(0.0, items)
    }
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
    /// By how much counts vary beyond noise and chance, if they come in clumps: an unbiased estimate.
    excess: f32,
    /// How often it comes in a substream.
    rate: f32,
    class: u8,
}

const _: () = assert!(size_of::<KeySums>() == KEY_SUMS_LEN, "the plan counts on it");

impl KeySums {
    /// With so much of the ends of the window.
    pub(crate) fn value(&self, parts: Parts) -> f64 {
        self.sealed(parts.outer) + parts.ahead * self.predicted
    }

    /// Without what is not sealed.
    fn sealed(&self, [oldest, newest]: [f64; 2]) -> f64 {
        oldest * self.oldest + self.between + newest * self.newest
    }

    fn changes(&self, by_chance: ByChance) -> Changes {
        let (walk, excess, rate) = (self.walk.into(), self.excess.into(), self.rate.into());
        Changes { walk, excess, rate, deviation: by_chance.deviation(rate) }
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

/// The weights of a window, and the variances that follow from them.
#[derive(Debug)]
struct Class {
    weights: Weights,
    variances: Variances,
    by_chance: ByChance,
}

impl Class {
    fn new(weights: Weights, spread: impl Fn(&Node) -> Spread) -> Self {
        let variances = Variances::new(&weights, spread);
        let mut seen = Seen::default();
        for node in &weights.seen {
            seen.compare(node);
        }
        Self { by_chance: seen.by_chance(variances.mean), weights, variances }
    }
}

/// How a window is read.
#[derive(Debug)]
pub(crate) struct Reading {
    /// Keys of different classes are predicted from different spans, and else read alike.
    classes: Vec<Class>,
    by: Option<Classes>,
    /// Of all keys, where the window is the whole one.
    pub(crate) whole: OnceLock<Arc<Vec<KeySums>>>,
}

impl Reading {
    /// Of nodes with these errors, by classes if there are some.
    pub(crate) fn new(
        source: Source<'_>,
        window: &Range<u64>,
        by: Option<Classes>,
        spread: impl Fn(&Node) -> Spread,
    ) -> Self {
        let nodes = source.nodes();
        let class = |span: u32| Class::new(Weights::new(&nodes, source.plan, window, span), &spread);
        let spans = by.iter().flat_map(|classes| classes.spans).chain([1]);
        Self { classes: spans.map(class).collect(), by, whole: OnceLock::new() }
    }

    /// Of nodes that a key has for itself.
    pub(crate) fn of_own(weights: Weights, spread: impl Fn(&Node) -> Spread) -> Self {
        Self { classes: vec![Class::new(weights, spread)], by: None, whole: OnceLock::new() }
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

    /// The part of their variance that is privacy noise.
    pub(crate) fn noise(&self) -> f64 {
        self.classes[0].variances.noise
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
        Errors { base: self.variances.all, chance_per_item: self.weights.edges.chance_per_item }
    }

    fn answer(&self, sums: &KeySums) -> Answer {
        Answer {
            value: sums.value(self.weights.parts()),
            base: self.variances.all,
            noise: self.variances.noise,
            edges: self.weights.edges,
            changes: sums.changes(self.by_chance),
            order: self.order(sums),
            covered: self.weights.span.clone(),
            is_known: !self.weights.nodes.is_empty(),
        }
    }

    fn order(&self, sums: &KeySums) -> Order {
        let AnyOrder { least, most, beyond, items } = self.weights.any_order;
        let (least, most) = (sums.sealed(least), sums.sealed(most));
        Order { least, most, reach: self.variances.reach_touched, beyond, items }
    }
}

/// The nodes that are seen one after the other, whatever the key.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
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
pub(crate) struct Step {
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
    fn compare(&mut self, node: &Node) -> [f64; 2] {
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
        self.last = [length, self.last[0]];
        factors
    }

    /// What is to be done with the estimates of the next node.
    pub(crate) fn step(&mut self, node: &Node, reading: &Reading) -> Step {
        let is_read = reading.first() <= node.index;
        let factors = self.compare(node);
        let is_oldest = is_read && self.read == 0;
        self.length += node.length;
        self.read += u32::from(is_read);
        let mut predicted = [0.0; CLASSES];
        let shares = reading.classes.iter().map(|class| class.weights.predicted(node));
        predicted.iter_mut().zip(shares).for_each(|(predicted, share)| *predicted = share);
        Step { is_read, is_oldest, factors, predicted }
    }

    /// How counts change beyond noise and chance, by the squares of the changes: the variance with which a rate walks, and that of
    /// counts that come in clumps. `noise` is the variance of one count, `rate` how often the item comes in a substream. A walk
    /// makes counts two apart differ by 5/2 of what neighbours do; clumps make both differ alike.
    fn walk_and_excess(&self, squares: [f64; 2], noise: f64, rate: f64) -> [f64; 2] {
        let [next, after] = &self.compared;
        if !self.shows_changes() {
            return [0.0; 2];
        }
        let by_chance = |compared: &Compared| noise * compared.noise + rate * compared.chance;
        let beyond = |compared: &Compared, squares: f64| (squares - by_chance(compared)) / compared.pairs;
        let [next, after] = [beyond(next, squares[0]), beyond(after, squares[1])];
        // A change over the square of the length is one of the rate: a walk makes it grow with the length, clumps with 1 over it.
        [WALK_PER_CHANGE * next / self.last_length(), (5.0 * next - 2.0 * after) / 6.0 * self.last_length()]
    }

    /// By how much the excess deviates where counts do not come in clumps.
    fn by_chance(&self, noise: f64) -> ByChance {
        let [next, _] = &self.compared;
        if !self.shows_changes() {
            return ByChance::default();
        }
        let part = CLUMPS_DEVIATION * self.last_length() / (2.0 * next.pairs * (next.pairs + 1.0).sqrt());
        ByChance { noise: part * noise * next.noise, per_rate: part * next.chance }
    }

    /// Whether there are enough nodes to tell clumps from a walk.
    fn shows_changes(&self) -> bool {
        let [next, after] = &self.compared;
        2.0 <= next.pairs && 0.0 < after.pairs
    }

    fn last_length(&self) -> f64 {
        self.last.iter().flatten().next().copied().unwrap_or(1.0)
    }
}

/// The deviation of what is taken for clumps where there are none: from noise, and for an item that comes once in a substream.
#[derive(Debug, Clone, Copy, Default)]
struct ByChance {
    noise: f64,
    per_rate: f64,
}

impl ByChance {
    fn deviation(self, rate: f64) -> f64 {
        self.noise + self.per_rate * rate
    }
}

/// The estimates of some keys side by side, one substream after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Running<const KEYS: usize> {
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
    pub(crate) const NONE: Self = {
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
    pub(crate) fn add(&mut self, estimates: [f64; KEYS], step: Step) {
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

    pub(crate) fn sums(&self, seen: &Seen, reading: &Reading) -> [KeySums; KEYS] {
        let variance = reading.classes[0].variances.mean;
        std::array::from_fn(|key| {
            let (sum, oldest, newest) = (self.sums[key], self.oldest[key], self.last[0][key]);
            let between = if seen.read < 2 { 0.0 } else { sum - oldest - newest };
            let rate = (self.before[key] + sum).max(0.0) / seen.length;
            let squares = self.squares.map(|squares| squares[key]);
            let [walk, excess] = seen.walk_and_excess(squares, variance, rate).map(|change| change as f32);
            let predicted = self.predicted.map(|predicted| predicted[key]);
            let alone = Classed { class: 0, predicted: predicted[0] };
            let Classed { class, predicted } =
                reading.by.map_or(alone, |classes| classes.of(rate, newest, predicted));
            KeySums { oldest, between, newest, predicted, walk, excess, rate: rate as f32, class }
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
    use crate::noise::generator::{Generator, Noise};
    use crate::noise::law::Law;
    use crate::plan::settings::{Settings, TunedMethod};
    use crate::plan::structure::Plan;
    use crate::view::weights::WHOLE;

    fn plan() -> Plan {
        let settings = Settings::last_items(800, 1.0).expect("in range").with_method(TunedMethod::default());
        Plan::new(settings).expect("a plan")
    }

    fn generator(seed: u64) -> Generator {
        Noise::seeded(seed).generator().expect("seeded")
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
            static PLAN: LazyLock<Plan> = LazyLock::new(plan);
            let none = |_: &Node| Spread { all: Moments::default(), noise: 0.0 };
            let mut reading = Reading::of_own(Weights::new(&[], &PLAN, &(0..1), 1), none);
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
            sums.changes(self.seen.by_chance(self.reading.classes[0].variances.mean))
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
        let clumps = found.iter().filter(|changes| 0.0 < changes.clumps()).count() as f64 / WALKS as f64;
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
        let none = share(|changes| changes.clumps() <= 0.0);
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
        let mean = found.iter().map(Changes::clumps).sum::<f64>() / WALKS as f64;
        let wanted = CLUMPS as f64 - 2.3 / 20_f64.sqrt() * 100_000.0;
        assert!((mean / wanted - 1.0).abs() < 0.03, "{mean} {wanted}");
    }

    #[test]
    fn two_substreams_show_no_drift() {
        let mut key = Key::new(1.0);
        key.add(0.0, 1.0);
        key.add(100.0, 1.0);
        assert_eq!(key.changes().walk, 0.0);
        assert_eq!((key.changes().excess, key.changes().deviation), (0.0, 0.0));
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
