//! The one place where errors become exceptions.

use dpsw::audit::AuditError;
use dpsw::error::{
    EntropyError, IngestError, MergeError, ParameterError, PartialError, PlanError, Quantity, QueryError,
    SnapshotError, StateError, StoreError,
};
use dpsw_durable::SealerError;
use dpsw_frontend::quantity;
use pyo3::prelude::*;

/// An exception of the package, or one that Python raised on the way.
#[derive(Debug)]
pub(crate) enum Fault {
    Ours { class: &'static str, message: String },
    Theirs(PyErr),
}

impl Fault {
    /// What was given is of a type that cannot be counted.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::of("InputError", message)
    }

    pub(crate) fn parameter(message: impl Into<String>) -> Self {
        Self::of("ParameterError", message)
    }

    pub(crate) fn ingest(message: impl Into<String>) -> Self {
        Self::of("IngestError", message)
    }

    /// The same where the values are no items.
    pub(crate) fn about(self, what: &str) -> Self {
        match self {
            Self::Ours { class, message } => Self::of(class, message.replacen("items", what, 1)),
            theirs @ Self::Theirs(_) => theirs,
        }
    }

    pub(crate) fn of(class: &'static str, message: impl Into<String>) -> Self {
        Self::Ours { class, message: message.into() }
    }
}

impl From<PyErr> for Fault {
    fn from(error: PyErr) -> Self {
        Self::Theirs(error)
    }
}

/// The classes lie in Python, where they are documented.
impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Theirs(error) => error,
            Fault::Ours { class, message } => Python::attach(|py| {
                let raised =
                    py.import("dpsw._errors").and_then(|module| module.getattr(class)?.call1((message,)));
                raised.map_or_else(|error| error, Self::from_value)
            }),
        }
    }
}

/// An error with the library's words.
macro_rules! same_words {
    ($($error:ident),*) => {
        $(impl From<$error> for Fault {
            fn from(error: $error) -> Self {
                Self::of(stringify!($error), error.to_string())
            }
        })*
    };
}

same_words!(AuditError, EntropyError, MergeError, ParameterError, SnapshotError, StateError, StoreError);

/// Where the library names its own calls, these name the package's.
impl From<IngestError> for Fault {
    fn from(error: IngestError) -> Self {
        Self::ingest(match error {
            IngestError::NoTimes => {
                "a window of time needs the time of each event: extend(items, times=...); nothing was taken"
                    .to_owned()
            }
            IngestError::NoUsers => {
                "this plan protects whole users: extend(items, users=...); nothing was taken".to_owned()
            }
            IngestError::CountWindow => {
                "a window of items goes by arrivals and has no times or clock; nothing was taken".to_owned()
            }
            error => error.to_string(),
        })
    }
}

impl From<QueryError> for Fault {
    fn from(error: QueryError) -> Self {
        let words = match error {
            QueryError::NotInDomain => {
                "the item is not among the public keys, so it was not counted; add it to keys=, or plan with keys=\"asked\""
                    .to_owned()
            }
            QueryError::NoDomain => {
                "there is no list of keys: ask for some by name, frequencies([...]) or heavy_hitters(share, among=[...])".to_owned()
            }
            error => error.to_string(),
        };
        Self::of("QueryError", words)
    }
}

impl From<PlanError> for Fault {
    fn from(error: PlanError) -> Self {
        let words = match error {
            PlanError::OutOfRange { name: name @ Quantity::Lateness, value, low, high } => {
                let [value, low, high] = [value, low, high].map(quantity::time);
                format!(
                    "{name} must lie between {low} and {high}, got {value}; a longer one would exceed the window"
                )
            }
            error => error.to_string(),
        };
        Self::of("PlanError", words)
    }
}

impl From<PartialError> for Fault {
    fn from(error: PartialError) -> Self {
        match error {
            PartialError::Ingest(error) => error.into(),
            error => Self::of("PartialError", error.to_string()),
        }
    }
}

impl From<SealerError> for Fault {
    fn from(error: SealerError) -> Self {
        match error {
            SealerError::Partial(error) => error.into(),
            SealerError::Ingest(error) => error.into(),
            SealerError::Entropy(error) => error.into(),
            error => Self::of("StateError", error.to_string()),
        }
    }
}
