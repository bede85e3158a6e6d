//! Takes batches of events: acknowledged when they are durable.

use axum::Json;
use axum::extract::Request;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use crate::auth::Role;
use crate::engine::{BatchId, Receipt};
use crate::events::Events;
use crate::http::app::App;
use crate::http::body::{Received, SMALL};
use crate::http::caller::Asker;
use crate::http::params::{Name, Params};
use crate::http::problem::{Problem, RawReply};
use crate::http::request::PublicArrival;
use crate::input::unpack::{Packing, unpack};
use crate::input::{self, Format, InputError, InputLimits, Wanted};
use crate::limits::Limits;
use crate::wire::body::{Binary, Documents, Text};
use crate::wire::problem::Code;

const BATCH_ID: HeaderName = HeaderName::from_static("batch-id");
/// What other services call it, in another form.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Sends a batch of events.
///
/// It is acknowledged when it is durable. With a `Batch-Id` it counts once, however often it is sent: the name of a sender and a
/// number that grows, as in `web-1/42`. Ids belong to tokens of one name, and name batches, never their content. Numbers may come
/// in any order, up to 1,024 below the highest one of their sender; lower ones are refused with 409 `batch-too-old`. After 500
/// `outcome-unknown`, or no reply, send the batch again with the same id. An item that is missing, too long or of another type
/// counts nowhere and takes its place.
///
/// `text/plain` has an item per line (where the source has one column and nothing else), `application/x-ndjson` a document per
/// line, `application/json` an array of documents, `text/csv` names in its first record, `application/vnd.apache.arrow.stream`
/// an Arrow IPC stream. Times are unix seconds or milliseconds, or RFC 3339.
#[utoipa::path(post, path = "/v1/sources/{source}/events", tag = "events",
    params(("source" = String, Path, description = "The source"),
           ("Batch-Id" = Option<String>, Header, description = "The name of a sender, a slash, and a number that grows",
            pattern = "^[A-Za-z0-9._-]{1,64}/(0|[1-9][0-9]{0,18})$", example = "web-1/42"),
           ("Content-Encoding" = Option<String>, Header, description = "`gzip` or `zstd`")),
    request_body(content((Documents = "application/json"), (Text = "application/x-ndjson"), (Text = "text/csv"),
                         (Text = "text/plain"), (Binary = "application/vnd.apache.arrow.stream")), description = "The events"),
    responses((status = 202, description = "The batch is durable and will be counted once", body = Receipt),
              (status = 200, description = "A batch of this id was taken before; this one is not counted", body = Receipt),
              Problem))]
pub(crate) async fn ingest(asker: Asker, Name(source): Name, params: Params, request: Request) -> RawReply {
    asker.may_source(Role::Ingest, &source)?;
    params.done()?;
    let has_public_arrivals = asker.app.engine.wanted(&source)?.has_public_arrivals;
    let receipt = take(&asker, &source, request).await;
    if let Ok(receipt) = &receipt
        && has_public_arrivals
        && !receipt.is_repeated
    {
        asker.app.metrics.add_events(&source, receipt.events);
    }
    let mut response = receipt.map(acknowledge).unwrap_or_else(IntoResponse::into_response);
    if has_public_arrivals {
        response.extensions_mut().insert(PublicArrival);
    }
    Ok(response)
}

fn acknowledge(receipt: Receipt) -> Response {
    let status = if receipt.is_repeated { StatusCode::OK } else { StatusCode::ACCEPTED };
    (status, Json(receipt)).into_response()
}

async fn take(asker: &Asker, source: &str, request: Request) -> Result<Receipt, Problem> {
    let app = &asker.app;
    let (Parts { headers, .. }, body) = request.into_parts();
    let id = batch_id(asker, &headers)?;
    let form = BodyForm::new(app, &headers)?;
    let received = asker.receive(&headers, body).await?;
    let is_small = form.packing.is_none() && received.value.len() <= SMALL;
    // Streams may have changed while the body came.
    let wanted = app.engine.wanted(source)?;
    let read = move || -> Result<Events, Problem> { Ok(form.read(&wanted, received)?) };
    let events = if is_small { read()? } else { app.workers.bodies.run(read).await? };
    Ok(app.engine.ingest(source, id, events)?.await?)
}

/// The form of a body, as its headers state it, and how large it may be.
struct BodyForm {
    format: Format,
    packing: Option<Packing>,
    limits: InputLimits,
    unpacked_max: usize,
}

impl BodyForm {
    fn new(app: &App, headers: &HeaderMap) -> Result<Self, Problem> {
        let format = one(headers, &CONTENT_TYPE)?.and_then(Format::of);
        let unknown = "send events as application/x-ndjson, application/json, text/csv, text/plain or \
                       application/vnd.apache.arrow.stream";
        Ok(Self {
            format: format.ok_or_else(|| Problem::new(Code::UnknownContent, unknown))?,
            packing: packing(headers)?,
            limits: app.limits.input(),
            unpacked_max: Limits::bytes(app.limits.unpacked_body),
        })
    }

    fn read(&self, wanted: &Wanted, received: Received<Bytes>) -> Result<Events, InputError> {
        let Received { value: body, room } = received;
        let Self { format, packing, limits, unpacked_max } = *self;
        let body = match packing {
            Some(packing) => unpack(packing, &body, unpacked_max)?,
            None => body,
        };
        let events = input::read(format, body, wanted, limits, room)?;
        Ok(events.read_for(wanted.version))
    }
}

fn packing(headers: &HeaderMap) -> Result<Option<Packing>, Problem> {
    match one(headers, &CONTENT_ENCODING)?.map(str::to_ascii_lowercase).as_deref() {
        None | Some("identity") => Ok(None),
        Some("gzip" | "x-gzip") => Ok(Some(Packing::Gzip)),
        Some("zstd") => Ok(Some(Packing::Zstd)),
        Some(_) => {
            Err(Problem::new(Code::UnknownContent, "a body is packed with gzip or zstd, or not at all"))
        }
    }
}

fn batch_id(asker: &Asker, headers: &HeaderMap) -> Result<Option<BatchId>, Problem> {
    // Passed over, the batch would count as often as it is sent.
    if headers.contains_key(IDEMPOTENCY_KEY) {
        let detail = "Idempotency-Key is not understood; send Batch-Id with a sender and a number that grows, as in web-1/42";
        return Err(Problem::new(Code::BadHeader, detail));
    }
    let id = one(headers, &BATCH_ID)?;
    Ok(id.map(|id| BatchId::new(&asker.caller.batch_owner, id)).transpose()?)
}

/// The value of a header that stands there at most once.
fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Problem> {
    let wrong = |what: &str| Problem::new(Code::BadHeader, format!("the header {name} {what}"));
    let mut all = headers.get_all(name).iter();
    let value = all.next().map(|value| value.to_str().map(str::trim)).transpose();
    let value = value.map_err(|_| wrong("must be ASCII text"))?;
    if all.next().is_some() { Err(wrong("may be sent once")) } else { Ok(value) }
}
