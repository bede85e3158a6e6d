//! Streams that are sealed elsewhere.

use axum::body::Body;
use axum::http::{Method, StatusCode};
use bytes::Bytes;
use dpsw::{Batch, Clock, DpswSketch, Noise, Settings, StreamKey, TimeWindow, Unit, Window, WindowView};
use dpsw_server::auth::Role;
use serde_json::{Value, json};

use crate::live::Followed;
use crate::support::{Reply, Rig, SOURCE, pages};

const PATH: &str = "/v1/streams/sales/view";

/// Who seals elsewhere. With so much epsilon every draw of noise is zero.
pub(crate) struct Driver(DpswSketch);

impl Driver {
    fn new() -> Self {
        Self::with(&settings(), 7, 1)
    }

    fn with(settings: &Settings, key: u8, site: u64) -> Self {
        let plan = settings.clone().plan().expect("a plan");
        let key = StreamKey::from_bytes([key; 32]);
        Self(DpswSketch::with_key(plan, key, Noise::from_system()).at_site(site))
    }

    /// The view after these keys came so often.
    fn view(&mut self, keys: &[&str], times: usize) -> Vec<u8> {
        self.0.extend(Batch::text(&keys.repeat(times))).expect("in order");
        self.0.view().to_bytes()
    }
}

fn settings() -> Settings {
    Settings::last_items(1000, 1e5).expect("settings").with_keys(["a", "b", "c", "d"])
}

impl Rig {
    async fn put_view(&self, token: &str, path: &str, view: impl Into<Bytes>) -> Reply {
        let request = axum::http::Request::builder().method(Method::PUT).uri(path);
        let request = request.header("authorization", format!("Bearer {token}"));
        let request = request.header("content-type", "application/vnd.dpsw.view");
        self.send(request.body(Body::from(view.into())).expect("a request")).await
    }

    /// Sends a view of `sales`, with the token that may do everything.
    async fn publish(&self, view: impl Into<Bytes>) -> Reply {
        self.put_view(&self.token, PATH, view).await
    }

    async fn shown(&self) -> Vec<u8> {
        let reply = self.get(PATH).await;
        assert_eq!(reply.status, StatusCode::OK);
        reply.body.to_vec()
    }
}

#[tokio::test]
async fn a_stream_that_is_sealed_elsewhere_answers_like_the_others() {
    let rig = Rig::with(|parts| parts.prometheus = ["sales".to_owned()].into());
    rig.make(SOURCE, &[pages()]).await;
    let view = Driver::new().view(&["a", "a", "b"], 1000);
    rig.publish(view.clone()).await.expect(StatusCode::CREATED);
    rig.count(&["a", "a", "b"], 1000).await;
    assert_eq!(rig.shown().await, view);
    // The stream that is counted here has the same window, keys and items.
    for question in [
        "top?count=2&trend=true",
        "frequency?item=a",
        "frequency?item=b&window=500",
        "heavy-hitters?threshold=0.4",
        "history?item=a",
        "trend?item=b",
        "top?as_of=3000",
    ] {
        let [here, there] = ["pages", "sales"].map(|stream| format!("/v1/streams/{stream}/{question}"));
        let (here, there) = (rig.get(&here).await, rig.get(&there).await);
        let (here, there) = (here.expect(StatusCode::OK), there.expect(StatusCode::OK));
        assert_eq!(here, there, "{question}");
    }
    let page = rig.get("/v1/streams/sales/prometheus").await.text();
    assert!(page.contains("dpsw_item_estimate{stream=\"sales\",item=\"a\"}"), "{page}");
    assert!(rig.get("/metrics").await.text().contains("dpsw_plan_bytes{stream=\"sales\"}"));
}

#[tokio::test]
async fn it_is_listed_with_what_its_view_promises_and_without_a_source() {
    let rig = Rig::with_pages().await;
    rig.publish(Driver::new().view(&["a"], 2000)).await.expect(StatusCode::CREATED);
    let streams = rig.get("/v1/streams").await.expect(StatusCode::OK);
    let names: Vec<&Value> =
        streams["streams"].as_array().expect("a list").iter().map(|stream| &stream["name"]).collect();
    assert_eq!(names, ["pages", "sales"]);
    let stream = rig.get("/v1/streams/sales").await.expect(StatusCode::OK);
    assert_eq!(stream, streams["streams"][1]);
    let nothing = (&stream["source"], &stream["item"], &stream["from_ms"]);
    assert_eq!(nothing, (&Value::Null, &Value::Null, &Value::Null));
    assert_eq!((&stream["window"], &stream["keys"]), (&json!(1000), &json!({"listed": 4})));
    assert_eq!((&stream["plan"]["epsilon"], &stream["plan"]["delta"]), (&json!(1e5), &json!(0.0)));
    let contract = rig.get("/v1/streams/sales/privacy").await.expect(StatusCode::OK);
    assert_eq!((&contract["protects"], &contract["epsilon"]), (&json!("event"), &json!(1e5)));
    assert_eq!((&contract["source"], &contract["ledger"]), (&Value::Null, &Value::Null));
    assert!(
        contract["sentence"].as_str().is_some_and(|text| text.contains("sealed elsewhere")),
        "{contract}"
    );
    let source = rig.get("/v1/sources/web").await.expect(StatusCode::OK);
    assert_eq!(
        (&source["streams"], source["ledger"]["charges"].as_array().map(Vec::len)),
        (&json!(["pages"]), Some(1))
    );
    rig.get("/readyz").await.expect(StatusCode::OK);
    // No events reach it, and it has no settings to change.
    rig.count(&["c"], 3000).await;
    let items = rig.get("/v1/streams/sales/top").await.expect(StatusCode::OK)["items"].clone();
    assert_eq!((&items[0]["item"], items.as_array().map(Vec::len)), (&json!("a"), Some(1)));
    let mut other = pages();
    other["name"] = json!("sales");
    rig.put("/v1/streams/sales", other.clone()).await.problem(409, "sealed-elsewhere");
    rig.post("/v1/sources/web/streams", other.clone()).await.problem(409, "name-taken");
    rig.post("/v1/check/sources/web/streams", other.clone()).await.problem(409, "name-taken");
    rig.delete("/v1/streams/sales").await.expect(StatusCode::NO_CONTENT);
    rig.get("/v1/streams/sales").await.problem(404, "unknown-stream");
    rig.post("/v1/sources/web/streams", other).await.expect(StatusCode::CREATED);
}

#[tokio::test]
async fn where_presence_is_private_no_number_of_items_is_told() {
    let rig = Rig::new();
    let window = TimeWindow { len: 1000, lateness: 0, clock: Clock::Caller, expected_items: 1000 };
    let settings = Settings::new(Window::Time(window), 1e5).expect("settings").with_keys(["a", "b"]);
    let plan = settings.with_unit(Unit::AddRemove).plan().expect("a plan");
    let mut sketch = DpswSketch::new(plan).expect("randomness");
    for time in 0..3000 {
        sketch.advance(time).expect("a clock");
        sketch.extend(Batch::text(&["a"]).at(&[time])).expect("in time");
    }
    rig.publish(sketch.view().to_bytes()).await.expect(StatusCode::CREATED);
    let top = rig.get("/v1/streams/sales/top").await.expect(StatusCode::OK);
    assert_eq!((&top["protects"], &top["total"]), (&json!("presence"), &Value::Null));
    let contract = rig.get("/v1/streams/sales/privacy").await.expect(StatusCode::OK);
    assert_eq!(contract["protects"], "presence");
}

#[tokio::test]
async fn later_views_take_its_place_and_the_same_one_changes_nothing() {
    let rig = Rig::new();
    let mut driver = Driver::new();
    let views = [driver.view(&["a"], 900), driver.view(&["b"], 600), driver.view(&["c"], 600)];
    rig.publish(views[0].clone()).await.expect(StatusCode::CREATED);
    let mut followed = Followed::of(&rig, &rig.token, "/v1/streams/sales/live?count=1").await;
    assert_eq!(followed.next().await.expect("at once")["items"][0]["item"], "a");
    rig.publish(views[0].clone()).await.expect(StatusCode::NO_CONTENT);
    rig.publish(views[1].clone()).await.expect(StatusCode::NO_CONTENT);
    // The same one was no change: the next event is the next view.
    assert_eq!(followed.next().await.expect("a change")["items"][0]["item"], "b");
    rig.publish(views[0].clone()).await.problem(409, "old-view");
    assert_eq!(rig.shown().await, views[1]);
    rig.publish(views[2].clone()).await.expect(StatusCode::NO_CONTENT);
    assert_eq!(followed.next().await.expect("a change")["items"][0]["item"], "c");
    let last = driver.0.finish().expect("randomness").to_bytes();
    rig.publish(last.clone()).await.expect(StatusCode::NO_CONTENT);
    assert!(followed.next().await.is_some());
    rig.publish(last.clone()).await.expect(StatusCode::NO_CONTENT);
    let mut longer = Driver::new();
    longer.view(&["a"], 9000);
    rig.publish(longer.view(&["a"], 1)).await.problem(409, "stream-over");
    assert_eq!(rig.shown().await, last);
    rig.delete("/v1/streams/sales").await.expect(StatusCode::NO_CONTENT);
    assert_eq!(followed.next().await, None);
}

#[tokio::test]
async fn views_of_other_streams_and_without_a_promise_are_refused_and_change_nothing() {
    let rig = Rig::with_pages().await;
    // The noise of this one was seeded.
    let seeded = include_bytes!("../../../dpsw/tests/golden/view.bin");
    rig.publish(&seeded[..]).await.problem(422, "no-claim");
    rig.get(PATH).await.problem(404, "unknown-stream");
    let noisy = Settings::last_items(1000, 0.1).expect("settings").with_keys(["a", "b", "c"]);
    let mut driver = Driver::with(&noisy, 7, 1);
    let view = driver.view(&["a"], 900);
    rig.publish(view.clone()).await.expect(StatusCode::CREATED);
    let keys = noisy.clone().with_keys(["a", "b"]);
    for (other, code) in [
        (Driver::with(&keys, 7, 1), "other-stream"),
        (Driver::with(&noisy, 8, 1), "other-stream"),
        (Driver::with(&noisy, 7, 2), "other-stream"),
        // As a driver that was believed dead.
        (Driver::with(&noisy, 7, 1), "sealed-twice"),
    ] {
        let mut other = other;
        rig.publish(other.view(&["a"], 1200)).await.problem(409, code);
        assert_eq!(rig.shown().await, view);
    }
    rig.publish(&seeded[..]).await.problem(422, "no-claim");
    let of_pages = rig.get("/v1/streams/pages/view").await.body;
    rig.put_view(&rig.token, "/v1/streams/pages/view", view.clone()).await.problem(409, "counted-here");
    assert_eq!(rig.get("/v1/streams/pages/view").await.body, of_pages);
    rig.publish(driver.view(&["b"], 600)).await.expect(StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn bytes_that_are_no_view_are_refused_and_change_nothing() {
    let rig = Rig::with(|parts| parts.limits.body = dpsw_server::quantity::Size(100_000));
    let view = Driver::new().view(&["a"], 1200);
    let mut sent = 0;
    let mut refused = async |bytes: Vec<u8>| {
        let status = rig.publish(bytes).await.problem(400, "bad-view");
        assert!(!status.is_empty());
        sent += 1;
    };
    refused(Vec::new()).await;
    refused(b"nonsense".to_vec()).await;
    refused(view[..view.len() - 1].to_vec()).await;
    refused([&view[..], b"x"].concat()).await;
    for at in (0..view.len()).step_by(7) {
        let mut damaged = view.clone();
        damaged[at] ^= 1 << (at % 8);
        refused(damaged).await;
    }
    assert!(20 < sent, "{sent}");
    rig.publish(vec![0; 100_001]).await.problem(413, "body-too-large");
    let request = rig.request(Method::PUT, PATH).header("content-type", "application/octet-stream");
    let request = request.body(Body::from(view.clone())).expect("a request");
    rig.send(request).await.problem(415, "unknown-content");
    rig.put_view(&rig.token, "/v1/streams/-x/view", view.clone()).await.problem(422, "bad-settings");
    rig.put_view(&rig.token, "/v1/streams/sales/view?x=1", view.clone()).await.problem(400, "bad-parameter");
    assert_eq!(rig.get("/v1/streams").await.expect(StatusCode::OK)["streams"], json!([]));
    rig.publish(view).await.expect(StatusCode::CREATED);
}

#[tokio::test]
async fn a_token_that_names_the_stream_may_make_it_and_others_may_not() {
    let rig = Rig::with(|parts| parts.limits.streams = 2);
    let mut driver = Driver::new();
    let views = [driver.view(&["a"], 1200), driver.view(&["a"], 600)];
    let named = rig.token(Role::Ingest, None, Some(&["sales", "more", "most"]));
    let everywhere = rig.token(Role::Ingest, None, None);
    for token in [
        rig.token(Role::Query, None, None),
        rig.token(Role::Admin, None, None),
        rig.token(Role::Ingest, Some(&["web"]), None),
        rig.token(Role::Ingest, None, Some(&["other"])),
        everywhere.clone(),
    ] {
        rig.put_view(&token, PATH, views[0].clone()).await.problem(403, "forbidden");
    }
    rig.put_view("dpsw_000000000000_x", PATH, views[0].clone()).await.problem(401, "no-token");
    rig.put_view(&named, PATH, views[0].clone()).await.expect(StatusCode::CREATED);
    rig.put_view(&everywhere, PATH, views[1].clone()).await.expect(StatusCode::NO_CONTENT);
    rig.put_view(&named, PATH, views[1].clone()).await.expect(StatusCode::NO_CONTENT);
    // Whoever sends may not ask, nor delete.
    let ask = |token: &str, method: Method, path: &str| {
        let request = axum::http::Request::builder().method(method).uri(path);
        request.header("authorization", format!("Bearer {token}")).body(Body::empty()).expect("a request")
    };
    rig.send(ask(&named, Method::GET, "/v1/streams/sales/top")).await.problem(403, "forbidden");
    rig.send(ask(&named, Method::DELETE, "/v1/streams/sales")).await.problem(403, "forbidden");
    let asker = rig.token(Role::Query, None, Some(&["sales"]));
    rig.send(ask(&asker, Method::GET, "/v1/streams/sales/top")).await.expect(StatusCode::OK);
    let seen = rig.send(ask(&asker, Method::GET, "/v1/streams")).await.expect(StatusCode::OK);
    assert_eq!(seen["streams"].as_array().map(Vec::len), Some(1));
    rig.put_view(&named, "/v1/streams/more/view", views[0].clone()).await.expect(StatusCode::CREATED);
    rig.put_view(&named, "/v1/streams/most/view", views[0].clone()).await.problem(409, "too-many");
    assert!(WindowView::from_bytes(&rig.shown().await).is_ok());
}
