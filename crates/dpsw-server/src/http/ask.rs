//! Questions: how often items occurred, which are the most frequent, and how they move.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use dpsw::error::QueryError;
use dpsw::{Certainty, Estimate, Item, Ranked, Threshold, WindowView};
use utoipa::{IntoParams, ToSchema};

use crate::auth::Role;
use crate::http::app::App;
use crate::http::body::{Shown, receive_json};
use crate::http::caller::Asker;
use crate::http::params::{Name, Params, Scope};
use crate::http::problem::Problem;
use crate::wire::answer::{Answer, History, TrendAnswer};
use crate::wire::item::{AskedItem, QuestionItem};
use crate::wire::problem::Code;
use crate::wire::report::{CandidatesQuestion, FrequenciesQuestion};

/// Counts how long questions take.
pub(crate) async fn timed(State(app): State<App>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let response = next.run(request).await;
    app.metrics.add_question(started.elapsed());
    response
}

/// Answers a question about a stream, on a thread of its own if the window is not worked out yet.
pub(crate) async fn ask<T: Send + 'static>(
    app: &App,
    asker: &Asker,
    stream: &str,
    scope: Scope,
    question: impl FnOnce(&WindowView) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    asker.may_stream(app, Role::Query, stream)?;
    let published = app.engine.view(stream)?;
    if scope.is_whole() {
        return question(&published.view);
    }
    app.workers.questions.run(move || question(&scope.of(&published.view)?)).await?
}

/// Items that were named in an address.
#[derive(Debug, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct NamedItems {
    /// An item: text, or digits where integers are counted. May be given several times.
    #[param(example = json!(["/cart"]))]
    pub(crate) item: Vec<String>,
    /// An item that is no text, in base64. May be given several times.
    pub(crate) item_base64: Vec<String>,
}

impl NamedItems {
    fn read(params: &mut Params) -> Self {
        Self { item: params.many("item"), item_base64: params.many("item_base64") }
    }

    /// The items as the view counts them.
    fn items(&self, view: &WindowView, most: usize) -> Result<Vec<AskedItem>, Problem> {
        let kind = view.plan().settings().domain.kind();
        let texts = self.item.iter().map(|text| AskedItem::of_text(text, kind));
        let bytes = self.item_base64.iter().map(|text| AskedItem::of_base64(text, kind));
        countable(texts.chain(bytes), most)
    }

    fn one(&self, view: &WindowView) -> Result<AskedItem, Problem> {
        let items = self.items(view, 1)?;
        items.into_iter().next().ok_or_else(|| Problem::parameter("name the item, as in ?item=/cart"))
    }
}

/// The items of a question, if there are not too many and the stream could have counted each.
fn countable(items: impl Iterator<Item = Option<AskedItem>>, most: usize) -> Result<Vec<AskedItem>, Problem> {
    let mut countable = Vec::new();
    for (index, item) in items.enumerate() {
        if index == most {
            return Err(Problem::parameter(format!("a question has at most {most} items")));
        }
        countable
            .push(item.ok_or_else(|| wrong_item(index, "the stream counts integers, or it is no base64"))?);
    }
    Ok(countable)
}

fn of_body(items: &[QuestionItem], view: &WindowView, most: usize) -> Result<Vec<AskedItem>, Problem> {
    let kind = view.plan().settings().domain.kind();
    countable(items.iter().map(|item| item.asked(kind)), most)
}

fn wrong_item(index: usize, reason: &str) -> Problem {
    Problem::new(Code::WrongItem, format!("item number {} cannot be asked for: {reason}", index + 1))
}

/// The rows of items that were asked for; a problem says which of them it is about.
fn frequencies<'i>(view: &WindowView, items: &'i [AskedItem]) -> Result<Vec<Ranked<'i>>, Problem> {
    let mut rows = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let asked = view.frequencies(&[item.item()]);
        rows.extend(asked.map_err(|error| match error {
            QueryError::NotInDomain => {
                wrong_item(index, "it is not in the public list, so it was not counted")
            }
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
#[utoipa::path(
    get, path = "/v1/streams/{stream}/frequency", tag = "questions",
    params(("stream" = String, Path, description = "The stream"), NamedItems, Scope,
           ("trend" = Option<bool>, Query, description = "Whether rows say how they move")),
    responses((status = 200, description = "A row for each item, in their order", body = Answer),
              Problem))]
pub(crate) async fn frequency(
    State(app): State<App>,
    asker: Asker,
    Name(stream): Name,
    mut params: Params,
) -> Result<Json<Answer>, Problem> {
    let (items, scope) = (NamedItems::read(&mut params), Scope::read(&mut params)?);
    let trends = params.flag("trend")?;
    params.done()?;
    let most = app.limits.question_items;
    ask(&app, &asker, &stream, scope, move |view| asked(view, &items.items(view, most)?, trends))
        .await
        .map(Json)
}

/// How often many items occurred.
#[utoipa::path(
    post, path = "/v1/streams/{stream}/frequencies", tag = "questions",
    params(("stream" = String, Path, description = "The stream"), Scope,
           ("trend" = Option<bool>, Query, description = "Whether rows say how they move")),
    request_body = FrequenciesQuestion,
    responses((status = 200, description = "A row for each item, in their order", body = Answer),
              Problem))]
pub(crate) async fn frequencies_of_many(
    State(app): State<App>,
    asker: Asker,
    Name(stream): Name,
    mut params: Params,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Answer>, Problem> {
    let (scope, trends) = (Scope::read(&mut params)?, params.flag("trend")?);
    params.done()?;
    asker.may_stream(&app, Role::Query, &stream)?;
    let question: FrequenciesQuestion = receive_json(&app, &headers, body, Shown::PlaceAlone).await?;
    let most = app.limits.question_items;
    let answer = move |view: &WindowView| asked(view, &of_body(&question.items, view, most)?, trends);
    ask(&app, &asker, &stream, scope, answer).await.map(Json)
}

/// How the rows of a list are shown.
#[derive(Debug, Clone, Copy, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Rows {
    /// Also rows that may be noise alone.
    pub(crate) all: Option<bool>,
    /// Intervals that hold whatever the stream is like; they are half as wide again.
    pub(crate) strict: Option<bool>,
    /// Whether rows say how they move.
    pub(crate) trend: Option<bool>,
}

impl Rows {
    pub(crate) fn read(params: &mut Params) -> Result<Self, Problem> {
        let mut flag = |name| params.flag(name).map(Some);
        Ok(Self { all: flag("all")?, strict: flag("strict")?, trend: flag("trend")? })
    }

    fn answer(self, view: &WindowView, list: dpsw::List<'_>) -> Answer {
        let is_set = |flag: Option<bool>| flag == Some(true);
        let list = if is_set(self.strict) { list.strict() } else { list };
        Answer::listed(view, list, is_set(self.all), is_set(self.trend))
    }
}

/// How many rows a list has if nobody says.
const USUAL_ROWS: usize = 10;

pub(crate) fn read_count(app: &App, params: &mut Params) -> Result<usize, Problem> {
    params.count("count", USUAL_ROWS, app.limits.answer_rows)
}

/// The most frequent items of a view.
pub(crate) fn top_of(view: &WindowView, count: usize, rows: Rows) -> Result<Answer, Problem> {
    Ok(rows.answer(view, view.top(count)?))
}

/// The most frequent items.
///
/// The largest of many noisy numbers are large because of their noise, so rows show what they probably count; rows that may be
/// noise alone are hidden, and `hidden` says how many.
#[utoipa::path(
    get, path = "/v1/streams/{stream}/top", tag = "questions",
    params(("stream" = String, Path, description = "The stream"),
           ("count" = Option<usize>, Query, description = "How many rows; 10 if nobody says", minimum = 1), Rows, Scope),
    responses((status = 200, description = "The largest first", body = Answer),
              Problem))]
pub(crate) async fn top(
    State(app): State<App>,
    asker: Asker,
    Name(stream): Name,
    mut params: Params,
) -> Result<Json<Answer>, Problem> {
    let (count, rows) = (read_count(&app, &mut params)?, Rows::read(&mut params)?);
    let scope = Scope::read(&mut params)?;
    params.done()?;
    ask(&app, &asker, &stream, scope, move |view| top_of(view, count, rows)).await.map(Json)
}

/// On which side a list of heavy hitters errs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum Side {
    /// The estimate reaches the threshold.
    #[default]
    Plain,
    /// The lower end of its interval does: few wrong ones.
    Sure,
    /// The upper end does: few missed ones.
    Possible,
}

impl FromStr for Side {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "plain" => Ok(Self::Plain),
            "sure" => Ok(Self::Sure),
            "possible" => Ok(Self::Possible),
            _ => Err(()),
        }
    }
}

impl From<Side> for Certainty {
    fn from(side: Side) -> Self {
        match side {
            Side::Plain => Self::Plain,
            Side::Sure => Self::Sure,
            Side::Possible => Self::Possible,
        }
    }
}

fn threshold(share: f64) -> Result<Threshold, Problem> {
    Threshold::new(share).map_err(|error| Problem::parameter(error.to_string()))
}

/// The items that are at least a share of the window.
#[utoipa::path(
    get, path = "/v1/streams/{stream}/heavy-hitters", tag = "questions",
    params(("stream" = String, Path, description = "The stream"),
           ("threshold" = f64, Query, description = "The share of the window that a heavy hitter has at least",
            exclusive_minimum = 0.0, maximum = 1.0, example = 0.01),
           ("certainty" = Option<Side>, Query, description = "On which side to err"), Rows, Scope),
    responses((status = 200, description = "The largest first", body = Answer),
              Problem))]
pub(crate) async fn heavy_hitters(
    State(app): State<App>,
    asker: Asker,
    Name(stream): Name,
    mut params: Params,
) -> Result<Json<Answer>, Problem> {
    let share = params.read("threshold", "a number strictly between 0 and 1")?;
    let side: Side = params.read("certainty", "plain, sure or possible")?.unwrap_or_default();
    let (rows, scope) = (Rows::read(&mut params)?, Scope::read(&mut params)?);
    params.done()?;
    let share = share.ok_or_else(|| Problem::parameter("say which share, as in ?threshold=0.01"))?;
    let threshold = threshold(share)?;
    let answer =
        move |view: &WindowView| Ok(rows.answer(view, view.heavy_hitters_with(threshold, side.into())?));
    ask(&app, &asker, &stream, scope, answer).await.map(Json)
}

/// Which of many items are at least a share of the window: also where keys cannot be listed.
#[utoipa::path(
    post, path = "/v1/streams/{stream}/heavy-hitters", tag = "questions",
    params(("stream" = String, Path, description = "The stream"), Rows, Scope),
    request_body = CandidatesQuestion,
    responses((status = 200, description = "The largest first", body = Answer),
              Problem))]
pub(crate) async fn heavy_hitters_among(
    State(app): State<App>,
    asker: Asker,
    Name(stream): Name,
    mut params: Params,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Answer>, Problem> {
    let (rows, scope) = (Rows::read(&mut params)?, Scope::read(&mut params)?);
    params.done()?;
    asker.may_stream(&app, Role::Query, &stream)?;
    let question: CandidatesQuestion = receive_json(&app, &headers, body, Shown::PlaceAlone).await?;
    let threshold = threshold(question.threshold)?;
    let most = app.limits.question_items;
    let answer = move |view: &WindowView| {
        let items = of_body(&question.items, view, most)?;
        let items: Vec<Item<'_>> = items.iter().map(AskedItem::item).collect();
        Ok(rows.answer(view, view.heavy_hitters_among(&items, threshold)?))
    };
    ask(&app, &asker, &stream, scope, answer).await.map(Json)
}

/// An item in each substream that is kept, oldest first.
///
/// With `window` or `as_of`, those substreams that lie inside that window.
#[utoipa::path(
    get, path = "/v1/streams/{stream}/history", tag = "questions",
    params(("stream" = String, Path, description = "The stream"), NamedItems, Scope),
    responses((status = 200, description = "The oldest first", body = History),
              Problem))]
pub(crate) async fn history(
    State(app): State<App>,
    asker: Asker,
    Name(stream): Name,
    mut params: Params,
) -> Result<Json<History>, Problem> {
    let (items, scope) = (NamedItems::read(&mut params), Scope::read(&mut params)?);
    params.done()?;
    asker.may_stream(&app, Role::Query, &stream)?;
    let published = app.engine.view(&stream)?;
    app.workers.questions.run(move || history_of(&published.view, &items, &scope)).await?.map(Json)
}

fn history_of(view: &WindowView, items: &NamedItems, scope: &Scope) -> Result<History, Problem> {
    let item = items.one(view)?;
    let asked = scope.of(view)?;
    let window = if scope.is_whole() { view.retained() } else { asked.window() };
    let lies_inside =
        |estimate: &Estimate| window.start <= estimate.window.start && estimate.window.end <= window.end;
    let estimates: Vec<Estimate> = view.history(item.item())?.into_iter().filter(lies_inside).collect();
    Ok(History::new(&asked, item.item(), &estimates))
}

/// Whether an item rises or falls: this window against the one before it, if that is retained; else its newer half against its
/// older half.
#[utoipa::path(
    get, path = "/v1/streams/{stream}/trend", tag = "questions",
    params(("stream" = String, Path, description = "The stream"), NamedItems, Scope),
    responses((status = 200, description = "Now and before", body = TrendAnswer),
              Problem))]
pub(crate) async fn trend(
    State(app): State<App>,
    asker: Asker,
    Name(stream): Name,
    mut params: Params,
) -> Result<Json<TrendAnswer>, Problem> {
    let (items, scope) = (NamedItems::read(&mut params), Scope::read(&mut params)?);
    params.done()?;
    asker.may_stream(&app, Role::Query, &stream)?;
    let published = Arc::clone(&app.engine.view(&stream)?);
    let answer = move || {
        let view = scope.of(&published.view)?;
        let item = items.one(&view)?;
        let trend = view.trend(item.item())?;
        Ok(TrendAnswer::new(&view, item.item(), &trend))
    };
    app.workers.questions.run(answer).await?.map(Json)
}
