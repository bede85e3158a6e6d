//! What the program itself promises when things break, over real sockets: killed, and asked what nobody asks.

mod bodies;
mod client;
mod full;
mod hostile;
mod kills;
mod leaks;
mod memory;
mod others;
mod random;
mod remote;
mod seen;
mod service;
mod slow;
mod watch;
