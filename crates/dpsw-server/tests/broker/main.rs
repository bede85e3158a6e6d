//! Sources that read real brokers: each record counts once, whatever is killed, and a topic has one reader.

#[path = "../crash/client.rs"]
mod client;
mod commands;
mod exact;
mod faults;
mod kills;
mod login;
mod owners;
#[path = "../crash/random.rs"]
mod random;
#[path = "../crash/seen.rs"]
mod seen;
mod server;
#[path = "../crash/service.rs"]
mod service;
mod topic;
mod values;
#[path = "../crash/watch.rs"]
mod watch;
