"""What running again costs, said where it happens."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING

from ._checks import real
from ._errors import ParameterError, SpendingWarning

if TYPE_CHECKING:
    from ._plan import Plan

# The file, the name of the data set, and its budget.
Account = tuple[str, str, float | None]
# How often each cell of a notebook has spent.
_cells: dict[str, int] = {}


def account(ledger: str | os.PathLike[str] | None, data_set: str | None, budget: float | None) -> Account | None:
    """What is charged to which ledger."""
    if ledger is None:
        if data_set is not None or budget is not None:
            raise ParameterError("data_set= and budget= need a ledger=: the file that remembers what was spent")
        return None
    if not data_set:
        raise ParameterError("a ledger needs data_set=: the name under which these events are known again")
    return os.fspath(ledger), data_set, None if budget is None else real("budget", budget)


def note(plan: Plan, balance: list[str]) -> None:
    """Says what a ledger has left; without one, that a cell which ran before has spent again."""
    for line in balance:
        print(line, file=sys.stderr)
    cell = None if balance else _cell()
    if cell is None:
        return
    _cells[cell] = runs = _cells.get(cell, 0) + 1
    if 1 < runs:
        warnings.warn(
            f"this cell has run {runs} times: if it counts the same items, epsilon {plan.epsilon:g} is spent each time, "
            f"{runs * plan.epsilon:g} in all; keep the View, or let a ledger= keep count",
            SpendingWarning,
            stacklevel=3,
        )


def _cell() -> str | None:
    """The text of the notebook cell that runs now."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    inputs = getattr(shell, "user_ns", {}).get("In")
    return inputs[-1] if inputs else None
