"""Numbers that people pass: of the right type and sign, or an error that names them."""

from __future__ import annotations

import math
import operator
from typing import Any

from ._errors import ParameterError


def real(name: str, value: Any) -> float:
    """A number, such as an epsilon."""
    if isinstance(value, bool | str | bytes) or not hasattr(value, "__float__"):
        raise ParameterError(f"{name} must be a number, got {described(value)}")
    return float(value)


def whole(name: str, value: Any, low: int = 0) -> int:
    """A whole number from ``low`` on; also one of numpy, or a float without a fraction."""
    try:
        if isinstance(value, bool):
            raise TypeError
        given: Any = int(value) if isinstance(value, float) and value.is_integer() else value
        found = operator.index(given)
    except TypeError:
        raise ParameterError(f"{name} must be a whole number, got {described(value)}") from None
    if not low <= found < 2**63:
        raise ParameterError(f"{name} must lie between {low} and 2^63, got {found}")
    return found


def of_class(name: str, value: Any, wanted: type) -> None:
    """An object of ours."""
    if not isinstance(value, wanted):
        raise ParameterError(f"{name} must be a dpsw.{wanted.__name__}, got {described(value)}")


def described(value: Any) -> str:
    """A value that is not right, short enough to print."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    words = repr(value)
    return f"{words} of type {type(value).__name__}" if len(words) < 40 else f"a {type(value).__name__}"
