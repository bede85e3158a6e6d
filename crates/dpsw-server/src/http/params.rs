//! What stands in an address: names in its path, and parameters behind it. Unknown parameters are refused.

use std::str::FromStr;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use dpsw::WindowView;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as ValueError;
use utoipa::IntoParams;

use crate::http::problem::Problem;
use crate::input::time;
use crate::quantity::{Millis, Span};
use crate::wire::problem::Code;

/// The name in a path.
#[derive(Debug, Clone)]
pub(crate) struct Name(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let unreadable = |_| Problem::new(Code::UnknownPath, "the address is not UTF-8");
        path.map(|Path(name)| Self(name)).map_err(unreadable)
    }
}

/// The parameters behind an address that nobody has taken yet.
#[derive(Debug)]
pub(crate) struct Params {
    pairs: Vec<(String, String)>,
    known: Vec<&'static str>,
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let unreadable = |_| Problem::parameter("the parameters behind the address cannot be read");
        query.map(|Query(pairs)| Self { pairs, known: Vec::new() }).map_err(unreadable)
    }
}

/// An address without parameters.
#[derive(Debug)]
pub(crate) struct NoParams;

impl<S: Send + Sync> FromRequestParts<S> for NoParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Params::from_request_parts(parts, state).await?.done()?;
        Ok(Self)
    }
}

impl Params {
    pub(crate) fn many(&mut self, name: &'static str) -> Vec<String> {
        self.known.push(name);
        let (taken, left) = std::mem::take(&mut self.pairs).into_iter().partition(|(key, _)| key == name);
        self.pairs = left;
        let taken: Vec<(String, String)> = taken;
        taken.into_iter().map(|(_, value)| value).collect()
    }

    /// The value of a parameter that stands there at most once.
    pub(crate) fn one(&mut self, name: &'static str) -> Result<Option<String>, Problem> {
        let mut values = self.many(name);
        if 1 < values.len() {
            return Err(Problem::parameter(format!("{name} may be given once, got {} times", values.len())));
        }
        Ok(values.pop())
    }

    /// The same, read as a number or the like.
    pub(crate) fn read<T: FromStr>(
        &mut self,
        name: &'static str,
        wanted: &str,
    ) -> Result<Option<T>, Problem> {
        let read =
            |value: String| value.parse().map_err(|_| Problem::parameter(format!("{name} must be {wanted}")));
        self.one(name)?.map(read).transpose()
    }

    /// A parameter that is `true` or `false`.
    pub(crate) fn flag(&mut self, name: &'static str) -> Result<bool, Problem> {
        Ok(self.read(name, "true or false")?.unwrap_or(false))
    }

    /// A whole number from 1 up to a limit.
    pub(crate) fn count(&mut self, name: &'static str, usual: usize, most: usize) -> Result<usize, Problem> {
        let wanted = format!("a number from 1 to {most}");
        let count = self.read(name, &wanted)?.unwrap_or(usual.min(most));
        if (1..=most).contains(&count) {
            Ok(count)
        } else {
            Err(Problem::parameter(format!("{name} must be {wanted}")))
        }
    }

    /// # Errors
    /// There is a parameter that nobody asked for.
    pub(crate) fn done(self) -> Result<(), Problem> {
        if self.pairs.is_empty() {
            return Ok(());
        }
        let known = if self.known.is_empty() { "none".to_owned() } else { self.known.join(", ") };
        Err(Problem::parameter(format!(
            "there is an unknown parameter behind the address; known are: {known}"
        )))
    }
}

/// Which window is asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Scope {
    /// A shorter window than that of the stream: a number of items, or a time such as `5m`.
    #[param(example = "5m")]
    pub(crate) window: Option<String>,
    /// Where the window ended: a position, or for time windows a time (unix seconds or milliseconds, or RFC 3339).
    #[param(example = "2026-01-31T12:00:00Z")]
    pub(crate) as_of: Option<String>,
}

impl Scope {
    pub(crate) fn read(params: &mut Params) -> Result<Self, Problem> {
        Ok(Self { window: params.one("window")?, as_of: params.one("as_of")? })
    }

    /// Whether it is the window of the stream, whose lists are worked out already.
    pub(crate) fn is_whole(&self) -> bool {
        *self == Self::default()
    }

    /// The view of this window.
    pub(crate) fn of(&self, view: &WindowView) -> Result<WindowView, Problem> {
        let is_time = view.plan().settings().window.time().is_some();
        let view = match &self.as_of {
            Some(text) => view.as_of(position(text, is_time)?)?,
            None => view.clone(),
        };
        match &self.window {
            Some(text) => Ok(view.last(len(text, is_time)?)?),
            None => Ok(view),
        }
    }
}

fn len(text: &str, is_time: bool) -> Result<u64, Problem> {
    let span = match text.parse() {
        Ok(items) => Ok(Span::Items(items)),
        Err(_) => Span::deserialize(IntoDeserializer::<ValueError>::into_deserializer(text)),
    };
    match (span, is_time) {
        (Ok(Span::Items(items)), false) => Ok(items),
        (Ok(Span::Time(Millis(len))), true) => Ok(len),
        (_, false) => Err(Problem::parameter("window must be a number of items: the stream counts items")),
        (_, true) => Err(Problem::parameter(
            "window must be a time such as 30s, 5m or 6h: the stream has a time window",
        )),
    }
}

fn position(text: &str, is_time: bool) -> Result<u64, Problem> {
    let (position, wanted) = match is_time {
        true => {
            (time::parse(text.as_bytes()), "a time: unix seconds or milliseconds, or 2026-01-31T12:00:00Z")
        }
        false => (text.parse().ok(), "a position: a number of items since the stream began"),
    };
    position.ok_or_else(|| Problem::parameter(format!("as_of must be {wanted}")))
}
