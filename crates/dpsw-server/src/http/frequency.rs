//! How often items occurred.

use axum::Json;
use axum::extract::Request;
use dpsw::error::QueryError;
use dpsw::{Ranked, WindowView};

use crate::http::ask::Effort;
use crate::http::caller::Asker;
use crate::http::items::{NamedItems, of_body, wrong_item};
use crate::http::params::{Name, Params, Scope};
use crate::http::problem::{Problem, Reply};
use crate::wire::answer::Answer;
use crate::wire::item::AskedItem;
use crate::wire::report::FrequenciesQuestion;

/// The rows of items that were asked for; a problem says which of them it is about.
fn frequencies<'i>(view: &WindowView, items: &'i [AskedItem]) -> Result<Vec<Ranked<'i>>, Problem> {
    let mut rows = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let asked = view.frequencies(&[item.item()]);
        let unlisted = "it is not in the public list, so it was not counted";
        rows.extend(asked.map_err(|error| match error {
            QueryError::NotInDomain => wrong_item(index, unlisted),
            error => error.into(),
        })?);
    }
    Ok(rows)
}

fn asked(view: &WindowView, items: &[AskedItem], trends: bool) -> Result<Answer, Problem> {
    if items.is_empty() {
        return Err(Problem::parameter("name at least one item"));
    }
    Ok(Answer::asked(view, &frequencies(view, items)?, trends))
}

/// How often items occurred.
///
/// Items in an address may end in the logs of proxies: `POST /v1/streams/{stream}/frequencies` keeps them out of there.
#[utoipa::path(get, path = "/v1/streams/{stream}/frequency", tag = "questions",
    params(("stream" = String, Path, description = "The stream"), NamedItems, Scope,
           ("trend" = Option<bool>, Query, description = "Whether rows say how they move")),
    responses((status = 200, description = "A row for each item, in their order", body = Answer), Problem))]
pub(crate) async fn frequency(asker: Asker, Name(stream): Name, mut params: Params) -> Reply<Answer> {
    let items = NamedItems::read(&mut params);
    let scope = Scope::read(&mut params)?;
    let trends = params.flag("trend")?;
    params.done()?;
    let most = asker.app.limits.question_items;
    let effort = Effort::of(items.item.len() + items.item_base64.len(), trends);
    let answer = move |view: &WindowView| asked(view, &items.items(view, most)?, trends);
    asker.ask(&stream, scope, effort, answer).await.map(Json)
}

/// How often many items occurred.
#[utoipa::path(post, path = "/v1/streams/{stream}/frequencies", tag = "questions",
    params(("stream" = String, Path, description = "The stream"), Scope,
           ("trend" = Option<bool>, Query, description = "Whether rows say how they move")),
    request_body = FrequenciesQuestion,
    responses((status = 200, description = "A row for each item, in their order", body = Answer), Problem))]
pub(crate) async fn frequencies_of_many(
    asker: Asker,
    Name(stream): Name,
    mut params: Params,
    request: Request,
) -> Reply<Answer> {
    let scope = Scope::read(&mut params)?;
    let trends = params.flag("trend")?;
    params.done()?;
    let question = asker.receive_question::<FrequenciesQuestion>(&stream, request).await?;
    let most = asker.app.limits.question_items;
    let effort = Effort::of(question.value.items.0.len(), trends);
    let answer = move |view: &WindowView| {
        // With its memory.
        let question = question;
        asked(view, &of_body(&question.value.items.0, view, most)?, trends)
    };
    asker.ask(&stream, scope, effort, answer).await.map(Json)
}
