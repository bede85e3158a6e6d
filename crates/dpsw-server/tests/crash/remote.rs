//! A stream that is sealed elsewhere: killed right after the reply, the service still has the view, byte for byte.

use dpsw::{Batch, DpswSketch, Settings};

use crate::client::Request;
use crate::service::Home;

const PATH: &str = "/v1/streams/sales/view";

#[test]
fn a_view_that_was_acknowledged_is_there_after_a_kill() {
    let home = Home::new("");
    let settings = Settings::last_items(1000, 1.0).expect("settings").with_keys(["a", "b"]);
    let mut sketch = DpswSketch::new(settings.plan().expect("a plan")).expect("randomness");
    let mut shown = None;
    for life in 0..8 {
        let service = home.start();
        let mut client = home.client(&service);
        let there = client.ask(Request::get(PATH)).expect("a reply");
        assert!((there.status == 200).then_some(there.body) == shown, "life {life}");
        for _ in 0..=life % 3 {
            sketch.extend(Batch::text(&["a", "b", "b"].repeat(40))).expect("in order");
            let view = sketch.view().to_bytes();
            let headers = [("Content-Type", "application/vnd.dpsw.view")];
            let put = Request { method: "PUT", path: PATH, headers: &headers, body: &view };
            let status = if shown.is_none() { 201 } else { 204 };
            client.ask(put).expect("a reply").expect(status);
            shown = Some(view);
        }
        service.kill();
    }
}
