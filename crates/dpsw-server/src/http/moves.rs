//! How an item moves: its history and its trend.

use axum::Json;
use axum::extract::Request;
use dpsw::{Estimate, WindowView};

use crate::http::ask::Effort;
use crate::http::caller::Asker;
use crate::http::items::{NamedItems, of_body};
use crate::http::params::{Name, Params, Scope};
use crate::http::problem::{Problem, Reply};
use crate::wire::answer::{History, TrendAnswer};
use crate::wire::item::AskedItem;
use crate::wire::report::ItemQuestion;

/// An item in each substream that is kept, oldest first.
///
/// With `window` or `as_of`, those substreams that lie inside that window.
#[utoipa::path(get, path = "/v1/streams/{stream}/history", tag = "questions",
    params(("stream" = String, Path, description = "The stream"), NamedItems, Scope),
    responses((status = 200, description = "The oldest first", body = History), Problem))]
pub(crate) async fn history(asker: Asker, Name(stream): Name, mut params: Params) -> Reply<History> {
    let items = NamedItems::read(&mut params);
    let scope = Scope::read(&mut params)?;
    params.done()?;
    let answer = move |view: &WindowView| history_of(view, &items.one(view)?, &scope);
    asker.ask(&stream, Scope::default(), Effort::Long, answer).await.map(Json)
}

/// The same of an item that stays out of the address, and so of the logs of proxies.
#[utoipa::path(post, path = "/v1/streams/{stream}/history", tag = "questions",
    params(("stream" = String, Path, description = "The stream"), Scope), request_body = ItemQuestion,
    responses((status = 200, description = "The oldest first", body = History), Problem))]
pub(crate) async fn history_of_body(
    asker: Asker,
    Name(stream): Name,
    mut params: Params,
    request: Request,
) -> Reply<History> {
    let scope = Scope::read(&mut params)?;
    params.done()?;
    let question = asker.receive_question::<ItemQuestion>(&stream, request).await?;
    let answer = move |view: &WindowView| {
        // With its memory.
        let question = question;
        let items = of_body(&[question.value.item], view, 1)?;
        history_of(view, &items[0], &scope)
    };
    asker.ask(&stream, Scope::default(), Effort::Long, answer).await.map(Json)
}

fn history_of(view: &WindowView, item: &AskedItem, scope: &Scope) -> Result<History, Problem> {
    let asked = scope.of(view)?;
    let window = if scope.is_whole() { view.retained() } else { asked.window() };
    let lies_inside =
        |estimate: &Estimate| window.start <= estimate.window.start && estimate.window.end <= window.end;
    let estimates: Vec<Estimate> = view.history(item.item())?.into_iter().filter(lies_inside).collect();
    Ok(History::new(&asked, item.item(), &estimates))
}

/// Whether an item rises or falls: this window against the one before it, if that is retained; else its newer half against its
/// older half.
#[utoipa::path(get, path = "/v1/streams/{stream}/trend", tag = "questions",
    params(("stream" = String, Path, description = "The stream"), NamedItems, Scope),
    responses((status = 200, description = "Now and before", body = TrendAnswer), Problem))]
pub(crate) async fn trend(asker: Asker, Name(stream): Name, mut params: Params) -> Reply<TrendAnswer> {
    let items = NamedItems::read(&mut params);
    let scope = Scope::read(&mut params)?;
    params.done()?;
    let answer = move |view: &WindowView| {
        let item = items.one(view)?;
        let trend = view.trend(item.item())?;
        Ok(TrendAnswer::new(view, item.item(), &trend))
    };
    asker.ask(&stream, scope, Effort::Long, answer).await.map(Json)
}
