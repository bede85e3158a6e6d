//! Whether answers can be believed: how often 95 % intervals hold the truth, how wide they are, and which listed rows are
//! ghosts.

mod arrivals;
mod case;
mod chosen;
pub(crate) mod draw;
mod follow;
mod listed;
mod made;
mod moved;
mod outcome;
mod requests;
mod run;
mod shown;
mod table;

pub use arrivals::{Arrivals, Occurrences};
pub use case::Case;
pub use chosen::{Asked, Cell, Cells, Chosen, Ends};
pub use follow::Follower;
pub use listed::Listed;
pub use made::Made;
pub use moved::Moved;
pub use outcome::Outcome;
pub use requests::{RequestRow, Requests, request_table};
pub use run::{Measured, Row, run};
pub use shown::{Shown, shown};
pub use table::table;
