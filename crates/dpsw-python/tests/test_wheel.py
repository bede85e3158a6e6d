"""What is installed: one small wheel for every Python from 3.11 on, typed, with nothing beside it."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import zlib

import pytest
from services import missing


@pytest.fixture
def installed() -> importlib.metadata.Distribution:
    found = importlib.metadata.distribution("dpsw")
    if any("direct_url" in str(path) or path.suffix == ".pth" for path in found.files or []) and not any(
        path.name.endswith(".so") or path.name.endswith(".pyd") for path in found.files or []
    ):
        missing("the package is installed in place; `pip install .` makes a wheel")
    return found


def test_the_wheel_is_small_typed_and_alone(installed: importlib.metadata.Distribution) -> None:
    assert installed.requires is None
    files = installed.files or []
    assert any(path.name == "py.typed" for path in files)
    assert any(path.name == "_dpsw.pyi" for path in files)
    packed = sum(len(zlib.compress(path.read_binary())) for path in files if path.suffix != ".pyc")
    assert packed < 10_000_000
    assert "abi3" in (installed.read_text("WHEEL") or "")


def test_nothing_is_imported_that_is_not_there() -> None:
    """The package imports nothing but the standard library by itself."""
    code = "import sys, dpsw; print([name for name in ('numpy', 'pandas', 'polars', 'pyarrow', 'matplotlib') if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
