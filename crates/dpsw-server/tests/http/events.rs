//! Batches: every format, compressed or not, once.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use dpsw_server::auth::Role;
use dpsw_server::{ChangeError, StreamConfig};
use futures_util::stream;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{Reply, Rig, SOURCE, pages};

async fn estimate(rig: &Rig, item: &str) -> f64 {
    rig.settle().await;
    let answer = rig.get(&format!("/v1/streams/pages/frequency?item={item}&as_of=1000")).await;
    answer.expect(StatusCode::OK)["items"][0]["estimate"].as_f64().expect("a number")
}

fn arrow(pages: &[&str]) -> Vec<u8> {
    let column: ArrayRef = Arc::new(StringArray::from(pages.to_vec()));
    let batch = RecordBatch::try_from_iter([("page", column)]).expect("one column");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("memory");
    writer.write(&batch).expect("memory");
    writer.into_inner().expect("memory")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

#[tokio::test]
async fn every_format_brings_the_same_events() {
    let pages: Vec<&str> = ["a", "b", "a", "c"].repeat(250);
    let documents: Vec<Value> = pages.iter().map(|page| json!({"page": page, "x": [1]})).collect();
    let lines: String = documents.iter().map(|document| format!("{document}\n")).collect();
    let bodies: [(&str, Vec<u8>); 5] = [
        ("text/plain", pages.join("\n").into()),
        ("application/x-ndjson; charset=utf-8", lines.into()),
        ("application/json", Value::from(documents).to_string().into()),
        ("text/csv", format!("x,page\n1,{}\n", pages.join("\n1,")).into()),
        ("application/vnd.apache.arrow.stream", arrow(&pages)),
    ];
    for (content_type, body) in bodies {
        let rig = Rig::with_pages().await;
        let receipt = rig.batch(content_type, body).await.expect(StatusCode::ACCEPTED);
        assert_eq!(receipt, json!({"events": 1000, "repeated": false}), "{content_type}");
        assert_eq!(estimate(&rig, "a").await, 500.0, "{content_type}");
    }
}

#[tokio::test]
async fn bodies_may_be_packed() {
    let body = "a\nb\na\nc\n".repeat(250);
    let packed =
        [("gzip", gzip(body.as_bytes())), ("ZSTD", zstd::encode_all(body.as_bytes(), 1).expect("memory"))];
    for (encoding, packed) in packed {
        let rig = Rig::with_pages().await;
        let request =
            rig.request(Method::POST, "/v1/sources/web/events").header("content-type", "text/plain");
        let request =
            request.header("content-encoding", encoding).body(Body::from(packed)).expect("a request");
        assert_eq!(rig.send(request).await.expect(StatusCode::ACCEPTED)["events"], 1000);
        assert_eq!(estimate(&rig, "a").await, 500.0, "{encoding}");
    }
}

/// Sends pages under an id to a source, with a token.
async fn send_with_id(rig: &Rig, token: &str, source: &str, id: &str, body: &str) -> Reply {
    let request = Request::post(format!("/v1/sources/{source}/events")).header("content-type", "text/plain");
    let request = request.header("authorization", format!("Bearer {token}")).header("batch-id", id);
    rig.send(request.body(Body::from(body.to_owned())).expect("a request")).await
}

#[tokio::test]
async fn a_batch_with_an_id_counts_once_whatever_is_in_it() {
    let rig = Rig::with_pages().await;
    let send = |id: &'static str, body: String| {
        let rig = &rig;
        async move { send_with_id(rig, &rig.token, "web", id, &body).await }
    };
    let first = send("web-1/7", "a\n".repeat(500)).await;
    assert_eq!(first.expect(StatusCode::ACCEPTED)["repeated"], false);
    for body in ["a\n", "b\nb\n"] {
        assert_eq!(send("web-1/7", body.to_owned()).await.expect(StatusCode::OK)["repeated"], true);
    }
    send("web-1/6", "b\n".repeat(300)).await.expect(StatusCode::ACCEPTED);
    send("web-1/2000", "b\n".repeat(200)).await.expect(StatusCode::ACCEPTED);
    let detail = send("web-1/8", "a\n".to_owned()).await.problem(409, "batch-too-old");
    assert!(detail.contains("taken before, or is too old"), "{detail}");
    assert_eq!((estimate(&rig, "a").await, estimate(&rig, "b").await), (500.0, 500.0));
    for id in ["", "1", "web-1", "web 1/2", "4d7c2e0a-93f1-4b6e-8a8e-0c7d5a1b2f3e", "web-1/-1"] {
        let detail = send(id, "a\n".to_owned()).await.problem(400, "bad-batch-id");
        assert!(detail.contains("as in web-1/42"), "{detail}");
    }
}

/// Neither the answer nor what is counted tells one token what another has sent, also where presence is private.
#[tokio::test]
async fn ids_of_tokens_of_different_names_have_nothing_to_do_with_each_other() {
    let rig = Rig::with_pages().await;
    let quiet = r#"{"name": "quiet", "protects": "presence", "epsilon": 1, "columns": {"page": "text"}}"#;
    rig.make(quiet, &[]).await;
    let named = |name| rig.named_token(name, Role::Ingest, None, None);
    let (shop, lab, unnamed, other) = (named("shop"), named("lab"), named(""), named(""));
    for source in ["web", "quiet"] {
        for token in [&shop, &lab, &unnamed, &other] {
            let first = send_with_id(&rig, token, source, "sender/1", "a\n").await;
            first.expect(StatusCode::ACCEPTED);
            send_with_id(&rig, token, source, "sender/1", "a\n").await.expect(StatusCode::OK);
        }
        // A new token of the same name takes the place of the old one.
        send_with_id(&rig, &named("shop"), source, "sender/1", "a\n").await.expect(StatusCode::OK);
    }
}

#[tokio::test]
async fn what_cannot_be_an_item_takes_its_place_and_refuses_nothing() {
    let rig = Rig::with_pages().await;
    let long = "x".repeat(2000);
    let body =
        format!("{{\"page\": \"a\"}}\n{{}}\n{{\"page\": \"{long}\"}}\n{{\"page\": [\"a\"]}}\n").repeat(250);
    assert_eq!(rig.batch("application/x-ndjson", body).await.expect(StatusCode::ACCEPTED)["events"], 1000);
    assert_eq!(estimate(&rig, "a").await, 250.0);
}

#[tokio::test]
async fn a_batch_that_is_no_json_is_refused_whole_with_its_line() {
    let rig = Rig::with_pages().await;
    let body = format!("{}secret\n", "{\"page\": \"a\"}\n".repeat(1000));
    let detail = rig.batch("application/x-ndjson", body).await.problem(400, "bad-batch");
    assert!(detail.contains("line 1001") && !detail.contains("secret"), "{detail}");
    rig.count(&["b"], 1000).await;
    assert_eq!(estimate(&rig, "b").await, 1000.0);
}

#[tokio::test]
async fn streams_that_are_made_later_count_from_then_on() {
    let rig = Rig::with_pages().await;
    rig.count(&["a"], 1000).await;
    let other = json!({"name": "others", "item": "page", "window": 1000, "epsilon": 1e5, "keys": {"list": ["a", "b"]}});
    rig.post("/v1/sources/web/streams", other).await.expect(StatusCode::CREATED);
    rig.count(&["b"], 1000).await;
    let top = rig.get("/v1/streams/others/top").await.expect(StatusCode::OK);
    assert_eq!((&top["items"][0]["item"], top["items"].as_array().map(Vec::len)), (&json!("b"), Some(1)));
}

#[tokio::test]
async fn users_and_times_come_in_columns_of_their_own() {
    let rig = Rig::new();
    let source = r#"{"name": "web", "protects": "users", "items_per_user": 1, "epsilon": 1e6,
                     "columns": {"page": "text"}, "user_column": "who", "time_column": "at"}"#;
    let stream = json!({"name": "pages", "item": "page", "window": "1h", "expected": 1000, "epsilon": 1e5,
                        "keys": {"list": ["a", "b"]}});
    rig.make(source, &[stream]).await;
    let event = |at: u64, who: &str| format!("{{\"page\": \"a\", \"who\": \"{who}\", \"at\": {at}}}\n");
    // The same user in one substream counts once. Time moves on with the last event, which is not sealed yet.
    let body = event(1000, "u") + &event(1000, "u") + &event(1001, "v") + &event(4600, "w");
    rig.batch("application/x-ndjson", body).await.expect(StatusCode::ACCEPTED);
    rig.settle().await;
    let answer = rig.get("/v1/streams/pages/frequency?item=a").await.expect(StatusCode::OK);
    assert_eq!(answer["items"][0]["estimate"], 2.0, "{answer}");
    rig.batch("text/plain", "a\n").await.problem(415, "unknown-content");
}

/// Where the client goes away at whichever point, a stream that was made counts; one that was not made is made by somebody else.
#[tokio::test]
async fn a_stream_whose_client_went_away_while_it_was_made_counts() {
    for polls in 0.. {
        let rig = Rig::new();
        rig.make(SOURCE, &[]).await;
        rig.batch("text/plain", "a\n").await.expect(StatusCode::ACCEPTED);
        let request = rig.request(Method::POST, "/v1/sources/web/streams");
        let request =
            request.header("content-type", "application/json").body(Body::from(pages().to_string()));
        let mut making = Box::pin(rig.router.clone().oneshot(request.expect("a request")));
        let mut is_made = false;
        for _ in 0..polls {
            tokio::select! {
                biased;
                _ = &mut making => { is_made = true; break; }
                () = tokio::time::sleep(Duration::from_millis(1)) => {}
            }
        }
        drop(making);
        let stream: StreamConfig = serde_json::from_value(pages()).expect("settings");
        let engine = Arc::clone(&rig.engine);
        let ensured = tokio::task::spawn_blocking(move || engine.ensure_stream("web", &stream)).await;
        // The request may make it at the same moment.
        assert!(matches!(ensured.expect("a thread"), Ok(()) | Err(ChangeError::Exists { .. })));
        rig.count(&["a"], 1000).await;
        assert_eq!(estimate(&rig, "a").await, 1000.0, "the client went away after {polls} polls");
        if is_made {
            break;
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_made_while_a_body_comes_counts_its_events() {
    let rig = Rig::new();
    rig.make(SOURCE, &[]).await;
    let (sender, pieces) = tokio::sync::mpsc::channel::<String>(1);
    let pieces = stream::unfold(pieces, |mut pieces| async {
        pieces.recv().await.map(|piece| (Ok::<_, std::convert::Infallible>(piece), pieces))
    });
    let request = rig.batch_request("text/plain").body(Body::from_stream(pieces)).expect("a request");
    let sending = async {
        sender.send("a\n".repeat(500)).await.expect("it is read");
        rig.post("/v1/sources/web/streams", pages()).await.expect(StatusCode::CREATED);
        sender.send("a\n".repeat(500)).await.expect("it is read");
        drop(sender);
    };
    let (reply, ()) = tokio::join!(rig.send(request), sending);
    reply.expect(StatusCode::ACCEPTED);
    assert_eq!(estimate(&rig, "a").await, 1000.0);
}
