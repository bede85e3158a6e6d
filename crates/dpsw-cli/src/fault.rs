//! What can go wrong, and the exit code that says so.

use std::fmt;
use std::process::ExitCode;

use dpsw::audit::AuditError;
use dpsw::error::{IngestError, ParameterError, PlanError, QueryError, SnapshotError};
use dpsw_frontend::ledger::{Failure, LedgerError};

/// The kind of a failure, as scripts see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Failure = 1,
    Usage = 2,
    Refused = 3,
    Data = 4,
    Corrupt = 5,
    Interrupted = 130,
}

impl From<Kind> for ExitCode {
    fn from(kind: Kind) -> Self {
        Self::from(kind as u8)
    }
}

/// A failure of a known kind. The message says what to do.
#[derive(Debug)]
pub(crate) struct Fault {
    kind: Kind,
    message: String,
}

impl Fault {
    pub(crate) fn of(kind: Kind, message: impl Into<String>) -> anyhow::Error {
        Self { kind, message: message.into() }.into()
    }

    pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
        Self::of(Kind::Usage, message)
    }

    pub(crate) fn data(message: impl Into<String>) -> anyhow::Error {
        Self::of(Kind::Data, message)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

/// The kind of any failure, by the first cause that has one.
pub(crate) fn kind(error: &anyhow::Error) -> Kind {
    error.chain().find_map(known).unwrap_or(Kind::Failure)
}

fn known(cause: &(dyn std::error::Error + 'static)) -> Option<Kind> {
    if let Some(fault) = cause.downcast_ref::<Fault>() {
        return Some(fault.kind);
    }
    if let Some(error) = cause.downcast_ref::<PlanError>() {
        return Some(of_plan(error));
    }
    if let Some(AuditError::Plan(error)) = cause.downcast_ref::<AuditError>() {
        return Some(of_plan(error));
    }
    if let Some(error) = cause.downcast_ref::<LedgerError>() {
        return Some(of_ledger(error));
    }
    if cause.is::<SnapshotError>() {
        return Some(Kind::Corrupt);
    }
    if cause.is::<ParameterError>() || cause.is::<QueryError>() || cause.is::<AuditError>() {
        return Some(Kind::Usage);
    }
    cause.downcast_ref::<IngestError>().map(|error| match error {
        IngestError::Entropy { .. } => Kind::Failure,
        _ => Kind::Data,
    })
}

pub(crate) fn of_ledger(error: &LedgerError) -> Kind {
    match error.kind() {
        Failure::Usage => Kind::Usage,
        Failure::Refused => Kind::Refused,
        Failure::Unread => Kind::Data,
        Failure::Corrupt => Kind::Corrupt,
        Failure::Unwritten => Kind::Failure,
    }
}

/// A plan is refused for privacy if its numbers are in range but cannot be private or useful.
fn of_plan(error: &PlanError) -> Kind {
    match error {
        PlanError::AddRemoveItems
        | PlanError::AddRemoveEvents
        | PlanError::UsersByItem
        | PlanError::PaperUsers
        | PlanError::DeltaNeeded(_)
        | PlanError::DeltaTooLarge { .. }
        | PlanError::KeysEpsilon { .. }
        | PlanError::ShareSum(_)
        | PlanError::OverBudget(_)
        | PlanError::OnlyNoise { .. } => Kind::Refused,
        _ => Kind::Usage,
    }
}

/// Results that did not reach standard output.
#[derive(Debug)]
pub(crate) struct Unwritten(pub(crate) std::io::Error);

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("standard output cannot be written")
    }
}

impl std::error::Error for Unwritten {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

pub(crate) fn is_unwritten(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<Unwritten>().is_some())
}

/// Whoever reads our output may stop early, as `head` does.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let is_closed = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(is_closed))
}
