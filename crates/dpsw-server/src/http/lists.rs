//! Lists: the most frequent items, and those that are at least a share of the window.

use std::str::FromStr;

use axum::Json;
use axum::extract::Request;
use dpsw::{Certainty, Item, List, ListRequest, Threshold, WindowView};
use utoipa::{IntoParams, ToSchema};

use crate::http::app::App;
use crate::http::ask::Effort;
use crate::http::caller::Asker;
use crate::http::items::of_body;
use crate::http::params::{Name, Params, Scope};
use crate::http::problem::{Problem, Reply};
use crate::wire::answer::Answer;
use crate::wire::item::AskedItem;
use crate::wire::report::CandidatesQuestion;

/// How the rows of a list are shown.
#[derive(Debug, Clone, Copy, Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Rows {
    /// Also rows that may be noise alone. With that, no threshold, and a count of at least the number of keys nothing is chosen
    /// by size, and rows show plain estimates; in every other case they are corrected.
    pub(crate) all: Option<bool>,
    /// Intervals that hold for 95 % of the rows shown whatever the stream is like; they are about half as wide again.
    pub(crate) strict: Option<bool>,
    /// Whether rows say how they move.
    pub(crate) trend: Option<bool>,
}

impl Rows {
    pub(crate) fn read(params: &mut Params) -> Result<Self, Problem> {
        let mut flag = |name| params.flag(name).map(Some);
        Ok(Self { all: flag("all")?, strict: flag("strict")?, trend: flag("trend")? })
    }

    pub(crate) fn has_trends(self) -> bool {
        self.trend == Some(true)
    }

    fn of(self, request: ListRequest) -> ListRequest {
        request.with_noise(self.all == Some(true)).strict(self.strict == Some(true))
    }

    fn answer(self, view: &WindowView, list: &List<'_>) -> Answer {
        Answer::listed(view, list, self.has_trends())
    }

    /// The same of a list that is as long as it is.
    fn answer_at_most(self, view: &WindowView, list: &List<'_>, most: usize) -> Result<Answer, Problem> {
        let len = list.rows.len();
        if most < len {
            let detail = format!(
                "{len} items reach the threshold, and an answer has at most {most}; raise the threshold"
            );
            return Err(Problem::parameter(detail));
        }
        Ok(self.answer(view, list))
    }
}

/// Rows are made for so many times the keys that an answer may have: of those whose estimates come near a threshold, some miss it.
const IN_QUESTION: usize = 10;
/// How many rows a list has if nobody says.
const USUAL_ROWS: usize = 10;

pub(crate) fn read_count(app: &App, params: &mut Params) -> Result<usize, Problem> {
    params.count("count", USUAL_ROWS, app.limits.answer_rows)
}

pub(crate) fn top_of(view: &WindowView, count: usize, rows: Rows) -> Result<Answer, Problem> {
    Ok(rows.answer(view, &view.list(rows.of(ListRequest::top(count)))?))
}

/// The most frequent items.
///
/// The largest of many noisy numbers are large because of their noise, so rows show what they probably count; rows that may be
/// noise alone are hidden, and `hidden` says how many.
#[utoipa::path(get, path = "/v1/streams/{stream}/top", tag = "questions",
    params(("stream" = String, Path, description = "The stream"),
           ("count" = Option<usize>, Query, description = "How many rows; 10 if nobody says", minimum = 1), Rows, Scope),
    responses((status = 200, description = "The largest first", body = Answer), Problem))]
pub(crate) async fn top(asker: Asker, Name(stream): Name, mut params: Params) -> Reply<Answer> {
    let count = read_count(&asker.app, &mut params)?;
    let rows = Rows::read(&mut params)?;
    let scope = Scope::read(&mut params)?;
    params.done()?;
    let effort = Effort::of(count, rows.has_trends());
    asker.ask(&stream, scope, effort, move |view| top_of(view, count, rows)).await.map(Json)
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
#[utoipa::path(get, path = "/v1/streams/{stream}/heavy-hitters", tag = "questions",
    params(("stream" = String, Path, description = "The stream"),
           ("threshold" = f64, Query, description = "The share of the window that a heavy hitter has at least",
            exclusive_minimum = 0.0, maximum = 1.0, example = 0.01),
           ("certainty" = Option<Side>, Query, description = "On which side to err"), Rows, Scope),
    responses((status = 200, description = "The largest first", body = Answer), Problem))]
pub(crate) async fn heavy_hitters(asker: Asker, Name(stream): Name, mut params: Params) -> Reply<Answer> {
    let share = params.read("threshold", "a number strictly between 0 and 1")?;
    let side: Side = params.read("certainty", "plain, sure or possible")?.unwrap_or_default();
    let rows = Rows::read(&mut params)?;
    let scope = Scope::read(&mut params)?;
    params.done()?;
    let share = share.ok_or_else(|| Problem::parameter("say which share, as in ?threshold=0.01"))?;
    let threshold = threshold(share)?;
    let most = asker.app.limits.answer_rows;
    // About as many keys reach a share as it fits into the whole.
    let effort = Effort::of((1.0 / share) as usize, rows.has_trends());
    let request = ListRequest::heavy_hitters(threshold).with_certainty(side.into());
    let request = rows.of(request).with_in_question_up_to(most.saturating_mul(IN_QUESTION));
    let answer = move |view: &WindowView| rows.answer_at_most(view, &view.list(request)?, most);
    asker.ask(&stream, scope, effort, answer).await.map(Json)
}

/// Which of many items are at least a share of the window: also where keys cannot be listed.
#[utoipa::path(post, path = "/v1/streams/{stream}/heavy-hitters", tag = "questions",
    params(("stream" = String, Path, description = "The stream"), Rows, Scope), request_body = CandidatesQuestion,
    responses((status = 200, description = "The largest first", body = Answer), Problem))]
pub(crate) async fn heavy_hitters_among(
    asker: Asker,
    Name(stream): Name,
    mut params: Params,
    request: Request,
) -> Reply<Answer> {
    let rows = Rows::read(&mut params)?;
    let scope = Scope::read(&mut params)?;
    params.done()?;
    let question = asker.receive_question::<CandidatesQuestion>(&stream, request).await?;
    let threshold = threshold(question.value.threshold)?;
    let most = asker.app.limits.question_items;
    let answer = move |view: &WindowView| {
        // With its memory.
        let question = question;
        let items = of_body(&question.value.items.0, view, most)?;
        let items: Vec<Item<'_>> = items.iter().map(AskedItem::item).collect();
        Ok(rows.answer(view, &view.list_among(&items, rows.of(ListRequest::heavy_hitters(threshold)))?))
    };
    asker.ask(&stream, scope, Effort::Long, answer).await.map(Json)
}
