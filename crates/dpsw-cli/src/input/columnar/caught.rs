//! Panics of a library at damaged bytes, as errors.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use anyhow::Result;

use crate::input::columnar::damaged;

thread_local! {
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Decodes; a panic becomes an error and is not reported. What `decode` has changed must not be used after an error.
pub(super) fn caught<T>(decode: impl FnOnce() -> Result<T>) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(report_only_others);
    IS_CAUGHT.set(true);
    let result = catch_unwind(AssertUnwindSafe(decode));
    IS_CAUGHT.set(false);
    result.unwrap_or_else(|_| Err(damaged("its parts contradict each other, or a type in it is unknown")))
}

fn report_only_others() {
    let report = take_hook();
    set_hook(Box::new(move |panic| {
        if !IS_CAUGHT.get() {
            report(panic);
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        let error = caught(|| -> Result<()> { panic!("a buffer is missing") }).expect_err("refused");
        assert!(error.to_string().contains("damaged"), "{error}");
        assert_eq!(caught(|| Ok(5)).expect("decoded"), 5);
    }
}
