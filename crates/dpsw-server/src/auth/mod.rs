//! Who may ask what: bearer tokens with roles, for some sources and streams or for all.

pub(crate) mod keeper;
pub(crate) mod rate;
pub(crate) mod token;

pub use keeper::{Keeper, TOKENS_FILE, TokenReport, TokensError};
pub use token::NewToken;

use std::collections::BTreeSet;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Send events, and views of streams that are sealed elsewhere.
    #[value(help = "Send events")]
    Ingest,
    /// Ask questions, and read contracts and metrics.
    #[value(help = "Ask questions")]
    Query,
    /// Make and delete sources, streams and tokens.
    #[value(help = "Make and delete sources, streams and tokens")]
    Admin,
}

/// What a token may do, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// What it may do.
    #[schema(value_type = Vec<Role>, min_items = 1)]
    pub roles: BTreeSet<Role>,
    /// The sources that it is for, with all their streams; without them and streams, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub sources: Option<BTreeSet<String>>,
    /// The streams that it is for, beside those of the sources: those that have these names when the token is made, or else the
    /// first ones that get them. A later stream of the same name is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub streams: Option<BTreeSet<String>>,
}

impl Role {
    /// Its name, as it is written everywhere.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Query => "query",
            Self::Admin => "admin",
        }
    }
}

impl Grant {
    /// All roles everywhere.
    #[must_use]
    pub fn everything() -> Self {
        let roles = BTreeSet::from([Role::Ingest, Role::Query, Role::Admin]);
        Self { roles, sources: None, streams: None }
    }

    /// Whether it reaches everywhere.
    #[must_use]
    pub fn is_everywhere(&self) -> bool {
        self.sources.is_none() && self.streams.is_none()
    }

    /// Whether it allows this everywhere.
    #[must_use]
    pub fn allows(&self, role: Role) -> bool {
        self.roles.contains(&role) && self.is_everywhere()
    }

    /// Whether it allows this with a source and all its streams.
    #[must_use]
    pub fn allows_source(&self, role: Role, source: &str) -> bool {
        self.roles.contains(&role) && (self.is_everywhere() || has(self.sources.as_ref(), source))
    }

    /// Whether it is for a stream of this name.
    #[must_use]
    pub(crate) fn names_stream(&self, stream: &str) -> bool {
        has(self.streams.as_ref(), stream)
    }
}

fn has(names: Option<&BTreeSet<String>>, name: &str) -> bool {
    names.is_some_and(|names| names.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(role: Role, sources: Option<&[&str]>, streams: Option<&[&str]>) -> Grant {
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Grant { roles: BTreeSet::from([role]), sources: sources.map(set), streams: streams.map(set) }
    }

    #[test]
    fn a_grant_reaches_as_far_as_it_says_and_no_further() {
        let query = Role::Query;
        for (grant, everywhere, source, stream) in [
            (grant(query, None, None), true, true, false),
            (grant(query, Some(&["web"]), None), false, true, false),
            (grant(query, None, Some(&["pages"])), false, false, true),
            (grant(query, Some(&["app"]), Some(&["pages"])), false, false, true),
            (grant(query, Some(&[]), None), false, false, false),
            (grant(Role::Ingest, None, None), false, false, false),
        ] {
            let got = (grant.allows(query), grant.allows_source(query, "web"), grant.names_stream("pages"));
            assert_eq!(got, (everywhere, source, stream), "{grant:?}");
        }
    }
}
