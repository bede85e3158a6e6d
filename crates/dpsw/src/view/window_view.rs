//! What can be asked: frequencies and heavy hitters of a window, from sealed sketches alone.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::error::{ParameterError, QueryError};
use crate::item::keys::Keys;
use crate::item::value::Item;
use crate::plan::range::WHOLE;
use crate::plan::settings::{Method, Window};
use crate::plan::structure::Plan;
use crate::privacy::parameters::{Claim, Threshold};
use crate::sealed::sketch::SealedSketch;
use crate::sealed::substream::SealedSubstream;
use crate::view::cached_release::CachedRelease;
use crate::view::estimate::{Certainty, Estimate, NORMAL_95, Ranked};
use crate::view::list::List;
use crate::view::list_request::{ListRequest, Selection};
use crate::view::merged_answers::MergedAnswers;
use crate::view::paper::answers::PaperAnswers;
use crate::view::question::Question;
use crate::view::tuned::answers::TunedAnswers;
use crate::view::tuned::window_model::WindowModel;

/// A stream as it can be seen at one position: immutable, cheap to clone, safe to share.
///
/// It holds sealed sketches only, so asking any number of questions costs no further privacy. Views taken at the same position
/// share their sketches and what was computed from them, and a view with another window ([`last`](Self::last),
/// [`as_of`](Self::as_of)) shares them too: narrowing a window copies nothing.
///
/// Every answer is a function of the plan, the window and what is released. So a view that is written to bytes and loaded
/// elsewhere answers the same to the last bit, and whoever has the bytes can check an answer. Nothing that is still being
/// counted can reach a view: what happens after the last seal is predicted, never read.
///
/// A view of one site reads its sketches directly. A merged view may hold one view for each site: sites that pin or cut different
/// keys cannot be added up counter by counter.
///
/// Invariant: nothing in a view changes but its caches, which hold what would be computed again. So an old view keeps answering
/// the same while the stream goes on.
#[derive(Debug, Clone)]
pub struct WindowView {
    pub(crate) plan: Arc<Plan>,
    pub(crate) cached: Arc<CachedRelease>,
    pub(crate) claim: Claim,
    /// From where the stream began to where it stood when the view was taken, in items or ticks.
    pub(crate) stream: Range<u64>,
    /// Whether the stream is over there.
    is_finished: bool,
    /// Where the events were counted, ascending.
    pub(crate) sites: Vec<u64>,
    /// The view of each site, where each one cuts other keys finely: then `cached` has what all of them hold together, each
    /// substream in one slice.
    pub(crate) apart: Arc<[WindowView]>,
    /// The length asked for; the window is shorter while the stream is.
    window_len: u64,
    window: Range<u64>,
    /// How the window is interpolated, once it was asked.
    model: OnceLock<Arc<WindowModel>>,
}

impl WindowView {
    pub(crate) fn new(
        plan: Arc<Plan>,
        cached: Arc<CachedRelease>,
        claim: Claim,
        stream: Range<u64>,
        sites: Vec<u64>,
    ) -> Self {
        let window_len = plan.settings().window.len();
        let window = last_of(&stream, window_len);
        Self {
            plan,
            cached,
            claim,
            stream,
            is_finished: false,
            sites,
            apart: Arc::default(),
            window_len,
            window,
            model: OnceLock::new(),
        }
    }

    /// The same of sites that are read apart.
    pub(crate) fn with_sites(self, apart: Vec<Self>) -> Self {
        let window_len = self.window_len;
        let window = self.window.clone();
        Self { apart: apart.into(), ..self }.at_window(window_len, window)
    }

    /// The same of a stream that is over.
    pub(crate) fn into_finished(self) -> Self {
        Self { is_finished: true, ..self }
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What is promised of everything that the stream releases.
    #[must_use]
    pub fn claim(&self) -> Claim {
        self.claim
    }

    /// Where the stream began: at position 0, or as late in its first substream as it must to be over at the end of one; in a
    /// time window where its clock was first set, or at an earlier event that was counted.
    #[must_use]
    pub fn began(&self) -> u64 {
        self.stream.start
    }

    /// Where the stream is over, if it was finished: the view then holds all of it, and nothing is predicted.
    #[must_use]
    pub fn finished(&self) -> Option<u64> {
        self.is_finished.then_some(self.stream.end)
    }

    /// The sites whose events are in it, ascending.
    #[must_use]
    pub fn sites(&self) -> &[u64] {
        &self.sites
    }

    /// The positions that questions are about.
    #[must_use]
    pub fn window(&self) -> Range<u64> {
        self.window.clone()
    }

    /// The positions that sealed sketches cover: in the tuned method the sealed part of the window, in the paper's the complete
    /// ranges nearest to it.
    #[must_use]
    pub fn covered(&self) -> Range<u64> {
        self.answers().covered_span()
    }

    /// The positions that a window may lie in.
    #[must_use]
    pub fn retained(&self) -> Range<u64> {
        let retained = last_of(&self.stream, self.plan.retained_len());
        let kept =
            self.cached.released.substreams().first().map_or(0, |s| s.number * self.plan.substream_len());
        retained.start.max(kept)..retained.end
    }

    /// The same view with a window of the last `len` items or ticks before its end. A window longer than the stream begins
    /// where the stream does.
    ///
    /// # Errors
    /// The window is empty or reaches back further than what is retained.
    pub fn last(&self, len: u64) -> Result<Self, QueryError> {
        if len == 0 {
            return Err(QueryError::EmptyWindow);
        }
        self.with_window(len, self.window.end)
    }

    /// The same view with the window of the same length that ended at a past position.
    ///
    /// # Errors
    /// The window lies outside what is retained.
    pub fn as_of(&self, position: u64) -> Result<Self, QueryError> {
        self.with_window(self.window_len, position)
    }

    pub(crate) fn with_window(&self, window_len: u64, end: u64) -> Result<Self, QueryError> {
        // A window that begins before the stream is shorter, not refused.
        let window = last_of(&(self.stream.start..end), window_len);
        let retained = self.retained();
        if window.start < retained.start || retained.end < window.end {
            return Err(QueryError::NotRetained { asked: window, retained });
        }
        Ok(self.at_window(window_len, window))
    }

    fn at_window(&self, window_len: u64, window: Range<u64>) -> Self {
        let apart = self.apart.iter().map(|site| {
            let Range { start, end } = site.stream;
            // A site that began later or ended earlier has nothing beyond its own stream.
            site.at_window(window_len, window.start.clamp(start, end)..window.end.clamp(start, end))
        });
        Self { apart: apart.collect(), window_len, window, model: OnceLock::new(), ..self.clone() }
    }

    /// How often an item occurred in the window. A few reads per substream.
    ///
    /// # Errors
    /// The stream counts the other kind of item, or has identity counters and the item is not in the public domain.
    pub fn frequency<'i>(&self, item: impl Into<Item<'i>>) -> Result<Estimate, QueryError> {
        let item = item.into();
        self.check_item(item)?;
        let estimate = self.answers().estimate_item(item);
        planted!(let estimate = fault::answer(&self.cached.released, item, estimate));
        Ok(estimate)
    }

    /// How often each of these items occurred, in their order.
    ///
    /// # Errors
    /// See [`frequency`](Self::frequency).
    pub fn frequencies<'i>(&self, items: &[Item<'i>]) -> Result<Vec<Ranked<'i>>, QueryError> {
        items.iter().map(|&item| Ok(Ranked::plain(item, self.frequency(item)?))).collect()
    }

    /// The keys, public or found, that a request asks for, largest first. The first call after a seal looks at every key in every
    /// sketch, later ones at one number per key.
    ///
    /// Rows of a list were chosen for their size: they show what they probably count (see [`Ranked::shown`]). Only the rows of a
    /// [`ListRequest`] that hides nothing were not; they show plain estimates.
    ///
    /// # Errors
    /// There is no list: keys can only be asked for by name. Or more keys come into question than the request allows; then no row
    /// was made.
    pub fn list(&self, request: ListRequest) -> Result<List<'_>, QueryError> {
        let selection = self.select_for(request);
        let list = self.answers().list_keys(self.keys()?, &selection);
        selection.check_in_question().map(|()| list)
    }

    /// The same of candidates, where there is no list.
    ///
    /// # Errors
    /// See [`frequency`](Self::frequency).
    pub fn list_among<'i>(
        &self,
        candidates: &[Item<'i>],
        request: ListRequest,
    ) -> Result<List<'i>, QueryError> {
        candidates.iter().try_for_each(|&item| self.check_item(item))?;
        Ok(self.answers().list_among(candidates, &self.select_for(request)))
    }

    /// The keys, public or found, whose count reaches the threshold, largest first; in the paper's method
    /// (γ - 1/columns) w. See [`list`](Self::list).
    ///
    /// # Errors
    /// There is no list (keys can only be asked for by name), or the threshold is out of range.
    pub fn heavy_hitters<T>(&self, threshold: T) -> Result<List<'_>, QueryError>
    where
        T: TryInto<Threshold>,
        ParameterError: From<T::Error>,
    {
        self.list(ListRequest::heavy_hitters(check_threshold(threshold)?))
    }

    /// The same with a choice on which side to err.
    ///
    /// # Errors
    /// There is no list (keys can only be asked for by name), or the threshold is out of range.
    pub fn heavy_hitters_with<T>(&self, threshold: T, certainty: Certainty) -> Result<List<'_>, QueryError>
    where
        T: TryInto<Threshold>,
        ParameterError: From<T::Error>,
    {
        self.list(ListRequest::heavy_hitters(check_threshold(threshold)?).with_certainty(certainty))
    }

    /// The `count` keys, public or found, with the largest estimates, largest first. See [`list`](Self::list).
    ///
    /// # Errors
    /// There is no list: keys can only be asked for by name.
    pub fn top(&self, count: usize) -> Result<List<'_>, QueryError> {
        self.list(ListRequest::top(count))
    }

    /// The candidates whose count reaches the threshold, largest first: heavy hitters without a public domain.
    ///
    /// # Errors
    /// The threshold is out of range, or see [`frequency`](Self::frequency).
    pub fn heavy_hitters_among<'i, T>(
        &self,
        candidates: &[Item<'i>],
        threshold: T,
    ) -> Result<List<'i>, QueryError>
    where
        T: TryInto<Threshold>,
        ParameterError: From<T::Error>,
    {
        self.list_among(candidates, ListRequest::heavy_hitters(check_threshold(threshold)?))
    }

    /// The keys that may be listed: the public ones, or those that were found so far.
    ///
    /// # Errors
    /// There is no list: keys can only be asked for by name.
    pub fn keys(&self) -> Result<&Keys, QueryError> {
        self.cached.released.keys(&self.plan).ok_or(QueryError::NoDomain)
    }

    /// Every sealed sketch that the view holds, oldest first; where keys are cut into slices, those of each site one after the
    /// other. All answers come from these.
    pub fn sealed(&self) -> impl Iterator<Item = Sealed<'_>> {
        let lone = self.apart.is_empty().then_some(self);
        let views = self.apart.iter().chain(lone);
        views.flat_map(Self::sealed_here)
    }

    fn sealed_here(&self) -> impl Iterator<Item = Sealed<'_>> {
        self.cached.released.substreams().iter().flat_map(move |substream| {
            let sketches = substream.sketches().iter();
            sketches.map(move |(range, sketch)| Sealed { view: self, substream, range: *range, sketch })
        })
    }

    fn check_item(&self, item: Item<'_>) -> Result<(), QueryError> {
        let wanted = self.plan.settings().domain.kind();
        if item.kind() != wanted {
            return Err(QueryError::Kind { wanted, got: item.kind() });
        }
        if self.cached.released.has_counters_for(item) { Ok(()) } else { Err(QueryError::NotInDomain) }
    }

    fn select_for(&self, request: ListRequest) -> Selection {
        Selection::new(request, request.threshold.map(|threshold| self.least_count(threshold)))
    }

    /// The smallest estimate of a heavy hitter.
    fn least_count(&self, threshold: Threshold) -> f64 {
        let fraction = threshold.get() - self.plan.threshold_slack();
        // A share of an unknown total is reached by nothing.
        self.counted().map_or(f64::INFINITY, |items| fraction * items as f64)
    }

    /// How many items of the window count, which shares are shares of: all of them, but where users are protected those that
    /// their caps leave out. `None` as for [`items`](Self::items), or if all are left out.
    #[must_use]
    pub fn counted(&self) -> Option<u64> {
        let counted = self.items()?.saturating_sub(self.answers().count_capped().unwrap_or(0));
        (0 < counted).then_some(counted)
    }

    /// How many items the window holds. For a count window that is public (in the paper's method
    /// always the length asked for); for a time window it comes from what is sealed, through noisy counters where presence is
    /// private. `None` if that is nothing, or no more than noise.
    #[must_use]
    pub fn items(&self) -> Option<u64> {
        let items = match (self.plan.settings().window, self.plan.method()) {
            (Window::Items(_), Method::Paper(_)) => self.window_len,
            (Window::Items(_), Method::Tuned(_)) => self.window.end - self.window.start,
            (Window::Time(_), _) => self.answers().count_items(),
        };
        // Shares of a total that may be noise alone would mean nothing.
        (self.total_noise() < items as f64).then_some(items)
    }

    /// What the noise alone makes of the total of a time window, at 95 %; nothing where totals are public.
    fn total_noise(&self) -> f64 {
        // Where presence is private, the total is as noisy as its counters (PRIVACY.md: rule 18).
        if self.plan.has_public_totals() {
            return 0.0;
        }
        let loudest = self.plan.ranges().iter().map(|range| range.law().variance()).fold(0.0, f64::max);
        let shape = self.plan.shape();
        let of_one = shape.cells() as f64 * loudest * self.sites.len() as f64 / f64::from(shape.rows).powi(2);
        // A window may cut a substream at either end.
        let parts = self.window_len.div_ceil(self.plan.substream_len()) + 1;
        NORMAL_95 * (of_one * parts as f64).sqrt()
    }

    fn answers(&self) -> Answers<'_> {
        match self.plan.method() {
            Method::Paper(_) => Answers::Paper(PaperAnswers::new(self.question())),
            Method::Tuned(_) if self.apart.is_empty() => Answers::Tuned(self.tuned_answers()),
            Method::Tuned(_) => {
                let apart = self.apart.iter().map(Self::tuned_answers).collect();
                Answers::Merged(MergedAnswers { together: self.tuned_answers(), apart })
            }
        }
    }

    fn question(&self) -> Question<'_> {
        Question {
            plan: &self.plan,
            cached: &self.cached,
            stream: &self.stream,
            window: &self.window,
            noises: self.sites.len() as f64,
        }
    }

    fn tuned_answers(&self) -> TunedAnswers<'_> {
        let question = self.question();
        let model = self.model.get_or_init(|| Arc::new(question.make_model()));
        TunedAnswers { question, model, is_whole: self.is_whole() }
    }

    /// Whether the window is the one that the plan is for.
    fn is_whole(&self) -> bool {
        self.window_len == self.plan.settings().window.len() && self.window.end == self.stream.end
    }
}

/// The answers of the method in use.
enum Answers<'a> {
    Paper(PaperAnswers<'a>),
    Tuned(TunedAnswers<'a>),
    Merged(MergedAnswers<'a>),
}

impl Answers<'_> {
    fn covered_span(&self) -> Range<u64> {
        match self {
            Self::Paper(paper) => paper.covered_span(),
            Self::Tuned(tuned) => tuned.covered_span(),
            Self::Merged(merged) => merged.covered_span(),
        }
    }

    fn estimate_item(&self, item: Item<'_>) -> Estimate {
        match self {
            Self::Paper(paper) => paper.estimate_item(item),
            Self::Tuned(tuned) => tuned.estimate_item(item),
            Self::Merged(merged) => merged.estimate_item(item),
        }
    }

    fn count_items(&self) -> u64 {
        match self {
            Self::Paper(paper) => paper.count_items(),
            Self::Tuned(tuned) => tuned.count_items(),
            Self::Merged(merged) => merged.count_items(),
        }
    }

    /// Events of the window that the caps of users left out.
    fn count_capped(&self) -> Option<u64> {
        match self {
            Self::Paper(_) => None,
            Self::Tuned(tuned) => tuned.count_capped(),
            Self::Merged(merged) => merged.count_capped(),
        }
    }

    fn list_keys<'k>(&self, keys: &'k Keys, selection: &Selection) -> List<'k> {
        match self {
            Self::Paper(paper) => paper.list_keys(keys, selection),
            Self::Tuned(tuned) => tuned.list_keys(keys, selection),
            Self::Merged(merged) => merged.list_keys(keys, selection),
        }
    }

    fn list_among<'i>(&self, candidates: &[Item<'i>], selection: &Selection) -> List<'i> {
        match self {
            Self::Paper(paper) => paper.list_among(candidates, selection),
            Self::Tuned(tuned) => tuned.list_among(candidates, selection),
            Self::Merged(merged) => merged.list_among(candidates, selection),
        }
    }
}

fn check_threshold<T>(threshold: T) -> Result<Threshold, ParameterError>
where
    T: TryInto<Threshold>,
    ParameterError: From<T::Error>,
{
    Ok(threshold.try_into()?)
}

/// The last `len` positions of a span, or all of a shorter one.
fn last_of(span: &Range<u64>, len: u64) -> Range<u64> {
    span.end.saturating_sub(len).max(span.start).min(span.end)..span.end
}

/// One sealed sketch of a view.
#[derive(Debug, Clone, Copy)]
pub struct Sealed<'a> {
    view: &'a WindowView,
    substream: &'a SealedSubstream,
    range: usize,
    sketch: &'a SealedSketch,
}

impl Sealed<'_> {
    /// The number of its substream.
    #[must_use]
    pub fn substream(&self) -> u64 {
        self.substream.number
    }

    /// The index of its range in [`Plan::ranges`].
    #[must_use]
    pub fn range(&self) -> usize {
        self.range
    }

    /// The noisy counters.
    #[must_use]
    pub fn sketch(&self) -> &SealedSketch {
        self.sketch
    }

    /// The indices of an item's counters: one per row, or none outside a public list and in slices of other keys.
    pub fn cells<'i>(&self, item: impl Into<Item<'i>>) -> Vec<usize> {
        let item = item.into();
        let SealedSubstream { mapping, number, .. } = self.substream;
        if self.view.plan.pinned() == 0 {
            return mapping.cells(item).filter_map(|key_index| self.own_cell(key_index)).collect();
        }
        let slot = self.view.cached.released.pins().slot_at(mapping.fingerprint_key.hash_item(item), *number);
        // PRIVACY.md: rule 33. An item falls on counters of its own or on hashed ones, never on both.
        match (slot, self.range) {
            (Some(slot), 1..) => self.own_cell(slot as usize).into_iter().collect(),
            (None, WHOLE) => mapping.cells(item).collect(),
            _ => Vec::new(),
        }
    }

    fn own_cell(&self, key_index: usize) -> Option<usize> {
        self.substream.levels().cell_of(key_index, self.range, &self.view.plan)
    }
}
