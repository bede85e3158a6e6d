//! Who may do what.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use dpsw_server::auth::Role;
use serde_json::json;

use crate::support::{Reply, Rig, SOURCE, pages};

async fn ask(rig: &Rig, token: &str, method: Method, path: &str) -> Reply {
    let request =
        Request::builder().method(method).uri(path).header("authorization", format!("Bearer {token}"));
    let request = request.header("content-type", "application/json");
    rig.send(request.body(Body::from("[]")).expect("a request")).await
}

/// What is asked, and the role that it needs: a request of that role is not refused for its token, all others are.
const NEEDS: [(&str, &str, Role); 18] = [
    ("POST", "/v1/sources/web/events", Role::Ingest),
    ("GET", "/v1/streams/pages/frequency?item=a", Role::Query),
    ("POST", "/v1/streams/pages/frequencies", Role::Query),
    ("GET", "/v1/streams/pages/top", Role::Query),
    ("GET", "/v1/streams/pages/heavy-hitters?threshold=0.1", Role::Query),
    ("GET", "/v1/streams/pages/history?item=a", Role::Query),
    ("POST", "/v1/streams/pages/history", Role::Query),
    ("GET", "/v1/streams/pages/trend?item=a", Role::Query),
    ("GET", "/v1/streams/pages/view", Role::Query),
    ("POST", "/v1/views/merge", Role::Query),
    ("POST", "/v1/sources", Role::Admin),
    ("POST", "/v1/check/sources", Role::Admin),
    ("POST", "/v1/sources/web/streams", Role::Admin),
    ("POST", "/v1/check/sources/web/streams", Role::Admin),
    ("DELETE", "/v1/sources/web", Role::Admin),
    ("GET", "/v1/tokens", Role::Admin),
    ("DELETE", "/v1/tokens/x", Role::Admin),
    ("GET", "/v1/status", Role::Admin),
];

#[tokio::test]
async fn every_request_needs_the_role_that_it_is_for() {
    let rig = Rig::with_pages().await;
    let tokens = [Role::Ingest, Role::Query, Role::Admin].map(|role| (role, rig.token(role, None, None)));
    for (method, path, needed) in NEEDS {
        for (role, token) in &tokens {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            let reply = ask(&rig, token, method, path).await;
            assert_ne!(reply.status, StatusCode::UNAUTHORIZED, "{path} {role:?}");
            let is_refused = reply.status == StatusCode::FORBIDDEN;
            assert_eq!(is_refused, *role != needed, "{path} {role:?} {}", reply.text());
        }
    }
}

#[tokio::test]
async fn without_a_known_token_nothing_is_answered_but_health() {
    let rig = Rig::with_pages().await;
    let token = rig.token.clone();
    let wrong = [
        vec![],
        vec!["Bearer x".to_owned()],
        vec![format!("Bearer {}x", token)],
        vec![format!("Basic {token}")],
        vec![token.clone()],
        vec![format!("Bearer {token}"), format!("Bearer {token}")],
        vec!["Bearer dpsw_\u{e9}_x".to_owned()],
    ];
    for values in &wrong {
        for path in ["/v1/sources", "/v1/streams/pages/top", "/v1/streams/none/top", "/metrics", "/v1/status"]
        {
            let mut request = Request::builder().uri(path);
            for value in values {
                request = request.header("authorization", value);
            }
            let reply = rig.send(request.body(Body::empty()).expect("a request")).await;
            let detail = reply.problem(401, "no-token");
            assert!(reply.header("www-authenticate").starts_with("Bearer"), "{path}");
            assert!(!detail.contains(&token));
        }
    }
    for path in ["/healthz", "/readyz", "/version", "/openapi.json"] {
        let reply = rig.send(Request::builder().uri(path).body(Body::empty()).expect("a request")).await;
        reply.expect(StatusCode::OK);
    }
    let lower = Request::builder().uri("/v1/sources").header("authorization", format!("bearer {token}"));
    rig.send(lower.body(Body::empty()).expect("a request")).await.expect(StatusCode::OK);
}

#[tokio::test]
async fn a_token_for_one_place_reaches_no_other() {
    let rig = Rig::with_pages().await;
    rig.make(
        &SOURCE.replace("web", "app"),
        &[json!({"name": "screens", "item": "page", "window": 1000, "epsilon": 1e5})],
    )
    .await;
    let mut second = pages();
    second["name"] = json!("second");
    rig.post("/v1/sources/web/streams", second).await.expect(StatusCode::CREATED);
    let check = async |token: &str, path: &str, wanted: u16| {
        let reply = ask(&rig, token, Method::GET, path).await;
        assert_eq!(reply.status.as_u16(), wanted, "{path} {}", reply.text());
    };
    let of_source = rig.token(Role::Query, Some(&["web"]), None);
    let of_stream = rig.token(Role::Query, None, Some(&["pages"]));
    for (token, second) in [(&of_source, 200), (&of_stream, 403)] {
        check(token, "/v1/streams/pages/privacy", 200).await;
        check(token, "/v1/streams/second/privacy", second).await;
        check(token, "/v1/streams/screens/privacy", 403).await;
        // Whoever may not ask about all streams is not told which there are.
        check(token, "/v1/streams/none/privacy", 403).await;
        check(token, "/metrics", 403).await;
    }
    let listed = ask(&rig, &of_stream, Method::GET, "/v1/streams").await.expect(StatusCode::OK);
    assert_eq!(listed["streams"].as_array().map(Vec::len), Some(1));
    let listed = ask(&rig, &of_source, Method::GET, "/v1/sources").await.expect(StatusCode::OK);
    assert_eq!(listed["sources"][0]["name"], "web");
    assert_eq!(listed["sources"].as_array().map(Vec::len), Some(1));
    let ingest = rig.token(Role::Ingest, Some(&["app"]), None);
    ask(&rig, &ingest, Method::POST, "/v1/sources/web/events").await.problem(403, "forbidden");
    ask(&rig, &ingest, Method::POST, "/v1/sources/app/events").await.expect(StatusCode::ACCEPTED);
    let admin = rig.token(Role::Admin, Some(&["app"]), None);
    ask(&rig, &admin, Method::DELETE, "/v1/streams/pages").await.problem(403, "forbidden");
    ask(&rig, &admin, Method::DELETE, "/v1/streams/screens").await.expect(StatusCode::NO_CONTENT);
    ask(&rig, &admin, Method::GET, "/v1/tokens").await.problem(403, "forbidden");
}

#[tokio::test]
async fn a_token_is_for_the_stream_that_it_named_and_for_no_later_one_of_that_name() {
    let rig = Rig::with_pages().await;
    let wish = json!({"grant": {"roles": ["query", "ingest"], "streams": ["pages"]}});
    let made = rig.post("/v1/tokens", wish).await.expect(StatusCode::CREATED);
    let told = made["token"].as_str().expect("a token");
    // Made by another process, and used by nobody before the stream is gone.
    let unused = rig.token(Role::Query, None, Some(&["pages"]));
    let early = rig.token(Role::Query, None, Some(&["more"]));
    let mut wider = pages();
    wider["window"] = json!(2000);
    rig.put("/v1/streams/pages", wider).await.expect(StatusCode::OK);
    for token in [told, &unused] {
        ask(&rig, token, Method::GET, "/v1/streams/pages/top").await.expect(StatusCode::OK);
    }
    rig.delete("/v1/streams/pages").await.expect(StatusCode::NO_CONTENT);
    for name in ["pages", "more"] {
        let mut stream = pages();
        stream["name"] = json!(name);
        rig.post("/v1/sources/web/streams", stream).await.expect(StatusCode::CREATED);
    }
    for token in [told, &unused] {
        ask(&rig, token, Method::GET, "/v1/streams/pages/top").await.problem(403, "forbidden");
        let listed = ask(&rig, token, Method::GET, "/v1/streams").await.expect(StatusCode::OK);
        assert_eq!(listed["streams"], json!([]));
        rig.delete("/v1/streams/pages").await;
        ask(&rig, token, Method::PUT, "/v1/streams/pages/view").await.problem(403, "forbidden");
    }
    // One that was made before its stream is for the first one of that name.
    ask(&rig, &early, Method::GET, "/v1/streams/more/top").await.expect(StatusCode::OK);
}

#[tokio::test]
async fn tokens_are_made_listed_and_deleted() {
    let rig = Rig::with_pages().await;
    let wish = json!({"name": "reader", "grant": {"roles": ["query"], "streams": ["pages"]}});
    let made = rig.post("/v1/tokens", wish).await.expect(StatusCode::CREATED);
    let (id, token) = (made["id"].as_str().expect("an id"), made["token"].as_str().expect("a token"));
    ask(&rig, token, Method::GET, "/v1/streams/pages/top").await.expect(StatusCode::OK);
    let listed = rig.get("/v1/tokens").await;
    assert!(!listed.text().contains(token) && !listed.text().contains("hash"));
    assert_eq!(listed.expect(StatusCode::OK)["tokens"][1]["id"], id);
    rig.delete(&format!("/v1/tokens/{id}")).await.expect(StatusCode::NO_CONTENT);
    ask(&rig, token, Method::GET, "/v1/streams/pages/top").await.problem(401, "no-token");
    rig.delete(&format!("/v1/tokens/{id}")).await.problem(404, "unknown-token");
    rig.post("/v1/tokens", json!({"grant": {"roles": []}})).await.problem(422, "bad-settings");
    rig.post("/v1/tokens", json!({"grant": {"roles": ["root"]}})).await.problem(400, "bad-json");
}

#[tokio::test]
async fn answers_are_kept_by_nobody() {
    let rig = Rig::with_pages().await;
    for path in ["/v1/streams/pages/top", "/v1/streams/none/top", "/healthz"] {
        let reply = rig.get(path).await;
        assert_eq!((reply.header("cache-control"), reply.header("vary")), ("no-store", "authorization"));
        assert_eq!(reply.header("x-request-id").len(), 16);
    }
}

#[tokio::test]
async fn a_token_learns_what_it_may_do_and_nothing_of_others() {
    let rig = Rig::with_pages().await;
    let token = rig.token(Role::Query, None, Some(&["pages"]));
    let request = Request::builder().uri("/v1/token").header("authorization", format!("Bearer {token}"));
    let own = rig.send(request.body(Body::empty()).expect("a request")).await.expect(StatusCode::OK);
    assert_eq!(own, json!({"roles": ["query"], "streams": ["pages"]}));
    let everything = rig.get("/v1/token").await.expect(StatusCode::OK);
    assert_eq!(everything, json!({"roles": ["ingest", "query", "admin"]}));
}
