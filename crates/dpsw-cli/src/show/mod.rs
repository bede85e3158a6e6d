//! What people and programs get: answers, remarks and screens.

pub(crate) mod answer;
pub(crate) mod harmless;
pub(crate) mod output;
pub(crate) mod remark;
pub(crate) mod said;
mod table;
pub(crate) mod watch;
mod why;
pub(crate) mod words;
