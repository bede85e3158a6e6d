//! The top items of a stream, sent whenever they change (server-sent events).
//!
//! A client that is slow misses views and gets the newest one when it is ready: nothing waits for it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use dpsw::WindowView;
use futures_util::stream::{self, Stream};
use tokio::sync::watch;

use crate::auth::Role;
use crate::budget::Reservation;
use crate::engine::publish::Published;
use crate::http::ask::Effort;
use crate::http::caller::Asker;
use crate::http::lists::{Rows, read_count, top_of};
use crate::http::params::{Name, Params, Scope};
use crate::http::problem::Problem;
use crate::wire::body::LiveEvent;

/// How often a client that hears nothing is told that the service is still there.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often the token of a client that hears nothing is looked at again.
const TOKEN_CHECK: Duration = Duration::from_secs(5);

/// Follows the most frequent items.
///
/// Each event `top` has an answer like that of `GET /v1/streams/{stream}/top`. The first comes at once. Comments are sent
/// while nothing changes. It ends when the stream is deleted, the token is, or the service shuts down.
#[utoipa::path(get, path = "/v1/streams/{stream}/live", tag = "questions",
    params(("stream" = String, Path, description = "The stream"),
           ("count" = Option<usize>, Query, description = "How many rows; 10 if nobody says", minimum = 1), Rows, Scope),
    responses((status = 200, description = "Events `top`, each an Answer", content_type = "text/event-stream", body = LiveEvent),
              Problem))]
pub(crate) async fn live(
    asker: Asker,
    Name(stream): Name,
    mut params: Params,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let count = read_count(&asker.app, &mut params)?;
    let rows = Rows::read(&mut params)?;
    let scope = Scope::read(&mut params)?;
    params.done()?;
    asker.may_stream(Role::Query, &stream)?;
    let mut views = asker.app.engine.subscribe(&stream)?;
    views.mark_changed();
    let room = asker.app.live_clients.reserve(&asker.caller.id, 1);
    let room = room.map_err(|_| Problem::busy("as many clients follow streams as may; try again later"))?;
    let closing = asker.app.closing.subscribe();
    let follower = Follower { asker, stream, views, closing, count, rows, scope, _room: room };
    follower.check().await?;
    let events = stream::unfold(follower, Follower::next);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT).text("still here")))
}

struct Follower {
    asker: Asker,
    stream: String,
    views: watch::Receiver<Arc<Published>>,
    closing: watch::Receiver<bool>,
    count: usize,
    rows: Rows,
    scope: Scope,
    _room: Reservation,
}

impl Follower {
    /// Refuses a question that can never be answered while there is still a status to say it with.
    async fn check(&self) -> Result<(), Problem> {
        let published = Arc::clone(&self.views.borrow());
        self.event(published).await.map(drop)
    }

    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            let has_changed = tokio::select! {
                changed = self.views.changed() => changed.map(|()| true).ok()?,
                _ = self.closing.wait_for(|is_closing| *is_closing) => return None,
                () = tokio::time::sleep(TOKEN_CHECK) => false,
            };
            self.may_go_on()?;
            if !has_changed {
                continue;
            }
            let published = Arc::clone(&self.views.borrow_and_update());
            // A window that is not covered for a while is answered again later.
            if let Ok(event) = self.event(published).await {
                return Some((Ok(event), self));
            }
        }
    }

    fn may_go_on(&self) -> Option<()> {
        let is_known = self.asker.app.keeper.knows(&self.asker.caller);
        (is_known && self.asker.may_stream(Role::Query, &self.stream).is_ok()).then_some(())
    }

    async fn event(&self, published: Arc<Published>) -> Result<Event, Problem> {
        let Self { asker, count, rows, scope, .. } = self;
        let count = *count;
        let rows = *rows;
        let id = published.number.to_string();
        let effort = Effort::of(count, rows.has_trends());
        let top = move |view: &WindowView| top_of(view, count, rows);
        let answer = asker.app.answer(published, scope.clone(), effort, top).await?;
        Event::default().event("top").id(id).json_data(answer).map_err(|_| Problem::internal())
    }
}
