//! The shapes of requests and replies in JSON. Nothing outside of here knows how anything is written.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod item;
pub(crate) mod problem;
pub(crate) mod quantity;
pub(crate) mod report;
pub(crate) mod source;
pub(crate) mod stream;
pub(crate) mod token;
