//! The promises of the HTTP side: most without a socket, some with.

mod admin;
mod answers;
mod auth;
mod dashboard;
mod document;
mod events;
mod hostile;
mod leaks;
mod limits;
mod live;
mod remote;
mod sockets;
mod support;
mod views;
