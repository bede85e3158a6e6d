//! The union of the views of several sites.

use std::ops::Range;
use std::sync::Arc;

use crate::decide::found::FoundCounter;
use crate::error::MergeError;
use crate::item::keys::Keys;
use crate::plan::limits::SITES_MAX;
use crate::plan::range::WHOLE;
use crate::plan::structure::Plan;
use crate::privacy::parameters::Claim;
use crate::sealed::found::{FoundKey, FoundKeys};
use crate::sealed::pins::Pins;
use crate::sealed::released::Released;
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;
use crate::view::cached_release::CachedRelease;
use crate::view::window_view::WindowView;

impl WindowView {
    /// The view of the union of what several sites count, each with its own noise. Only the substreams that all of
    /// them have are in it. Where keys are cut into slices or pinned, each site does so with others, and the view keeps what
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
        let mut merged = first.clone();
        for view in others {
            merged = merged.merge_one(view)?;
        }
        // Positions of count windows are numbers of items, which mean something else at each site.
        match merged.plan.settings().window.time() {
            Some(_) => Ok(merged),
            None => Err(MergeError::CountWindow),
        }
    }

    fn merge_one(&self, other: &Self) -> Result<Self, MergeError> {
        self.check_mergeable(other)?;
        let finished = self.finished_with(other);
        let mut common = Vec::new();
        for number in self.cached.released.substreams().iter().map(|substream| substream.number) {
            // Of a substream in which one site has ended, the other has more than both have together.
            let has_more = finished.is_none() && (self.is_cut(number) || other.is_cut(number));
            if other.cached.released.substream(number).is_some() && !has_more {
                common.push(number);
            }
        }
        let end = finished.unwrap_or(self.stream.end.min(other.stream.end));
        // A site that began later has no events before that.
        let start = match common.first() {
            Some(first) => self.stream.start.min(other.stream.start).max(first * self.plan.substream_len()),
            None => self.stream.start.max(other.stream.start),
        };
        let stream = start.min(end)..end;
        let merged = if self.plan.has_slices() {
            let together = join_substreams(&[self, other], &common).ok_or(MergeError::Keys)?;
            let end = finished.is_none().then_some(end);
            let sites = [self, other].into_iter().flat_map(Self::each_site);
            let sites = sites.map(|site| site.cut_to(&common, stream.start, end)).collect();
            Self::of_sites(sites, self.release_together(other, together), stream)
        } else {
            self.add_counters(other, &common, stream)?
        };
        Ok(if finished.is_some() { merged.into_finished() } else { merged })
    }

    /// Counter by counter.
    fn add_counters(&self, other: &Self, common: &[u64], stream: Range<u64>) -> Result<Self, MergeError> {
        let [one, two] = [self, other].map(|view| &view.cached.released);
        let mut substreams = Vec::new();
        for &number in common {
            if let Some((one, two)) = one.substream(number).zip(two.substream(number)) {
                substreams.push(Arc::new(one.sum_with(two)?));
            }
        }
        let released = self.release_together(other, substreams);
        let mut sites = [&self.sites[..], &other.sites[..]].concat();
        sites.sort_unstable();
        let cached = Arc::new(CachedRelease::new(released));
        Ok(Self::new(Arc::clone(&self.plan), cached, self.claim, stream, sites))
    }

    /// What both hold together in these substreams.
    fn release_together(&self, other: &Self, substreams: Vec<Arc<SealedSubstream>>) -> Released {
        let found = self.merged_keys(other, &substreams);
        let mapping = self.cached.released.mapping().clone();
        Released::new(substreams, mapping).with_found(Arc::new(found))
    }

    /// The view of sites that cut or pin different keys, each of which is read for itself, with what they hold together.
    /// What one has found is fitted at all of them.
    pub(crate) fn of_sites(sites: Vec<Self>, together: Released, stream: Range<u64>) -> Self {
        let mut sites: Vec<Self> = sites.into_iter().map(|site| site.with_found(together.found())).collect();
        sites.sort_unstable_by_key(|site| site.sites[0]);
        let plan = Arc::clone(&sites[0].plan);
        let claim = sites[0].claim;
        let numbers = sites.iter().map(|site| site.sites[0]).collect();
        Self::new(plan, Arc::new(CachedRelease::new(together)), claim, stream, numbers).with_sites(sites)
    }

    /// The same with this list of found keys.
    fn with_found(self, found: &Arc<FoundKeys>) -> Self {
        let released = self.cached.released.clone().with_found(Arc::clone(found));
        Self::new(self.plan, Arc::new(CachedRelease::new(released)), self.claim, self.stream, self.sites)
    }

    /// The views that it is made of, each of one site.
    pub(crate) fn each_site(&self) -> &[Self] {
        if self.apart.is_empty() { std::slice::from_ref(self) } else { &self.apart }
    }

    /// What it has of these substreams, in which all streams begin at `start`; where they go on, what is sealed at `end`.
    fn cut_to(&self, numbers: &[u64], start: u64, end: Option<u64>) -> Self {
        let released = &self.cached.released;
        let kept = released.substreams().iter().filter(|substream| numbers.contains(&substream.number));
        let substreams = kept
            .map(|substream| match end {
                Some(end) => substream.sealed_at(end, &self.plan),
                None => Arc::clone(substream),
            })
            .collect();
        let end = end.unwrap_or(self.stream.end);
        let stream = self.stream.start.max(start).min(end)..end;
        let first = numbers.first().copied().unwrap_or(end / self.plan.substream_len());
        let pins = released.pins().kept_since(first, &self.plan);
        let released = Released::new(substreams, released.mapping().clone()).with_pins(Arc::new(pins));
        let cached = Arc::new(CachedRelease::new(released));
        Self::new(Arc::clone(&self.plan), cached, self.claim, stream, self.sites.clone())
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
    fn merged_keys(&self, other: &Self, substreams: &[Arc<SealedSubstream>]) -> FoundKeys {
        let by = self.cached.released.mapping().fingerprint_key;
        let lists = [self, other].map(|view| view.cached.released.found());
        let mut all: Vec<FoundKey<'_>> = lists.iter().flat_map(|found| found.iter_kept(by)).collect();
        all.sort_unstable_by_key(|kept| (kept.hash, kept.item));
        // Sites hash alike, so that a key of both lists stands side by side.
        all.dedup_by_key(|kept| kept.item);
        let keys = Keys::collect_kind(self.plan.settings().domain.kind(), all.iter().map(|kept| kept.item));
        let counter = FoundCounter { plan: &self.plan, pins: Pins::none() };
        FoundKeys::default().with_counted(&keys, substreams, counter, by)
    }

    /// Adds what it holds of all keys in a substream, as if none were cut or pinned.
    fn add_totals(&self, number: u64, totals: &mut [i64]) {
        let released = &self.cached.released;
        let Some(substream) = released.substream(number) else { return };
        if self.plan.pinned() == 0 {
            return substream.add_totals(totals, &self.plan);
        }
        if let Some(rows) = substream.sketch(WHOLE) {
            rows.add_to(totals);
        }
        // A pinned key has nothing in the rows: what it counts goes where it would have fallen.
        for (fingerprint, slot) in released.pins().keys_at(number) {
            let count = substream.count_key(slot, substream.levels().level_of(slot), &self.plan);
            for cell in substream.mapping.rows().cells_of(fingerprint) {
                totals[cell] += count;
            }
        }
    }

    fn check_mergeable(&self, other: &Self) -> Result<(), MergeError> {
        if self.plan.settings() != other.plan.settings() {
            return Err(MergeError::Plan);
        }
        // Reproducible noise promises nothing, and neither would a sum with it (PRIVACY.md: rule 7).
        if self.claim == Claim::None || other.claim == Claim::None {
            return Err(MergeError::NoClaim);
        }
        // Caps are kept per site: a user at two sites would have twice the items that the noise is made for (PRIVACY.md: rule 14).
        if self.plan.settings().unit.per_substream().is_some() {
            return Err(MergeError::Users);
        }
        if self.cached.released.mapping().fingerprint_key != other.cached.released.mapping().fingerprint_key {
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

/// What all views hold of each key in these substreams, each in one slice; `None` unless they hash alike.
pub(crate) fn join_substreams(views: &[&WindowView], numbers: &[u64]) -> Option<Vec<Arc<SealedSubstream>>> {
    numbers.iter().map(|&number| in_one_slice(views, number).map(Arc::new)).collect()
}

/// Nothing unless all have sealed it.
fn in_one_slice(views: &[&WindowView], number: u64) -> Option<SealedSubstream> {
    let substreams = views.iter().filter_map(|view| view.cached.released.substream(number));
    let mapping = substreams.clone().next()?.mapping.clone();
    if !substreams.clone().all(|substream| substream.mapping.is_like(&mapping)) {
        return None;
    }
    let wholes = substreams.filter_map(|substream| substream.sketch(WHOLE));
    if wholes.clone().count() < views.len() {
        return Some(SealedSubstream::new(number, mapping));
    }
    let mut totals = vec![0; mapping.shape.cells()];
    for view in views {
        view.add_totals(number, &mut totals);
    }
    // Sealed counters have 32 bits; sums of several may not fit.
    let cells: Vec<i32> =
        totals.iter().map(|&total| total.clamp(i32::MIN.into(), i32::MAX.into()) as i32).collect();
    let items =
        wholes.map(SealedSketch::items).try_fold(0_u64, |sum, items| Some(sum.saturating_add(items?)));
    let whole = SealedSketch::of_released(mapping.shape, &cells, items, views[0].plan.width());
    Some(SealedSubstream::from_parts(number, mapping, vec![(WHOLE, Arc::new(whole))]))
}

impl SealedSubstream {
    /// Without the slices that end later.
    fn sealed_at(self: &Arc<Self>, end: u64, plan: &Plan) -> Arc<Self> {
        let origin = self.number * plan.substream_len();
        let mut kept = self.sketches().to_vec();
        kept.retain(|(range, _)| origin + plan.ranges()[*range].offsets().end <= end);
        // The same substream keeps what is cached of it.
        if kept.len() == self.sketches().len() {
            return Arc::clone(self);
        }
        let substream = Self::from_parts(self.number, self.mapping.clone(), kept);
        Arc::new(substream.with_levels(Arc::clone(self.levels())))
    }

    /// Counter by counter, range by range.
    fn sum_with(&self, other: &Self) -> Result<Self, MergeError> {
        if !self.mapping.is_like(&other.mapping) {
            return Err(MergeError::Keys);
        }
        let both = self.sketches().iter().filter_map(|(range, sketch)| {
            let other = other.sketch(*range)?;
            Some((*range, Arc::new(sketch.sum_with(other))))
        });
        Ok(Self::from_parts(self.number, self.mapping.clone(), both.collect()))
    }
}

impl SealedSketch {
    fn sum_with(&self, other: &Self) -> Self {
        let cells: Vec<i32> =
            // A sum that wrapped around would make the largest count the smallest.
            self.cells().iter().zip(other.cells()).map(|(a, b)| a.saturating_add(b)).collect();
        let items = self.items().zip(other.items()).map(|(a, b)| a.saturating_add(b));
        Self::of_released(self.shape(), &cells, items, self.width())
    }
}
