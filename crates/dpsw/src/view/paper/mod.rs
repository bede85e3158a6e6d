//! Answers of the paper's method: the nearest complete ranges of a window, and row minima.

pub(crate) mod answers;
pub(crate) mod cover;
