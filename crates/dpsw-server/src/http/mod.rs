//! The HTTP face: outside words to one call of the engine, and its answer in outside words.

mod admin;
mod app;
#[expect(unused_qualifications, reason = "the macro that describes handlers writes them")]
mod ask;
mod body;
mod caller;
mod ingest;
mod live;
mod openapi;
mod operate;
mod params;
mod problem;
mod prometheus;
mod request;
mod serve;
mod slow;
mod views;
mod work;

pub use app::{App, AppSettings};
pub use openapi::{openapi, router};
pub use serve::{ServeSettings, serve};
