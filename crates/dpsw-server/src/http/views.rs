//! Views as bytes: downloaded, to be opened by the library and the command line, and those of several sites merged.

use axum::Json;
use axum::body::Body;
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::IntoResponse;
use bytes::Bytes;
use dpsw::WindowView;

use crate::auth::Role;
use crate::budget::{Budget, Reservation};
use crate::http::admin::at_most;
use crate::http::app::App;
use crate::http::ask::Effort;
use crate::http::body::{Received, no_memory};
use crate::http::caller::Asker;
use crate::http::lists::{Rows, top_of};
use crate::http::params::{Name, NoParams, Params, Scope};
use crate::http::problem::{Problem, RawReply};
use crate::wire::answer::Answer;
use crate::wire::body::Binary;
use crate::wire::problem::Code;

/// Views, one per part.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "describes a form, whose parts are read one by one")]
pub(crate) struct ViewsForm {
    #[schema(value_type = Vec<String>, format = Binary, min_items = 1)]
    view: Vec<Bytes>,
}

const VIEW: &str = "application/vnd.dpsw.view";

/// The view of a stream as bytes. They may be published: they hold nothing that cannot be asked of the stream.
#[utoipa::path(get, path = "/v1/streams/{stream}/view", tag = "views",
    params(("stream" = String, Path, description = "The stream")),
    responses((status = 200, description = "The view", content_type = "application/vnd.dpsw.view", body = Binary), Problem))]
pub(crate) async fn view(asker: Asker, Name(stream): Name, _: NoParams) -> RawReply {
    let bytes = asker.ask(&stream, Scope::default(), Effort::Long, |view| Ok(view.to_bytes())).await?;
    let name = format!("attachment; filename=\"{stream}.view\"");
    Ok(([(CONTENT_TYPE, VIEW), (CONTENT_DISPOSITION, name.as_str())], bytes).into_response())
}

/// Shows a view of a stream that is sealed elsewhere; the first one makes the stream.
///
/// The reply comes when the view is durable and can be seen. A view that is shown already may be sent again. It is refused, and
/// nothing changes, if the service counts the stream itself, if it promises nothing, if its plan, hash keys or sites are not those of
/// the one before, if it does not end after that, contradicts it, or if that was finished. The token needs the role `ingest` for the
/// stream; to make it, the token must name it, or have the role `admin` everywhere.
#[utoipa::path(put, path = "/v1/streams/{stream}/view", tag = "views",
    params(("stream" = String, Path, description = "The stream")),
    request_body(content = Binary, content_type = "application/vnd.dpsw.view", description = "The view"),
    responses((status = 201, description = "The stream was made, and the view can be seen"),
              (status = 204, description = "The view can be seen"), Problem))]
pub(crate) async fn put_view(
    asker: Asker,
    Name(stream): Name,
    _: NoParams,
    request: Request,
) -> Result<StatusCode, Problem> {
    asker.may_stream(Role::Ingest, &stream)?;
    let is_new = asker.app.engine.view(&stream).is_err();
    let may_make = asker.may_make(&stream);
    if is_new && !may_make {
        let detail =
            "there is no such stream; to make it, the token must name it, or have the role admin everywhere";
        return Err(Problem::new(Code::Forbidden, detail));
    }
    let (Parts { headers, .. }, body) = request.into_parts();
    if headers.get(CONTENT_TYPE).is_none_or(|name| name != VIEW) {
        return Err(Problem::new(Code::UnknownContent, format!("send the view with Content-Type: {VIEW}")));
    }
    let received = asker.receive(&headers, body).await?;
    let app = asker.app.clone();
    let put = move || {
        // With its memory.
        let received = received;
        if is_new {
            at_most(&app.engine, app.limits.streams)?;
        }
        let view = received.value.clone();
        Ok(app.engine.put_view_up_to(&stream, view, may_make, app.limits.view_keys)?)
    };
    asker.app.workers.bodies.run(put).await?;
    Ok(if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT })
}

/// The union of views of several sites, as bytes; with `count`, its most frequent items.
///
/// Each part of the form is a view, as in `curl -F view=@north.view -F view=@south.view`. Views of count windows, of users and of
/// different plans or keys cannot be merged.
#[utoipa::path(post, path = "/v1/views/merge", tag = "views",
    params(("count" = Option<usize>, Query, description = "Answer with so many of the most frequent items instead", minimum = 1),
           Rows, Scope),
    request_body(content = ViewsForm, content_type = "multipart/form-data", description = "Views, one per part"),
    responses((status = 200, description = "The merged view, or an answer",
               content((Binary = "application/vnd.dpsw.view"), (Answer = "application/json"))), Problem))]
pub(crate) async fn merge(asker: Asker, mut params: Params, request: Request) -> RawReply {
    asker.has(Role::Query)?;
    let wanted = Merged::read(&asker.app, &mut params)?;
    params.done()?;
    let (parts, body) = request.into_parts();
    let Received { value: bytes, mut room } = asker.receive(&parts.headers, body).await?;
    let views = views_of(parts, bytes, asker.app.limits.merged_views).await?;
    let budget = asker.app.budget.clone();
    asker.app.workers.questions.run(move || wanted.of(&views, &budget, &mut room)).await
}

/// Bytes that working a view out takes for each key that can be listed.
const KEY_COST: usize = 64;

/// About how many bytes it takes to work a view out: a few bytes can name many keys.
fn cost_of(view: &WindowView) -> usize {
    view.keys().map_or(0, |keys| KEY_COST.saturating_mul(keys.len()))
}

/// The form in which the union is wanted.
enum Merged {
    Bytes,
    Top(usize, Rows, Scope),
}

impl Merged {
    fn read(app: &App, params: &mut Params) -> Result<Self, Problem> {
        let count = params.many("count");
        let rows = Rows::read(params)?;
        let scope = Scope::read(params)?;
        match &count[..] {
            [] => Ok(Self::Bytes),
            [count] => {
                let most = app.limits.answer_rows;
                let count = count.parse().ok().filter(|count| (1..=most).contains(count));
                let count = count
                    .ok_or_else(|| Problem::parameter(format!("count must be a number from 1 to {most}")))?;
                Ok(Self::Top(count, rows, scope))
            }
            _ => Err(Problem::parameter("count may be given once")),
        }
    }

    /// What it costs to work the union out is reserved before that is done.
    fn of(&self, views: &[Bytes], budget: &Budget, room: &mut Reservation) -> RawReply {
        let views = views.iter().map(|bytes| WindowView::from_bytes(bytes)).collect::<Result<Vec<_>, _>>()?;
        let cost = room.amount() + views.iter().map(cost_of).sum::<usize>();
        if !budget.could_ever_hold(cost) {
            let detail = format!(
                "it takes {cost} bytes to work out these views with their lists of keys, and there is not that much memory; \
                 merge fewer views, or raise memory in [limits]"
            );
            return Err(Problem::new(Code::BadView, detail));
        }
        room.change(cost).map_err(|_| no_memory())?;
        let merged = WindowView::merge(&views)?;
        match self {
            Self::Bytes => Ok(([(CONTENT_TYPE, VIEW)], merged.to_bytes()).into_response()),
            Self::Top(count, rows, scope) => {
                Ok(Json(top_of(&scope.of(&merged)?, *count, *rows)?).into_response())
            }
        }
    }
}

/// The parts of a form.
async fn views_of(parts: Parts, body: Bytes, most: usize) -> Result<Vec<Bytes>, Problem> {
    let wanted = || Problem::new(Code::UnknownContent, "send views as multipart/form-data, one per part");
    let broken = |_| Problem::new(Code::BadView, "the form cannot be read");
    let request = Request::from_parts(parts, Body::from(body));
    let mut form = Multipart::from_request(request, &()).await.map_err(|_| wanted())?;
    let mut views = Vec::new();
    while let Some(part) = form.next_field().await.map_err(broken)? {
        if views.len() == most {
            return Err(Problem::parameter(format!("at most {most} views can be merged at a time")));
        }
        views.push(part.bytes().await.map_err(broken)?);
    }
    Ok(views)
}
