//! What the program itself promises when things break, over real sockets: killed, and asked what nobody asks.

mod bodies;
mod client;
mod kills;
mod random;
mod service;
mod seen;
