//! Bodies: read whole, in time, and only as large as there is room for.

use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;

use crate::budget::Reservation;
use crate::http::app::App;
use crate::http::caller::Asker;
use crate::http::problem::Problem;
use crate::limits::Limits;
use crate::wire::problem::Code;

/// Bodies up to this many bytes are read at once, within a tenth of a millisecond: handing them to another thread costs as much.
pub(crate) const SMALL: usize = 64 << 10;

/// What was received, and the memory that is reserved for it: keep both together.
pub(crate) struct Received<T> {
    pub(crate) value: T,
    pub(crate) room: Reservation,
}

/// Reads a body. Its memory is reserved before the first byte comes: as much as it says that it is long, or may be.
pub(crate) async fn receive(
    app: &App,
    asker: &Asker,
    headers: &HeaderMap,
    body: Body,
) -> Result<Received<Bytes>, Problem> {
    let most = Limits::bytes(app.limits.body);
    let len = stated_len(headers)?;
    if len.is_some_and(|len| most < len) {
        return Err(too_large(most));
    }
    let mut room = app.budget.reserve(&asker.0.id, len.unwrap_or(most)).map_err(|_| no_memory())?;
    let time = app.limits.body_time.duration();
    let read = tokio::time::timeout(time, read(body, len.unwrap_or(0), most)).await;
    let value = read.map_err(|_| too_slow(time))??;
    room.shrink(value.len());
    Ok(Received { value, room })
}

/// A token holds as much memory as it may, or there is none left.
pub(crate) fn no_memory() -> Problem {
    Problem::busy("too much is being received or waits to be counted; nothing was taken, send it again")
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
pub(crate) async fn receive_json<T: DeserializeOwned + Send + 'static>(
    app: &App,
    asker: &Asker,
    headers: &HeaderMap,
    body: Body,
    shown: Shown,
) -> Result<Received<T>, Problem> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let name = content_type.split(';').next().unwrap_or_default().trim();
    if !name.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(Code::UnknownContent, "send the body with Content-Type: application/json"));
    }
    let Received { value: bytes, room } = receive(app, asker, headers, body).await?;
    let read = move || serde_json::from_slice(&bytes).map_err(|error| unreadable(&error, shown));
    // Long ones would keep others from being answered meanwhile.
    let value = if room.amount() <= SMALL { read()? } else { app.workers.questions.run(read).await?? };
    Ok(Received { value, room })
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
