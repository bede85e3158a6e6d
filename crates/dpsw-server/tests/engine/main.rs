//! The promises of the engine, on real folders and on disks that fail.

mod crash;
mod disk;
mod durable;
mod support;
