"""What can go wrong, in the words of the library."""

from __future__ import annotations


class Error(Exception):
    """Anything that dpsw refuses; all its exceptions are of this class."""


class ParameterError(Error, ValueError):
    """A number or word outside its range."""


class PlanError(Error, ValueError):
    """Settings from which no plan can be made."""


class InputError(Error, TypeError):
    """Items, times or users of a type that cannot be counted."""


class IngestError(Error, ValueError):
    """Items that were not, or not all, taken; or a sketch that takes none any more."""


class QueryError(Error, ValueError):
    """A question that a view cannot answer."""


class SnapshotError(Error, ValueError):
    """Bytes from which nothing can be read."""


class MergeError(Error, ValueError):
    """Views that cannot be merged."""


class PartialError(Error, ValueError):
    """Partial counters that cannot be made, merged or absorbed."""


class StateError(Error, ValueError):
    """A state that cannot be saved or restored."""


class StoreError(Error, OSError):
    """A store that could not keep or take a note of a saved state."""


class EntropyError(Error, OSError):
    """The system gave no randomness, so nothing was sealed."""


class AuditError(Error, ValueError):
    """A plan that cannot be audited."""


class LedgerError(Error, ValueError):
    """A run that a ledger does not allow, or a ledger that cannot be read or written. Nothing was spent."""


class ServiceError(Error):
    """What a service replied instead of an answer.

    ``code`` is the stable name of the problem, ``status`` the HTTP status; 0 if there was no reply. ``retry_after`` is how many
    seconds the service asks to wait, if it says.
    """

    def __init__(
        self, message: str, *, code: str = "unreachable", status: int = 0, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.retry_after = retry_after


class SpendingWarning(UserWarning):
    """A notebook cell that counts the same items again spends again."""
