//! What each command does.

pub(crate) mod audit;
pub(crate) mod completions;
pub(crate) mod demo;
mod dry_run;
pub(crate) mod inspect;
pub(crate) mod ledger;
mod manual;
pub(crate) mod plan;
pub(crate) mod serve;
pub(crate) mod top;
