//! Around every request: its id, one line in the log, a reply also if the handler panics, and headers that every reply has.
//!
//! The log has the route and never the address, which may hold items. Requests that bring events are not logged where whether an
//! event came is private.

use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{CACHE_CONTROL, HeaderName, VARY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;

use crate::http::app::App;
use crate::http::problem::{Problem, ProblemCode};

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Ids that tell nobody how many requests there were.
#[derive(Debug, Default)]
pub(crate) struct RequestIds {
    keys: RandomState,
    next: AtomicU64,
}

/// The id of a request.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(pub(crate) String);

/// The route that brings events.
pub(crate) const EVENTS: &str = "/v1/sources/{source}/events";

/// The mark of a reply about a batch whose arrival is public.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PublicArrival;

impl RequestIds {
    fn next(&self) -> RequestId {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        RequestId(format!("{:016x}", self.keys.hash_one(number)))
    }
}

pub(crate) async fn around(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = app.ids.next();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let method = request.method().clone();
    request.extensions_mut().insert(id.clone());
    let reply = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let mut response = reply.unwrap_or_else(|panic| panicked(&id, panic.as_ref()));
    log(&id, &method, route.as_deref(), &response, started);
    let headers = response.headers_mut();
    headers.insert(X_REQUEST_ID, HeaderValue::from_str(&id.0).expect("hexadecimal digits"));
    // What one token was answered is for nobody else, and changes with every seal. Files that say otherwise are for everybody.
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(VARY, HeaderValue::from_static("authorization"));
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn panicked(id: &RequestId, _panic: &(dyn Any + Send)) -> Response {
    // What a panic says may hold what was sent; where it happened is in the log already.
    tracing::error!(request = id.0, "a handler panicked");
    Problem::internal().into_response()
}

fn log(id: &RequestId, method: &Method, route: Option<&str>, response: &Response, started: Instant) {
    if route == Some(EVENTS) && !may_log_events(response) {
        return;
    }
    let status = response.status();
    let is_refused = StatusCode::INTERNAL_SERVER_ERROR <= status;
    let problem = response.extensions().get::<ProblemCode>().map(|code| code.0);
    let elapsed_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    // A method may be any word.
    let method = if is_usual(method) { method.as_str() } else { "other" };
    let route = route.unwrap_or("none");
    let status = status.as_u16();
    // The level of a line is part of its call: this is one line at two levels.
    macro_rules! line {
        ($level:ident, $text:literal) => {
            tracing::$level!(request = id.0, method, route, status, problem, elapsed_us, $text)
        };
    }
    if is_refused { line!(warn, "refused") } else { line!(info, "answered") }
}

/// Batches that were taken would only fill the log. That one was refused is said where arrivals are public, or if it was no
/// batch: whoever sent it may not send any, or there is no such source.
fn may_log_events(response: &Response) -> bool {
    let is_stranger =
        matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND);
    let is_public = response.extensions().get::<PublicArrival>().is_some();
    is_stranger || is_public && !response.status().is_success()
}

fn is_usual(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS, Method::PATCH]
        .contains(method)
}
