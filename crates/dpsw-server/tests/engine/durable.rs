//! What was acknowledged is counted once, whatever happens to the process.

use crate::support::{COUNT_STREAM, Rig, SOURCE, frequency, id, pages, send, view};

#[test]
fn events_are_counted_and_shown_when_their_substream_is_sealed() {
    let rig = Rig::new();
    let engine = rig.with(SOURCE, &[COUNT_STREAM]);
    let len = engine.stream("pages").expect("a stream").plan.substream_len();
    assert_eq!(view(&engine, "pages").sealed_until, 0);
    for batch in 0..4 * len {
        send(&engine, id(batch), pages(["a", "b", "b"]));
    }
    let published = view(&engine, "pages");
    assert_eq!(published.sealed_until, 12 * len);
    assert_eq!(frequency(&published, "b", 3 * len), 2.0 * len as f64);
}
