//! The HTTP face: outside words to one call of the engine, and its answer in outside words.

mod admin;
mod app;
mod ask;
mod body;
mod caller;
mod dashboard;
mod frequency;
mod ingest;
mod items;
#[expect(unused_qualifications, reason = "the macro that describes handlers writes them")]
mod lists;
mod live;
mod moves;
mod openapi;
mod operate;
mod params;
mod places;
mod problem;
mod prometheus;
mod request;
mod serve;
mod slow;
mod starting;
mod views;
mod work;

pub use app::{App, AppSettings};
pub use openapi::{openapi, router};
pub use serve::{ServeSettings, serve};
pub use starting::answer_until;
