//! The promises of the engine, on real folders and on disks that fail.

mod crash;
mod disk;
mod durable;
mod fresh;
mod ledger;
mod read;
mod remote;
mod secret;
mod senders;
mod storage;
mod support;
mod time;
