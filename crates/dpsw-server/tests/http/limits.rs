//! What is larger, faster or more than the limits is refused, with how long to wait where that helps.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use bytes::Bytes;
use dpsw_server::auth::Role;
use dpsw_server::limits::Limits;
use dpsw_server::quantity::{Millis, Size};
use futures_util::{StreamExt, stream};
use serde_json::json;

use crate::support::{Rig, SOURCE, pages};

async fn with(change: impl FnOnce(&mut Limits)) -> Rig {
    let rig = Rig::with(|parts| change(&mut parts.limits));
    rig.make(SOURCE, &[pages()]).await;
    rig
}

/// A body whose length nobody states, and that comes in pieces.
fn pieces(piece: &'static str, count: usize) -> Body {
    Body::from_stream(stream::iter(vec![Ok::<_, Infallible>(Bytes::from_static(piece.as_bytes())); count]))
}

/// A body that begins and never ends.
fn endless() -> Body {
    let begin = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"a\n"))]);
    Body::from_stream(begin.chain(stream::pending()))
}

#[tokio::test]
async fn bodies_have_a_limit_whether_their_length_is_stated_or_not() {
    let rig = with(|limits| limits.body = Size(1000)).await;
    rig.batch("text/plain", "a\n".repeat(500)).await.expect(StatusCode::ACCEPTED);
    rig.batch("text/plain", "a\n".repeat(501)).await.problem(413, "body-too-large");
    let send = async |body| rig.send(rig.batch_request("text/plain").body(body).expect("a request")).await;
    send(pieces("a\n", 500)).await.expect(StatusCode::ACCEPTED);
    send(pieces("a\n", 501)).await.problem(413, "body-too-large");
    let question = json!({"items": vec!["a"; 500]});
    rig.post("/v1/streams/pages/frequencies", question).await.problem(413, "body-too-large");
}

#[tokio::test]
async fn batches_have_a_limit_on_events_and_on_bytes_when_unpacked() {
    let rig = with(|limits| (limits.batch_events, limits.unpacked_body) = (100, Size(300))).await;
    rig.batch("text/plain", "a\n".repeat(100)).await.expect(StatusCode::ACCEPTED);
    rig.batch("text/plain", "a\n".repeat(101)).await.problem(413, "too-many-events");
    let packed = |bytes: &str| Body::from(zstd::encode_all(bytes.as_bytes(), 1).expect("memory"));
    let send = async |body| {
        let request = rig.batch_request("text/plain").header("content-encoding", "zstd");
        rig.send(request.body(body).expect("a request")).await
    };
    send(packed(&"aa\n".repeat(100))).await.expect(StatusCode::ACCEPTED);
    send(packed(&"aaa\n".repeat(100))).await.problem(413, "body-too-large");
}

#[tokio::test]
async fn items_that_are_too_long_are_missing_in_their_place() {
    let rig = with(|limits| limits.key_len = 1).await;
    let receipt = rig.batch("text/plain", "a\naa\na\n".repeat(1000)).await;
    assert_eq!(receipt.expect(StatusCode::ACCEPTED)["events"], 3000);
}

#[tokio::test]
async fn a_token_may_ask_so_often() {
    let rig = with(|limits| (limits.requests_per_second, limits.requests_burst) = (1, 5)).await;
    // Two requests made the source and the stream.
    for _ in 0..3 {
        rig.get("/v1/sources").await.expect(StatusCode::OK);
    }
    let reply = rig.get("/v1/sources").await;
    reply.problem(429, "too-many-requests");
    assert_eq!(reply.header("retry-after"), "1");
    rig.get("/healthz").await.expect(StatusCode::OK);
    let other = rig.token(Role::Query, None, None);
    let mut rig = rig;
    rig.token = other;
    rig.get("/v1/sources").await.expect(StatusCode::OK);
}

#[tokio::test]
async fn so_many_requests_are_answered_at_a_time() {
    // One token may hold as many places as are left: two of four.
    let rig = with(|limits| limits.requests = 4).await;
    let other = rig.token(Role::Query, None, None);
    let request = || rig.batch_request("text/plain").body(endless()).expect("a request");
    let (first, second) = (rig.send(request()), rig.send(request()));
    let third = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        rig.get("/healthz").await.expect(StatusCode::OK);
        rig.get("/readyz").await.expect(StatusCode::OK);
        let request = Request::get("/v1/sources").header("authorization", format!("Bearer {other}"));
        rig.send(request.body(Body::empty()).expect("a request")).await.expect(StatusCode::OK);
        rig.get("/v1/sources").await
    };
    let third = tokio::select! {
        reply = third => reply,
        _ = first => panic!("its body never ends"),
        _ = second => panic!("its body never ends"),
    };
    third.problem(503, "busy");
    assert_eq!(third.header("retry-after"), "1");
    rig.get("/v1/sources").await.expect(StatusCode::OK);
}

#[tokio::test]
async fn bodies_take_up_room_while_they_come() {
    let rig = with(|limits| {
        (limits.body, limits.unpacked_body, limits.memory) = (Size(1 << 20), Size(1 << 20), Size(8 << 20));
    })
    .await;
    let other = rig.token(Role::Ingest, None, None);
    // A body of unknown length may become as large as any. Half of the memory is for bodies that come, and one token may hold as
    // much as is left: two of four.
    let slow = || rig.send(rig.batch_request("text/plain").body(endless()).expect("a request"));
    let asked = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        slow().await.problem(503, "busy");
        let request = Request::post("/v1/sources/web/events").header("content-type", "text/plain");
        let request = request.header("authorization", format!("Bearer {other}"));
        rig.send(request.body(Body::from("a\n")).expect("a request")).await
    };
    let others = tokio::select! {
        reply = asked => reply,
        _ = slow() => panic!("its body never ends"),
        _ = slow() => panic!("its body never ends"),
    };
    others.expect(StatusCode::ACCEPTED);
    rig.batch("text/plain", "a\n").await.expect(StatusCode::ACCEPTED);
}

#[tokio::test]
async fn a_body_that_comes_too_slowly_is_refused() {
    let rig = with(|limits| limits.body_time = Millis(50)).await;
    let reply = rig.send(rig.batch_request("text/plain").body(endless()).expect("a request")).await;
    reply.problem(408, "body-too-slow");
    rig.batch("text/plain", "a\n").await.expect(StatusCode::ACCEPTED);
}

#[tokio::test]
async fn questions_and_answers_have_limits() {
    let rig = with(|limits| (limits.question_items, limits.answer_rows) = (2, 3)).await;
    rig.get("/v1/streams/pages/frequency?item=a&item=b").await.expect(StatusCode::OK);
    rig.get("/v1/streams/pages/frequency?item=a&item=b&item=c").await.problem(400, "bad-parameter");
    let many = json!({"items": ["a", "b", "c"]});
    rig.post("/v1/streams/pages/frequencies", many).await.problem(400, "bad-parameter");
    rig.get("/v1/streams/pages/top?count=3").await.expect(StatusCode::OK);
    rig.get("/v1/streams/pages/top").await.expect(StatusCode::OK);
    rig.get("/v1/streams/pages/top?count=4").await.problem(400, "bad-parameter");
}

#[tokio::test]
async fn a_list_that_is_too_long_is_refused() {
    let rig = with(|limits| limits.answer_rows = 2).await;
    rig.count(&["a", "a", "b", "c", "d"], 1000).await;
    rig.get("/v1/streams/pages/heavy-hitters?threshold=0.3").await.expect(StatusCode::OK);
    let detail =
        rig.get("/v1/streams/pages/heavy-hitters?threshold=0.01").await.problem(400, "bad-parameter");
    assert!(detail.contains("4 items") && detail.contains("at most 2"), "{detail}");
}

#[tokio::test]
async fn there_are_only_so_many_streams_and_tokens() {
    let rig = with(|limits| (limits.tokens, limits.streams) = (2, 2)).await;
    let mut stream = pages();
    for (name, status) in [("second", StatusCode::CREATED), ("third", StatusCode::CONFLICT)] {
        stream["name"] = json!(name);
        rig.post("/v1/sources/web/streams", stream.clone()).await.expect(status);
    }
    let wish = json!({"grant": {"roles": ["query"]}});
    rig.post("/v1/tokens", wish.clone()).await.expect(StatusCode::CREATED);
    rig.post("/v1/tokens", wish).await.problem(409, "too-many");
}
