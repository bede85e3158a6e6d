//! Questions and their answers.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Rig, SOURCE, START_MS, pages};

/// The rows of an answer: item and estimate.
fn rows(answer: &Value) -> Vec<(String, f64)> {
    let row = |row: &Value| (row["item"].to_string(), row["estimate"].as_f64().expect("a number"));
    answer["items"].as_array().expect("rows").iter().map(row).collect()
}

fn row(item: &str, estimate: f64) -> (String, f64) {
    (format!("{item:?}"), estimate)
}

async fn counted() -> Rig {
    let rig = Rig::with_pages().await;
    // Equal parts in every substream, whatever its length is.
    rig.count(&["a", "b", "a", "c"], 1000).await;
    rig
}

#[tokio::test]
async fn an_answer_says_how_often_and_how_sure_and_what_it_covers() {
    let rig = counted().await;
    let answer = rig.get("/v1/streams/pages/frequency?item=a&item=d").await.expect(StatusCode::OK);
    assert_eq!(answer["window"], json!({"start": 3000, "end": 4000, "unit": "items"}));
    assert_eq!(answer["protects"], "event");
    assert_eq!((&answer["epsilon"], &answer["delta"]), (&json!(1e5), &json!(0.0)));
    assert_eq!(answer["total"], 1000);
    assert_eq!(answer["hidden"], 0);
    let a = &answer["items"][0];
    assert_eq!((&a["item"], &a["rank"]), (&json!("a"), &json!(1)));
    let number = |name: &str| a[name].as_f64().expect("a number");
    assert!((number("estimate") - 500.0).abs() < 5.0, "{a}");
    assert!(number("lower") <= 500.0 && 500.0 <= number("upper"), "{a}");
    assert!((number("share") - 0.5).abs() < 0.01, "{a}");
    assert_eq!(a["any_order"].as_array().map(Vec::len), Some(2));
    let covered = answer["covered"]["end"].as_u64().expect("a position");
    assert!((3000..=4000).contains(&covered));
    assert!(answer["items"][1]["estimate"].as_f64().expect("a number").abs() < 5.0);
}

#[tokio::test]
async fn many_items_are_asked_for_in_a_body() {
    let rig = counted().await;
    let question = json!({"items": ["b", {"base64": "YQ=="}, "d"]});
    let answer = rig.post("/v1/streams/pages/frequencies", question).await.expect(StatusCode::OK);
    let items: Vec<_> = rows(&answer).into_iter().map(|(item, _)| item).collect();
    assert_eq!(items, ["\"b\"", "\"a\"", "\"d\""]);
    let one = rig
        .get("/v1/streams/pages/frequency?item=b&item_base64=YQ%3D%3D&item=d")
        .await
        .expect(StatusCode::OK);
    // Those in base64 come behind the others.
    assert_eq!(one["items"][2]["estimate"], answer["items"][1]["estimate"]);
}

#[tokio::test]
async fn lists_have_the_largest_first() {
    let rig = counted().await;
    let top = rig.get("/v1/streams/pages/top?count=2").await.expect(StatusCode::OK);
    let items: Vec<_> = rows(&top).into_iter().map(|(item, _)| item).collect();
    assert_eq!(items[0], "\"a\"");
    assert_eq!(items.len(), 2);
    let heavy = rig.get("/v1/streams/pages/heavy-hitters?threshold=0.3").await.expect(StatusCode::OK);
    assert_eq!(rows(&heavy).len(), 1);
    let sure = rig.get("/v1/streams/pages/heavy-hitters?threshold=0.2&certainty=sure&strict=true");
    assert_eq!(rows(&sure.await.expect(StatusCode::OK)).len(), 3);
    let all = rig.get("/v1/streams/pages/top?all=true").await.expect(StatusCode::OK);
    assert_eq!((rows(&all).len(), &all["hidden"]), (4, &json!(0)));
    let some = rig.get("/v1/streams/pages/top").await.expect(StatusCode::OK);
    assert_eq!((rows(&some).len(), &some["hidden"]), (3, &json!(1)));
}

/// Noise scatters the estimates of keys that are equally frequent. Only a request that hides nothing shows them as they are; in
/// every other one the rows were chosen, and what they share pulls them together.
#[tokio::test]
async fn a_list_of_few_keys_is_corrected_by_default() {
    let rig = Rig::new();
    let keys: Vec<String> = (0..10).map(|key| format!("page-{key}")).collect();
    let stream = json!({"name": "few", "item": "page", "window": 2000, "epsilon": 1, "keys": {"list": keys}});
    rig.make(SOURCE, &[stream]).await;
    rig.count(&keys.iter().map(String::as_str).collect::<Vec<_>>(), 400).await;
    let spread = async |question: &str| {
        let answer = rig.get(&format!("/v1/streams/few/{question}")).await.expect(StatusCode::OK);
        let rows = rows(&answer);
        assert!(8 < rows.len(), "{answer}");
        rows[0].1 - rows[8].1
    };
    let plain = spread("top?all=true").await;
    for chosen in [
        "top",
        "top?count=100",
        "top?count=9&all=true",
        "heavy-hitters?threshold=0.0001",
        "heavy-hitters?threshold=0.0001&all=true",
    ] {
        assert!(spread(chosen).await < plain, "{chosen}");
    }
    assert_eq!(spread("top?count=100&all=true").await, plain);
}

#[tokio::test]
async fn candidates_are_chosen_from_where_keys_cannot_be_listed() {
    let rig = Rig::new();
    let asked = json!({"name": "pages", "item": "page", "window": 1000, "epsilon": 1e5});
    rig.make(SOURCE, &[asked]).await;
    rig.count(&["a", "b", "a", "c"], 1000).await;
    rig.get("/v1/streams/pages/top").await.problem(422, "no-list");
    let question = json!({"items": ["a", "b", "x"], "threshold": 0.2});
    let heavy = rig.post("/v1/streams/pages/heavy-hitters", question).await.expect(StatusCode::OK);
    let items: Vec<_> = rows(&heavy).into_iter().map(|(item, _)| item).collect();
    assert_eq!(items, ["\"a\"", "\"b\""]);
}

/// A stream that keeps four windows, and how many items lie between two seals. Windows that end with a seal and begin with
/// one are answered exactly, as there is no noise to speak of.
async fn kept() -> (Rig, usize) {
    let rig = Rig::new();
    let mut stream = pages();
    stream["retention"] = json!(4);
    rig.make(SOURCE, &[stream]).await;
    let stream = rig.get("/v1/streams/pages").await.expect(StatusCode::OK);
    let len = stream["plan"]["substream_len"].as_u64().expect("a length");
    (rig, usize::try_from(len).expect("short"))
}

#[tokio::test]
async fn shorter_and_past_windows_are_answered_from_the_same_state() {
    let (rig, len) = kept().await;
    let many = 2000 / len * len;
    rig.count(&["a"], many).await;
    rig.count(&["b"], many).await;
    let ask = async |params: String| {
        let answer = rig.get(&format!("/v1/streams/pages/frequency?item=a&item=b{params}")).await;
        rows(&answer.expect(StatusCode::OK))
    };
    let short = 10 * len;
    let (all, some) = (2.0 * short as f64, short as f64);
    assert_eq!(ask(format!("&window={}", 2 * short)).await, [row("a", 0.0), row("b", all)]);
    assert_eq!(ask(format!("&as_of={many}&window={}", 2 * short)).await, [row("a", all), row("b", 0.0)]);
    let between = format!("&as_of={}&window={}", many + short, 2 * short);
    assert_eq!(ask(between).await, [row("a", some), row("b", some)]);
    let top = rig.get(&format!("/v1/streams/pages/top?as_of={many}&window={short}")).await;
    assert_eq!(rows(&top.expect(StatusCode::OK)), [row("a", some)]);
    rig.get("/v1/streams/pages/top?as_of=5000").await.problem(422, "not-retained");
    rig.get("/v1/streams/pages/top?window=5m").await.problem(400, "bad-parameter");
    rig.get("/v1/streams/pages/top?window=0").await.problem(400, "bad-parameter");
}

#[tokio::test]
async fn an_item_has_a_history_and_a_trend() {
    let (rig, len) = kept().await;
    let many = 2000 / len * len;
    rig.count(&["b"], many).await;
    rig.count(&["a"], many).await;
    let history = rig.get("/v1/streams/pages/history?item=a").await.expect(StatusCode::OK);
    let substreams = history["substreams"].as_array().expect("substreams");
    let total: f64 = substreams.iter().map(|one| one["estimate"].as_f64().expect("a number")).sum();
    assert_eq!((total, &substreams[0]["window"]["start"]), (many as f64, &json!(0)));
    let newest = rig.get(&format!("/v1/streams/pages/history?item=a&window={}", 5 * len)).await;
    assert_eq!(newest.expect(StatusCode::OK)["substreams"].as_array().map(Vec::len), Some(5));
    let (window, end) = (10 * len, many + 10 * len);
    let params = format!("as_of={end}&window={window}");
    let trend = rig.get(&format!("/v1/streams/pages/trend?item=a&{params}")).await.expect(StatusCode::OK);
    assert_eq!(trend["trend"], "rising");
    assert_eq!(
        (&trend["now"]["estimate"], &trend["before"]["estimate"]),
        (&json!(window as f64), &json!(0.0))
    );
    let rows = rig.get(&format!("/v1/streams/pages/top?trend=true&{params}")).await.expect(StatusCode::OK);
    assert_eq!(rows["items"][0]["trend"], "rising");
    rig.get("/v1/streams/pages/history").await.problem(400, "bad-parameter");
    // An item in the body stays out of the logs of proxies; the answer is the same.
    let by_body = |item: Value| rig.post("/v1/streams/pages/history", json!({"item": item}));
    assert_eq!(by_body(json!("a")).await.expect(StatusCode::OK), history);
    assert_eq!(by_body(json!({"base64": "YQ=="})).await.expect(StatusCode::OK), history);
    let problem = by_body(json!({"s3cret": 1})).await.problem(400, "bad-json");
    assert!(!problem.contains("s3cret"), "{problem}");
}

#[tokio::test]
async fn integers_are_asked_for_and_answered_as_integers() {
    let rig = Rig::new();
    let source = r#"{"name": "web", "protects": "event", "epsilon": 1e6, "columns": {"status": "integer"}}"#;
    let stream = json!({"name": "codes", "item": "status", "window": 1000, "epsilon": 1e5, "keys": {"integers": [200, 404]}});
    rig.make(source, &[stream]).await;
    let body = "{\"status\": 200}\n{\"status\": \"404\"}\n{\"status\": -1}\n{\"status\": 200}\n".repeat(1000);
    rig.batch("application/x-ndjson", body).await.expect(StatusCode::ACCEPTED);
    rig.settle().await;
    let top = rig.get("/v1/streams/codes/top").await.expect(StatusCode::OK);
    assert_eq!(top["items"][0]["item"], 200);
    let asked = rig.post("/v1/streams/codes/frequencies", json!({"items": [404, "200"]})).await;
    let asked = asked.expect(StatusCode::OK);
    assert_eq!((&asked["items"][0]["item"], &asked["items"][1]["item"]), (&json!(404), &json!(200)));
    let detail = rig.get("/v1/streams/codes/frequency?item=200&item=secret").await.problem(422, "wrong-item");
    assert!(detail.contains("item number 2") && !detail.contains("secret"), "{detail}");
    let detail = rig.get("/v1/streams/codes/frequency?item=7").await.problem(422, "wrong-item");
    assert!(detail.contains("item number 1"), "{detail}");
}

#[tokio::test]
async fn where_presence_is_private_no_answer_has_a_total() {
    let rig = Rig::new();
    let source = r#"{"name": "web", "protects": "presence", "epsilon": 1e6, "columns": {"page": "text"}}"#;
    let stream = json!({"name": "pages", "item": "page", "window": "1h", "expected": 1000, "epsilon": 1e5,
                        "keys": {"list": ["a", "b"]}});
    rig.make(source, &[stream]).await;
    rig.batch("text/plain", "a\na\nb\n").await.expect(StatusCode::ACCEPTED);
    rig.settle().await;
    rig.clock.set(START_MS + 3_600_000);
    rig.settle().await;
    let answer = rig.get("/v1/streams/pages/top").await.expect(StatusCode::OK);
    assert_eq!((&answer["total"], &answer["protects"]), (&Value::Null, &json!("presence")));
    assert_eq!(answer["window"]["unit"], "ms");
    assert_eq!(answer["items"][0]["item"], "a");
    for path in ["/v1/streams/pages/history?item=a", "/v1/streams/pages/trend?item=a"] {
        assert_eq!(rig.get(path).await.expect(StatusCode::OK)["total"], Value::Null);
    }
    let past =
        format!("/v1/streams/pages/frequency?item=a&window=30m&as_of={}", (START_MS + 3_600_000) / 1000);
    rig.get(&past).await.expect(StatusCode::OK);
    rig.get("/v1/streams/pages/top?window=5").await.problem(400, "bad-parameter");
    rig.get("/v1/streams/pages/top?as_of=soon").await.problem(400, "bad-parameter");
}

#[tokio::test]
async fn shares_are_of_the_items_that_count() {
    let rig = Rig::new();
    let source = r#"{"name": "web", "protects": "users", "items_per_user": 1, "epsilon": 1e6,
                     "columns": {"page": "text"}, "user_column": "who"}"#;
    let stream = json!({"name": "pages", "item": "page", "window": 1000, "epsilon": 1e5, "keys": {"list": ["a", "b"]}});
    rig.make(source, &[stream]).await;
    // Of each user the first of two items counts.
    let event =
        |who: u64| format!("{{\"page\": \"a\", \"who\": {who}}}\n{{\"page\": \"b\", \"who\": {who}}}\n");
    rig.batch("application/x-ndjson", (0..2000).map(event).collect::<String>())
        .await
        .expect(StatusCode::ACCEPTED);
    rig.settle().await;
    let answer = rig.get("/v1/streams/pages/frequency?item=a").await.expect(StatusCode::OK);
    let share = answer["items"][0]["share"].as_f64().expect("a share");
    assert!((share - 1.0).abs() < 0.01, "{answer}");
    let (total, capped) = (answer["total"].as_u64(), answer["capped"].as_u64());
    assert_eq!(total.zip(capped).map(|(total, capped)| total + capped), Some(1000), "{answer}");
    let history = rig.get("/v1/streams/pages/history?item=a").await.expect(StatusCode::OK);
    let share = history["substreams"][0]["share"].as_f64().expect("a share");
    assert!((share - 1.0).abs() < 0.05, "{history}");
}

#[tokio::test]
async fn private_top_items_are_metrics_only_where_the_operator_says_so() {
    let rig = Rig::with(|parts| parts.prometheus = ["pages".to_owned()].into());
    let mut other = pages();
    other["name"] = json!("others");
    rig.make(SOURCE, &[pages(), other]).await;
    rig.count(&["a", "b", "a", "c"], 1000).await;
    let page = rig.get("/v1/streams/pages/prometheus?count=2").await;
    assert_eq!((page.status, page.header("content-type").starts_with("text/plain")), (StatusCode::OK, true));
    let text = page.text();
    for line in [
        "dpsw_item_estimate{stream=\"pages\",item=\"a\"} ",
        "dpsw_item_lower{stream=\"pages\",item=\"a\"} ",
        "dpsw_item_upper{stream=\"pages\",item=\"a\"} ",
    ] {
        assert!(text.lines().any(|found| found.starts_with(line)), "{line} is missing in\n{text}");
    }
    rig.get("/v1/streams/others/prometheus").await.problem(404, "not-offered");
}
