//! Lists: rows that were chosen for their size, shown as what they probably count.

use std::ops::Deref;

use crate::view::estimate::{CONFIDENCE, Estimate, Ranked, Shown, WHOLE_COUNTS};
use crate::view::list_request::Selection;
use crate::view::prior::{CountPrior, Errors, Posterior, Row, pool_clumps};

/// Keys chosen for their size, largest first: those that occurred, and apart from them those that may be noise alone.
///
/// It can be used like a slice of the rows that are shown.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct List<'a> {
    /// Rows whose true count is at least 1 with probability 95 %; all rows, if those that may be noise alone were asked for.
    pub rows: Vec<Ranked<'a>>,
    /// Rows that were chosen as well and may be noise alone.
    pub hidden: Vec<Ranked<'a>>,
    /// How many rows reach the threshold beyond those that were asked for.
    pub more: usize,
}

impl<'a> List<'a> {
    /// Sorts rows and leaves out those that were not asked for.
    pub(crate) fn new(mut rows: Vec<Ranked<'a>>, selection: &Selection) -> Self {
        rows.retain(|row| selection.is_reached(&row.shown));
        rows.sort_by(|a, b| {
            b.shown.value.total_cmp(&a.shown.value).then(b.estimate.value.total_cmp(&a.estimate.value))
        });
        // Before the cut: a hidden row must not take the room of one that is shown.
        let (hidden, mut rows): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| selection.is_hidden(&row.shown));
        let more = rows.len().saturating_sub(selection.most_rows());
        rows.truncate(selection.most_rows());
        Self { rows, hidden, more }
    }

    /// Every row, also those that may be noise alone.
    pub fn all(&self) -> impl Iterator<Item = &Ranked<'a>> {
        self.rows.iter().chain(&self.hidden)
    }
}

impl<'a> Deref for List<'a> {
    type Target = [Ranked<'a>];

    fn deref(&self) -> &Self::Target {
        &self.rows
    }
}

impl<'a> IntoIterator for List<'a> {
    type Item = Ranked<'a>;
    type IntoIter = std::vec::IntoIter<Ranked<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.into_iter()
    }
}

impl<'l, 'a> IntoIterator for &'l List<'a> {
    type Item = &'l Ranked<'a>;
    type IntoIter = std::slice::Iter<'l, Ranked<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.rows.iter()
    }
}

/// What is shown of rows that were chosen from these values.
pub(crate) fn show_rows(
    errors: Errors,
    values: &[f64],
    rows: &[(Row, Estimate)],
    selection: &Selection,
) -> Vec<Shown> {
    // The request alone decides; and exact counters have nothing to shrink (PRIVACY.md: rule 41).
    if selection.hides_nothing(values.len()) || errors.base.variance <= 0.0 {
        return rows.iter().map(|(_, estimate)| Shown::plain(estimate)).collect();
    }
    if selection.is_strict() {
        return show_strictly(rows.iter().map(|(_, estimate)| estimate), values.len(), selection);
    }
    let clumps = pool_clumps(rows.iter().map(|(row, _)| row.changes));
    let clumped: Vec<Row> = rows.iter().map(|(row, _)| row.with_clumps(clumps)).collect();
    let prior = CountPrior::new(errors.with_clumps(clumps), values, &clumped);
    clumped.iter().zip(rows).map(|(row, (_, estimate))| show_row(&prior, row, estimate)).collect()
}

fn show_row(prior: &CountPrior, row: &Row, estimate: &Estimate) -> Shown {
    match prior.posterior_of(*row) {
        Some(Posterior { value, lower, upper }) => {
            Shown::new(value, (lower - WHOLE_COUNTS).max(0.0), upper + WHOLE_COUNTS)
        }
        // A row far above all others was not lifted by noise: there is nothing to take back.
        None => Shown::with_reach(estimate.value, estimate.error_bound.max(row.reach() + WHOLE_COUNTS)),
    }
}

/// Intervals of which at most 5 % are wrong on average among the rows that the list shows, whatever the stream is like. Large
/// estimates are listed, so only the lower tail has to be the shorter the fewer of all keys are shown.
pub(crate) fn show_strictly<'e>(
    estimates: impl Iterator<Item = &'e Estimate> + Clone,
    keys: usize,
    selection: &Selection,
) -> Vec<Shown> {
    let side = (1.0 - CONFIDENCE) / 2.0;
    let share = count_shown(estimates.clone(), keys, side, selection) as f64 / keys.max(1) as f64;
    estimates.map(|estimate| Shown::with_chances(estimate, [side * share, side])).collect()
}

/// How many rows a strict list shows: the most of which all reach what they must with a lower tail of their share of all keys.
/// Rows that the list leaves out for what they turn out to be are not shown, so they must not lengthen the tails of the others.
fn count_shown<'e>(
    estimates: impl Iterator<Item = &'e Estimate>,
    keys: usize,
    side: f64,
    selection: &Selection,
) -> usize {
    let mut chances = Vec::new();
    for estimate in estimates {
        let value = estimate.value.max(0.0);
        let upper = (estimate.value + estimate.reach_at(side)).max(0.0);
        // The lower end is not known yet, so it must not rule a row out.
        if selection.is_reached(&Shown::new(value, f64::INFINITY, upper)) {
            chances.push(selection.least_lower().map_or(0.0, |least| estimate.chance_below(least)));
        }
    }
    chances.sort_unstable_by(f64::total_cmp);
    let mut counts = (1..=chances.len()).rev();
    let shown = counts.find(|&count| chances[count - 1] <= side * count as f64 / keys as f64);
    shown.unwrap_or(0).clamp(1, selection.most_rows().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::value::Item;
    use crate::noise::generator::{Generator, Noise};
    use crate::noise::law::Law;
    use crate::noise::tail::{Moments, Tail};
    use crate::privacy::parameters::Threshold;
    use crate::ratio::Ratio;
    use crate::view::estimate::{Certainty, Deviations};
    use crate::view::list_request::ListRequest;
    use crate::view::tuned::weights::KeyDrift;

    fn law() -> Law {
        Law::Laplace { scale: Ratio::new(20, 1).expect("a ratio") }
    }

    /// Noise of five substreams.
    const DRAWS: usize = 5;

    fn errors() -> Errors {
        Errors { base: Moments::of_draws(law(), DRAWS as f64), chance_per_item: 0.0 }
    }

    fn estimate(value: f64) -> Estimate {
        let tail = Tail::new(errors().base);
        let deviation = errors().deviation_at(0.0);
        Estimate {
            value,
            error_bound: tail.reach_95() * deviation + WHOLE_COUNTS,
            any_order: 0.0..value,
            deviations: Some(Deviations { noise: deviation, collisions: 0.0, misfit: 0.0 }),
            tail,
            covered: 0..10,
            window: 0..10,
            capped: None,
        }
    }

    fn selection(request: ListRequest, least: Option<f64>) -> Selection {
        Selection::new(request, least)
    }

    /// The list of keys that are named by their place.
    fn list(values: &[f64], selection: &Selection) -> List<'static> {
        let places = selection.choose_indices(values, |least| 6.0 * errors().deviation_at(least));
        let row = |place: &usize| {
            let value = values[*place];
            (Row { value, unrest: 0.0, errors: errors(), changes: KeyDrift::default() }, estimate(value))
        };
        let rows: Vec<(Row, Estimate)> = places.iter().map(row).collect();
        let shown = show_rows(errors(), values, &rows, selection);
        let ranked = |((place, (_, estimate)), shown): ((usize, (Row, Estimate)), Shown)| Ranked {
            item: Item::from(place as u64),
            estimate,
            shown,
        };
        List::new(places.into_iter().zip(rows).zip(shown).map(ranked).collect(), selection)
    }

    fn estimates(counts: &[f64], generator: &mut Generator) -> Vec<f64> {
        let noise = |generator: &mut Generator| -> f64 {
            (0..DRAWS).map(|_| law().draw_exactly(generator) as f64).sum()
        };
        counts.iter().map(|count| count + noise(generator)).collect()
    }

    fn threshold() -> Threshold {
        Threshold::new(0.5).expect("in range")
    }

    /// Keys with these counts, and their estimates in some streams.
    struct Streams {
        counts: Vec<f64>,
        estimates: Vec<Vec<f64>>,
    }

    impl Streams {
        fn new(counts: Vec<f64>, streams: u64) -> Self {
            let of = |seed| estimates(&counts, &mut Noise::seeded(seed).generator().expect("seeded"));
            Self { estimates: (0..streams).map(of).collect(), counts }
        }

        /// The share of rows that hold their counts.
        fn held<'l>(&self, lists: impl Iterator<Item = List<'l>>) -> f64 {
            let holds = |row: &Ranked<'_>| {
                let Item::Integer(place) = row.item else { unreachable!("keys are places") };
                (row.shown.lower..=row.shown.upper).contains(&self.counts[place as usize])
            };
            let held: Vec<bool> = lists.flat_map(|list| list.rows).map(|row| holds(&row)).collect();
            assert!(300 < held.len(), "{} rows", held.len());
            held.iter().filter(|held| **held).count() as f64 / held.len() as f64
        }

        fn held_if(&self, asked: &Selection) -> f64 {
            self.held(self.estimates.iter().map(|values| list(values, asked)))
        }

        /// If rows that stand out of the noise are shown as if they had been chosen beforehand.
        fn held_plainly(&self) -> f64 {
            let plain = |values: &Vec<f64>| {
                let row = |(place, value)| Ranked::plain(Item::from(place), estimate(value));
                let rows = (0..).zip(values.iter().copied()).map(row).collect();
                List::new(rows, &asked(ListRequest::top(usize::MAX)))
            };
            self.held(self.estimates.iter().map(plain))
        }
    }

    fn asked(request: ListRequest) -> Selection {
        selection(request, None)
    }

    /// However a list is asked for, its rows are those that stand out of the noise.
    ///
    /// More than 300 rows: a share of 95 % deviates by at most 1.3 %, so 90 % is exceeded by chance with probability 1e-4 for
    /// each request, and the seeds are fixed.
    #[test]
    fn rows_hold_their_counts_whatever_the_request_is() {
        let few = Streams::new([vec![250.0, 400.0, 900.0], vec![0.0; 17]].concat(), 200);
        let many = Streams::new([vec![700.0; 20], vec![0.0; 1000]].concat(), 20);
        let low = ListRequest::heavy_hitters(threshold());
        for streams in [few, many] {
            let plainly = streams.held_plainly();
            assert!(plainly < 0.88, "{plainly}");
            for is_strict in [false, true] {
                for request in [
                    asked(ListRequest::top(20).strict(is_strict)),
                    asked(ListRequest::top(usize::MAX).strict(is_strict)),
                    selection(low.strict(is_strict), Some(30.0)),
                    selection(low.with_certainty(Certainty::Sure).strict(is_strict), Some(30.0)),
                ] {
                    let held = streams.held_if(&request);
                    assert!(0.9 <= held, "{request:?} among {} keys: {held}", streams.counts.len());
                }
            }
        }
    }

    #[test]
    fn only_a_request_that_hides_nothing_shows_plain_rows() {
        let values = [-30.0, 200.0, 260.0, 300.0];
        let is_plain = |asked: Selection| {
            let list = list(&values, &asked);
            assert!(!list.is_empty(), "{asked:?}");
            list.all().all(|row| row.shown == Shown::plain(&row.estimate))
        };
        let all = ListRequest::top(4).with_noise(true);
        assert!(is_plain(asked(all)) && is_plain(asked(all.at_most(usize::MAX))));
        assert!(is_plain(asked(all.strict(true))), "nothing was chosen");
        assert!(!is_plain(asked(all.at_most(3))), "one is left out");
        assert!(!is_plain(asked(all.with_noise(false))), "noise would be hidden");
        assert!(!is_plain(asked(all.with_noise(false).at_most(usize::MAX))));
        let low = ListRequest::heavy_hitters(threshold()).with_noise(true);
        assert!(!is_plain(selection(low, Some(-1e6))), "a threshold could leave some out");
        assert!(!is_plain(selection(low.strict(true), Some(100.0))));
    }

    #[test]
    fn rows_that_may_be_noise_alone_are_apart() {
        let values = [vec![5.0, 600.0, 120.0, 400.0], vec![0.0; 40]].concat();
        let places =
            |rows: &[Ranked<'_>]| -> Vec<String> { rows.iter().map(|row| row.item.to_string()).collect() };
        let top = ListRequest::top(4);
        let hiding = list(&values, &asked(top));
        assert_eq!(
            (places(&hiding), places(&hiding.hidden)),
            (vec!["1".into(), "3".into()], vec!["2".into(), "0".into()])
        );
        let showing = list(&values, &asked(top.with_noise(true)));
        assert_eq!((showing.len(), showing.hidden.len()), (4, 0));
        assert_eq!(hiding.all().collect::<Vec<_>>(), showing.iter().collect::<Vec<_>>());
        let two = list(&values, &selection(ListRequest::heavy_hitters(threshold()).at_most(1), Some(50.0)));
        assert_eq!((two.len(), two.more), (1, 1));
    }

    /// One row of 1,000 keys has a lower tail of 0.025 / 1,000, two have twice that.
    #[test]
    fn strict_intervals_reach_farther_down_the_fewer_keys_are_shown() {
        let lower = |large: &[f64], keys: usize, request: ListRequest| {
            let values = [large.to_vec(), vec![0.0; keys - large.len()]].concat();
            let list = list(&values, &asked(request.strict(true)));
            assert_eq!(list.len(), large.len(), "the others may be noise");
            list[0].estimate.value - list[0].shown.lower
        };
        let reach = |share: f64| estimate(0.0).reach_at(0.025 * share);
        let is_near = |one: f64, other: f64| (one - other).abs() < 1e-6;
        assert!(is_near(lower(&[900.0], 1000, ListRequest::top(20)), reach(0.001)));
        assert!(is_near(lower(&[900.0, 800.0], 1000, ListRequest::top(20)), reach(0.002)));
        assert!(is_near(lower(&[900.0, 800.0], 1000, ListRequest::top(usize::MAX)), reach(0.002)));
        assert!(is_near(lower(&[900.0], 1, ListRequest::top(1)), reach(1.0)));
        let all = list(
            &[vec![900.0], vec![0.0; 9]].concat(),
            &asked(ListRequest::top(5).with_noise(true).strict(true)),
        );
        assert_eq!(all.len(), 5);
        assert!(is_near(all[0].estimate.value - all[0].shown.lower, reach(0.5)), "all five are shown");
    }

    /// The share of a slice that a short window takes.
    const SHARE: f64 = 0.1;
    /// Items that come together.
    const CLUMP: f64 = 4.0;
    /// The deviations of what ten slices show of clumps, over noise and chance: 2.3 / √10.
    const SHOWN: f64 = 0.73;

    fn normal(variance: f64, generator: &mut Generator) -> f64 {
        // Whole numbers, fine enough.
        Law::Gaussian { variance: (variance * 1e4) as u64 }.draw_exactly(generator) as f64 / 100.0
    }

    /// A window of a tenth of a slice: each of the 20 to 80 clumps of a key lies in it with probability 0.1. Ten slices show the
    /// clumps of one key with about half their size as a deviation, so a key by itself shows only a part of them.
    fn short_window(seed: u64) -> (Vec<f64>, Vec<(Row, Estimate)>) {
        let mut generator = Noise::seeded(seed).generator().expect("seeded");
        let noise = Law::Laplace { scale: Ratio::new(11, 1).expect("a ratio") };
        let base = Moments::of_draws(noise, 1.0).times_root(SHARE * SHARE);
        let errors = Errors { base, chance_per_item: 1.0 - SHARE };
        let row = |key: u64| {
            let clumps = 20 + key % 61;
            let inside = (0..clumps).filter(|_| generator.next_u64() < u64::MAX / 10).count() as f64;
            let rate = CLUMP * clumps as f64;
            let deviation = SHOWN * (noise.variance() + rate);
            let excess = (CLUMP - 1.0) * rate + normal(deviation * deviation, &mut generator);
            let value = SHARE * (rate + noise.draw_exactly(&mut generator) as f64);
            let unrest = (excess - deviation).max(0.0) * SHARE * (1.0 - SHARE);
            let changes = KeyDrift { walk: 0.0, excess, deviation, rate };
            (CLUMP * inside, (Row { value, unrest, errors, changes }, estimate(value)))
        };
        (0..300).map(row).unzip()
    }

    /// 800 rows: a share of 95 % deviates by 0.8 %, so one below 92 % happens by chance with probability 1e-4, and the seeds are
    /// fixed. 96 % hold their counts; without the clumps of all rows together 90 %; and 47 % if the scatter inside a slice is taken
    /// for an error that the estimates have, as noise is.
    #[test]
    fn rows_of_a_window_shorter_than_a_slice_hold_counts_that_come_in_clumps() {
        let (mut held, mut all) = (0, 0);
        for seed in 0..40 {
            let (counts, rows) = short_window(seed);
            let values: Vec<f64> = rows.iter().map(|(row, _)| row.value).collect();
            let asked = asked(ListRequest::top(20));
            let places = asked.choose_indices(&values, |_| 0.0);
            let chosen: Vec<(Row, Estimate)> = places.iter().map(|&place| rows[place].clone()).collect();
            let shown = show_rows(rows[0].0.errors, &values, &chosen, &asked);
            for (place, Shown { lower, upper, .. }) in places.into_iter().zip(shown) {
                held += usize::from((lower..=upper).contains(&counts[place]));
                all += 1;
            }
        }
        let share = f64::from(held as u32) / f64::from(all);
        assert!((0.92..0.99).contains(&share), "{share}");
    }

    #[test]
    fn a_threshold_is_held_against_the_end_that_was_asked_for() {
        let far = [vec![3000.0, 1000.0, 850.0], vec![0.0; 10]].concat();
        let of = |certainty| -> Vec<f64> {
            let request = ListRequest::heavy_hitters(threshold()).with_certainty(certainty);
            list(&far, &selection(request, Some(900.0))).iter().map(|row| row.estimate.value).collect()
        };
        assert_eq!(of(Certainty::Plain), [3000.0, 1000.0]);
        assert_eq!(of(Certainty::Sure), [3000.0]);
        assert_eq!(of(Certainty::Possible), [3000.0, 1000.0, 850.0]);
    }
}
