//! A panic where a test wants one: built with the feature `planted` alone, which no release has.

use std::ffi::OsString;
use std::sync::OnceLock;

/// The variable that holds the item.
const VARIABLE: &str = "DPSW_PLANTED_PANIC";

/// Panics at the item that the variable names.
///
/// # Panics
/// See above. The text holds the item, so that a test can see that it is said nowhere.
pub(crate) fn panic_at(item: &[u8]) {
    static ITEM: OnceLock<Option<OsString>> = OnceLock::new();
    let planted = ITEM.get_or_init(|| std::env::var_os(VARIABLE));
    if planted.as_ref().is_some_and(|planted| planted.as_encoded_bytes() == item) {
        panic!("planted at {}", String::from_utf8_lossy(item));
    }
}
