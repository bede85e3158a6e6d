//! Answers of the tuned method: slices, their weights in a window, and what they say of each key.

pub(crate) mod answers;
pub(crate) mod evidence;
pub(crate) mod fit;
pub(crate) mod fit_cache;
pub(crate) mod forecast;
pub(crate) mod series;
pub(crate) mod series_index;
pub(crate) mod weights;
pub(crate) mod window_model;
