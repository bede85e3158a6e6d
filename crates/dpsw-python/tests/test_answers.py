"""What people look at: tables, reprs, notebook HTML and pictures."""

from __future__ import annotations

import html.parser
import sys
from typing import Any

import matplotlib
import pandas
import polars
import pyarrow
import pytest

import dpsw

matplotlib.use("Agg")

HOSTILE = ["<script>alert(1)</script>", "a\x1b[31mred", "\u202egnp.exe", "x" * 10_000, 'quo"te', "$\\frac$", "", "new\nline"]


@pytest.fixture
def view() -> dpsw.View:
    items = [item for place, item in enumerate(HOSTILE) for _ in range(100 * (place + 1))]
    return dpsw.view(items, window=len(items), epsilon=1e6, keys=HOSTILE)


def test_hostile_names_change_nothing_around_them(view: dpsw.View) -> None:
    rows = view.top()
    assert {row.item for row in rows} == set(HOSTILE)
    text = str(rows)
    assert len(text.splitlines()) == len(HOSTILE) + 2
    assert "\x1b" not in text and "\u202e" not in text and len(text) < 2_000
    page = rows._repr_html_()
    assert "<script>" not in page and "\u202e" not in page and 'quo"te' not in page
    tags: list[str] = []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(page)
    assert set(tags) == {"table", "tr", "th", "td", "span", "svg", "rect", "path", "div"}


def test_tables_hold_the_same_rows(view: dpsw.View) -> None:
    rows = view.top(3)
    tables: list[Any] = [rows.to_pandas().reset_index(), rows.to_polars().to_pandas(), rows.to_arrow().to_pandas()]
    for table in tables:
        assert list(table["item"]) == [row.item for row in rows]
        assert list(table["estimate"]) == [row.estimate for row in rows]
        assert list(table["lower"]) == [row.lower for row in rows]
    assert [record["rank"] for record in rows.to_dicts()] == [1, 2, 3]
    assert isinstance(rows.to_pandas(), pandas.DataFrame)
    assert isinstance(rows.to_polars(), polars.DataFrame)
    assert isinstance(rows.to_arrow(), pyarrow.Table)


def test_tables_of_nothing_have_their_columns(view: dpsw.View) -> None:
    empty = dpsw.Sketch(window=10_000, epsilon=1, keys=["a"]).view().top()
    assert list(empty.to_arrow().column_names) == list(view.top().to_arrow().column_names)
    assert len(empty.to_pandas()) == 0 and len(empty.to_polars()) == 0


def test_a_history_becomes_a_table_and_a_picture(view: dpsw.View) -> None:
    history = view.history(HOSTILE[7])
    assert sum(history.to_pandas()["estimate"]) == pytest.approx(800)
    assert history.to_arrow().num_rows == len(history)
    assert "<svg" in history._repr_html_() and "polyline" in history._repr_html_()
    assert history.plot().get_ylabel() == "count per substream"
    assert "History of new" in repr(history)


def test_pictures_show_every_row_with_its_interval(view: dpsw.View) -> None:
    ax = view.plot(count=5)
    assert len(ax.patches) == 5
    (errors,) = ax.containers[1:]
    assert len(errors.lines[2][0].get_segments()) == 5
    assert [label.get_text() for label in ax.get_yticklabels()][0] == "new\\nline"
    ax.figure.canvas.draw()  # type: ignore[union-attr]
    over = view.plot(HOSTILE[5])
    over.figure.canvas.draw()  # type: ignore[union-attr]


def test_a_plot_without_matplotlib_says_what_to_install(view: dpsw.View, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        view.plot()


def test_an_empty_answer_says_why() -> None:
    assert "nothing can be answered before" in str(dpsw.Sketch(window=10_000, epsilon=1, keys=["a"]).view().top())
    few = dpsw.view([f"item {number}" for number in range(10_000)], window=10_000, epsilon=1)
    assert "no key is listed yet" in str(few.top())
    noise = dpsw.view(list(range(1_000)) * 10, window=10_000, epsilon=0.1, keys=1_000)
    assert "no item stands out" in str(noise.top()) or len(noise.top()) < 5


def test_estimates_print_as_people_write_them() -> None:
    view = dpsw.view(["a"] * 12_345, window=12_345, epsilon=1e6, keys=["a", "b"])
    assert str(view.frequency("a")) == "12,345 ± 0"
    assert repr(view.frequency("a")) == "<Estimate 12,345 ± 0, 0 to 12,345>"
    assert float(view.frequency("a")) == 12_345
    assert view.frequency("a").share == 1
    assert str(view.top()[0]) == "a 12,345 (12,344 to 12,346)"
