//! Keys that are cut more finely than most: each has nodes of its own.

use std::ops::Range;

use crate::noise::tail::Moments;
use crate::plan::structure::Plan;
use crate::sealed::substream::SealedSubstream;
use crate::view::fit::Spread;
use crate::view::reading::{Answer, Reading};
use crate::view::source::Source;
use crate::view::spans::{Costs, is_jump};
use crate::view::trail::Trail;
use crate::view::weights::{Node, WHOLE, Weights};

/// Spans are judged by the nodes of so many substreams.
const JUDGED_SUBSTREAMS: usize = 2;

/// The nodes of a key, oldest first.
#[derive(Debug)]
pub(crate) struct Path {
    /// Which of all nodes they are.
    nodes: Vec<u32>,
    /// What all before each of them hold, and what all hold.
    sums: Vec<f64>,
    /// From how many nodes the next one is predicted.
    span: u32,
}

/// The keys that have nodes of their own: those that are cut more finely in some substream, or tracked there.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    /// All nodes that there are.
    nodes: Vec<Node>,
    paths: Vec<Path>,
    /// Their places in the list, ascending, and which of the paths it is.
    places: Vec<(u32, u32)>,
    /// The same by fingerprint, where keys are tracked.
    fingerprints: Vec<(u64, u32)>,
    /// How far hashed counters are off, by substream.
    hashed: Vec<Option<Spread>>,
}

impl Paths {
    /// Of keys that all have counters of their own.
    pub(crate) fn own(source: Source<'_>) -> Self {
        let listed = source.substreams.iter().flat_map(|substream| substream.rungs().listed());
        let mut places: Vec<u32> = listed.map(|(place, _)| place).collect();
        places.sort_unstable();
        places.dedup();
        let mut paths = Self {
            paths: places.iter().map(|_| Path::NONE).collect(),
            places: places.iter().copied().zip(0..).collect(),
            ..Self::default()
        };
        for (index, substream) in source.substreams.iter().enumerate() {
            let nodes = paths.nodes_of(source, index, substream);
            paths.add(source, substream, &nodes);
        }
        paths.finish(source);
        paths
    }

    /// The sealed nodes of a substream, by range.
    fn nodes_of(
        &mut self,
        source: Source<'_>,
        index: usize,
        substream: &SealedSubstream,
    ) -> Vec<Option<u32>> {
        let mut nodes = vec![None; source.plan.ranges().len()];
        for (range, _) in substream.sketches() {
            let node = Node::new((index, substream.number), *range, source.plan, source.stream);
            nodes[*range] = node.is_some().then_some(self.nodes.len() as u32);
            self.nodes.extend(node);
        }
        nodes
    }

    /// Of tracked keys, with the places of those that are listed. Where one is not tracked, hashed counters hold it.
    pub(crate) fn tracked(
        source: Source<'_>,
        listed: &[(u64, usize)],
        hashed: impl Fn(&Node, u64) -> f64,
        spread: impl Fn(&Node) -> Spread,
    ) -> Self {
        let mut fingerprints: Vec<u64> =
            source.leases.iter().map(|(fingerprint, _, _)| fingerprint).collect();
        fingerprints.dedup();
        let mut paths = Self::default();
        let mut nodes = Vec::new();
        for (index, substream) in source.substreams.iter().enumerate() {
            nodes.push(paths.nodes_of(source, index, substream));
        }
        let mut wholes = vec![None; source.substreams.len()];
        source.nodes().into_iter().for_each(|node| {
            let substream = node.substream;
            wholes[substream] = Some(node);
        });
        let path =
            |fingerprint: u64| (fingerprint, Path::tracked(source, fingerprint, &nodes, &wholes, &hashed));
        let known = fingerprints.into_iter().map(path).filter(|(_, path)| !path.nodes.is_empty());
        let (fingerprints, known): (Vec<u64>, Vec<Path>) = known.unzip();
        paths.paths = known;
        paths.fingerprints = fingerprints.into_iter().zip(0..).collect();
        paths.hashed = wholes.iter().map(|node| node.as_ref().map(&spread)).collect();
        let place = |&(fingerprint, place): &(u64, usize)| Some((place as u32, paths.rank(fingerprint)?));
        let mut places: Vec<(u32, u32)> = listed.iter().filter_map(place).collect();
        places.sort_unstable();
        paths.places = places;
        paths.finish(source);
        paths
    }

    /// Keys of the same rung are predicted from as many nodes.
    fn finish(&mut self, source: Source<'_>) {
        self.paths.iter_mut().for_each(Path::shrink);
        let rungs = source.plan.rungs();
        let noise = source.plan.own_law().variance() * source.noises;
        let window = source.plan.settings().window.len();
        let mut costs = vec![Costs::default(); rungs.count() as usize];
        for path in &self.paths {
            let rung = self.rung(path, source.plan);
            costs[rung as usize].add(self.trail(path), JUDGED_SUBSTREAMS << rung, noise, window);
        }
        let spans: Vec<u32> = costs.iter().map(Costs::best).collect();
        let span = |path: &Path| {
            let span = spans[self.rung(path, source.plan) as usize];
            let trail = self.trail(path);
            let newest = path.nodes.len().checked_sub(1).map_or(0.0, |newest| trail.count(newest));
            if is_jump(newest, trail.predicted(span), noise, span.into()) { 1 } else { span }
        };
        let spans: Vec<u32> = self.paths.iter().map(span).collect();
        self.paths.iter_mut().zip(spans).for_each(|(path, span)| path.span = span);
    }

    fn add(&mut self, source: Source<'_>, substream: &SealedSubstream, nodes: &[Option<u32>]) {
        let mut rungs = vec![(substream.rungs().base(), None); self.places.len()];
        for (rung, places) in (1..).zip(substream.rungs().finer()) {
            for (cell, place) in places.iter().enumerate() {
                let path = self.places.binary_search_by_key(place, |(place, _)| *place);
                rungs[path.expect("all that are listed have a path")] = (rung, Some(cell));
            }
        }
        for (((place, _), path), (rung, cell)) in self.places.iter().zip(&mut self.paths).zip(rungs) {
            for range in source.plan.rungs().ranges_of(rung) {
                let Some((sketch, node)) = substream.sketch(range).zip(nodes[range]) else { continue };
                path.push(node, sketch.cell(cell.unwrap_or(*place as usize)).into());
            }
        }
    }

    fn trail<'a>(&'a self, path: &'a Path) -> Trail<'a> {
        Trail { all: &self.nodes, own: &path.nodes, sums: &path.sums }
    }

    /// The rung that a key has now.
    fn rung(&self, path: &Path, plan: &Plan) -> u32 {
        self.trail(path).newest().map_or(0, |newest| plan.rungs().rung_of(newest.range))
    }

    /// The nodes of the key at a place, if they are its own.
    pub(crate) fn get(&self, place: usize) -> Option<&Path> {
        let index =
            self.places.binary_search_by_key(&u32::try_from(place).ok()?, |(place, _)| *place).ok()?;
        Some(&self.paths[self.places[index].1 as usize])
    }

    fn rank(&self, fingerprint: u64) -> Option<u32> {
        let index = self.fingerprints.binary_search_by_key(&fingerprint, |(known, _)| *known).ok()?;
        Some(self.fingerprints[index].1)
    }

    /// The nodes of a tracked key.
    pub(crate) fn of(&self, fingerprint: u64) -> Option<&Path> {
        self.rank(fingerprint).map(|rank| &self.paths[rank as usize])
    }

    /// All of them that are listed, by place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Path)> {
        self.places.iter().map(|&(place, rank)| (place as usize, &self.paths[rank as usize]))
    }

    /// The estimate of a window: the same as [`answer`](Self::answer) gives.
    pub(crate) fn value(&self, path: &Path, window: &Range<u64>) -> f64 {
        let trail = self.trail(path);
        let Some(newest) = trail.newest() else { return 0.0 };
        let ahead = window.end.saturating_sub(newest.span.end.max(window.start));
        trail.until(window.end) - trail.until(window.start) + trail.predicted(path.span) * newest.share(ahead)
    }

    /// The estimate of a window and its error.
    pub(crate) fn answer(&self, path: &Path, plan: &Plan, noises: f64, window: &Range<u64>) -> Answer {
        let trail = self.trail(path);
        let nodes = trail.nodes().enumerate().map(|(index, node)| Node { index, ..node.clone() });
        let weights = Weights::new(&nodes.collect::<Vec<_>>(), plan, window, path.span);
        let own = Moments::of(plan.own_law(), noises);
        let own = Spread { all: own, noise: own.variance };
        let hashed = |node: &Node| self.hashed.get(node.substream).copied().flatten();
        let is_hashed = |node: &Node| !plan.is_identity() && node.range == WHOLE;
        let spread = |node: &Node| if is_hashed(node) { hashed(node).unwrap_or(own) } else { own };
        let reading = Reading::of_own(weights, spread);
        let counts: Vec<f64> = (0..path.nodes.len()).map(|index| trail.count(index)).collect();
        reading.answer(&reading.sums_of(&counts))
    }
}

impl Path {
    const NONE: Self = Self { nodes: Vec::new(), sums: Vec::new(), span: 1 };

    fn push(&mut self, node: u32, count: f64) {
        if self.sums.is_empty() {
            self.sums.push(0.0);
        }
        self.nodes.push(node);
        self.sums.push(self.sums[self.sums.len() - 1] + count);
    }

    fn shrink(&mut self) {
        self.nodes.shrink_to_fit();
        self.sums.shrink_to_fit();
    }

    /// Of a tracked key: its own nodes where it has them.
    fn tracked(
        source: Source<'_>,
        fingerprint: u64,
        nodes: &[Vec<Option<u32>>],
        wholes: &[Option<Node>],
        hashed: impl Fn(&Node, u64) -> f64,
    ) -> Self {
        let mut path = Self::NONE;
        for ((substream, nodes), whole) in source.substreams.iter().zip(nodes).zip(wholes) {
            let Some(slot) = source.leases.slot(fingerprint, substream.number) else {
                if let (Some(whole), Some(node)) = (whole, nodes[WHOLE]) {
                    path.push(node, hashed(whole, fingerprint));
                }
                continue;
            };
            for range in source.plan.rungs().ranges_of(substream.rungs().rung(slot)) {
                let count = substream.node(slot, range, source.plan);
                if let (Some(count), Some(node)) = (count, nodes[range]) {
                    path.push(node, count as f64);
                }
            }
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::batch::Batch;
    use crate::noise::generator::Noise;
    use crate::plan::settings::{CounterLayout, Settings, TunedMethod};
    use crate::sealed::leases::Leases;
    use crate::stream::sketch::DpswSketch;

    /// Lists choose by the one and show the other.
    #[test]
    fn the_value_of_a_key_is_that_of_its_answer_in_every_window() {
        let counters = CounterLayout::Identity;
        let method = TunedMethod { substreams: 4, counters, rungs: 4, ..TunedMethod::default() };
        let settings = Settings::last_items(256, 4.0).expect("in range").with_keys(0..40).with_method(method);
        let plan = Plan::new(settings.with_retention(2)).expect("a plan");
        let mut sketch = DpswSketch::with_noise(plan, Noise::seeded(4)).expect("seeded");
        let item = |i: u64| if i * i % 7 < 3 { 0 } else { 1 + i * i * i % 39 };
        let mut keys = 0;
        for step in 0..90_u64 {
            let items: Vec<u64> = (11 * step..11 * (step + 1)).map(item).collect();
            sketch.extend(Batch::integers(&items)).expect("valid items");
            let view = sketch.view();
            for (end, len) in [(0, 256), (0, 100), (0, 5), (30, 200), (70, 9)] {
                let Some(end) = view.window().end.checked_sub(end) else { continue };
                let Ok(view) = view.last(len).and_then(|view| view.as_of(end)) else { continue };
                let window = view.window();
                let (plan, substreams) = (view.plan(), view.readable.released.substreams());
                let source = Source {
                    plan,
                    substreams,
                    stream: &view.stream,
                    keys: None,
                    leases: Leases::none(),
                    noises: 1.0,
                };
                let paths = Paths::own(source);
                for (_, path) in paths.iter() {
                    let answer = paths.answer(path, plan, 1.0, &window).value;
                    assert!((paths.value(path, &window) - answer).abs() < 1e-9, "{window:?}: {answer}");
                    keys += 1;
                }
            }
        }
        assert!(100 < keys, "{keys}");
    }
}
