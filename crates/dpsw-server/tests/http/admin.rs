//! Sources, streams, contracts and metrics.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Rig, SOURCE, pages};

#[tokio::test]
async fn sources_and_streams_are_made_checked_listed_and_deleted() {
    let rig = Rig::new();
    let source: Value = serde_json::from_str(SOURCE).expect("JSON");
    rig.post("/v1/check/sources", source.clone()).await.expect(StatusCode::OK);
    rig.get("/v1/sources/web").await.problem(404, "unknown-source");
    rig.post("/v1/sources", source.clone()).await.expect(StatusCode::CREATED);
    rig.post("/v1/check/sources", source.clone()).await.problem(409, "name-taken");
    rig.post("/v1/sources", source).await.problem(409, "name-taken");
    let checked = rig.post("/v1/check/sources/web/streams", pages()).await.expect(StatusCode::OK);
    assert_eq!((&checked["from_ms"], &checked["keys"]), (&Value::Null, &json!({"listed": 4})));
    rig.get("/v1/streams/pages").await.problem(404, "unknown-stream");
    let made = rig.post("/v1/sources/web/streams", pages()).await.expect(StatusCode::CREATED);
    assert_eq!(made["plan"], checked["plan"]);
    rig.post("/v1/check/sources/web/streams", pages()).await.problem(409, "name-taken");
    assert_eq!(rig.get("/v1/streams").await.expect(StatusCode::OK)["streams"][0], made);
    assert_eq!(rig.get("/v1/streams/pages").await.expect(StatusCode::OK), made);
    let shown = rig.get("/v1/sources/web").await.expect(StatusCode::OK);
    assert_eq!((&shown["streams"], &shown["ledger"]["epsilon_spent"]), (&json!(["pages"]), &json!(1e5)));
    rig.delete("/v1/sources/web").await.problem(409, "has-streams");
    rig.delete("/v1/streams/pages").await.expect(StatusCode::NO_CONTENT);
    rig.delete("/v1/streams/pages").await.problem(404, "unknown-stream");
    let shown = rig.get("/v1/sources/web").await.expect(StatusCode::OK);
    assert_eq!(shown["ledger"]["charges"].as_array().map(Vec::len), Some(1));
    assert!(shown["ledger"]["charges"][0]["until_ms"].is_u64());
    rig.delete("/v1/sources/web").await.expect(StatusCode::NO_CONTENT);
    rig.get("/v1/sources/web").await.problem(404, "unknown-source");
}

#[tokio::test]
async fn a_stream_gets_other_settings_under_its_name() {
    let rig = Rig::with_pages().await;
    let wish = |name: &str, value: Value| {
        let mut stream = pages();
        stream[name] = value;
        stream
    };
    let changed = rig.put("/v1/streams/pages", wish("retention", json!(3))).await.expect(StatusCode::OK);
    assert_eq!(changed["retention"], 3);
    assert_eq!(rig.get("/v1/streams/pages").await.expect(StatusCode::OK), changed);
    let detail =
        rig.put("/v1/streams/pages", wish("name", json!("other"))).await.problem(422, "bad-settings");
    assert!(detail.contains("keeps its name"), "{detail}");
    let detail =
        rig.put("/v1/streams/pages", wish("keys", json!("found"))).await.problem(422, "bad-settings");
    assert!(detail.contains("which are listed"), "{detail}");
    rig.put("/v1/streams/none", wish("name", json!("none"))).await.problem(404, "unknown-stream");
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_with_the_reason() {
    let rig = Rig::with_pages().await;
    let stream = |name: &str, value: Value| {
        let mut stream = pages();
        stream["name"] = json!("other");
        stream[name] = value;
        stream
    };
    for (name, value, status, code) in [
        ("name", json!("a/b"), 422, "bad-settings"),
        ("item", json!("none"), 422, "bad-settings"),
        ("epsilon", json!(-1), 422, "bad-settings"),
        ("epsilon", json!(1e7), 422, "bad-settings"),
        ("epsilon", json!(950_000), 409, "over-budget"),
        ("memory", json!(1), 422, "no-plan"),
        ("window", json!("soon"), 400, "bad-json"),
        ("windows", json!(5), 400, "bad-json"),
        ("keys", json!({"file": "/etc/passwd"}), 400, "bad-json"),
        ("keys", json!({"integers": [1]}), 422, "bad-settings"),
        ("name", json!("pages"), 409, "name-taken"),
    ] {
        let wish = stream(name, value);
        let detail = rig.post("/v1/sources/web/streams", wish.clone()).await.problem(status, code);
        assert_eq!(rig.post("/v1/check/sources/web/streams", wish).await.problem(status, code), detail);
    }
    rig.post("/v1/sources/none/streams", pages()).await.problem(404, "unknown-source");
    let source = json!({"name": "x", "protects": "users", "epsilon": 1, "columns": {"page": "text"}});
    let detail = rig.post("/v1/sources", source).await.problem(422, "bad-settings");
    assert!(detail.contains("user_column"), "{detail}");
}

#[tokio::test]
async fn the_plan_in_words_has_times_as_people_write_them() {
    let rig = Rig::with_pages().await;
    let mut timed = pages();
    timed["name"] = json!("timed");
    (timed["window"], timed["expected"]) = (json!("15m"), json!(1000));
    let checked = rig.post("/v1/check/sources/web/streams", timed).await.expect(StatusCode::OK);
    let words = checked["plan"]["words"].as_str().expect("words");
    assert!(words.contains("the last 15m") && !words.contains("tick"), "{words}");
}

#[tokio::test]
async fn the_contract_says_what_is_promised_in_numbers_and_words() {
    let rig = Rig::with_pages().await;
    let contract = rig.get("/v1/streams/pages/privacy").await.expect(StatusCode::OK);
    assert_eq!((&contract["stream"], &contract["source"]), (&json!("pages"), &json!("web")));
    assert_eq!((&contract["epsilon"], &contract["delta"]), (&json!(1e5), &json!(0.0)));
    assert_eq!(contract["protects"], "event");
    assert!(contract["sentence"].as_str().is_some_and(|sentence| sentence.contains("epsilon")), "{contract}");
    assert_eq!(contract["ledger"]["epsilon"], 1e6);
}

#[tokio::test]
async fn metrics_count_events_only_where_their_number_is_public() {
    for (protects, is_public) in [("event", true), ("presence", false)] {
        let rig = Rig::new();
        rig.make(&SOURCE.replace("\"event\"", &format!("{protects:?}")), &[]).await;
        rig.batch("text/plain", "a\nb\n").await.expect(StatusCode::ACCEPTED);
        rig.batch("text/plain", "a\n").await.expect(StatusCode::ACCEPTED);
        let page = rig.get("/metrics").await;
        assert!(page.header("content-type").starts_with("text/plain; version=0.0.4"));
        let text = page.text();
        assert_eq!(text.contains("dpsw_events_total{source=\"web\"} 3"), is_public, "{text}");
        assert_eq!(text.contains("web"), is_public, "{text}");
    }
}

#[tokio::test]
async fn health_is_said_without_a_token_and_its_reasons_with_one() {
    let rig = Rig::new();
    assert_eq!(rig.get("/readyz").await.expect(StatusCode::OK), json!({"ready": true, "starting": false}));
    assert_eq!(rig.get("/version").await.expect(StatusCode::OK)["name"], "dpsw-server");
    rig.engine.shutdown().expect("nothing to save");
    assert_eq!(
        rig.get("/readyz").await.expect(StatusCode::SERVICE_UNAVAILABLE),
        json!({"ready": false, "starting": false})
    );
    assert_eq!(rig.get("/healthz").await.status, StatusCode::OK);
    let status = rig.get("/v1/status").await.expect(StatusCode::OK);
    assert!(status["reasons"][0].as_str().is_some_and(|reason| reason.contains("shutting down")), "{status}");
    rig.post("/v1/sources", serde_json::from_str(SOURCE).expect("JSON")).await.problem(503, "shutting-down");
}
