"""Which items are frequent in the recent part of a stream, with differential privacy and an error bar on every answer.

>>> import dpsw
>>> rows = dpsw.top(["/", "/cart", "/"] * 10_000, window=10_000, epsilon=1)
>>> rows[0].item
'/'

:func:`top` does the whole job in one line, :func:`view` hands out what answers more questions, and a :class:`Sketch` goes on
counting a stream.
"""

from importlib.metadata import version

from ._client import Client, Stream
from ._errors import (
    AuditError,
    EntropyError,
    Error,
    IngestError,
    InputError,
    LedgerError,
    MergeError,
    ParameterError,
    PartialError,
    PlanError,
    QueryError,
    ServiceError,
    SnapshotError,
    SpendingWarning,
    StateError,
    StoreError,
)
from ._events import Sent
from ._plan import Noise, Paper, Plan, Search, audit, plan
from ._results import About, Estimate, History, Report, Row, Rows, Span, Taken, Trend
from ._sketch import Sketch, Store
from ._top import top, view
from ._view import View
from ._wire import Contract, Source, StreamInfo
from ._words import Item
from ._worker import Partial, Worker

__version__ = version("dpsw")

__all__ = [
    "About",
    "AuditError",
    "Client",
    "Contract",
    "EntropyError",
    "Error",
    "Estimate",
    "History",
    "IngestError",
    "InputError",
    "Item",
    "LedgerError",
    "MergeError",
    "Noise",
    "Paper",
    "ParameterError",
    "Partial",
    "PartialError",
    "Plan",
    "PlanError",
    "QueryError",
    "Report",
    "Row",
    "Rows",
    "Search",
    "Sent",
    "ServiceError",
    "Sketch",
    "SnapshotError",
    "Source",
    "Span",
    "SpendingWarning",
    "StateError",
    "Store",
    "StoreError",
    "Stream",
    "StreamInfo",
    "Taken",
    "Trend",
    "View",
    "Worker",
    "__version__",
    "audit",
    "plan",
    "top",
    "view",
]
