//! Tokens, as they are asked for and as they are shown.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::Grant;
use crate::auth::keeper::TokenReport;
use crate::auth::token::NewToken;

/// A token that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Token)]
pub(crate) struct TokenShape {
    /// What people call it.
    #[serde(default)]
    #[schema(max_length = 100)]
    pub(crate) name: String,
    /// What it may do, and where.
    pub(crate) grant: Grant,
}

/// A token that was just made. It is shown this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct MadeToken {
    /// By which it is listed and deleted.
    pub(crate) id: String,
    /// To be sent as `Authorization: Bearer <token>`.
    pub(crate) token: String,
}

/// What is known of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct TokenInfo {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) grant: Grant,
    /// When it was made, in milliseconds since 1970.
    pub(crate) made_ms: u64,
}

impl From<NewToken> for MadeToken {
    fn from(token: NewToken) -> Self {
        Self { id: token.id, token: token.text.to_string() }
    }
}

impl From<TokenReport> for TokenInfo {
    fn from(report: TokenReport) -> Self {
        let TokenReport { id, name, grant, made_ms } = report;
        Self { id, name, grant, made_ms }
    }
}
