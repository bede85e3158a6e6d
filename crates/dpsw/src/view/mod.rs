//! Questions and answers, from what is sealed alone.

pub(crate) mod cached_release;
pub(crate) mod estimate;
pub(crate) mod list;
pub(crate) mod list_request;
pub(crate) mod merge;
pub(crate) mod merged_answers;
pub(crate) mod paper;
pub(crate) mod prior;
pub(crate) mod question;
pub(crate) mod ranking;
pub(crate) mod succession;
pub(crate) mod trend;
pub(crate) mod tuned;
pub(crate) mod window_view;
