"""What README shows is what runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def examples(path: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), re.DOTALL)


@pytest.mark.parametrize("path", ["README.md", "docs/guide/python.md"])
def test_examples_run(path: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    found = examples(path)
    assert found
    names: dict[str, object] = {}
    for example in found:
        exec(compile(example, path, "exec"), names)
    shown = capsys.readouterr().out
    assert "/cart" in shown and "±" in shown


def test_the_first_example_is_five_lines_long() -> None:
    lines = [line for line in examples("README.md")[0].splitlines() if line.strip()]
    assert len(lines) == 5
