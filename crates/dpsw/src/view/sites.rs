//! The answers of several sites that cut different keys finely: each site is read for itself, and the answers add up.

use std::ops::Range;

use crate::item::keys::Keys;
use crate::item::value::Item;
use crate::noise::tail::Moments;
use crate::plan::misfit::Misfit;
use crate::view::estimate::Estimate;
use crate::view::interpolated::{Interpolated, SLACK};
use crate::view::list::List;
use crate::view::prior::Errors;
use crate::view::reading::{Answer, Order};
use crate::view::weights::{Changes, Edges};

/// A window of several sites.
pub(crate) struct Sites<'a> {
    /// What all of them hold, each substream in one node.
    pub(crate) together: Interpolated<'a>,
    pub(crate) apart: Vec<Interpolated<'a>>,
}

impl Sites<'_> {
    pub(crate) fn span(&self) -> Range<u64> {
        self.together.span()
    }

    pub(crate) fn items(&self) -> u64 {
        self.together.items()
    }

    pub(crate) fn frequency(&self, item: Item<'_>) -> Estimate {
        self.together.estimate(self.answer(item))
    }

    fn answer(&self, item: Item<'_>) -> Answer {
        let apart: Vec<Answer> = self.apart.iter().map(|site| site.answer(item)).collect();
        Answer::of_sites(&apart, self.together.answer(item).changes, self.covered(&apart))
    }

    /// The part of the window that all sites have sealed. One that is over has nothing after its end to seal.
    fn covered(&self, apart: &[Answer]) -> Range<u64> {
        let window = self.together.asked.window;
        let start = apart.iter().map(|answer| answer.covered.start).min().unwrap_or(window.end);
        let start = start.clamp(window.start, window.end);
        let goes_on =
            |(site, answer): &(&Interpolated<'_>, &Answer)| answer.covered.end < site.asked.window.end;
        let open = self.apart.iter().zip(apart).filter(goes_on).map(|(_, answer)| answer.covered.end).min();
        start..open.unwrap_or(window.end).max(start)
    }

    /// Rows chosen from all keys by their estimates.
    pub(crate) fn list<'k>(&self, keys: &'k Keys, choose: impl FnOnce(&[f64]) -> Vec<usize>) -> List<'k> {
        let mut values = vec![0.0; keys.len()];
        for site in &self.apart {
            values.iter_mut().zip(site.values(keys)).for_each(|(sum, value)| *sum += value);
        }
        let answer = |place| self.answer(keys.get(place));
        self.together.chosen(self.errors(), &values, choose(&values), answer, |place| keys.get(place))
    }

    /// Rows chosen from candidates by their estimates.
    pub(crate) fn list_among<'i>(
        &self,
        candidates: &[Item<'i>],
        choose: impl FnOnce(&[f64]) -> Vec<usize>,
    ) -> List<'i> {
        let answers: Vec<Answer> = candidates.iter().map(|item| self.answer(*item)).collect();
        let values: Vec<f64> = answers.iter().map(|answer| answer.value).collect();
        let answer = |place: usize| answers[place].clone();
        self.together.chosen(self.errors(), &values, choose(&values), answer, |place| candidates[place])
    }

    /// How far a key with this count may be estimated below it.
    pub(crate) fn slack(&self, count: f64) -> f64 {
        SLACK * self.errors().deviation(count)
    }

    /// By how much keys are off that are rare at all sites.
    fn errors(&self) -> Errors {
        let errors = || self.apart.iter().map(Interpolated::errors);
        let chance: f64 = errors().map(|errors| errors.chance_per_item).sum();
        Errors {
            base: sum(errors().map(|errors| errors.base)),
            chance_per_item: chance / self.apart.len() as f64,
        }
    }
}

fn sum(moments: impl Iterator<Item = Moments>) -> Moments {
    moments.fold(Moments::default(), |mut sum, moments| {
        sum += moments;
        sum
    })
}

impl Answer {
    /// What all sites count. Their noises are independent, but their rates may move together: `changes` are those of the sum.
    fn of_sites(sites: &[Self], changes: Changes, covered: Range<u64>) -> Self {
        let order = |of: fn(&Order) -> f64| sites.iter().map(|site| of(&site.order)).sum::<f64>();
        Self {
            value: sites.iter().map(|site| site.value).sum(),
            base: sum(sites.iter().map(|site| site.base)),
            noise: sites.iter().map(|site| site.noise).sum(),
            edges: mean_edges(sites),
            changes,
            order: Order {
                least: order(|order| order.least),
                most: order(|order| order.most),
                reach: order(|order| order.reach.powi(2)).sqrt(),
                beyond: order(|order| order.beyond),
                items: order(|order| order.items),
            },
            covered,
            is_known: sites.iter().any(|site| site.is_known),
        }
    }
}

/// Each site counts by its share of the items.
fn mean_edges(sites: &[Answer]) -> Edges {
    let total: f64 = sites.iter().map(|site| site.value.max(0.0)).sum();
    let share = |site: &Answer| match 0.0 < total {
        true => site.value.max(0.0) / total,
        false => 1.0 / sites.len() as f64,
    };
    let mean = |of: fn(&Edges) -> f64| sites.iter().map(|site| share(site) * of(&site.edges)).sum();
    let misfit =
        Misfit { sampling: mean(|edges| edges.misfit.sampling), walk: mean(|edges| edges.misfit.walk) };
    Edges { misfit, chance_per_item: mean(|edges| edges.chance_per_item), items: None }
}

#[cfg(test)]
mod tests {
    use crate::item::batch::Batch;
    use crate::item::hash::StreamKey;
    use crate::noise::generator::{Generator, Noise};
    use crate::plan::settings::{Clock, CounterLayout, Settings, TimeWindow, TunedMethod, Window};
    use crate::plan::structure::Plan;
    use crate::stream::sketch::DpswSketch;
    use crate::view::estimate::Estimate;
    use crate::view::window_view::WindowView;
    use std::ops::Range;

    const KEYS: u64 = 40;
    const WINDOW: u64 = 512;
    /// Substreams of 128 ticks, in up to eight nodes.
    const SUBSTREAMS: u64 = 4;

    fn plan(epsilon: f64) -> Plan {
        let method = TunedMethod {
            substreams: SUBSTREAMS,
            counters: CounterLayout::Identity,
            rungs: 4,
            ..TunedMethod::default()
        };
        let clock = Clock::Caller;
        let window = TimeWindow { len: WINDOW, lateness: 0, clock, expected_items: 4000 };
        let settings = Settings::last_items(WINDOW, epsilon).expect("in range").with_keys(0..KEYS);
        let settings = Settings { window: Window::Time(window), ..settings.with_method(method) };
        Plan::new(settings.with_retention(2)).expect("a plan")
    }

    fn generator(seed: u64) -> Generator {
        Noise::seeded(seed).generator().expect("seeded")
    }

    fn uniform(generator: &mut Generator) -> f64 {
        ((generator.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// How often a key comes in a window of a site: each site has other frequent keys, and a few are frequent at all of them.
    fn count(site: u64, key: u64) -> f64 {
        match key {
            0..3 => 1500.0 / (key + 1) as f64,
            3..9 if key % 3 == site % 3 => 700.0,
            _ => 12.0 * (key % 4) as f64,
        }
    }

    /// A Poisson stream: the events of a site as (time, key). The rate of a key is never above `most` times its count, and
    /// `rate` is its part of that at a time.
    fn events(
        site: u64,
        span: Range<u64>,
        generator: &mut Generator,
        rate: impl Fn(u64, u64) -> f64,
    ) -> Vec<(u64, u64)> {
        const MOST: f64 = 3.0;
        let mut events = Vec::new();
        for key in 0..KEYS {
            let mut time = span.start as f64;
            let gap = WINDOW as f64 / (MOST * count(site, key));
            while gap.is_finite() {
                time -= gap * uniform(generator).ln();
                if span.end as f64 <= time {
                    break;
                }
                if uniform(generator) * MOST < rate(key, time as u64) {
                    events.push((time as u64, key));
                }
            }
        }
        events.sort_unstable();
        events
    }

    /// A site that has counted these events and whose clock stands at `end`.
    fn counted(site: u64, plan: &Plan, events: &[(u64, u64)], span: Range<u64>, seed: u64) -> DpswSketch {
        let key = StreamKey::from_bytes([7; 32]);
        let mut sketch = DpswSketch::with_key(plan.clone(), key, Noise::seeded(seed)).at_site(site);
        sketch.advance(span.start).expect("a clock");
        for step in events.chunk_by(|(one, _), (next, _)| one / 16 == next / 16) {
            let (times, items): (Vec<u64>, Vec<u64>) = step.iter().copied().unzip();
            sketch.advance(times[0]).expect("a clock");
            let taken = sketch.extend(Batch::integers(&items).at(&times)).expect("in time");
            assert_eq!(taken.counted, items.len());
        }
        sketch.advance(span.end).expect("a clock");
        sketch
    }

    /// Seeded noise claims nothing, and such views are not merged.
    fn claimed(mut view: WindowView) -> WindowView {
        view.claim = view.plan.claim();
        view
    }

    fn steady(site: u64, span: Range<u64>) -> DpswSketch {
        let events = events(site, span.clone(), &mut generator(100 + site), |_, _| 1.0);
        counted(site, &plan(4.0), &events, span, site)
    }

    fn merge(views: &[WindowView]) -> WindowView {
        WindowView::merge(views).expect("mergeable")
    }

    fn answers(view: &WindowView) -> Vec<Estimate> {
        (0..KEYS).map(|key| view.frequency(key).expect("a key")).collect()
    }

    /// Whole and shorter windows, now and in the past.
    fn windows(view: &WindowView) -> Vec<WindowView> {
        let asked = [(0, WINDOW), (0, 300), (0, 40), (0, 5), (23, WINDOW), (150, 260), (301, 17), (77, 1)];
        let window = |&(before, len): &(u64, u64)| {
            let end = view.window().end.checked_sub(before)?;
            view.last(len).and_then(|view| view.as_of(end)).ok()
        };
        asked.iter().filter_map(window).collect()
    }

    #[test]
    fn a_merged_view_counts_what_its_sites_count_in_every_window() {
        let mut asked = 0;
        for end in [70, 130, 205, 640, 1024, 1111, 1300, 1533] {
            let sites: Vec<WindowView> = (0..3).map(|site| claimed(steady(site, 0..end).view())).collect();
            let merged = merge(&sites);
            for (index, view) in windows(&merged).iter().enumerate() {
                let apart: Vec<Vec<Estimate>> =
                    sites.iter().map(|site| answers(&windows(site)[index])).collect();
                for (key, estimate) in answers(view).iter().enumerate() {
                    let sum = |of: fn(&Estimate) -> f64| apart.iter().map(|site| of(&site[key])).sum::<f64>();
                    let value = sum(|estimate| estimate.value);
                    assert!((estimate.value - value).abs() < 1e-9, "{key} in {:?}", view.window());
                    let noise = |estimate: &Estimate| estimate.deviations.map_or(0.0, |d| d.noise.powi(2));
                    assert!((noise(estimate) / sum(noise) - 1.0).abs() < 1e-9 || sum(noise) == 0.0);
                    let covered = apart.iter().map(|site| site[key].covered.end).min();
                    assert_eq!(Some(estimate.covered.end), covered);
                    asked += 1;
                }
                for row in view.top(9).expect("keys").all() {
                    assert_eq!(Ok(&row.estimate), view.frequency(row.item).as_ref(), "lists show the same");
                }
            }
        }
        assert!(2000 < asked, "{asked}");
    }

    #[test]
    fn sites_may_be_merged_in_any_order_and_come_back_from_bytes() {
        let [a, b, c] = [0, 1, 2].map(|site| claimed(steady(site, 0..1111 + 40 * site).view()));
        let merged = merge(&[a.clone(), b.clone(), c.clone()]);
        assert_eq!((merged.sites(), merged.window()), (&[0, 1, 2][..], 599..1111));
        let tables =
            |view: &WindowView| view.readable.released.substreams().last().map(|s| s.rungs().clone());
        assert!(tables(&a) != tables(&b), "sites cut different keys finely");
        let loaded = WindowView::from_bytes(&merged.to_bytes()).expect("valid bytes");
        let others = [
            merge(&[c.clone(), b.clone(), a.clone()]),
            merge(&[merge(&[a.clone(), b.clone()]), c.clone()]),
            merge(&[b.clone(), merge(&[c.clone(), a.clone()])]),
            merge(&[WindowView::from_bytes(&merge(&[c, a]).to_bytes()).expect("valid bytes"), b]),
            loaded,
        ];
        for other in &others {
            for (one, other) in windows(&merged).iter().zip(windows(other)) {
                assert_eq!(answers(one), answers(&other));
                assert_eq!((one.top(5), one.items()), (other.top(5), other.items()));
            }
            assert!(merged.to_bytes() == other.to_bytes());
        }
    }
}
