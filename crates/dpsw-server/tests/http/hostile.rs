//! Requests that nobody in their right mind sends: each gets a problem, and the service goes on.

use std::io::Write;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, StatusCode};
use serde_json::json;

use crate::support::{Reply, Rig};

/// Whatever was sent, the reply is a problem of the client's, and does not repeat what was sent.
#[track_caller]
fn refused(reply: &Reply, what: &str) {
    assert!(reply.status.is_client_error(), "{what}: {} {}", reply.status, reply.text());
    assert_eq!(reply.header("content-type"), "application/problem+json", "{what}");
    assert!(!reply.text().contains("s3cret"), "{what}: {}", reply.text());
    assert!(reply.body.len() < 2000, "{what}: {}", reply.text());
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

async fn still_answers(rig: &Rig) {
    rig.batch("text/plain", "a\n").await.expect(StatusCode::ACCEPTED);
    rig.get("/v1/streams/pages/top").await.expect(StatusCode::OK);
}

#[tokio::test]
async fn bodies_that_are_no_batch() {
    let rig = Rig::with_pages().await;
    let deep = "[".repeat(1 << 20);
    for (content_type, body) in [
        ("application/x-ndjson", b"s3cret".to_vec()),
        ("application/x-ndjson", b"{\"page\": \"s3cret\"".to_vec()),
        ("application/x-ndjson", b"{\"page\": \"\xff\"}".to_vec()),
        ("application/x-ndjson", deep.clone().into()),
        ("application/json", deep.into()),
        ("application/json", b"{}".to_vec()),
        ("application/json", b"[{\"page\": \"s3cret\"},".to_vec()),
        ("application/json", Vec::new()),
        ("text/csv", b"s3cret\n".to_vec()),
        ("text/csv", b"page\n\"s3cret".to_vec()),
        ("text/csv", Vec::new()),
        ("application/vnd.apache.arrow.stream", b"s3cret".to_vec()),
        ("application/vnd.apache.arrow.stream", [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f].to_vec()),
        ("application/vnd.apache.arrow.stream", vec![0; 1000]),
        ("application/octet-stream", b"s3cret".to_vec()),
        ("s3cret", Vec::new()),
    ] {
        refused(&rig.batch(content_type, body).await, content_type);
    }
    still_answers(&rig).await;
}

#[tokio::test]
async fn packed_bodies_that_are_cut_off_wrong_or_bombs() {
    let rig = Rig::with_pages().await;
    let bomb = vec![b'\n'; 100 << 20];
    let cut = gzip(b"some text that is packed");
    for (encoding, body, code) in [
        ("gzip", cut[..cut.len() - 4].to_vec(), "bad-batch"),
        ("gzip", b"s3cret".to_vec(), "bad-batch"),
        ("gzip", Vec::new(), "bad-batch"),
        ("zstd", b"s3cret".to_vec(), "bad-batch"),
        ("zstd", Vec::new(), "bad-batch"),
        ("gzip", gzip(&bomb), "body-too-large"),
        ("zstd", zstd::encode_all(&bomb[..], 1).expect("memory"), "body-too-large"),
        ("br", b"s3cret".to_vec(), "unknown-content"),
        ("gzip, gzip", gzip(&gzip(b"a")), "unknown-content"),
    ] {
        let request = rig.batch_request("text/plain").header("content-encoding", encoding);
        let reply = rig.send(request.body(Body::from(body)).expect("a request")).await;
        refused(&reply, encoding);
        assert_eq!(reply.json()["code"], code, "{encoding}");
    }
    still_answers(&rig).await;
}

#[tokio::test]
async fn addresses_that_lead_nowhere() {
    let rig = Rig::with_pages().await;
    let long = "s3cret".repeat(1700);
    for path in [
        "/dashboard".to_owned(),
        "/dashboard/../admin.token".to_owned(),
        "/v1".to_owned(),
        "/v2/s3cret".to_owned(),
        "//v1/streams/pages/top".to_owned(),
        "/v1/streams/../../etc/passwd".to_owned(),
        "/v1/streams/%00/top".to_owned(),
        "/v1/streams/%ff%fe/top".to_owned(),
        "/v1/streams/%2e%2e%2f/top".to_owned(),
        "/v1/streams/s3cret/top".to_owned(),
        format!("/v1/streams/{long}/top"),
        format!("/v1/sources/{long}"),
        format!("/v1/streams/pages/top?{long}"),
        format!("/v1/streams/pages/top?count={long}"),
        "/v1/streams/pages/top?count=99999999999999999999999".to_owned(),
        "/v1/streams/pages/top?count=-1".to_owned(),
        "/v1/streams/pages/top?count=1e3".to_owned(),
        "/v1/streams/pages/top?count=1&count=2".to_owned(),
        "/v1/streams/pages/top?all=s3cret".to_owned(),
        "/v1/streams/pages/heavy-hitters".to_owned(),
        "/v1/streams/pages/heavy-hitters?threshold=nan".to_owned(),
        "/v1/streams/pages/heavy-hitters?threshold=inf".to_owned(),
        "/v1/streams/pages/heavy-hitters?threshold=0".to_owned(),
        "/v1/streams/pages/heavy-hitters?threshold=1e999".to_owned(),
        "/v1/streams/pages/heavy-hitters?threshold=0.1&certainty=s3cret".to_owned(),
        "/v1/streams/pages/frequency".to_owned(),
        "/v1/streams/pages/frequency?item=s3cret".to_owned(),
        "/v1/streams/pages/frequency?item_base64=s3cret*".to_owned(),
        "/v1/streams/pages/frequency?item=%ff%fe".to_owned(),
        "/v1/streams/pages/frequency?item=a&window=s3cret".to_owned(),
        "/v1/streams/pages/frequency?item=a&window=99999999999999999999".to_owned(),
        "/v1/streams/pages/frequency?item=a&window=18446744073709551615&as_of=18446744073709551615"
            .to_owned(),
        "/v1/streams/pages/frequency?item=a&as_of=s3cret".to_owned(),
        "/v1/streams/pages/trend?item=a&item=b".to_owned(),
        "/v1/sources?s3cret=1".to_owned(),
        "/v1/tokens?page=1".to_owned(),
    ] {
        refused(&rig.get(&path).await, &path);
    }
    let many = "item=a&".repeat(2000);
    refused(&rig.get(&format!("/v1/streams/pages/frequency?{many}")).await, "many items");
    still_answers(&rig).await;
}

#[tokio::test]
async fn bodies_of_questions_and_settings_that_are_none() {
    let rig = Rig::with_pages().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for path in [
        "/v1/streams/pages/frequencies",
        "/v1/streams/pages/heavy-hitters",
        "/v1/sources",
        "/v1/sources/web/streams",
        "/v1/tokens",
        "/v1/check/sources",
        "/v1/check/sources/web/streams",
    ] {
        for body in
            ["", "null", "[]", "{}", "s3cret", "{\"items\": [", &deep, &format!("{{\"items\": {deep}}}")]
        {
            let request = rig.request(Method::POST, path).header("content-type", "application/json");
            let reply = rig.send(request.body(Body::from(body.to_owned())).expect("a request")).await;
            refused(&reply, path);
        }
        let request = rig.request(Method::POST, path).header("content-type", "text/plain");
        let reply = rig.send(request.body(Body::from("{}")).expect("a request")).await;
        reply.problem(415, "unknown-content");
    }
    for question in [
        json!({"items": ["s3cret"]}),
        json!({"items": [{"s3cret": 1}]}),
        json!({"items": [["s3cret"]]}),
        json!({"items": "s3cret"}),
        json!({"items": [1.5]}),
        json!({"items": [-1]}),
        json!({"items": []}),
        json!({"items": ["a"], "s3cret": 1}),
        json!({"items": vec!["a"; 1001]}),
    ] {
        refused(&rig.post("/v1/streams/pages/frequencies", question.clone()).await, &question.to_string());
    }
    for threshold in [json!(0), json!(1e308), json!(-1), json!("s3cret"), json!(null)] {
        let question = json!({"items": ["a"], "threshold": threshold});
        refused(&rig.post("/v1/streams/pages/heavy-hitters", question.clone()).await, &question.to_string());
    }
    still_answers(&rig).await;
}

#[tokio::test]
async fn headers_that_contradict_each_other() {
    let rig = Rig::with_pages().await;
    let batch = || rig.batch_request("text/plain");
    let obscure = HeaderValue::from_bytes(b"\xff\xfe").expect("allowed in a header");
    for (request, what) in [
        (batch().header("content-type", "text/csv"), "two content types"),
        (batch().header("content-encoding", "gzip").header("content-encoding", "zstd"), "two encodings"),
        (batch().header("batch-id", "a/1").header("batch-id", "a/2"), "two ids"),
        (batch().header("idempotency-key", "a/1"), "another word for an id"),
        (batch().header("batch-id", obscure.clone()), "an id that is no text"),
        (batch().header("content-encoding", obscure.clone()), "an encoding that is no text"),
        (batch().header("content-length", "99999999999999999999"), "a length that is none"),
        (batch().header("authorization", "Bearer other"), "two tokens"),
    ] {
        refused(&rig.send(request.body(Body::from("a\n")).expect("a request")).await, what);
    }
    still_answers(&rig).await;
}

#[tokio::test]
async fn methods_that_nothing_takes() {
    let rig = Rig::with_pages().await;
    for (method, path) in [
        ("DELETE", "/v1/sources/web/events"),
        ("PUT", "/v1/sources"),
        ("S3CRET", "/v1/streams/pages/top"),
        ("OPTIONS", "/v1/streams/pages/top"),
        ("POST", "/healthz"),
        ("PATCH", "/openapi.json"),
    ] {
        let method = Method::from_bytes(method.as_bytes()).expect("a word");
        let reply = rig.send(rig.request(method, path).body(Body::empty()).expect("a request")).await;
        reply.problem(405, "wrong-method");
    }
    let head =
        Request::builder().method(Method::HEAD).uri("/healthz").body(Body::empty()).expect("a request");
    assert_eq!(rig.send(head).await.status, StatusCode::OK);
    still_answers(&rig).await;
}
