//! The union of the views of several sites.

use std::sync::Arc;

use crate::error::MergeError;
use crate::item::keys::Keys;
use crate::plan::limits::SITES_MAX;
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
    /// them have are in it.
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
        let has_more = |number: u64| finished.is_none() && (self.is_cut(number) || other.is_cut(number));
        let common = self.readable.released.substreams().iter().filter_map(|substream| {
            let other = other.readable.released.substream(substream.number)?;
            if has_more(substream.number) {
                return None;
            }
            Some(substream.sum(other).map(Arc::new))
        });
        let substreams = common.collect::<Result<Vec<_>, _>>()?;
        let end = finished.unwrap_or(self.stream.end.min(other.stream.end));
        // A site that began later has no events before that.
        let start = match substreams.first() {
            Some(first) => {
                self.stream.start.min(other.stream.start).max(first.number * self.plan.substream_len())
            }
            None => self.stream.start.max(other.stream.start),
        };
        let start = start.min(end);
        let found = self.merged_keys(other, &substreams);
        let released = Released::new(substreams, self.readable.released.mapping().clone());
        let released = released.with_found(Arc::new(found));
        let readable = Arc::new(Readable::new(released));
        let mut sites = [&self.sites[..], &other.sites[..]].concat();
        sites.sort_unstable();
        let merged = Self::new(Arc::clone(&self.plan), readable, self.claim, start..end, sites);
        Ok(if finished.is_some() { merged.into_finished() } else { merged })
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
        if self.plan.has_nodes() {
            return Err(MergeError::Rungs);
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

impl SealedSubstream {
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
