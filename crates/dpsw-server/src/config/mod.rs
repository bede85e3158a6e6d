//! What the operator asks for: sources and their streams, from a TOML file or a request. Unknown fields are refused.

pub(crate) mod broker;
pub(crate) mod source;
pub(crate) mod stream;

pub(crate) use broker::is_address;
pub use broker::{BrokerConfig, BrokerKind, Start, Values};
pub use source::{ColumnKind, Protects, Routing, SourceConfig};
pub use stream::{KeysConfig, StreamConfig};

use thiserror::Error;

/// Settings that cannot be meant.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A name that cannot stand in an address or a file.
    #[error(
        "a name has 1 to {NAME_LEN_MAX} letters, digits, `-`, `_` and `.`, and begins with a letter or digit; got {0:?}"
    )]
    Name(String),
    /// A number outside its range.
    #[error(transparent)]
    Parameter(#[from] dpsw::error::ParameterError),
    /// Something that the source does not have.
    #[error("stream {stream:?} takes its items from column {column:?}; the source has {known}")]
    Column {
        /// The stream.
        stream: String,
        /// What it asks for.
        column: String,
        /// The columns that there are.
        known: String,
    },
    /// Fields that contradict each other.
    #[error("{0}")]
    Contradiction(String),
    /// A list of keys that cannot be read.
    #[error("the keys of stream {stream:?} cannot be read from {path}: {source}")]
    KeysFile {
        /// The stream.
        stream: String,
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

/// The longest name of a source, a stream or a column.
pub const NAME_LEN_MAX: usize = 64;

/// Names stand in addresses, settings and metrics.
pub(crate) fn check_name(name: &str) -> Result<(), ConfigError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins_well && name.len() <= NAME_LEN_MAX && name.chars().all(is_plain) {
        Ok(())
    } else {
        Err(ConfigError::Name(name.to_owned()))
    }
}
