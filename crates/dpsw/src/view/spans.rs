//! From how much of the past the newest part of a window is predicted: from much where counts stand still, from little where
//! they move. Learned from how well what is sealed would have been predicted.

use crate::plan::limits::{LONGEST_SPAN, SPANS};
use crate::view::source::Source;
use crate::view::trail::Trail;
use crate::view::weights::{Node, WHOLE};

/// A span needs this many predictions to be judged by.
const SAMPLES_MIN: u32 = 20;
/// One prediction counts at most this much, in variances: a jump says nothing about the next.
const WORST: f64 = 25.0;
/// A newest node that is this many deviations from what the others predict is the beginning of something new.
const JUMP: f64 = 3.5;

/// How well nodes would have been predicted, by span.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Costs {
    sums: [f64; SPANS.len()],
    samples: [u32; SPANS.len()],
}

impl Costs {
    /// Adds the last nodes of a key that are as long as its newest one. `noise` is the variance of a count, `window` the
    /// length of a window.
    pub(crate) fn add(&mut self, trail: Trail<'_>, last: usize, noise: f64, window: u64) {
        let Some(newest) = trail.newest() else { return };
        let (len, start) = (newest.span.end - newest.span.start, trail.start());
        let is_alike = |(_, node): &(usize, &Node)| node.is_whole && node.span.end - node.span.start == len;
        for (index, node) in trail.nodes().enumerate().rev().take(last).take_while(is_alike) {
            for (place, span) in SPANS.into_iter().enumerate() {
                let reach = len.saturating_mul(span.into());
                if node.span.start < start + reach || LONGEST_SPAN * (window as f64) < reach as f64 {
                    break;
                }
                let before = trail.until(node.span.start) - trail.until(node.span.start - reach);
                let predicted = before / f64::from(span);
                let error = (trail.count(index) - predicted).powi(2);
                self.sums[place] += (error / (noise + predicted.max(1.0))).min(WORST);
                self.samples[place] += 1;
            }
        }
    }

    /// The span that predicts best.
    pub(crate) fn best(&self) -> u32 {
        let means = self.sums.iter().zip(self.samples).zip(SPANS);
        let judged = means.filter(|((_, samples), _)| SAMPLES_MIN <= *samples);
        let mean = |((sum, samples), span): ((&f64, u32), u32)| (sum / f64::from(samples), span);
        judged.map(mean).min_by(|(one, _), (other, _)| one.total_cmp(other)).map_or(1, |(_, span)| span)
    }
}

/// Whether the newest count is the beginning of something new.
pub(crate) fn is_jump(newest: f64, predicted: f64, noise: f64, span: f64) -> bool {
    let variance = (noise + predicted.max(0.0)) * (1.0 + 1.0 / span);
    JUMP * JUMP * variance < (newest - predicted).powi(2)
}

/// Keys that are cut like most are told apart by their counts.
pub(crate) const CLASSES: usize = 3;
/// Classes end at these parts of the count from which on more nodes are worth their noise.
const ENDS: [f64; CLASSES - 1] = [1.0 / 16.0, 1.0 / 4.0];
/// Spans of them are judged by so many nodes, and by about so many keys of a class.
const JUDGED_NODES: usize = 4;
const JUDGED_KEYS: usize = 1024;
/// No longer span fits into a window of the fewest substreams that are worth it.
const LONGEST_NODES: usize = 16;

/// From how many nodes keys that are cut like most are predicted, by what they count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Classes {
    /// Where classes end, in items per substream.
    ends: [f64; CLASSES - 1],
    pub(crate) spans: [u32; CLASSES],
    /// The variance of a count.
    noise: f64,
}

/// The class of a key, and what its next node will hold. The last class is for keys that jump.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Classed {
    pub(crate) class: u8,
    pub(crate) predicted: f64,
}

impl Classes {
    /// Of keys with counters of their own.
    pub(crate) fn new(source: Source<'_>, nodes: &[Node]) -> Self {
        let noise = source.plan.ranges()[WHOLE].law().variance() * source.noises;
        let substreams = source.plan.settings().window.len().div_ceil(source.plan.substream_len());
        let ends = ENDS.map(|part| part * source.plan.rungs().unit() * substreams as f64);
        let mut classes = Self { ends, spans: [1; CLASSES], noise };
        let last = &nodes[nodes.len().saturating_sub(JUDGED_NODES + LONGEST_NODES)..];
        if last.len() < 2 {
            return classes;
        }
        let mut costs = [Costs::default(); CLASSES];
        for (class, places) in (0..).zip(classes.members(source, last)) {
            let step = places.len().div_ceil(JUDGED_KEYS).max(1);
            for place in places.into_iter().step_by(step) {
                judge(&mut costs[class], source, last, place, noise);
            }
        }
        classes.spans = costs.map(|costs| costs.best());
        classes
    }

    /// The places of the keys of each class, by what these nodes hold.
    fn members(&self, source: Source<'_>, nodes: &[Node]) -> [Vec<usize>; CLASSES] {
        let mut sums = vec![0; source.plan.shape().columns as usize];
        for node in nodes {
            source.sketch(node).add_to(&mut sums);
        }
        let length: f64 = nodes.iter().map(|node| node.length).sum();
        let mut members = [const { Vec::new() }; CLASSES];
        for (place, sum) in sums.into_iter().enumerate() {
            members[self.class(sum as f64 / length)].push(place);
        }
        members
    }

    fn class(&self, rate: f64) -> usize {
        self.ends.iter().filter(|end| **end < rate).count()
    }

    /// Of a key that comes this often in a substream, by what each span predicts.
    pub(crate) fn of(&self, rate: f64, newest: f64, predicted: [f64; CLASSES]) -> Classed {
        let class = self.class(rate);
        match is_jump(newest, predicted[class], self.noise, self.spans[class].into()) {
            true => Classed { class: CLASSES as u8, predicted: newest },
            false => Classed { class: class as u8, predicted: predicted[class] },
        }
    }
}

fn judge(costs: &mut Costs, source: Source<'_>, nodes: &[Node], place: usize, noise: f64) {
    let mut sums = vec![0.0];
    for node in nodes {
        sums.push(sums[sums.len() - 1] + f64::from(source.sketch(node).cell(place)));
    }
    let own: Vec<u32> = (0..).take(nodes.len()).collect();
    let trail = Trail { all: nodes, own: &own, sums: &sums };
    costs.add(trail, JUDGED_NODES, noise, source.plan.settings().window.len());
}
