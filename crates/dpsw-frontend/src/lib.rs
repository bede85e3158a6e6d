//! What the front ends of dpsw share: quantities as people write them, the default plan, the plan of the paper's method, what
//! times say of a window, and the file of a ledger. Nothing here prints, and nothing names an option of the command line: each
//! front end has its own words for advice.

pub mod quantity;
pub mod memory;
pub mod plan_request;
pub mod paper;
pub mod times;
pub mod ledger;
