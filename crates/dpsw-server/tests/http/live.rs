//! Following a stream.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use dpsw_server::auth::Role;
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use crate::support::Rig;

/// How long a test waits for what should come at once, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Followed(Body);

impl Followed {
    async fn new(rig: &Rig, token: &str, params: &str) -> Self {
        Self::of(rig, token, &format!("/v1/streams/pages/live{params}")).await
    }

    pub(crate) async fn of(rig: &Rig, token: &str, path: &str) -> Self {
        let request = Request::builder().uri(path);
        let request = request.header("authorization", format!("Bearer {token}"));
        let reply = rig.router.clone().oneshot(request.body(Body::empty()).expect("a request")).await;
        let reply = reply.expect("a router always answers");
        assert_eq!(reply.status(), StatusCode::OK);
        assert_eq!(reply.headers()["content-type"], "text/event-stream");
        Self(reply.into_body())
    }

    /// The next event that is no comment; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let frame = tokio::time::timeout(PATIENCE, self.0.frame()).await.expect("in time")?;
            let bytes = frame.expect("a frame").into_data().expect("data");
            let text = String::from_utf8(bytes.to_vec()).expect("text");
            if let Some(data) = text.lines().find_map(|line| line.strip_prefix("data: ")) {
                assert!(text.contains("event: top"), "{text}");
                return Some(serde_json::from_str(data).expect("JSON"));
            }
        }
    }
}

#[tokio::test]
async fn whoever_follows_sees_the_top_items_at_once_and_when_they_change() {
    let rig = Rig::with_pages().await;
    rig.count(&["a", "a", "b"], 1000).await;
    let token = rig.token(Role::Query, None, Some(&["pages"]));
    let mut followed = Followed::new(&rig, &token, "?count=1").await;
    let first = followed.next().await.expect("at once");
    assert_eq!((&first["items"][0]["item"], first["items"].as_array().map(Vec::len)), (&"a".into(), Some(1)));
    rig.count(&["b"], 2000).await;
    // Views in between may come or be missed; the newest comes.
    while followed.next().await.expect("a change")["items"][0]["item"] != "b" {}
}

#[tokio::test]
async fn following_ends_with_the_stream_or_the_token() {
    let rig = Rig::with_pages().await;
    let token = rig.token(Role::Query, None, None);
    let mut followed = [Followed::new(&rig, &rig.token, "").await, Followed::new(&rig, &token, "").await];
    for one in &mut followed {
        one.next().await.expect("at once");
    }
    let id = token.split('_').nth(1).expect("an id");
    rig.delete(&format!("/v1/tokens/{id}")).await.expect(StatusCode::NO_CONTENT);
    rig.count(&["a"], 2000).await;
    let [of_stream, of_token] = &mut followed;
    assert_eq!(of_token.next().await, None);
    rig.delete("/v1/streams/pages").await.expect(StatusCode::NO_CONTENT);
    while of_stream.next().await.is_some() {}
}

#[tokio::test]
async fn as_many_follow_as_may_and_a_question_that_is_none_is_refused() {
    let rig = Rig::with(|parts| parts.limits.live_clients = 1);
    rig.make(crate::support::SOURCE, &[crate::support::pages()]).await;
    let one = Followed::new(&rig, &rig.token, "").await;
    let reply = rig.get("/v1/streams/pages/live").await;
    reply.problem(503, "busy");
    assert_eq!(reply.header("retry-after"), "1");
    drop(one);
    drop(Followed::new(&rig, &rig.token, "").await);
    rig.get("/v1/streams/none/live").await.problem(404, "unknown-stream");
    rig.get("/v1/streams/pages/live?count=0").await.problem(400, "bad-parameter");
    rig.get("/v1/streams/pages/live?as_of=99999").await.problem(422, "not-retained");
    let head = rig.request(Method::POST, "/v1/streams/pages/live").body(Body::empty()).expect("a request");
    rig.send(head).await.problem(405, "wrong-method");
}
