//! What the tests of the HTTP side share: a service without a socket, a clock, tokens and requests.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use bytes::Bytes;
use dpsw_server::auth::{Grant, Keeper, Role};
use dpsw_server::clock::SetClock;
use dpsw_server::http::{App, AppSettings, router};
use dpsw_server::limits::Limits;
use dpsw_server::{Engine, EngineSettings, Key};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

/// The clock begins here.
pub(crate) const START_MS: u64 = 1_700_000_000_000;

/// A service without a socket.
pub(crate) struct Rig {
    pub(crate) engine: Arc<Engine>,
    pub(crate) app: App,
    pub(crate) router: Router,
    pub(crate) clock: Arc<SetClock>,
    /// May do everything.
    pub(crate) token: String,
    folder: tempfile::TempDir,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// With other limits and settings.
    pub(crate) fn with(change: impl FnOnce(&mut AppSettings)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Arc::new(SetClock::at(START_MS));
        let data = folder.path().join("data");
        let settings = EngineSettings::new(&data, Key::from_bytes([7; 32]));
        let engine = Arc::new(Engine::open(&settings, clock.clone()).expect("the engine opens"));
        let token = Keeper::open(&data, &settings.marker_folder, &Limits::default())
            .and_then(|keeper| keeper.create("all", Grant::everything(), START_MS))
            .expect("a token");
        let keeper = Keeper::open(&data, &settings.marker_folder, &Limits::default()).expect("the tokens");
        let mut parts = AppSettings::new(Arc::clone(&engine), keeper, clock.clone());
        change(&mut parts);
        parts.keeper = Keeper::open(&data, &settings.marker_folder, &parts.limits).expect("the tokens");
        let app = App::new(parts);
        let router = router(app.clone());
        Self { engine, app, router, clock, token: token.text.to_string(), folder }
    }

    /// With one source `web` of events with a page, and one stream `pages` without noise to speak of.
    pub(crate) async fn with_pages() -> Self {
        let rig = Self::new();
        rig.make(SOURCE, &[pages()]).await;
        rig
    }

    /// Makes a source and its streams.
    pub(crate) async fn make(&self, source: &str, streams: &[Value]) {
        let source: Value = serde_json::from_str(source).expect("JSON");
        let name = source["name"].as_str().expect("a name").to_owned();
        self.post("/v1/sources", source).await.expect(StatusCode::CREATED);
        for stream in streams {
            let path = format!("/v1/sources/{name}/streams");
            self.post(&path, stream.clone()).await.expect(StatusCode::CREATED);
        }
    }

    /// A token with one role.
    pub(crate) fn token(&self, role: Role, sources: Option<&[&str]>, streams: Option<&[&str]>) -> String {
        self.named_token("", role, sources, streams)
    }

    pub(crate) fn named_token(
        &self,
        name: &str,
        role: Role,
        sources: Option<&[&str]>,
        streams: Option<&[&str]>,
    ) -> String {
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        let grant =
            Grant { roles: BTreeSet::from([role]), sources: sources.map(set), streams: streams.map(set) };
        let keeper = Keeper::open(
            &self.folder.path().join("data"),
            &self.folder.path().join("data.marker"),
            &Limits::default(),
        )
        .expect("the tokens");
        keeper.create(name, grant, START_MS).expect("a token").text.to_string()
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(self.request(Method::GET, path).body(Body::empty()).expect("a request")).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.send_json(Method::POST, path, &body).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Reply {
        self.send_json(Method::PUT, path, &body).await
    }

    async fn send_json(&self, method: Method, path: &str, body: &Value) -> Reply {
        let request = self.request(method, path).header("content-type", "application/json");
        self.send(request.body(Body::from(body.to_string())).expect("a request")).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.send(self.request(Method::DELETE, path).body(Body::empty()).expect("a request")).await
    }

    /// Sends a batch to the source `web`.
    pub(crate) async fn batch(&self, content_type: &str, body: impl Into<Bytes>) -> Reply {
        self.send(self.batch_request(content_type).body(Body::from(body.into())).expect("a request")).await
    }

    /// A request that brings a batch to the source `web`.
    pub(crate) fn batch_request(&self, content_type: &str) -> axum::http::request::Builder {
        self.request(Method::POST, "/v1/sources/web/events").header("content-type", content_type)
    }

    /// Sends these pages, one event each, until each has come so often, and waits until they can be seen.
    pub(crate) async fn count(&self, pages: &[&str], times: usize) {
        let body = format!("{}\n", pages.join("\n")).repeat(times);
        self.batch("text/plain", body).await.expect(StatusCode::ACCEPTED);
        self.settle().await;
    }

    pub(crate) async fn settle(&self) {
        let engine = Arc::clone(&self.engine);
        tokio::task::spawn_blocking(move || engine.settle()).await.expect("a thread").expect("healthy");
    }

    /// A request that shows the token which may do everything.
    pub(crate) fn request(&self, method: Method, path: &str) -> axum::http::request::Builder {
        let builder = Request::builder().method(method).uri(path);
        builder.header("authorization", format!("Bearer {}", self.token))
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.router.clone().oneshot(request).await.expect("a router always answers");
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.into_body().collect().await.expect("a whole body").to_bytes();
        Reply { status, headers, body }
    }
}

/// A source of events with a page, and a budget for streams without noise to speak of.
pub(crate) const SOURCE: &str =
    r#"{"name": "web", "protects": "event", "epsilon": 1e6, "columns": {"page": "text"}}"#;

/// With so much epsilon every draw of noise is zero: the chance of another one is below e^-100000 / 20.
pub(crate) fn pages() -> Value {
    json!({"name": "pages", "item": "page", "window": 1000, "epsilon": 1e5, "keys": {"list": ["a", "b", "c", "d"]}})
}

/// What came back.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }

    /// The JSON of a reply with this status.
    #[track_caller]
    pub(crate) fn expect(&self, status: StatusCode) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// The detail of a problem with this status and code.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> String {
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{} {}",
            self.status,
            self.text()
        );
        let problem = self.json();
        assert_eq!((self.status.as_u16(), problem["code"].as_str()), (status, Some(code)), "{problem}");
        assert_eq!(problem["type"], format!("urn:dpsw:problem:{code}"));
        assert_eq!(problem["status"], status);
        problem["detail"].as_str().expect("a detail").to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }
}
