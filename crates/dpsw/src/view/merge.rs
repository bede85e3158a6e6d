//! The union of the views of several sites.

use std::ops::Range;
use std::sync::Arc;

use crate::error::MergeError;
use crate::item::keys::Keys;
use crate::plan::limits::SITES_MAX;
use crate::plan::range::WHOLE;
use crate::plan::structure::Plan;
use crate::privacy::parameters::Claim;
use crate::sealed::found::{Found, Kept};
use crate::sealed::released::Released;
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;
use crate::view::readable::Readable;
use crate::view::scores::Tracking;
use crate::view::window_view::WindowView;

impl WindowView {
    /// The view of the union of what several sites count, each with its own noise. Only the substreams that all of
    /// them have are in it. Where keys are cut into nodes, each site cuts others finely, and the view keeps what each has
    /// sealed: it grows with the sites.
    ///
    /// Sites that are over in the same substream are over together, where the last of them is. Else the view ends where the
    /// first one does and is not over: of the substream in which a site is over, the others have more.
    ///
    /// # Errors
    /// There is no view, a site occurs twice, or the views differ in plan, hash keys or claim; views of count windows and
    /// of reproducible noise are refused.
    pub fn merge(views: &[Self]) -> Result<Self, MergeError> {
        let (first, others) = views.split_first().ok_or(MergeError::Nothing)?;
        if first.claim == Claim::None {
            return Err(MergeError::NoClaim);
        }
        others.iter().try_fold(first.clone(), |merged, view| merged.merge_one(view)).and_then(|merged| {
            if merged.plan.settings().window.time().is_none() {
                Err(MergeError::CountWindow)
            } else {
                Ok(merged)
            }
        })
    }

    fn merge_one(&self, other: &Self) -> Result<Self, MergeError> {
        self.check_mergeable(other)?;
        let finished = self.finished_with(other);
        let has_more = |number: &u64| finished.is_none() && (self.is_cut(*number) || other.is_cut(*number));
        let numbers = self.readable.released.substreams().iter().map(|substream| substream.number);
        let is_common = |number: &u64| other.readable.released.substream(*number).is_some();
        let common: Vec<u64> = numbers.filter(is_common).filter(|number| !has_more(number)).collect();
        let end = finished.unwrap_or(self.stream.end.min(other.stream.end));
        // A site that began later has no events before that.
        let start = match common.first() {
            Some(first) => self.stream.start.min(other.stream.start).max(first * self.plan.substream_len()),
            None => self.stream.start.max(other.stream.start),
        };
        let stream = start.min(end)..end;
        let merged = match self.plan.rungs().count() {
            1 => self.added(other, &common, stream)?,
            _ => {
                let end = finished.is_none().then_some(end);
                let sites = [self, other].into_iter().flat_map(Self::each);
                let sites = sites.map(|site| site.cut(&common, stream.start, end)).collect();
                Self::of_sites(sites, together(&[self, other], &common), stream)
            }
        };
        Ok(if finished.is_some() { merged.into_finished() } else { merged })
    }

    /// Counter by counter.
    fn added(&self, other: &Self, common: &[u64], stream: Range<u64>) -> Result<Self, MergeError> {
        let [one, two] = [self, other].map(|view| &view.readable.released);
        let pairs = common.iter().filter_map(|&number| one.substream(number).zip(two.substream(number)));
        let substreams =
            pairs.map(|(one, other)| one.sum(other).map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
        let found = self.merged_keys(other, &substreams);
        let released = Released::new(substreams, one.mapping().clone()).with_found(Arc::new(found));
        let mut sites = [&self.sites[..], &other.sites[..]].concat();
        sites.sort_unstable();
        let readable = Arc::new(Readable::new(released));
        Ok(Self::new(Arc::clone(&self.plan), readable, self.claim, stream, sites))
    }

    /// The view of sites that cut different keys finely, each of which is read for itself, with what they hold together.
    pub(crate) fn of_sites(
        mut sites: Vec<Self>,
        together: Vec<Arc<SealedSubstream>>,
        stream: Range<u64>,
    ) -> Self {
        sites.sort_unstable_by_key(|site| site.sites[0]);
        let Self { plan, readable, claim, .. } = sites[0].clone();
        let readable = Arc::new(Readable::new(Released::new(together, readable.released.mapping().clone())));
        let numbers = sites.iter().map(|site| site.sites[0]).collect();
        Self::new(plan, readable, claim, stream, numbers).with_sites(sites)
    }

    /// The views that it is made of, each of one site.
    fn each(&self) -> &[Self] {
        if self.apart.is_empty() { std::slice::from_ref(self) } else { &self.apart }
    }

    /// What it has of these substreams, in which all streams begin at `start`; where they go on, what is sealed at `end`.
    fn cut(&self, numbers: &[u64], start: u64, end: Option<u64>) -> Self {
        let kept = |substream: &&Arc<SealedSubstream>| numbers.contains(&substream.number);
        let sealed = |substream: &Arc<SealedSubstream>| match end {
            Some(end) => substream.sealed_at(end, &self.plan),
            None => Arc::clone(substream),
        };
        let released = &self.readable.released;
        let substreams = released.substreams().iter().filter(kept).map(sealed).collect();
        let end = end.unwrap_or(self.stream.end);
        let stream = self.stream.start.max(start).min(end)..end;
        let readable = Arc::new(Readable::new(Released::new(substreams, released.mapping().clone())));
        Self::new(Arc::clone(&self.plan), readable, self.claim, stream, self.sites.clone())
    }

    /// Where both are over, if that is in the same substream.
    fn finished_with(&self, other: &Self) -> Option<u64> {
        let (one, other) = self.finished().zip(other.finished())?;
        let len = self.plan.substream_len();
        (one.div_ceil(len) == other.div_ceil(len)).then_some(one.max(other))
    }

    /// Whether the stream is over inside this substream.
    fn is_cut(&self, number: u64) -> bool {
        self.finished().is_some_and(|end| end < (number + 1) * self.plan.substream_len())
    }

    /// What two sites found. Counts add up, and so do the scores of keys that both have.
    fn merged_keys(&self, other: &Self, substreams: &[Arc<SealedSubstream>]) -> Found {
        let by = self.readable.released.mapping().fingerprint_key;
        let lists = [self, other].map(|view| view.readable.released.found());
        let mut all: Vec<Kept<'_>> = lists.iter().flat_map(|found| found.kept(by)).collect();
        all.sort_unstable_by_key(|kept| (kept.hash, kept.item));
        all.dedup_by(|next, kept| {
            let is_same = next.item == kept.item;
            kept.score += if is_same { next.score } else { 0.0 };
            is_same
        });
        let keys = Keys::collect(self.plan.settings().domain.kind(), all.iter().map(|kept| kept.item));
        let scores: Vec<f64> = all.iter().map(|kept| kept.score).collect();
        let tracking = Tracking { plan: &self.plan, leases: self.readable.released.leases() };
        Found::scored(&keys, &scores, substreams, tracking, by)
    }

    fn check_mergeable(&self, other: &Self) -> Result<(), MergeError> {
        if self.plan.settings() != other.plan.settings() {
            return Err(MergeError::Plan);
        }
        if self.claim == Claim::None || other.claim == Claim::None {
            return Err(MergeError::NoClaim);
        }
        if self.plan.settings().unit.per_substream().is_some() {
            return Err(MergeError::Users);
        }
        if 0 < self.plan.tracked() {
            return Err(MergeError::Tracked);
        }
        if self.readable.released.mapping().fingerprint_key
            != other.readable.released.mapping().fingerprint_key
        {
            return Err(MergeError::Keys);
        }
        if SITES_MAX < self.sites.len() + other.sites.len() {
            return Err(MergeError::Sites);
        }
        match other.sites.iter().find(|site| self.sites.contains(site)) {
            Some(&site) => Err(MergeError::Duplicate { site }),
            None => Ok(()),
        }
    }
}

/// What all views hold of each key in these substreams, each in one node.
pub(crate) fn together(views: &[&WindowView], numbers: &[u64]) -> Vec<Arc<SealedSubstream>> {
    numbers.iter().map(|&number| Arc::new(in_one_node(views, number))).collect()
}

/// Nothing unless all have sealed it.
fn in_one_node(views: &[&WindowView], number: u64) -> SealedSubstream {
    let substreams = views.iter().filter_map(|view| view.readable.released.substream(number));
    let mapping = views[0].readable.released.mapping().clone();
    let wholes = substreams.clone().filter_map(|substream| substream.sketch(WHOLE));
    if wholes.clone().count() < views.len() {
        return SealedSubstream::new(number, mapping);
    }
    let mut totals = vec![0; mapping.shape.cells()];
    substreams.for_each(|substream| substream.add_totals(&mut totals, &views[0].plan));
    let cells: Vec<i32> =
        totals.iter().map(|&total| total.clamp(i32::MIN.into(), i32::MAX.into()) as i32).collect();
    let items =
        wholes.map(SealedSketch::items).try_fold(0_u64, |sum, items| Some(sum.saturating_add(items?)));
    let whole = SealedSketch::new(mapping.shape, &cells, items, views[0].plan.width());
    SealedSubstream::from_parts(number, mapping, vec![(WHOLE, Arc::new(whole))])
}

impl SealedSubstream {
    /// Without the nodes that end later.
    fn sealed_at(self: &Arc<Self>, end: u64, plan: &Plan) -> Arc<Self> {
        let origin = self.number * plan.substream_len();
        let is_kept = |range: usize| origin + plan.ranges()[range].offsets().end <= end;
        if self.sketches().iter().all(|(range, _)| is_kept(*range)) {
            return Arc::clone(self);
        }
        let kept = self.sketches().iter().filter(|(range, _)| is_kept(*range)).cloned().collect();
        let substream = Self::from_parts(self.number, self.mapping.clone(), kept);
        Arc::new(substream.with_rungs(Arc::clone(self.rungs())))
    }

    /// Counter by counter, range by range.
    fn sum(&self, other: &Self) -> Result<Self, MergeError> {
        if !self.mapping.is_like(&other.mapping) {
            return Err(MergeError::Keys);
        }
        let both = self.sketches().iter().filter_map(|(range, sketch)| {
            let other = other.sketch(*range)?;
            Some((*range, Arc::new(sketch.sum(other))))
        });
        Ok(Self::from_parts(self.number, self.mapping.clone(), both.collect()))
    }
}

impl SealedSketch {
    fn sum(&self, other: &Self) -> Self {
        let cells: Vec<i32> =
            self.cells().iter().zip(other.cells()).map(|(a, b)| a.saturating_add(b)).collect();
        let items = self.items().zip(other.items()).map(|(a, b)| a.saturating_add(b));
        Self::new(self.shape(), &cells, items, self.width())
    }
}
