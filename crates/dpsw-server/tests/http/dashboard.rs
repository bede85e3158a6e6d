//! The dashboard's files: served to everybody, kept by browsers, and bound to what comes from here.

use axum::body::Body;
use axum::http::{Request, StatusCode};

use crate::support::{Reply, Rig};

async fn get(rig: &Rig, path: &str, known: &str) -> Reply {
    let request = Request::builder().uri(path).header("if-none-match", known);
    rig.send(request.body(Body::empty()).expect("a request")).await
}

#[tokio::test]
async fn the_page_and_all_that_it_names_are_served_without_a_token() {
    let rig = Rig::new();
    let page = get(&rig, "/", "").await;
    assert_eq!((page.status, page.header("content-type")), (StatusCode::OK, "text/html; charset=utf-8"));
    let mut waiting: Vec<String> = page.text().split('"').filter_map(file).collect();
    assert!(3 <= waiting.len(), "{waiting:?}");
    let mut seen = Vec::new();
    while let Some(path) = waiting.pop() {
        if seen.contains(&path) {
            continue;
        }
        let reply = get(&rig, &path, "").await;
        assert_eq!(reply.status, StatusCode::OK, "{path}");
        let kind = reply.header("content-type");
        assert!(
            kind.starts_with("text/javascript") || kind.starts_with("text/css") || kind == "image/svg+xml"
        );
        let imports = reply.text();
        waiting.extend(
            imports
                .split("from \"./")
                .skip(1)
                .filter_map(|rest| file(&format!("dashboard/{}", rest.split('"').next()?))),
        );
        seen.push(path);
    }
    assert!(seen.iter().any(|path| path.ends_with("/words.js")), "imports are followed: {seen:?}");
}

/// The address of a file that the page names.
fn file(name: &str) -> Option<String> {
    name.starts_with("dashboard/").then(|| format!("/{name}"))
}

#[tokio::test]
async fn nothing_from_elsewhere_may_run_in_the_page() {
    let rig = Rig::new();
    for path in ["/", "/dashboard/app.js", "/dashboard/style.css", "/dashboard/icon.svg"] {
        let reply = get(&rig, path, "").await;
        let policy = reply.header("content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        ] {
            assert!(policy.split("; ").any(|one| one == part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(reply.header("referrer-policy"), "no-referrer", "{path}");
    }
}

#[tokio::test]
async fn a_file_that_is_known_is_not_sent_again_and_answers_are_never_kept() {
    let rig = Rig::with_pages().await;
    let first = get(&rig, "/dashboard/app.js", "").await;
    let tag = first.header("etag");
    assert_eq!(first.header("cache-control"), "no-cache");
    for known in [tag.to_owned(), format!("W/{tag}"), format!("\"other\", {tag}")] {
        let again = get(&rig, "/dashboard/app.js", &known).await;
        assert_eq!((again.status, again.body.len()), (StatusCode::NOT_MODIFIED, 0), "{known}");
        assert_eq!(again.header("etag"), tag);
    }
    assert_eq!(
        get(&rig, "/dashboard/style.css", tag).await.status,
        StatusCode::OK,
        "another file has another tag"
    );
    assert_eq!(rig.get("/v1/streams/pages/top").await.header("cache-control"), "no-store");
}
