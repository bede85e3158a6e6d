//! For those who run the service: health, version, metrics.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

use crate::auth::Role;
use crate::http::app::App;
use crate::http::caller::Asker;
use crate::http::params::NoParams;
use crate::http::problem::{Problem, RawReply, Reply};
use crate::metrics::Now;
use crate::wire::problem::Code;
use crate::wire::report::{Readiness, Status, Version};

pub(crate) const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether the process is alive.
#[utoipa::path(get, path = "/healthz", tag = "operation", security(()),
    responses((status = 200, description = "It is", body = Version)))]
pub(crate) async fn healthz() -> Json<Version> {
    version().await
}

/// What the service is.
#[utoipa::path(get, path = "/version", tag = "operation", security(()),
    responses((status = 200, description = "Name and version", body = Version)))]
pub(crate) async fn version() -> Json<Version> {
    Json(Version { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") })
}

/// Whether batches are taken.
#[utoipa::path(get, path = "/readyz", tag = "operation", security(()),
    responses((status = 200, description = "They are", body = Readiness),
              (status = 503, description = "They are not; /v1/status says why, unless the service is starting",
               body = Readiness)))]
pub(crate) async fn readyz(State(app): State<App>) -> (StatusCode, Json<Readiness>) {
    let ready = app.engine.health().is_ready();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Readiness { ready, starting: false }))
}

/// Why batches are refused, and what happened that the operator should know.
#[utoipa::path(get, path = "/v1/status", tag = "operation",
    responses((status = 200, description = "The status", body = Status), Problem))]
pub(crate) async fn status(asker: Asker, _: NoParams) -> Reply<Status> {
    asker.may(Role::Admin)?;
    Ok(Json(asker.app.engine.health().into()))
}

/// The allowed metrics: none of them depends on items, or on whether an event came where that is private.
#[utoipa::path(get, path = "/metrics", tag = "operation",
    responses((status = 200, description = "In the text format of Prometheus", content_type = "text/plain", body = String),
              Problem))]
pub(crate) async fn metrics(asker: Asker, _: NoParams) -> RawReply {
    asker.may(Role::Query).or_else(|_| asker.may(Role::Admin))?;
    let app = &asker.app;
    let streams = app.engine(|engine| Ok(engine.streams())).await?;
    let plans: Vec<_> =
        streams.iter().map(|stream| (stream.name.clone(), stream.plan.resident_bytes())).collect();
    let is_ready = app.engine.health().is_ready();
    let page = app.metrics.write(&Now { now_ms: app.clock.now_ms(), is_ready, plans: &plans });
    Ok(([(CONTENT_TYPE, PROMETHEUS)], page).into_response())
}

pub(crate) async fn unknown_path() -> Problem {
    Problem::new(Code::UnknownPath, "there is nothing at this address; /openapi.json says what there is")
}

pub(crate) async fn wrong_method() -> Problem {
    Problem::new(
        Code::WrongMethod,
        "the address does not take this method; /openapi.json says which it takes",
    )
}
