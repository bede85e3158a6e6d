//! The promises of the engine, on real folders and on disks that fail.

mod durable;
mod support;
