//! The window that a question is about.

use std::ops::Range;

use crate::plan::settings::Window;
use crate::plan::structure::Plan;
use crate::view::cached_release::CachedRelease;

/// A question about a window: the window, and everything it is answered from.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) cached: &'a CachedRelease,
    /// Where the stream began and how far it has come.
    pub(crate) stream: &'a Range<u64>,
    pub(crate) window: &'a Range<u64>,
    /// How many independent noises are in each counter: one per site.
    pub(crate) noises: f64,
}

impl Question<'_> {
    /// Before anything is sealed, all that is known is the length of a count window.
    pub(crate) fn unknown_bound(&self) -> f64 {
        match self.plan.settings().window {
            Window::Items(_) => (self.window.end - self.window.start) as f64,
            Window::Time(_) => f64::INFINITY,
        }
    }
}
