//! Bodies: read whole, in time, and only as large as there is room for.

use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use tokio::sync::SemaphorePermit;

use crate::http::app::{App, BODY_UNIT};
use crate::http::problem::Problem;
use crate::limits::Limits;
use crate::wire::problem::Code;

/// A body, and the room that it takes.
pub(crate) struct Received<'a> {
    pub(crate) bytes: Bytes,
    _room: SemaphorePermit<'a>,
}

/// Reads a body.
pub(crate) async fn receive<'a>(
    app: &'a App,
    headers: &HeaderMap,
    body: Body,
) -> Result<Received<'a>, Problem> {
    let most = Limits::bytes(app.limits.body);
    let len = stated_len(headers)?;
    if len.is_some_and(|len| most < len) {
        return Err(too_large(most));
    }
    let units = len.unwrap_or(most).div_ceil(BODY_UNIT);
    let units = u32::try_from(units).unwrap_or(u32::MAX);
    let room = app.bodies.try_acquire_many(units);
    let room = room.map_err(|_| Problem::busy("too many bodies are being received; send it again"))?;
    let time = app.limits.body_time.duration();
    let read = tokio::time::timeout(time, read(body, len.unwrap_or(0), most)).await;
    Ok(Received { bytes: read.map_err(|_| too_slow(time))??, _room: room })
}

fn stated_len(headers: &HeaderMap) -> Result<Option<usize>, Problem> {
    let Some(value) = headers.get(CONTENT_LENGTH) else { return Ok(None) };
    let len = value.to_str().ok().and_then(|text| text.parse().ok());
    len.map(Some).ok_or_else(|| Problem::new(Code::BadHeader, "Content-Length is no number of bytes"))
}

fn too_large(most: usize) -> Problem {
    Problem::new(Code::BodyTooLarge, format!("a body has at most {most} bytes; send smaller ones"))
}

fn too_slow(time: Duration) -> Problem {
    let detail = format!("the body did not come within {} seconds; nothing was taken", time.as_secs_f64());
    Problem::new(Code::BodyTooSlow, detail)
}

/// All frames in one piece; a single one is not copied.
async fn read(mut body: Body, about: usize, most: usize) -> Result<Bytes, Problem> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let broken = |_| Problem::new(Code::BadHeader, "the body ended before it was complete");
        let Ok(bytes) = frame.map_err(broken)?.into_data() else { continue };
        if most < first.len() + rest.len() + bytes.len() {
            return Err(too_large(most));
        }
        match (first.is_empty(), rest.is_empty()) {
            (true, true) => first = bytes,
            (false, true) => {
                rest.reserve(about.max(first.len() + bytes.len()));
                rest.extend_from_slice(&std::mem::take(&mut first));
                rest.extend_from_slice(&bytes);
            }
            (_, false) => rest.extend_from_slice(&bytes),
        }
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

/// Whether a problem with JSON may show what it could not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Settings: they are public.
    Words,
    /// Questions: they hold items.
    PlaceAlone,
}

/// Reads a body of JSON.
pub(crate) async fn receive_json<T: DeserializeOwned>(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    shown: Shown,
) -> Result<T, Problem> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = content_type.split(';').next().unwrap_or_default().trim();
    if !name.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(Code::UnknownContent, "send the body with Content-Type: application/json"));
    }
    let received = receive(app, headers, body).await?;
    serde_json::from_slice(&received.bytes).map_err(|error| unreadable(&error, shown))
}

fn unreadable(error: &serde_json::Error, shown: Shown) -> Problem {
    let detail = match shown {
        Shown::Words => error.to_string(),
        Shown::PlaceAlone => {
            format!(
                "the body is not the JSON that is wanted, from line {} column {} on",
                error.line(),
                error.column()
            )
        }
    };
    Problem::new(Code::BadJson, detail)
}
