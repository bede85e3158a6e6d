//! Questions and answers, from what is sealed alone.

pub(crate) mod asked;
pub(crate) mod cover;
pub(crate) mod decide;
pub(crate) mod estimate;
pub(crate) mod fit;
pub(crate) mod fits;
pub(crate) mod interpolated;
pub(crate) mod list;
pub(crate) mod list_request;
pub(crate) mod merge;
pub(crate) mod nearest;
pub(crate) mod paths;
pub(crate) mod prior;
pub(crate) mod ranking;
pub(crate) mod readable;
pub(crate) mod reading;
pub(crate) mod scores;
pub(crate) mod sites;
pub(crate) mod source;
pub(crate) mod spans;
pub(crate) mod succession;
pub(crate) mod tracking;
pub(crate) mod trail;
pub(crate) mod trend;
pub(crate) mod weights;
pub(crate) mod window_view;
