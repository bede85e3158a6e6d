//! The one place where errors become replies. What a reply says never depends on what others sent, and never shows an item.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use dpsw::SuccessionError;
use dpsw::error::{MergeError, QueryError, SnapshotError};
use utoipa::IntoResponses;
use utoipa::openapi::{self, ContentBuilder, Ref, RefOr, ResponseBuilder};

use crate::auth::keeper::TokensError;
use crate::error::{ChangeError, IngestError, Unavailable, Unknown};
use crate::http::body::no_memory;
use crate::input::InputError;
use crate::wire::problem::{Code, ProblemShape};

/// A problem on its way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    detail: String,
    retry_after: Option<Duration>,
}

/// What a handler replies with: a document in JSON, or a problem.
pub(crate) type Reply<T> = Result<Json<T>, Problem>;

/// The same of a reply that is not always JSON.
pub(crate) type RawReply = Result<Response, Problem>;

/// Its code, for the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProblemCode(pub(crate) &'static str);

/// How long to wait when the service is busy for a moment.
const SOON: Duration = Duration::from_secs(1);
/// How long to wait for a disk or a restart.
const LATER: Duration = Duration::from_secs(5);

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), retry_after: None }
    }

    /// A problem that may be over after this time.
    pub(crate) fn after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }

    pub(crate) fn busy(detail: &str) -> Self {
        Self::new(Code::Busy, detail).after(SOON)
    }

    fn unconfirmed(detail: &str) -> Self {
        Self::new(Code::OutcomeUnknown, detail).after(LATER)
    }

    pub(crate) fn internal() -> Self {
        Self::new(
            Code::Internal,
            "the service made a mistake, which its log describes by the id of the request",
        )
    }

    pub(crate) fn parameter(detail: impl Into<String>) -> Self {
        Self::new(Code::BadParameter, detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, code, title) = self.code.parts();
        let kind = format!("urn:dpsw:problem:{code}");
        let shape = ProblemShape { kind, title, status: status.as_u16(), code, detail: self.detail };
        let mut response = (status, Json(shape)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"dpsw\""));
        }
        if let Some(wait) = self.retry_after {
            headers.insert(RETRY_AFTER, whole_seconds(wait).into());
        }
        response.extensions_mut().insert(ProblemCode(code));
        response
    }
}

/// Every route may answer with a problem.
impl IntoResponses for Problem {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        let response = ResponseBuilder::new().description("A problem");
        let response = response.content("application/problem+json", content).build();
        BTreeMap::from([("default".to_owned(), response.into())])
    }
}

/// Rounded up: whoever waits less asks too early.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(0 < wait.subsec_nanos())
}

impl From<Unknown> for Problem {
    fn from(error: Unknown) -> Self {
        // The name is not repeated: someone may have typed an item in its place.
        match error.what {
            "source" => Self::new(Code::UnknownSource, "there is no such source; GET /v1/sources lists them"),
            _ => Self::new(Code::UnknownStream, "there is no such stream; GET /v1/streams lists them"),
        }
    }
}

impl From<Unavailable> for Problem {
    fn from(error: Unavailable) -> Self {
        let (code, detail) = match error {
            Unavailable::Unconfirmed(_) => {
                return Self::unconfirmed(
                    "the storage did not confirm the change, so it may have been made or not; look whether it was before you \
                     ask for it again",
                );
            }
            Unavailable::ShuttingDown => {
                (Code::ShuttingDown, "the service is shutting down; nothing was taken, send it again later")
            }
            _ => (Code::Storage, "the storage takes no data now; nothing was taken, send it again later"),
        };
        Self::new(code, detail).after(LATER)
    }
}

impl From<IngestError> for Problem {
    fn from(error: IngestError) -> Self {
        match error {
            IngestError::Unknown(unknown) => unknown.into(),
            IngestError::Unavailable(Unavailable::Unconfirmed(_)) => Self::unconfirmed(
                "the storage did not confirm the batch, so it may have been taken or not; send it again with the same Batch-Id, \
                 and it counts once",
            ),
            IngestError::Unavailable(unavailable) => unavailable.into(),
            IngestError::BatchId => Self::new(Code::BadBatchId, error.to_string()),
            IngestError::BatchTooOld => Self::new(Code::BatchTooOld, error.to_string()),
            IngestError::TooManySenders(_) => Self::new(Code::TooManySenders, error.to_string()),
            IngestError::Brokered(_) | IngestError::OtherPosition(_) => Self::new(
                Code::HasBroker,
                "the source takes its events from its broker; send them there, or to a source without one",
            ),
            IngestError::StreamsChanged(_) => Self::busy(
                "the streams of the source changed while the batch was read; nothing was taken, send it again",
            ),
            IngestError::Busy(_) => {
                Self::busy("too much is waiting to be counted; nothing was taken, send the batch again")
            }
        }
    }
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        let code = match error {
            ChangeError::Unknown(unknown) => return unknown.into(),
            ChangeError::Unavailable(unavailable) => return unavailable.into(),
            ChangeError::View(error) => return error.into(),
            ChangeError::Succession(error) => return error.into(),
            ChangeError::CountedHere(_) => Code::CountedHere,
            ChangeError::SealedElsewhere(_) => Code::SealedElsewhere,
            ChangeError::NoClaim => Code::NoClaim,
            ChangeError::ViewKeys { .. } => Code::BadView,
            ChangeError::Config(_) => Code::BadSettings,
            ChangeError::Plan(_) => Code::NoPlan,
            ChangeError::OverBudget(_) => Code::OverBudget,
            ChangeError::Exists { .. } | ChangeError::Differs { .. } => Code::NameTaken,
            ChangeError::NotEmpty { .. } => Code::HasStreams,
            ChangeError::Many { .. } => Code::TooMany,
        };
        Self::new(code, error.to_string())
    }
}

impl From<QueryError> for Problem {
    fn from(error: QueryError) -> Self {
        let code = match error {
            QueryError::Kind { .. } | QueryError::NotInDomain => Code::WrongItem,
            QueryError::NoDomain => Code::NoList,
            QueryError::NotRetained { .. } => Code::NotRetained,
            _ => Code::BadParameter,
        };
        Self::new(code, error.to_string())
    }
}

impl From<InputError> for Problem {
    fn from(error: InputError) -> Self {
        let code = match error {
            InputError::Busy => return no_memory(),
            InputError::UnpackedBytes { .. } => Code::BodyTooLarge,
            InputError::Events { .. } | InputError::Columns(_) => Code::TooManyEvents,
            InputError::Lines { .. } => Code::UnknownContent,
            _ => Code::BadBatch,
        };
        Self::new(code, error.to_string())
    }
}

impl From<TokensError> for Problem {
    fn from(error: TokensError) -> Self {
        let code = match error {
            TokensError::Unknown(_) => {
                return Self::new(Code::UnknownToken, "there is no token with this id");
            }
            TokensError::Many(_) => Code::TooMany,
            TokensError::Name(_) | TokensError::NoRole => Code::BadSettings,
            _ => {
                tracing::error!(%error, "tokens cannot be changed");
                return Self::new(Code::Storage, "the tokens cannot be changed now").after(LATER);
            }
        };
        Self::new(code, error.to_string())
    }
}

impl From<SnapshotError> for Problem {
    fn from(error: SnapshotError) -> Self {
        Self::new(Code::BadView, error.to_string())
    }
}

impl From<SuccessionError> for Problem {
    fn from(error: SuccessionError) -> Self {
        let code = match error {
            SuccessionError::Over { .. } => Code::StreamOver,
            SuccessionError::NotLater { .. } => Code::OldView,
            SuccessionError::SealedTwice { .. } => Code::SealedTwice,
            _ => Code::OtherStream,
        };
        Self::new(code, error.to_string())
    }
}

impl From<MergeError> for Problem {
    fn from(error: MergeError) -> Self {
        Self::new(Code::NotMergeable, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_times_are_rounded_up() {
        assert_eq!([0, 1, 1000, 1001].map(|ms| whole_seconds(Duration::from_millis(ms))), [0, 1, 1, 2]);
    }

    #[test]
    fn what_was_not_confirmed_has_a_status_of_its_own_and_never_says_that_nothing_was_taken() {
        let unconfirmed = Unavailable::Unconfirmed("input/output error".to_owned());
        for problem in [Problem::from(IngestError::from(unconfirmed.clone())), Problem::from(unconfirmed)] {
            assert_eq!((problem.code, problem.retry_after), (Code::OutcomeUnknown, Some(LATER)));
            assert!(!problem.detail.contains("nothing was taken"), "{}", problem.detail);
        }
    }

    #[test]
    fn a_problem_repeats_no_name_that_is_not_there() {
        let unknown = Unknown { what: "stream", name: "secret".to_owned() };
        assert!(!Problem::from(unknown).detail.contains("secret"));
    }
}
