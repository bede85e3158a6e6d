//! The real binary, as a person would run it, in a temporary directory.

mod run;
mod sandbox;

mod formats;
mod records;
mod users;
mod windows;
mod views;
mod follow;
mod screen;
mod commands;
mod empty;
mod headline;
mod schema;
mod written;
mod hostile;
mod examples;
mod intervals;
mod demo;
#[cfg(unix)]
mod serve;
mod exits;
mod ledger;
mod presence;
mod dry_run;
mod files;
mod quantities;
