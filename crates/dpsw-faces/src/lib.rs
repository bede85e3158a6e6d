//! What the faces of dpsw share: quantities as people write them, the plan that is taken if nobody says more, the plan of the
//! paper's method, what times say of a window, and the file of a ledger. Nothing here prints, and nothing names an option of the
//! command line: each face has its own words for advice.

mod decimal;
pub mod quantity;
pub mod memory;
pub mod wish;
pub mod paper;
pub mod times;
pub mod ledger;
