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
use crate::sealed::leases::Leases;
use crate::sealed::released::Released;
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;
use crate::view::readable::Readable;
use crate::view::scores::Tracking;
use crate::view::window_view::WindowView;

impl WindowView {
    /// The view of the union of what several sites count, each with its own noise. Only the substreams that all of
    /// them have are in it. Where keys are cut into nodes or tracked, each site does so with others, and the view keeps what
    /// each has sealed: it grows with the sites.
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
        let merged = match self.plan.has_nodes() {
            false => self.added(other, &common, stream)?,
            true => {
                let together = together(&[self, other], &common).ok_or(MergeError::Keys)?;
                let end = finished.is_none().then_some(end);
                let sites = [self, other].into_iter().flat_map(Self::each);
                let sites = sites.map(|site| site.cut(&common, stream.start, end)).collect();
                Self::of_sites(sites, self.merged(other, together), stream)
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
        let released = self.merged(other, substreams);
        let mut sites = [&self.sites[..], &other.sites[..]].concat();
        sites.sort_unstable();
        let readable = Arc::new(Readable::new(released));
        Ok(Self::new(Arc::clone(&self.plan), readable, self.claim, stream, sites))
    }

    /// What both hold together in these substreams.
    fn merged(&self, other: &Self, substreams: Vec<Arc<SealedSubstream>>) -> Released {
        let found = self.merged_keys(other, &substreams);
        let mapping = self.readable.released.mapping().clone();
        Released::new(substreams, mapping).with_found(Arc::new(found))
    }

    /// The view of sites that cut or track different keys, each of which is read for itself, with what they hold together.
    /// What one has found is fitted at all of them.
    pub(crate) fn of_sites(sites: Vec<Self>, together: Released, stream: Range<u64>) -> Self {
        let with_found = |site: Self| {
            let released = site.readable.released.clone().with_found(Arc::clone(together.found()));
            Self::new(site.plan, Arc::new(Readable::new(released)), site.claim, site.stream, site.sites)
        };
        let mut sites: Vec<Self> = sites.into_iter().map(with_found).collect();
        sites.sort_unstable_by_key(|site| site.sites[0]);
        let (plan, claim) = (Arc::clone(&sites[0].plan), sites[0].claim);
        let numbers = sites.iter().map(|site| site.sites[0]).collect();
        Self::new(plan, Arc::new(Readable::new(together)), claim, stream, numbers).with_sites(sites)
    }

    /// The views that it is made of, each of one site.
    pub(crate) fn each(&self) -> &[Self] {
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
        let first = numbers.first().copied().unwrap_or(end / self.plan.substream_len());
        let leases = released.leases().since(first, &self.plan);
        let released = Released::new(substreams, released.mapping().clone()).with_leases(Arc::new(leases));
        let readable = Arc::new(Readable::new(released));
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

    /// What two sites found, by what each key counts at both together.
    fn merged_keys(&self, other: &Self, substreams: &[Arc<SealedSubstream>]) -> Found {
        let by = self.readable.released.mapping().fingerprint_key;
        let lists = [self, other].map(|view| view.readable.released.found());
        let mut all: Vec<Kept<'_>> = lists.iter().flat_map(|found| found.kept(by)).collect();
        all.sort_unstable_by_key(|kept| (kept.hash, kept.item));
        all.dedup_by_key(|kept| kept.item);
        let keys = Keys::collect(self.plan.settings().domain.kind(), all.iter().map(|kept| kept.item));
        let tracking = Tracking { plan: &self.plan, leases: Leases::none() };
        Found::default().with_counted(&keys, substreams, tracking, by)
    }

    /// Adds what it holds of all keys in a substream, as if none were cut or tracked.
    fn add_totals(&self, number: u64, totals: &mut [i64]) {
        let released = &self.readable.released;
        let Some(substream) = released.substream(number) else { return };
        if self.plan.tracked() == 0 {
            return substream.add_totals(totals, &self.plan);
        }
        substream.sketch(WHOLE).iter().for_each(|rows| rows.add_to(totals));
        for (fingerprint, slot) in released.leases().at(number) {
            let count = substream.count(slot, substream.rungs().rung(slot), &self.plan);
            substream.mapping.rows().cells(fingerprint).for_each(|cell| totals[cell] += count);
        }
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

/// What all views hold of each key in these substreams, each in one node; `None` unless they hash alike.
pub(crate) fn together(views: &[&WindowView], numbers: &[u64]) -> Option<Vec<Arc<SealedSubstream>>> {
    numbers.iter().map(|&number| in_one_node(views, number).map(Arc::new)).collect()
}

/// Nothing unless all have sealed it.
fn in_one_node(views: &[&WindowView], number: u64) -> Option<SealedSubstream> {
    let substreams = views.iter().filter_map(|view| view.readable.released.substream(number));
    let mapping = substreams.clone().next()?.mapping.clone();
    if !substreams.clone().all(|substream| substream.mapping.is_like(&mapping)) {
        return None;
    }
    let wholes = substreams.filter_map(|substream| substream.sketch(WHOLE));
    if wholes.clone().count() < views.len() {
        return Some(SealedSubstream::new(number, mapping));
    }
    let mut totals = vec![0; mapping.shape.cells()];
    views.iter().for_each(|view| view.add_totals(number, &mut totals));
    let cells: Vec<i32> =
        totals.iter().map(|&total| total.clamp(i32::MIN.into(), i32::MAX.into()) as i32).collect();
    let items =
        wholes.map(SealedSketch::items).try_fold(0_u64, |sum, items| Some(sum.saturating_add(items?)));
    let whole = SealedSketch::of_released(mapping.shape, &cells, items, views[0].plan.width());
    Some(SealedSubstream::from_parts(number, mapping, vec![(WHOLE, Arc::new(whole))]))
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
        Self::of_released(self.shape(), &cells, items, self.width())
    }
}
