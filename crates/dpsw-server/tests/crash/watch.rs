//! One who looks at streams while services come and go, and an alarm for all when one of them fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::client::{Client, Request};
use crate::seen::Seen;

/// Tells everybody when a thread ends by a panic.
pub(crate) struct Alarm<'w>(pub(crate) &'w AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        self.0.fetch_or(std::thread::panicking(), Ordering::SeqCst);
    }
}

/// Looks at all streams again and again, whichever service runs.
pub(crate) fn watch<const N: usize>(
    streams: [&str; N],
    seen: &mut [Seen; N],
    is_over: impl Fn() -> bool,
    connect: impl Fn() -> Client,
) {
    let mut client = connect();
    while !is_over() {
        for (stream, seen) in streams.into_iter().zip(&mut *seen) {
            match client.ask(Request::get(&format!("/v1/streams/{stream}/view"))) {
                Ok(reply) => {
                    seen.look(stream, &reply.expect(200).body);
                }
                Err(_) => client = connect(),
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
