//! Sources, streams and tokens: listed, made, checked and deleted.

use axum::Json;
use axum::extract::Request;
use axum::http::StatusCode;

use crate::auth::{Grant, Role};
use crate::config::{ConfigError, SourceConfig, StreamConfig};
use crate::engine::Engine;
use crate::error::ChangeError;
use crate::http::caller::Asker;
use crate::http::params::{Name, NoParams};
use crate::http::problem::{Problem, Reply};
use crate::wire::report::{Sources, Streams, Tokens};
use crate::wire::source::{SourceInfo, SourceShape};
use crate::wire::stream::{ContractInfo, StreamInfo, StreamShape};
use crate::wire::token::{MadeToken, TokenShape};

/// The reply about what was made.
type Made<T> = Result<(StatusCode, Json<T>), Problem>;
/// The reply where there is nothing to show.
type Done = Result<StatusCode, Problem>;

/// The sources that the token may see, with what their streams spend.
#[utoipa::path(get, path = "/v1/sources", tag = "sources",
    responses((status = 200, description = "By name", body = Sources), Problem))]
pub(crate) async fn sources(asker: Asker, _: NoParams) -> Reply<Sources> {
    let roles = [Role::Query, Role::Admin, Role::Ingest];
    let mut sources = asker.app.engine.sources();
    sources.retain(|report| roles.iter().any(|role| asker.may_source(*role, &report.config.name).is_ok()));
    Ok(Json(Sources { sources: sources.into_iter().map(SourceInfo::from).collect() }))
}

/// A source with what its streams spend.
#[utoipa::path(get, path = "/v1/sources/{source}", tag = "sources",
    params(("source" = String, Path, description = "The source")),
    responses((status = 200, description = "The source", body = SourceInfo), Problem))]
pub(crate) async fn source(asker: Asker, Name(name): Name, _: NoParams) -> Reply<SourceInfo> {
    asker.may_source(Role::Query, &name).or_else(|_| asker.may_source(Role::Admin, &name))?;
    Ok(Json(asker.app.engine.source(&name)?.into()))
}

/// Makes a source.
#[utoipa::path(post, path = "/v1/sources", tag = "sources",
    request_body = SourceShape, responses((status = 201, description = "The source", body = SourceInfo), Problem))]
pub(crate) async fn create_source(asker: Asker, _: NoParams, request: Request) -> Made<SourceInfo> {
    asker.may(Role::Admin)?;
    let shape: SourceShape = asker.receive_settings(request).await?;
    let name = shape.name.clone();
    let made = asker.app.engine(move |engine| {
        engine.create_source(shape.into())?;
        Ok(engine.source(&name)?)
    });
    Ok((StatusCode::CREATED, Json(made.await?.into())))
}

/// Says whether a source could be made. Nothing is made.
#[utoipa::path(post, path = "/v1/check/sources", tag = "sources",
    request_body = SourceShape, responses((status = 200, description = "It could be made", body = SourceShape), Problem))]
pub(crate) async fn check_source(asker: Asker, _: NoParams, request: Request) -> Reply<SourceShape> {
    asker.may(Role::Admin)?;
    let shape: SourceShape = asker.receive_settings(request).await?;
    let config = SourceConfig::from(shape.clone());
    config.check().map_err(ChangeError::from)?;
    if asker.app.engine.source(&config.name).is_ok() {
        return Err(ChangeError::Exists { what: "source", name: config.name }.into());
    }
    Ok(Json(shape))
}

/// Deletes a source without streams. Its ledger stays, and its name is not given again.
#[utoipa::path(delete, path = "/v1/sources/{source}", tag = "sources",
    params(("source" = String, Path, description = "The source")),
    responses((status = 204, description = "It is gone"), Problem))]
pub(crate) async fn delete_source(asker: Asker, Name(name): Name, _: NoParams) -> Done {
    asker.may(Role::Admin)?;
    asker.app.engine(move |engine| Ok(engine.delete_source(&name)?)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The streams that the token may see, with their plans.
#[utoipa::path(get, path = "/v1/streams", tag = "streams",
    responses((status = 200, description = "By name", body = Streams), Problem))]
pub(crate) async fn streams(asker: Asker, _: NoParams) -> Reply<Streams> {
    let mut streams = asker.app.engine(|engine| Ok(engine.streams())).await?;
    streams.retain(|report| {
        let source = report.source().unwrap_or_default();
        let allows = |role| asker.caller.allows_stream(role, &report.name, Some(report.id), source);
        allows(Role::Query) || allows(Role::Admin)
    });
    Ok(Json(Streams { streams: streams.iter().map(StreamInfo::from).collect() }))
}

/// A stream with its plan.
#[utoipa::path(get, path = "/v1/streams/{stream}", tag = "streams",
    params(("stream" = String, Path, description = "The stream")),
    responses((status = 200, description = "The stream", body = StreamInfo), Problem))]
pub(crate) async fn stream(asker: Asker, Name(name): Name, _: NoParams) -> Reply<StreamInfo> {
    asker.may_stream(Role::Query, &name).or_else(|_| asker.may_stream(Role::Admin, &name))?;
    Ok(Json((&asker.app.engine.stream(&name)?).into()))
}

/// Makes a stream: charges it to its source and starts it with the next batch.
#[utoipa::path(post, path = "/v1/sources/{source}/streams", tag = "streams",
    params(("source" = String, Path, description = "The source")), request_body = StreamShape,
    responses((status = 201, description = "The stream", body = StreamInfo), Problem))]
pub(crate) async fn create_stream(
    asker: Asker,
    Name(source): Name,
    _: NoParams,
    request: Request,
) -> Made<StreamInfo> {
    asker.may_source(Role::Admin, &source)?;
    let shape: StreamShape = asker.receive_settings(request).await?;
    let name = shape.name.clone();
    let most = asker.app.limits.streams;
    let made = asker.app.engine(move |engine| {
        at_most(engine, most)?;
        engine.create_stream(&source, shape.into())?;
        Ok(engine.stream(&name)?)
    });
    Ok((StatusCode::CREATED, Json((&made.await?).into())))
}

pub(crate) fn at_most(engine: &Engine, most: usize) -> Result<(), ChangeError> {
    if engine.streams().len() < most { Ok(()) } else { Err(ChangeError::Many { what: "stream", most }) }
}

/// The plan of a stream that could be made. Nothing is charged or made.
#[utoipa::path(post, path = "/v1/check/sources/{source}/streams", tag = "streams",
    params(("source" = String, Path, description = "The source")), request_body = StreamShape,
    responses((status = 200, description = "It could be made", body = StreamInfo), Problem))]
pub(crate) async fn check_stream(
    asker: Asker,
    Name(source): Name,
    _: NoParams,
    request: Request,
) -> Reply<StreamInfo> {
    asker.may_source(Role::Admin, &source)?;
    let shape: StreamShape = asker.receive_settings(request).await?;
    let checked = asker.app.engine(move |engine| {
        let config = StreamConfig::from(shape);
        let plan = engine.check_stream(&source, &config)?;
        Ok(StreamInfo::new(config.name, Some((source, config.item)), &plan, None))
    });
    Ok(Json(checked.await?))
}

/// Gives a stream other settings from the next batch on.
///
/// All but its column and its kind of keys may change. What is open is given up, and the window fills anew; who follows the
/// stream is cut off and may come back. Events are charged until then as before, and from then on as the new settings say.
#[utoipa::path(put, path = "/v1/streams/{stream}", tag = "streams",
    params(("stream" = String, Path, description = "The stream")), request_body = StreamShape,
    responses((status = 200, description = "The stream", body = StreamInfo), Problem))]
pub(crate) async fn replace_stream(
    asker: Asker,
    Name(name): Name,
    _: NoParams,
    request: Request,
) -> Reply<StreamInfo> {
    asker.may_stream(Role::Admin, &name)?;
    let shape: StreamShape = asker.receive_settings(request).await?;
    if shape.name != name {
        let text = format!("stream {name:?} keeps its name, got {:?}", shape.name);
        return Err(ChangeError::from(ConfigError::Contradiction(text)).into());
    }
    let made = asker.app.engine(move |engine| {
        engine.replace_stream(shape.into())?;
        Ok(engine.stream(&name)?)
    });
    Ok(Json((&made.await?).into()))
}

/// Deletes a stream. What is open is given up; its charge stays.
#[utoipa::path(delete, path = "/v1/streams/{stream}", tag = "streams",
    params(("stream" = String, Path, description = "The stream")),
    responses((status = 204, description = "It is gone"), Problem))]
pub(crate) async fn delete_stream(asker: Asker, Name(name): Name, _: NoParams) -> Done {
    asker.may_stream(Role::Admin, &name)?;
    let app = asker.app.clone();
    let deleted = asker.app.engine(move |engine| {
        // Tokens that name it are for no later stream of its name.
        app.bind_tokens()?;
        Ok(engine.delete_stream(&name)?)
    });
    deleted.await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What is promised of a stream, in numbers and in words.
#[utoipa::path(get, path = "/v1/streams/{stream}/privacy", tag = "streams",
    params(("stream" = String, Path, description = "The stream")),
    responses((status = 200, description = "The contract", body = ContractInfo), Problem))]
pub(crate) async fn privacy(asker: Asker, Name(name): Name, _: NoParams) -> Reply<ContractInfo> {
    asker.may_stream(Role::Query, &name).or_else(|_| asker.may_stream(Role::Admin, &name))?;
    Ok(Json(asker.app.engine.contract(&name)?.into()))
}

/// All tokens, without what they are.
#[utoipa::path(get, path = "/v1/tokens", tag = "tokens",
    responses((status = 200, description = "Oldest first", body = Tokens), Problem))]
pub(crate) async fn tokens(asker: Asker, _: NoParams) -> Reply<Tokens> {
    asker.may(Role::Admin)?;
    Ok(Json(Tokens { tokens: asker.app.keeper.list().into_iter().map(Into::into).collect() }))
}

/// What the token that asks may do, and where.
#[utoipa::path(get, path = "/v1/token", tag = "tokens",
    responses((status = 200, description = "Its grant", body = Grant), Problem))]
pub(crate) async fn own_token(asker: Asker, _: NoParams) -> Json<Grant> {
    Json(asker.caller.grant.clone())
}

/// Makes a token. It is shown this once: only its hash is kept.
#[utoipa::path(post, path = "/v1/tokens", tag = "tokens",
    request_body = TokenShape, responses((status = 201, description = "The token", body = MadeToken), Problem))]
pub(crate) async fn create_token(asker: Asker, _: NoParams, request: Request) -> Made<MadeToken> {
    asker.may(Role::Admin)?;
    let TokenShape { name, grant } = asker.receive_settings(request).await?;
    let app = asker.app.clone();
    let made = asker.app.engine(move |_| {
        let token = app.keeper.create(&name, grant, app.clock.now_ms())?;
        app.bind_tokens()?;
        Ok(token)
    });
    Ok((StatusCode::CREATED, Json(made.await?.into())))
}

/// Deletes a token; from then on it is unknown, and whoever follows a stream with it is cut off.
#[utoipa::path(delete, path = "/v1/tokens/{id}", tag = "tokens",
    params(("id" = String, Path, description = "The public id of the token")),
    responses((status = 204, description = "It is gone"), Problem))]
pub(crate) async fn delete_token(asker: Asker, Name(id): Name, _: NoParams) -> Done {
    asker.may(Role::Admin)?;
    let app = asker.app.clone();
    asker.app.engine(move |_| Ok(app.keeper.delete(&id)?)).await?;
    Ok(StatusCode::NO_CONTENT)
}
