//! How a window is read: what a key's slices hold becomes an estimate and its error.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::noise::tail::{Moments, Tail};
use crate::plan::limits::KEY_SUMS_LEN;
use crate::view::estimate::WHOLE_COUNTS;
use crate::view::prior::{Errors, Row};
use crate::view::tuned::evidence::Evidence;
use crate::view::tuned::fit::Spread;
use crate::view::tuned::forecast::{CLASSES, Forecast, ForecastClasses};
use crate::view::tuned::weights::{AnyOrder, Edges, KeyDrift, Parts, Slice, Weights};

/// An estimate and what its error is made of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) value: f64,
    /// By how much noise and collisions make it off.
    pub(crate) base: Moments,
    /// The part of that variance that is noise.
    pub(crate) noise: f64,
    pub(crate) edges: Edges,
    pub(crate) changes: KeyDrift,
    pub(crate) order: Order,
    /// The part of the window that is sealed.
    pub(crate) covered: Range<u64>,
    /// Whether anything is sealed that it comes from.
    pub(crate) is_known: bool,
}

/// The part of a count that is certain whatever the order of the items is.
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
    pub(crate) fn collision_variance(&self) -> f64 {
        self.base.variance - self.noise
    }

    /// The part of the edge error that comes from changes; below 0 if there are fewer than by chance.
    pub(crate) fn unrest_variance(&self) -> f64 {
        self.edges.unrest_variance(self.changes)
    }

    /// The variance that the edges of the window add.
    pub(crate) fn edge_variance(&self) -> f64 {
        let unrest = self.unrest_variance().max(0.0);
        // The count may well be a standard error larger than its estimate.
        let known = self.base.variance + unrest + self.edges.chance_variance(self.value);
        unrest + self.edges.chance_variance(self.value.max(0.0) + known.sqrt())
    }

    pub(crate) fn tail(&self) -> Tail {
        Tail::new(Moments { variance: self.base.variance + self.edge_variance(), ..self.base })
    }

    /// By how much keys that are cut alike are off.
    pub(crate) fn errors(&self) -> Errors {
        Errors { base: self.base, chance_per_item: self.edges.chance_per_item }
    }

    /// The row of a list that it makes.
    pub(crate) fn to_row(&self) -> Row {
        Row {
            value: self.value,
            unrest: self.unrest_variance(),
            errors: self.errors(),
            changes: self.changes,
        }
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
    /// What the next slice will hold.
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
    pub(crate) fn estimate_window(&self, parts: Parts) -> f64 {
        self.sum_sealed(parts.outer) + parts.ahead * self.predicted
    }

    /// Without what is not sealed.
    fn sum_sealed(&self, [oldest, newest]: [f64; 2]) -> f64 {
        oldest * self.oldest + self.between + newest * self.newest
    }

    fn key_drift(&self, by_chance: ByChance) -> KeyDrift {
        let rate = self.rate.into();
        KeyDrift {
            walk: self.walk.into(),
            excess: self.excess.into(),
            deviation: by_chance.deviation_at(rate),
            rate,
        }
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
    /// Of slices with these errors.
    fn new(weights: &Weights, spread: impl Fn(&Slice) -> Spread) -> Self {
        let mut variances = Self::default();
        let mut touched = Moments::default();
        for slice in &weights.slices {
            let Spread { all, noise } = spread(slice);
            let square = slice.weight * slice.weight;
            variances.all += all.times_root(square);
            variances.noise += square * noise;
            touched += all;
        }
        // Whatever the order of items is, slices at the ends may count in full: without weights.
        variances.reach_touched = Tail::new(touched).reach_95() * touched.variance.sqrt() + WHOLE_COUNTS;
        let sum: f64 = weights.seen.iter().map(|slice| spread(slice).all.variance).sum();
        variances.mean = sum / weights.seen.len().max(1) as f64;
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
    fn new(weights: Weights, spread: impl Fn(&Slice) -> Spread) -> Self {
        let variances = Variances::new(&weights, spread);
        let mut seen = SeenSlices::default();
        for slice in &weights.seen {
            seen.compare_next(slice);
        }
        Self { by_chance: seen.by_chance(variances.mean), weights, variances }
    }
}

/// The model of a window: the weights of its slices and the variances that follow from them.
///
/// An estimate is a weighted sum of what slices hold. Slices inside the window count in full, the oldest by the share of it that
/// is inside, and what is not sealed yet is predicted from the newest ones. The weights are the same for all keys but for how
/// far back a prediction looks, so the model is made once per window and asked for each key; keys are in one of a few classes by
/// how often they come.
///
/// It is a function of the plan, the window and what is sealed, so that a view loaded from bytes answers the same to the last
/// bit. A key's sums ([`KeySums`]) belong to the model that made them: its class is an index into the classes here, and
/// class 0 is the one of rare keys, as most of a list are.
///
/// Invariant: there is at least one class, and all of them see the same slices; they differ in what the unsealed part is
/// predicted from.
#[derive(Debug)]
pub(crate) struct WindowModel {
    /// Keys of different classes are predicted from different spans, and else read alike.
    classes: Vec<Class>,
    by: Option<ForecastClasses>,
    /// Of all keys, where the window is the whole one.
    pub(crate) whole: OnceLock<Arc<Vec<KeySums>>>,
}

impl WindowModel {
    /// Of slices with these errors, by classes if there are some.
    pub(crate) fn new(
        evidence: Evidence<'_>,
        window: &Range<u64>,
        by: Option<ForecastClasses>,
        spread: impl Fn(&Slice) -> Spread,
    ) -> Self {
        let slices = evidence.slices();
        let mut classes = Vec::new();
        // The last class is for keys that jump: only their newest slice predicts anything.
        for span in by.iter().flat_map(|classes| classes.spans).chain([1]) {
            classes.push(Class::new(Weights::new(&slices, evidence.plan, window, span), &spread));
        }
        Self { classes, by, whole: OnceLock::new() }
    }

    /// Of slices that a key has for itself.
    pub(crate) fn of_own(weights: Weights, spread: impl Fn(&Slice) -> Spread) -> Self {
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

    /// Of a key with these counts, by slice.
    pub(crate) fn sums_of(&self, counts: &[f64]) -> KeySums {
        let mut seen = SeenSlices::default();
        let mut running = Running::NONE;
        for slice in &self.weights().seen {
            running.add_slice([counts[slice.index]], seen.next_step(slice, self));
        }
        let [sums] = running.key_sums(&seen, self);
        sums
    }

    /// Those of rare keys, as most of a list are.
    pub(crate) fn rare_errors(&self) -> Errors {
        self.classes[0].errors()
    }

    /// The part of their variance that is privacy noise.
    pub(crate) fn rare_noise(&self) -> f64 {
        self.classes[0].variances.noise
    }

    /// The index of the oldest slice that is read.
    fn first_read(&self) -> usize {
        self.weights().ends().map_or(0, |(oldest, _)| oldest)
    }

    pub(crate) fn answer_key(&self, sums: &KeySums) -> Answer {
        self.classes[usize::from(sums.class)].answer_key(sums)
    }
}

impl Class {
    fn errors(&self) -> Errors {
        Errors { base: self.variances.all, chance_per_item: self.weights.edges.chance_per_item }
    }

    fn answer_key(&self, sums: &KeySums) -> Answer {
        Answer {
            value: sums.estimate_window(self.weights.parts()),
            base: self.variances.all,
            noise: self.variances.noise,
            edges: self.weights.edges,
            changes: sums.key_drift(self.by_chance),
            order: self.order_of(sums),
            covered: self.weights.span.clone(),
            is_known: !self.weights.slices.is_empty(),
        }
    }

    fn order_of(&self, sums: &KeySums) -> Order {
        let AnyOrder { least, most, beyond, items } = self.weights.any_order;
        Order {
            least: sums.sum_sealed(least),
            most: sums.sum_sealed(most),
            reach: self.variances.reach_touched,
            beyond,
            items,
        }
    }
}

/// The slices that are seen one after the other, whatever the key.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SeenSlices {
    /// How many are read.
    read: u32,
    /// Of all, in planned substreams.
    length: f64,
    /// The lengths of the last two, if they are whole.
    last: [Option<f64>; 2],
    /// One compared with the one before it, and with the one before that.
    compared: [Compared; 2],
}

/// Slices of the same length that are compared. A change counts by its square over that of the length.
#[derive(Debug, Clone, Copy, Default)]
struct Compared {
    pairs: f64,
    /// What noise of variance 1 on each count adds to the squares.
    noise: f64,
    /// What chance adds for an item that comes once in a substream.
    chance: f64,
}

impl Compared {
    /// What remains of the squares for each pair without noise and chance.
    fn beyond_chance(&self, squares: f64, noise: f64, rate: f64) -> f64 {
        (squares - (noise * self.noise + rate * self.chance)) / self.pairs
    }
}

/// The part that the estimates of one slice play.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SliceStep {
    is_read: bool,
    is_oldest: bool,
    /// By how much the squares of the changes count.
    factors: [f64; 2],
    /// How much of it the next slice is predicted to hold, by class.
    predicted: [f64; CLASSES],
}

impl SeenSlices {
    /// A shorter slice is as noisy as others and holds less, so that its change would show little but noise: only those between
    /// whole slices of the same length are looked at.
    fn compare_next(&mut self, slice: &Slice) -> [f64; 2] {
        let length = slice.is_whole.then_some(slice.length);
        let factors = self.last.map(|last| match (last, length) {
            (Some(last), Some(length)) if last == length => length.powi(-2),
            _ => 0.0,
        });
        for (compared, factor) in self.compared.iter_mut().zip(factors).filter(|(_, factor)| 0.0 < *factor) {
            compared.pairs += 1.0;
            compared.noise += 2.0 * factor;
            compared.chance += 2.0 * factor * slice.length;
        }
        self.last = [length, self.last[0]];
        factors
    }

    /// What is to be done with the estimates of the next slice.
    pub(crate) fn next_step(&mut self, slice: &Slice, model: &WindowModel) -> SliceStep {
        let is_read = model.first_read() <= slice.index;
        let factors = self.compare_next(slice);
        let is_oldest = is_read && self.read == 0;
        self.length += slice.length;
        self.read += u32::from(is_read);
        let mut predicted = [0.0; CLASSES];
        for (predicted, class) in predicted.iter_mut().zip(&model.classes) {
            *predicted = class.weights.predicted_share(slice);
        }
        SliceStep { is_read, is_oldest, factors, predicted }
    }

    /// How counts change beyond noise and chance, by the squares of the changes: the variance with which a rate walks, and that of
    /// counts that come in clumps. `noise` is the variance of one count, `rate` how often the item comes in a substream. A walk
    /// makes counts two apart differ by 5/2 of what neighbours do; clumps make both differ alike.
    fn walk_and_excess(&self, squares: [f64; 2], noise: f64, rate: f64) -> [f64; 2] {
        if !self.shows_changes() {
            return [0.0; 2];
        }
        let next = self.compared[0].beyond_chance(squares[0], noise, rate);
        let after = self.compared[1].beyond_chance(squares[1], noise, rate);
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

    /// Whether there are enough slices to tell clumps from a walk.
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
    fn deviation_at(self, rate: f64) -> f64 {
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
    pub(crate) fn add_slice(&mut self, estimates: [f64; KEYS], step: SliceStep) {
        for ((squares, last), factor) in self.squares.iter_mut().zip(&self.last).zip(step.factors) {
            if 0.0 < factor {
                add_lanes(squares, std::array::from_fn(|key| factor * (estimates[key] - last[key]).powi(2)));
            }
        }
        if step.is_oldest {
            self.oldest = estimates;
        }
        if step.is_read {
            add_lanes(&mut self.sums, estimates);
        } else {
            add_lanes(&mut self.before, estimates);
        }
        for (sums, share) in self.predicted.iter_mut().zip(step.predicted) {
            if 0.0 < share {
                add_lanes(sums, estimates.map(|estimate| share * estimate));
            }
        }
        self.last = [estimates, self.last[0]];
    }

    pub(crate) fn key_sums(&self, seen: &SeenSlices, model: &WindowModel) -> [KeySums; KEYS] {
        let variance = model.classes[0].variances.mean;
        std::array::from_fn(|key| {
            let sum = self.sums[key];
            let oldest = self.oldest[key];
            let newest = self.last[0][key];
            // A single slice is the newest one; taking it off twice would leave a negative rest.
            let between = if seen.read < 2 { 0.0 } else { sum - oldest - newest };
            let rate = (self.before[key] + sum).max(0.0) / seen.length;
            let squares = self.squares.map(|squares| squares[key]);
            let [walk, excess] = seen.walk_and_excess(squares, variance, rate).map(|change| change as f32);
            let predicted = self.predicted.map(|predicted| predicted[key]);
            let alone = Forecast { class: 0, predicted: predicted[0] };
            let Forecast { class, predicted } =
                model.by.map_or(alone, |classes| classes.forecast_key(rate, newest, predicted));
            KeySums { oldest, between, newest, predicted, walk, excess, rate: rate as f32, class }
        })
    }
}

fn add_lanes<const KEYS: usize>(sums: &mut [f64; KEYS], values: [f64; KEYS]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += value;
    }
}

/// Counts of neighbouring substreams differ by 2/3 of the variance with which the rate walks over one; see
/// docs/design/estimation.md.
const WALK_PER_CHANGE: f64 = 1.5;

/// The deviation of what is taken for clumps where there are none, in variances of a count over the root of how many
/// substreams there are; see docs/design/estimation.md.
const CLUMPS_DEVIATION: f64 = 2.3;

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::noise::generator::{Generator, Noise};
    use crate::noise::law::Law;
    use crate::plan::settings::{Settings, TunedMethod};
    use crate::plan::structure::Plan;
    use crate::view::tuned::weights::WHOLE;

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
        model: WindowModel,
        seen: SeenSlices,
        running: Running<1>,
    }

    impl Key {
        fn new(variance: f64) -> Self {
            static PLAN: LazyLock<Plan> = LazyLock::new(plan);
            let none = |_: &Slice| Spread { all: Moments::default(), noise: 0.0 };
            let mut model = WindowModel::of_own(Weights::new(&[], &PLAN, &(0..1), 1), none);
            model.classes[0].variances.mean = variance;
            Self { model, seen: SeenSlices::default(), running: Running::NONE }
        }

        fn add(&mut self, estimate: f64, length: f64) {
            let slice = Slice {
                index: 0,
                substream: 0,
                range: WHOLE,
                span: 0..1,
                length,
                is_whole: length == 1.0,
                part: 1.0,
                weight: 1.0,
            };
            self.running.add_slice([estimate], self.seen.next_step(&slice, &self.model));
        }

        fn changes(&self) -> KeyDrift {
            let [sums] = self.running.key_sums(&self.seen, &self.model);
            sums.key_drift(self.seen.by_chance(self.model.classes[0].variances.mean))
        }
    }

    /// The changes found in many keys, each with its own row of estimates.
    fn found(mut steps: impl FnMut() -> [f64; SUBSTREAMS], variance: f64) -> Vec<KeyDrift> {
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
        let clumps = found.iter().filter(|changes| 0.0 < changes.real_clumps()).count() as f64 / WALKS as f64;
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
        let share = |is_none: fn(&KeyDrift) -> bool| {
            found.iter().filter(|changes| is_none(changes)).count() as f64 / WALKS as f64
        };
        let none = share(|changes| changes.walk <= 0.0);
        assert!((0.5..0.6).contains(&none), "{none}");
        // One deviation below: 84 % for a normal law.
        let none = share(|changes| changes.real_clumps() <= 0.0);
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
        let mean = found.iter().map(KeyDrift::real_clumps).sum::<f64>() / WALKS as f64;
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
