//! The paper's data sets from their raw files: AOL query logs, MovieLens ratings and WorldCup98 access logs.
//!
//! A reader turns the files into a stream in time order whose items are numbered from 0, keeps the name of each
//! number, and reports every record it left out. [`PaperDataset`] knows where each set comes from, where it is
//! looked for and what the paper says of it; [`table`](table::table) puts both side by side.

pub mod aol;
mod input;
pub mod movielens;
mod numbering;
pub mod registry;
mod report;
mod statistics;
pub mod table;
mod time;
mod words;
pub mod worldcup;

pub(crate) use input::open;
pub use numbering::Loaded;
pub use registry::{Files, PaperDataset, data_folder};
pub use report::{BadRecord, Report};
pub use statistics::Statistics;
