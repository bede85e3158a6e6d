"""What is spent is remembered, in the command line's file, and a cell that runs again says so."""

from __future__ import annotations

import json
import os
import subprocess
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from services import missing

import dpsw

ROOT = Path(__file__).parents[3]


def spent(ledger: Path) -> list[str]:
    return [json.loads(line)["entry"] for line in ledger.read_text().splitlines()]


def top(ledger: Path, **more: Any) -> dpsw.Rows:
    said: Any = {"window": 1_000, "epsilon": 1, "keys": ["a"], "ledger": ledger, "data_set": "visits", **more}
    return dpsw.top(["a"] * 1_000, **said)


def test_a_budget_is_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ledger = tmp_path / "spent.jsonl"
    top(ledger, budget=2.5)
    assert "epsilon = 1 of 2.5 is spent on visits with this run, 1.5 is left" in capfd.readouterr().err
    top(ledger)
    with pytest.raises(dpsw.LedgerError, match="budget of epsilon = 2.5: 2 is spent, this run asks for 1, and 0.5 is left"):
        top(ledger)
    top(ledger, epsilon=0.5)
    assert spent(ledger).count("charge") == 3


def test_what_nobody_asked_is_given_back(tmp_path: Path) -> None:
    ledger = tmp_path / "spent.jsonl"
    sketch = dpsw.Sketch(window=1_000, epsilon=1, keys=["a"], ledger=ledger, data_set="visits")
    sketch.extend(["a"] * 500)
    del sketch
    assert spent(ledger)[-1] == "given back"
    kept = dpsw.Sketch(window=1_000, epsilon=1, keys=["a"], ledger=ledger, data_set="visits")
    kept.view()
    del kept
    assert spent(ledger)[-1] == "charge"


def test_refused_items_leave_nothing_spent(tmp_path: Path) -> None:
    ledger = tmp_path / "spent.jsonl"
    with pytest.raises(dpsw.InputError):
        dpsw.top(["a", 5], window=10, epsilon=1e3, keys=["a"], ledger=ledger, data_set="visits")
    assert not ledger.exists() or spent(ledger)[-1] == "given back"


def test_the_command_line_reads_the_same_file(tmp_path: Path) -> None:
    ledger = tmp_path / "spent.jsonl"
    top(ledger, budget=3)
    program = Path(os.environ.get("DPSW", ROOT / "target" / "debug" / "dpsw"))
    if not program.exists():
        missing(f"{program} is not built: cargo build -p dpsw-cli")
    told = subprocess.run([program, "ledger", ledger, "--json"], capture_output=True, text=True, check=True)
    (data_set,) = json.loads(told.stdout)["data_sets"]
    assert (data_set["name"], data_set["epsilon"], data_set["budget"]) == ("visits", 1.0, 3.0)


def test_a_ledger_needs_a_name_and_a_file(tmp_path: Path) -> None:
    with pytest.raises(dpsw.ParameterError, match="a ledger needs data_set="):
        top(tmp_path / "spent.jsonl", data_set=None)
    with pytest.raises(dpsw.ParameterError, match="need a ledger="):
        dpsw.top(["a"], window=1, epsilon=1, keys=["a"], budget=1)
    foreign = tmp_path / "foreign"
    foreign.write_text("something else\n")
    with pytest.raises(dpsw.LedgerError, match="is not a ledger"):
        top(foreign)


def test_a_cell_that_runs_again_says_what_it_spends(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = ["", "dpsw.top(...)"]
    shell = SimpleNamespace(user_ns={"In": cells})
    monkeypatch.setitem(__import__("sys").modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    said: Any = {"window": 1_000, "epsilon": 1.5, "keys": ["a"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dpsw.top(["a"] * 1_000, **said)
        cells.append("another cell")
        dpsw.top(["a"] * 1_000, **said)
    cells.append("dpsw.top(...)")
    with pytest.warns(dpsw.SpendingWarning, match="this cell has run 2 times.*epsilon 1.5 is spent each time, 3 in all"):
        dpsw.top(["a"] * 1_000, **said)


def test_every_answer_of_one_line_says_that_it_spends_again() -> None:
    assert "counting the same items again spends it again" in str(dpsw.top(["a"] * 100, window=100, epsilon=1, keys=["a"]))
