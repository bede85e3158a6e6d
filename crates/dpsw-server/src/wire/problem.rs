//! What went wrong, as RFC 9457 has it, with codes that stay.

use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

/// A problem (RFC 9457). `code` stays the same from version to version; `detail` is for people and may change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemShape {
    /// `urn:dpsw:problem:` and the code.
    #[serde(rename = "type")]
    #[schema(example = "urn:dpsw:problem:unknown-stream")]
    pub(crate) kind: String,
    /// The kind of problem in words.
    pub(crate) title: &'static str,
    /// The status of the reply.
    #[schema(example = 404)]
    pub(crate) status: u16,
    /// The kind of problem for programs.
    #[schema(example = "unknown-stream")]
    pub(crate) code: &'static str,
    /// What is wrong here, and what to do.
    pub(crate) detail: String,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident, $status:ident, $code:literal, $title:literal;)*) => {
        /// Every kind of problem, with its status, its code and its title.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Code { $($(#[$doc])* $name),* }

        impl Code {
            #[cfg(test)]
            pub(crate) const ALL: &'static [Self] = &[$(Self::$name),*];

            pub(crate) fn parts(self) -> (StatusCode, &'static str, &'static str) {
                match self { $(Self::$name => (StatusCode::$status, $code, $title)),* }
            }
        }
    };
}

codes! {
    BadParameter, BAD_REQUEST, "bad-parameter", "A parameter of the request cannot be read";
    BadJson, BAD_REQUEST, "bad-json", "The body is not the JSON that is wanted";
    BadBatch, BAD_REQUEST, "bad-batch", "The body is not a batch of events";
    BadBatchId, BAD_REQUEST, "bad-batch-id", "The id of the batch is not a sender and a number";
    BadHeader, BAD_REQUEST, "bad-header", "A header of the request cannot be read";
    BadView, BAD_REQUEST, "bad-view", "The bytes are no view";
    NoToken, UNAUTHORIZED, "no-token", "A known token is needed";
    Forbidden, FORBIDDEN, "forbidden", "The token does not allow this";
    UnknownPath, NOT_FOUND, "unknown-path", "There is nothing at this address";
    UnknownSource, NOT_FOUND, "unknown-source", "There is no such source";
    UnknownStream, NOT_FOUND, "unknown-stream", "There is no such stream";
    UnknownToken, NOT_FOUND, "unknown-token", "There is no such token";
    NotOffered, NOT_FOUND, "not-offered", "The operator does not offer this";
    WrongMethod, METHOD_NOT_ALLOWED, "wrong-method", "The address does not take this method";
    BodyTooSlow, REQUEST_TIMEOUT, "body-too-slow", "The body came too slowly";
    NameTaken, CONFLICT, "name-taken", "The name is taken";
    HasStreams, CONFLICT, "has-streams", "The source still has streams";
    HasBroker, CONFLICT, "has-broker", "The source takes its events from its broker";
    BatchTooOld, CONFLICT, "batch-too-old", "The batch was taken before, or is too old";
    TooManySenders, CONFLICT, "too-many-senders", "The token has as many senders as are remembered";
    CountedHere, CONFLICT, "counted-here", "The service counts the stream itself";
    SealedElsewhere, CONFLICT, "sealed-elsewhere", "The stream is sealed elsewhere";
    OtherStream, CONFLICT, "other-stream", "The view is of another stream";
    OldView, CONFLICT, "old-view", "The view is not newer than the one that is shown";
    SealedTwice, CONFLICT, "sealed-twice", "The view contradicts the one that is shown";
    StreamOver, CONFLICT, "stream-over", "The stream is over";
    OverBudget, CONFLICT, "over-budget", "The budget of the source does not bear it";
    TooMany, CONFLICT, "too-many", "There are as many as the service takes";
    BodyTooLarge, PAYLOAD_TOO_LARGE, "body-too-large", "The body is too large";
    TooManyEvents, PAYLOAD_TOO_LARGE, "too-many-events", "The batch has too many events";
    UnknownContent, UNSUPPORTED_MEDIA_TYPE, "unknown-content", "The content type or encoding is not understood";
    BadSettings, UNPROCESSABLE_ENTITY, "bad-settings", "The settings cannot be meant";
    NoPlan, UNPROCESSABLE_ENTITY, "no-plan", "No plan fits the settings";
    WrongItem, UNPROCESSABLE_ENTITY, "wrong-item", "The stream cannot have counted the item";
    NoList, UNPROCESSABLE_ENTITY, "no-list", "Keys of this stream cannot be listed";
    NotRetained, UNPROCESSABLE_ENTITY, "not-retained", "The window is not retained";
    NoClaim, UNPROCESSABLE_ENTITY, "no-claim", "The view claims no privacy";
    NotMergeable, UNPROCESSABLE_ENTITY, "not-mergeable", "The views cannot be merged";
    TooManyRequests, TOO_MANY_REQUESTS, "too-many-requests", "The token asks too often";
    Starting, SERVICE_UNAVAILABLE, "starting", "The service is starting";
    Internal, INTERNAL_SERVER_ERROR, "internal", "The service made a mistake";
    OutcomeUnknown, INTERNAL_SERVER_ERROR, "outcome-unknown", "It may have been taken or not";
    Busy, SERVICE_UNAVAILABLE, "busy", "The service is busy";
    Storage, SERVICE_UNAVAILABLE, "storage", "The storage takes no data";
    ShuttingDown, SERVICE_UNAVAILABLE, "shutting-down", "The service is shutting down";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_differ_and_are_written_alike() {
        let codes: BTreeSet<_> = Code::ALL.iter().map(|code| code.parts().1).collect();
        assert_eq!(codes.len(), Code::ALL.len());
        assert!(codes.iter().all(|code| code.chars().all(|c| c.is_ascii_lowercase() || c == '-')));
    }
}
