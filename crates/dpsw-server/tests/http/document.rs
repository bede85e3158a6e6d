//! The OpenAPI document: checked in, served, and true to the routes.

use std::path::Path;

use axum::body::Body;
use axum::http::{Method, StatusCode};
use dpsw_server::http::openapi;
use serde_json::Value;

use crate::support::Rig;

/// `DPSW_WRITE_OPENAPI=1 cargo test -p dpsw-server --test http document` writes it anew.
#[tokio::test]
async fn the_document_that_is_checked_in_is_the_one_that_is_served() {
    let rig = Rig::new();
    let document = openapi(&rig.app);
    assert_eq!(rig.get("/openapi.json").await.text(), document);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    if std::env::var_os("DPSW_WRITE_OPENAPI").is_some() {
        std::fs::write(&path, &document).expect("a file");
    }
    let kept = std::fs::read_to_string(&path).expect("docs/openapi.json");
    assert!(kept == document, "docs/openapi.json is not what the code says; write it anew");
}

#[tokio::test]
async fn every_route_of_the_document_is_there_and_takes_what_it_says() {
    let rig = Rig::new();
    let document: Value = serde_json::from_str(&openapi(&rig.app)).expect("JSON");
    assert_eq!(document["openapi"], "3.1.0");
    let mut routes = 0;
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
            let path = path.replace(['{', '}'], "");
            let reply = rig.send(rig.request(method, &path).body(Body::empty()).expect("a request")).await;
            assert_ne!(reply.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
            assert!(!reply.text().contains("unknown-path"), "{path}");
            assert!(operation["responses"].as_object().is_some_and(|all| !all.is_empty()), "{path}");
            assert!(operation["summary"].is_string() && operation["operationId"].is_string(), "{path}");
            routes += 1;
        }
    }
    assert!(25 < routes, "{routes}");
}

#[test]
fn every_reference_of_the_document_leads_somewhere() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let document = runtime.block_on(async { openapi(&Rig::new().app) });
    let document: Value = serde_json::from_str(&document).expect("JSON");
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 20, "{references:?}");
    for reference in references {
        let pointer = reference.strip_prefix('#').expect("in this document");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            references.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| collect(member, references));
        }
        Value::Array(elements) => elements.iter().for_each(|element| collect(element, references)),
        _ => {}
    }
}
