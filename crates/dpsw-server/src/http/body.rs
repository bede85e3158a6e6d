//! Bodies: read whole, in time, and only as large as there is room for.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;

use crate::auth::Role;
use crate::budget::Reservation;
use crate::http::caller::Asker;
use crate::http::problem::Problem;
use crate::input::Format;
use crate::limits::Limits;
use crate::wire::problem::Code;

/// Bodies up to this many bytes are read at once, within a tenth of a millisecond: handing them to another thread costs as much.
pub(crate) const SMALL: usize = 64 << 10;

/// A body, and the memory that is reserved for it: keep both together.
pub(crate) struct Received<T> {
    pub(crate) value: T,
    pub(crate) room: Reservation,
}

impl Asker {
    /// Reads a body. Its memory is reserved before the first byte comes: as much as it says that it is long, or may be.
    pub(crate) async fn receive(&self, headers: &HeaderMap, body: Body) -> Result<Received<Bytes>, Problem> {
        let limits = &self.app.limits;
        let most = Limits::bytes(limits.body);
        let len = stated_len(headers)?;
        if len.is_some_and(|len| most < len) {
            return Err(too_large(most));
        }
        let room = self.app.budget.reserve(&self.caller.id, len.unwrap_or(most));
        let mut room = room.map_err(|_| no_memory())?;
        let time = limits.body_time.duration();
        let read = tokio::time::timeout(time, read(body, len.unwrap_or(0), most)).await;
        let value = read.map_err(|_| too_slow(time))??;
        room.shrink(value.len());
        Ok(Received { value, room })
    }

    /// Reads a question about a stream: a problem shows nothing of it.
    pub(crate) async fn receive_question<T: DeserializeOwned + Send + 'static>(
        &self,
        stream: &str,
        request: Request,
    ) -> Result<Received<T>, Problem> {
        self.may_stream(Role::Query, stream)?;
        self.receive_json(request, Shown::PlaceAlone).await
    }

    /// Reads settings: they are public, and a problem shows what it could not read.
    pub(crate) async fn receive_settings<T: DeserializeOwned + Send + 'static>(
        &self,
        request: Request,
    ) -> Result<T, Problem> {
        Ok(self.receive_json(request, Shown::Words).await?.value)
    }

    async fn receive_json<T: DeserializeOwned + Send + 'static>(
        &self,
        request: Request,
        shown: Shown,
    ) -> Result<Received<T>, Problem> {
        let (Parts { headers, .. }, body) = request.into_parts();
        if !is_json(&headers) {
            let detail = "send the body with Content-Type: application/json";
            return Err(Problem::new(Code::UnknownContent, detail));
        }
        let Received { value: bytes, room } = self.receive(&headers, body).await?;
        let read = move || serde_json::from_slice(&bytes).map_err(|error| unreadable(&error, shown));
        // Long ones would keep others from being answered meanwhile.
        let value =
            if room.amount() <= SMALL { read()? } else { self.app.workers.questions.run(read).await? };
        Ok(Received { value, room })
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.and_then(Format::of) == Some(Format::Json)
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

/// The part of unreadable JSON that a problem may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Settings: they are public.
    Words,
    /// Questions: they hold items.
    PlaceAlone,
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
