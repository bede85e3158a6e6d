//! All routes, and the OpenAPI document that is made from them.

use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Router, middleware};
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::app::App;
use crate::http::{
    admin, ask, caller, dashboard, frequency, ingest, lists, live, moves, operate, prometheus, request, views,
};
use crate::wire::problem::ProblemShape;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "dpsw",
        description = "Private frequency counts and heavy hitters over a sliding window, with an error bar on every answer.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    security(("token" = [])),
    components(schemas(ProblemShape, lists::Side)),
    tags(
        (name = "events", description = "Batches of events"),
        (name = "questions", description = "What occurred how often. Everything is answered from what is sealed, so any number of \
         questions costs nothing more"),
        (name = "views", description = "All that can be asked, as bytes"),
        (name = "sources", description = "Where events come from, and what may be spent on them"),
        (name = "streams", description = "Windows over a column of a source"),
        (name = "tokens", description = "Who may do what"),
        (name = "operation", description = "For those who run the service"),
    )
)]
struct Described;

/// The service, without a socket.
pub fn router(app: App) -> Router {
    let (router, document) = routes_of(&app).split_for_parts();
    let document: Arc<str> = written(document).into();
    let document =
        move || async move { ([(CONTENT_TYPE, "application/json")], document.to_string()).into_response() };
    router
        .route("/openapi.json", get(document))
        .merge(dashboard::routes())
        .fallback(operate::unknown_path)
        .method_not_allowed_fallback(operate::wrong_method)
        // Bodies have a limit of their own, which settings can change.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(app.clone(), request::around))
        .with_state(app)
}

/// The OpenAPI document as it is served and checked in.
#[must_use]
pub fn openapi(app: &App) -> String {
    written(routes_of(app).into_openapi())
}

fn written(mut document: OpenApi) -> String {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
    let bearer = bearer
        .description(Some("A token: `dpsw-server token create` makes one, and so does POST /v1/tokens"));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("token", SecurityScheme::Http(bearer.build()));
    let mut text = document.to_pretty_json().expect("a document is JSON");
    text.push('\n');
    text
}

fn routes_of(app: &App) -> OpenApiRouter<App> {
    let known = middleware::from_fn_with_state(app.clone(), caller::known);
    let timed = middleware::from_fn_with_state(app.clone(), ask::timed);
    let questions = questions().route_layer(timed);
    let asked = others().merge(questions).route_layer(known);
    OpenApiRouter::with_openapi(Described::openapi()).merge(open()).merge(asked)
}

/// Without a token.
fn open() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(operate::healthz))
        .routes(routes!(operate::readyz))
        .routes(routes!(operate::version))
}

fn questions() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(frequency::frequency))
        .routes(routes!(frequency::frequencies_of_many))
        .routes(routes!(lists::top))
        .routes(routes!(lists::heavy_hitters, lists::heavy_hitters_among))
        .routes(routes!(moves::history, moves::history_of_body))
        .routes(routes!(moves::trend))
        .routes(routes!(views::view))
        .routes(routes!(prometheus::prometheus))
}

fn others() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(ingest::ingest))
        .routes(routes!(live::live))
        .routes(routes!(views::put_view))
        .routes(routes!(views::merge))
        .routes(routes!(admin::sources, admin::create_source))
        .routes(routes!(admin::check_source))
        .routes(routes!(admin::source, admin::delete_source))
        .routes(routes!(admin::create_stream))
        .routes(routes!(admin::check_stream))
        .routes(routes!(admin::streams))
        .routes(routes!(admin::stream, admin::replace_stream, admin::delete_stream))
        .routes(routes!(admin::privacy))
        .routes(routes!(admin::tokens, admin::create_token))
        .routes(routes!(admin::own_token))
        .routes(routes!(admin::delete_token))
        .routes(routes!(operate::status))
        .routes(routes!(operate::metrics))
}
