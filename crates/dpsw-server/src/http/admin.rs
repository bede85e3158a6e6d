//! Sources, streams and tokens: listed, made, checked and deleted.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use crate::auth::{Grant, Role};
use crate::config::{ConfigError, SourceConfig, StreamConfig};
use crate::engine::Engine;
use crate::error::ChangeError;
use crate::http::app::App;
use crate::http::body::{Shown, receive_json};
use crate::http::caller::Asker;
use crate::http::params::{Name, Params};
use crate::http::problem::Problem;
use crate::wire::report::{Sources, Streams, Tokens};
use crate::wire::source::{SourceInfo, SourceShape};
use crate::wire::stream::{ContractInfo, StreamInfo, StreamShape};
use crate::wire::token::{MadeToken, TokenShape};

/// The sources that the token may see, with what their streams spend.
#[utoipa::path(get, path = "/v1/sources", tag = "sources",
    responses((status = 200, description = "By name", body = Sources),
              Problem))]
pub(crate) async fn sources(
    State(app): State<App>,
    Asker(caller): Asker,
    params: Params,
) -> Result<Json<Sources>, Problem> {
    params.done()?;
    let reports = app.engine.sources().into_iter();
    let seen = reports.filter(|report| {
        [Role::Query, Role::Admin, Role::Ingest]
            .into_iter()
            .any(|role| caller.grant.allows_source(role, &report.config.name))
    });
    Ok(Json(Sources { sources: seen.map(SourceInfo::from).collect() }))
}

/// A source with what its streams spend.
#[utoipa::path(get, path = "/v1/sources/{source}", tag = "sources",
    params(("source" = String, Path, description = "The source")),
    responses((status = 200, description = "The source", body = SourceInfo),
              Problem))]
pub(crate) async fn source(
    State(app): State<App>,
    asker: Asker,
    Name(name): Name,
    params: Params,
) -> Result<Json<SourceInfo>, Problem> {
    params.done()?;
    asker.may_source(Role::Query, &name).or_else(|_| asker.may_source(Role::Admin, &name))?;
    Ok(Json(app.engine.source(&name)?.into()))
}

/// Makes a source.
#[utoipa::path(post, path = "/v1/sources", tag = "sources",
    request_body = SourceShape,
    responses((status = 201, description = "The source", body = SourceInfo),
              Problem))]
pub(crate) async fn create_source(
    State(app): State<App>,
    asker: Asker,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<SourceInfo>), Problem> {
    params.done()?;
    asker.may(Role::Admin)?;
    let shape: SourceShape = receive_json(&app, &asker, &headers, body, Shown::Words).await?.value;
    let name = shape.name.clone();
    let made = app.engine(move |engine| {
        engine.create_source(shape.into())?;
        Ok::<_, Problem>(engine.source(&name)?)
    });
    let report = made.await??;
    Ok((StatusCode::CREATED, Json(report.into())))
}

/// Says whether a source could be made. Nothing is made.
#[utoipa::path(post, path = "/v1/check/sources", tag = "sources",
    request_body = SourceShape,
    responses((status = 200, description = "It could be made", body = SourceShape),
              Problem))]
pub(crate) async fn check_source(
    State(app): State<App>,
    asker: Asker,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<SourceShape>, Problem> {
    params.done()?;
    asker.may(Role::Admin)?;
    let shape: SourceShape = receive_json(&app, &asker, &headers, body, Shown::Words).await?.value;
    let config = SourceConfig::from(shape);
    config.check().map_err(ChangeError::from)?;
    if app.engine.source(&config.name).is_ok() {
        return Err(ChangeError::Exists { what: "source", name: config.name }.into());
    }
    Ok(Json(config.into()))
}

/// Deletes a source without streams. Its ledger stays, and its name is not given again.
#[utoipa::path(delete, path = "/v1/sources/{source}", tag = "sources",
    params(("source" = String, Path, description = "The source")),
    responses((status = 204, description = "It is gone"),
              Problem))]
pub(crate) async fn delete_source(
    State(app): State<App>,
    asker: Asker,
    Name(name): Name,
    params: Params,
) -> Result<StatusCode, Problem> {
    params.done()?;
    asker.may(Role::Admin)?;
    app.engine(move |engine| engine.delete_source(&name)).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// The streams that the token may see, with their plans.
#[utoipa::path(get, path = "/v1/streams", tag = "streams",
    responses((status = 200, description = "By name", body = Streams),
              Problem))]
pub(crate) async fn streams(
    State(app): State<App>,
    Asker(caller): Asker,
    params: Params,
) -> Result<Json<Streams>, Problem> {
    params.done()?;
    let reports = app.engine(Engine::streams).await?;
    let seen = reports.iter().filter(|report| {
        [Role::Query, Role::Admin].into_iter().any(|role| {
            caller.allows_stream(role, &report.name, Some(report.id), report.source().unwrap_or_default())
        })
    });
    Ok(Json(Streams { streams: seen.map(StreamInfo::from).collect() }))
}

/// A stream with its plan.
#[utoipa::path(get, path = "/v1/streams/{stream}", tag = "streams",
    params(("stream" = String, Path, description = "The stream")),
    responses((status = 200, description = "The stream", body = StreamInfo),
              Problem))]
pub(crate) async fn stream(
    State(app): State<App>,
    asker: Asker,
    Name(name): Name,
    params: Params,
) -> Result<Json<StreamInfo>, Problem> {
    params.done()?;
    asker.may_stream(&app, Role::Query, &name).or_else(|_| asker.may_stream(&app, Role::Admin, &name))?;
    Ok(Json((&app.engine.stream(&name)?).into()))
}

/// Makes a stream: charges it to its source and starts it with the next batch.
#[utoipa::path(post, path = "/v1/sources/{source}/streams", tag = "streams",
    params(("source" = String, Path, description = "The source")),
    request_body = StreamShape,
    responses((status = 201, description = "The stream", body = StreamInfo),
              Problem))]
pub(crate) async fn create_stream(
    State(app): State<App>,
    asker: Asker,
    Name(source): Name,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<StreamInfo>), Problem> {
    params.done()?;
    asker.may_source(Role::Admin, &source)?;
    let shape: StreamShape = receive_json(&app, &asker, &headers, body, Shown::Words).await?.value;
    let (name, most) = (shape.name.clone(), app.limits.streams);
    let made = app.engine(move |engine| {
        at_most(engine, most)?;
        engine.create_stream(&source, shape.into())?;
        Ok::<_, Problem>(engine.stream(&name)?)
    });
    let report = made.await??;
    Ok((StatusCode::CREATED, Json((&report).into())))
}

pub(crate) fn at_most(engine: &Engine, most: usize) -> Result<(), ChangeError> {
    if engine.streams().len() < most { Ok(()) } else { Err(ChangeError::Many { what: "stream", most }) }
}

/// The plan of a stream that could be made. Nothing is charged or made.
#[utoipa::path(post, path = "/v1/check/sources/{source}/streams", tag = "streams",
    params(("source" = String, Path, description = "The source")),
    request_body = StreamShape,
    responses((status = 200, description = "It could be made", body = StreamInfo),
              Problem))]
pub(crate) async fn check_stream(
    State(app): State<App>,
    asker: Asker,
    Name(source): Name,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<StreamInfo>, Problem> {
    params.done()?;
    asker.may_source(Role::Admin, &source)?;
    let shape: StreamShape = receive_json(&app, &asker, &headers, body, Shown::Words).await?.value;
    let checked = app.engine(move |engine| {
        let config = StreamConfig::from(shape);
        let plan = engine.check_stream(&source, &config)?;
        Ok::<_, Problem>(StreamInfo::new(config.name, Some((source, config.item)), &plan, None))
    });
    Ok(Json(checked.await??))
}

/// Gives a stream other settings from the next batch on.
///
/// All but its column and its kind of keys may change. What is open is given up, and the window fills anew; who follows the
/// stream is cut off and may come back. Events are charged until then as before, and from then on as the new settings say.
#[utoipa::path(put, path = "/v1/streams/{stream}", tag = "streams",
    params(("stream" = String, Path, description = "The stream")),
    request_body = StreamShape,
    responses((status = 200, description = "The stream", body = StreamInfo),
              Problem))]
pub(crate) async fn replace_stream(
    State(app): State<App>,
    asker: Asker,
    Name(name): Name,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<StreamInfo>, Problem> {
    params.done()?;
    asker.may_stream(&app, Role::Admin, &name)?;
    let shape: StreamShape = receive_json(&app, &asker, &headers, body, Shown::Words).await?.value;
    if shape.name != name {
        let text = format!("stream {name:?} keeps its name, got {:?}", shape.name);
        return Err(ChangeError::from(ConfigError::Contradiction(text)).into());
    }
    let made = app.engine(move |engine| {
        engine.replace_stream(shape.into())?;
        Ok::<_, Problem>(engine.stream(&name)?)
    });
    let report = made.await??;
    Ok(Json((&report).into()))
}

/// Deletes a stream. What is open is given up; its charge stays.
#[utoipa::path(delete, path = "/v1/streams/{stream}", tag = "streams",
    params(("stream" = String, Path, description = "The stream")),
    responses((status = 204, description = "It is gone"),
              Problem))]
pub(crate) async fn delete_stream(
    State(app): State<App>,
    asker: Asker,
    Name(name): Name,
    params: Params,
) -> Result<StatusCode, Problem> {
    params.done()?;
    asker.may_stream(&app, Role::Admin, &name)?;
    let keeping = app.clone();
    let deleted = app.engine(move |engine| {
        // Tokens that name it are for no later stream of its name.
        keeping.bind_tokens()?;
        Ok::<_, Problem>(engine.delete_stream(&name)?)
    });
    deleted.await??;
    Ok(StatusCode::NO_CONTENT)
}

/// What is promised of a stream, in numbers and in words.
#[utoipa::path(get, path = "/v1/streams/{stream}/privacy", tag = "streams",
    params(("stream" = String, Path, description = "The stream")),
    responses((status = 200, description = "The contract", body = ContractInfo),
              Problem))]
pub(crate) async fn privacy(
    State(app): State<App>,
    asker: Asker,
    Name(name): Name,
    params: Params,
) -> Result<Json<ContractInfo>, Problem> {
    params.done()?;
    asker.may_stream(&app, Role::Query, &name).or_else(|_| asker.may_stream(&app, Role::Admin, &name))?;
    Ok(Json(app.engine.contract(&name)?.into()))
}

/// All tokens, without what they are.
#[utoipa::path(get, path = "/v1/tokens", tag = "tokens",
    responses((status = 200, description = "Oldest first", body = Tokens),
              Problem))]
pub(crate) async fn tokens(
    State(app): State<App>,
    asker: Asker,
    params: Params,
) -> Result<Json<Tokens>, Problem> {
    params.done()?;
    asker.may(Role::Admin)?;
    Ok(Json(Tokens { tokens: app.keeper.list().into_iter().map(Into::into).collect() }))
}

/// What the token that asks may do, and where.
#[utoipa::path(get, path = "/v1/token", tag = "tokens",
    responses((status = 200, description = "Its grant", body = Grant),
              Problem))]
pub(crate) async fn own_token(Asker(caller): Asker, params: Params) -> Result<Json<Grant>, Problem> {
    params.done()?;
    Ok(Json(caller.grant.clone()))
}

/// Makes a token. It is shown this once: only its hash is kept.
#[utoipa::path(post, path = "/v1/tokens", tag = "tokens",
    request_body = TokenShape,
    responses((status = 201, description = "The token", body = MadeToken),
              Problem))]
pub(crate) async fn create_token(
    State(app): State<App>,
    asker: Asker,
    params: Params,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<MadeToken>), Problem> {
    params.done()?;
    asker.may(Role::Admin)?;
    let TokenShape { name, grant } = receive_json(&app, &asker, &headers, body, Shown::Words).await?.value;
    let keeping = app.clone();
    let made = app.engine(move |_| {
        let token = keeping.keeper.create(&name, grant, keeping.clock.now_ms())?;
        keeping.bind_tokens()?;
        Ok::<_, Problem>(token)
    });
    Ok((StatusCode::CREATED, Json(made.await??.into())))
}

/// Deletes a token; from then on it is unknown, and whoever follows a stream with it is cut off.
#[utoipa::path(delete, path = "/v1/tokens/{id}", tag = "tokens",
    params(("id" = String, Path, description = "The public id of the token")),
    responses((status = 204, description = "It is gone"),
              Problem))]
pub(crate) async fn delete_token(
    State(app): State<App>,
    asker: Asker,
    Name(id): Name,
    params: Params,
) -> Result<StatusCode, Problem> {
    params.done()?;
    asker.may(Role::Admin)?;
    let keeping = app.clone();
    app.engine(move |_| keeping.keeper.delete(&id)).await??;
    Ok(StatusCode::NO_CONTENT)
}
