//! Ctrl-C and requests to end: the first prints what is there, the second ends at once.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use crate::fault::{Fault, Kind};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Starts to listen.
pub(crate) fn listen() -> Result<()> {
    ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::Relaxed) {
            std::process::exit(Kind::Interrupted as i32);
        }
    })
    .context("interrupts cannot be caught")
}

/// Asks to end, as Ctrl-C does.
pub(crate) fn request() {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Fails with these words if it was asked to end.
pub(crate) fn check(message: &str) -> Result<()> {
    if is_requested() { Err(Fault::of(Kind::Interrupted, message)) } else { Ok(()) }
}

pub(crate) fn is_requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
