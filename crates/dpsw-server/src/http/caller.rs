//! Who asks: the token of a request, and whether it allows what is asked.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::Next;

use crate::auth::Role;
use crate::auth::keeper::Caller;
use crate::http::app::App;
use crate::http::places::Held;
use crate::http::problem::{Problem, RawReply};
use crate::wire::problem::Code;

/// Whoever asks, and what handlers share. Handlers that take it are behind [`known`].
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    pub(crate) app: App,
    pub(crate) caller: Arc<Caller>,
}

/// Lets requests through that show a known token which does not ask too often.
pub(crate) async fn known(State(app): State<App>, mut request: Request, next: Next) -> RawReply {
    let token = token(request.headers())?;
    let caller = app.keeper.caller(token).ok_or_else(unknown)?;
    caller.take(Instant::now()).map_err(|wait| {
        let detail = "the token asks more often than it may; wait as long as Retry-After says";
        Problem::new(Code::TooManyRequests, detail).after(wait)
    })?;
    let place = app.requests.reserve(&caller.id, 1);
    let place = place.map_err(|_| Problem::busy("too many requests are being answered; ask again"))?;
    request.extensions_mut().insert(Asker { app, caller });
    let response = next.run(request).await;
    // An answer takes memory until it is sent.
    Ok(response.map(|body| Held::wrap(body, place)))
}

fn token(headers: &HeaderMap) -> Result<&str, Problem> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (all.next(), all.next()) else {
        return Err(unknown());
    };
    let (scheme, token) = value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or_else(unknown)?;
    if scheme.eq_ignore_ascii_case("bearer") { Ok(token.trim()) } else { Err(unknown()) }
}

fn unknown() -> Problem {
    let detail = "send one header Authorization: Bearer TOKEN with a token of this service; `dpsw-server token create` makes \
                  one";
    Problem::new(Code::NoToken, detail)
}

impl<S: Sync> FromRequestParts<S> for Asker {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(Problem::internal)
    }
}

impl Asker {
    /// # Errors
    /// The token does not allow this anywhere.
    pub(crate) fn has(&self, role: Role) -> Result<(), Problem> {
        allowed(self.caller.grant.roles.contains(&role), role, "somewhere")
    }

    /// # Errors
    /// The token does not allow this everywhere.
    pub(crate) fn may(&self, role: Role) -> Result<(), Problem> {
        allowed(self.caller.grant.allows(role), role, "everywhere")
    }

    /// # Errors
    /// The token does not allow this with the source.
    pub(crate) fn may_source(&self, role: Role, source: &str) -> Result<(), Problem> {
        allowed(self.caller.grant.allows_source(role, source), role, "for this source")
    }

    /// # Errors
    /// The token does not allow this with the stream, or there is none.
    pub(crate) fn may_stream(&self, role: Role, stream: &str) -> Result<(), Problem> {
        if self.caller.grant.allows(role) {
            return Ok(());
        }
        // Whoever may not ask about all streams is not told which there are.
        let source = self.app.engine.source_of(stream).unwrap_or_default();
        let number = self.app.engine.stream_id(stream);
        allowed(self.caller.allows_stream(role, stream, number, &source), role, "for this stream")
    }

    /// Whether the first view may make a stream that is not there: whoever names it in a token, or may make streams, has allowed
    /// that. A token of a stream that is gone makes no other one.
    pub(crate) fn may_make(&self, stream: &str) -> bool {
        self.caller.names_stream(stream, None) || self.caller.grant.allows(Role::Admin)
    }
}

fn allowed(is_allowed: bool, role: Role, place: &str) -> Result<(), Problem> {
    if is_allowed {
        return Ok(());
    }
    Err(Problem::new(Code::Forbidden, format!("the token needs the role {} {place}", role.name())))
}
