//! The dashboard: static files inside the program. Its scripts ask the same questions as everybody else, with a token.

use std::sync::Arc;

use axum::Router;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, REFERRER_POLICY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::http::app::App;

/// Nothing from elsewhere, nothing inline, and no text that becomes markup or a script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

const ALONE: [(HeaderName, &str); 3] = [
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
];

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// A file, where it is served, and what it is.
type File = (&'static str, &'static str, &'static str);

macro_rules! files {
    ($($path:literal, $kind:ident, $name:literal;)*) => {
        const FILES: &[File] = &[$(($path, $kind, include_str!(concat!("../dashboard/", $name)))),*];
    };
}

files! {
    "/", HTML, "index.html";
    "/dashboard/icon.svg", SVG, "icon.svg";
    "/dashboard/style.css", CSS, "style.css";
    "/dashboard/admin.js", SCRIPT, "admin.js";
    "/dashboard/api.js", SCRIPT, "api.js";
    "/dashboard/app.js", SCRIPT, "app.js";
    "/dashboard/bars.js", SCRIPT, "bars.js";
    "/dashboard/contract.js", SCRIPT, "contract.js";
    "/dashboard/dom.js", SCRIPT, "dom.js";
    "/dashboard/export.js", SCRIPT, "export.js";
    "/dashboard/forms.js", SCRIPT, "forms.js";
    "/dashboard/frame.js", SCRIPT, "frame.js";
    "/dashboard/history.js", SCRIPT, "history.js";
    "/dashboard/live.js", SCRIPT, "live.js";
    "/dashboard/lookup.js", SCRIPT, "lookup.js";
    "/dashboard/panel.js", SCRIPT, "panel.js";
    "/dashboard/place.js", SCRIPT, "place.js";
    "/dashboard/words.js", SCRIPT, "words.js";
}

/// The routes of the dashboard. They need no token: the files are the same for everybody.
pub(crate) fn routes() -> Router<App> {
    FILES.iter().fold(Router::new(), |router, &(path, kind, text)| {
        let tag: Arc<str> = tag(text).into();
        router.route(path, get(move |headers: HeaderMap| async move { reply(&headers, kind, text, &tag) }))
    })
}

/// Changes with the file.
fn tag(text: &str) -> String {
    format!("\"{}\"", URL_SAFE_NO_PAD.encode(&Sha256::digest(text)[..12]))
}

fn reply(asked: &HeaderMap, kind: &'static str, text: &'static str, tag: &str) -> Response {
    let is_known = asked.get_all(IF_NONE_MATCH).iter().any(|known| names(known, tag));
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => ([(CONTENT_TYPE, kind)], text).into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(ETAG, HeaderValue::from_str(tag).expect("base64 in quotes"));
    // Kept, and asked about each time: a new version of the service is seen at once.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.extend(ALONE.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}

/// Whether a list of tags has this one. Proxies that compress make tags weak.
fn names(list: &HeaderValue, tag: &str) -> bool {
    let tags = list.to_str().unwrap_or_default().split(',').map(str::trim);
    tags.map(|one| one.strip_prefix("W/").unwrap_or(one)).any(|one| one == tag || one == "*")
}
