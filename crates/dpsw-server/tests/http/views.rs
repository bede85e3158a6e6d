//! Views as bytes.

use axum::body::Body;
use axum::http::{Method, StatusCode};
use dpsw::{Batch, DpswSketch, Noise, Settings, StreamKey, WindowView};

use crate::support::{Reply, Rig};

#[tokio::test]
async fn a_downloaded_view_answers_as_the_service_does() {
    let rig = Rig::with_pages().await;
    rig.count(&["a", "a", "b", "c"], 1000).await;
    let reply = rig.get("/v1/streams/pages/view").await;
    assert_eq!((reply.status, reply.header("content-type")), (StatusCode::OK, "application/vnd.dpsw.view"));
    let view = WindowView::from_bytes(&reply.body).expect("a view");
    let here = view.frequency("a").expect("a key").value;
    let there = rig.get("/v1/streams/pages/frequency?item=a").await.expect(StatusCode::OK);
    assert_eq!(there["items"][0]["estimate"].as_f64(), Some((here * 100.0).round() / 100.0));
}

/// The view of a site that counted these keys.
fn site(number: u64, keys: &[&str], key: u8) -> Vec<u8> {
    let settings = Settings::last_ticks(1000, 1000, 1e5).expect("settings").with_keys(["a", "b"]);
    let plan = settings.plan().expect("a plan");
    let mut sketch =
        DpswSketch::with_key(plan, StreamKey::from_bytes([key; 32]), Noise::from_system()).at_site(number);
    for time in 0..3000 {
        sketch.extend(Batch::text(keys).at(&vec![time; keys.len()])).expect("in order");
    }
    sketch.view().to_bytes()
}

async fn merge(rig: &Rig, views: &[Vec<u8>], params: &str) -> Reply {
    let mut body = Vec::new();
    for view in views {
        body.extend_from_slice(
            b"--x\r\nContent-Disposition: form-data; name=\"view\"; filename=\"v\"\r\n\r\n",
        );
        body.extend_from_slice(view);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--x--\r\n");
    let request = rig.request(Method::POST, &format!("/v1/views/merge{params}"));
    let request = request.header("content-type", "multipart/form-data; boundary=x");
    rig.send(request.body(Body::from(body)).expect("a request")).await
}

#[tokio::test]
async fn views_of_sites_are_merged_into_bytes_or_an_answer() {
    let rig = Rig::new();
    let views = [site(1, &["a"], 7), site(2, &["a", "b"], 7)];
    let merged = merge(&rig, &views, "").await;
    assert_eq!((merged.status, merged.header("content-type")), (StatusCode::OK, "application/vnd.dpsw.view"));
    let view = WindowView::from_bytes(&merged.body).expect("a view");
    assert_eq!(view.sites(), [1, 2]);
    let answer = merge(&rig, &views, "?count=1").await.expect(StatusCode::OK);
    assert_eq!(answer["items"][0]["item"], "a");
    let estimate = answer["items"][0]["estimate"].as_f64().expect("a number");
    assert!((estimate - 2000.0).abs() < 20.0, "{estimate}");
}

/// Of 65 views that have 4 MiB together all are read, and there is one too many: the limit of bodies holds, and no other.
#[tokio::test]
async fn views_may_be_as_long_together_as_a_body() {
    let rig = Rig::new();
    merge(&rig, &vec![vec![0; 64 << 10]; 65], "").await.problem(400, "bad-parameter");
}

#[tokio::test]
async fn views_that_do_not_belong_together_are_refused() {
    let rig = Rig::new();
    let view = site(1, &["a"], 7);
    merge(&rig, &[view.clone(), view.clone()], "").await.problem(422, "not-mergeable");
    merge(&rig, &[view.clone(), site(2, &["a"], 8)], "").await.problem(422, "not-mergeable");
    merge(&rig, &[], "").await.problem(422, "not-mergeable");
    merge(&rig, &[b"nonsense".to_vec()], "").await.problem(400, "bad-view");
    merge(&rig, &[view[..view.len() - 1].to_vec()], "").await.problem(400, "bad-view");
    merge(&rig, &vec![view.clone(); 65], "").await.problem(400, "bad-parameter");
    merge(&rig, &[view], "?count=0").await.problem(400, "bad-parameter");
    let request = rig.request(Method::POST, "/v1/views/merge").header("content-type", "text/plain");
    rig.send(request.body(Body::from("x")).expect("a request")).await.problem(415, "unknown-content");
}
