"""Pictures and notebook output: what they show, on light and dark pages. How they look was looked at."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as pyplot
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import same_color

import dpsw


@pytest.fixture
def ax() -> Axes:
    return pyplot.subplots()[1]


def cut_short() -> dpsw.View:
    """A stream that ends inside a substream."""
    sketch = dpsw.Sketch(window=1_000, epsilon=1e6, keys=["a", "b"], retention=3)
    substream = sketch.plan.substream
    assert isinstance(substream, int)
    sketch.extend(["a", "b"] * (4 * substream) + ["a"] * (substream // 3))
    return sketch.finish()


def test_a_last_substream_that_was_cut_short_does_not_look_like_a_fall(ax: Axes) -> None:
    view = cut_short()
    history = view.history("a")
    assert history[-1].value < 0.9 * history[-2].value
    shown = view.plot("a", ax=ax).lines[0].get_ydata()
    assert len(shown) == len(history) - 1
    assert min(shown) == pytest.approx(history[-2].value)  # type: ignore[call-overload]
    assert f"in each of {len(history) - 1} substreams" in history._repr_html_()


def test_error_bars_have_the_colour_of_words(ax: Axes) -> None:
    with pyplot.style.context("dark_background"):
        dark = pyplot.subplots()[1]
        cut_short().plot(ax=dark)
    cut_short().plot(ax=ax)
    for axes, ink in ((ax, "black"), (dark, "white")):
        bars = [part for part in axes.collections if isinstance(part, LineCollection)]
        assert bars and all(same_color(bar.get_color()[0], ink) for bar in bars)


def test_few_rows_are_drawn_as_thin_as_many_and_none_says_why(ax: Axes) -> None:
    cut_short().plot(ax=ax)
    low, high = ax.get_ylim()
    assert (low, high) == (3.5, -0.5)
    other = pyplot.subplots()[1]
    dpsw.Sketch(window=1000, epsilon=1, keys=["a"]).view().frequencies([]).plot(ax=other)
    assert "nothing can be answered before" in other.texts[0].get_text()


def test_notebook_tables_take_their_colours_from_the_page() -> None:
    html = cut_short().top()._repr_html_()
    assert "color:inherit" in html and 'stroke="currentColor"' in html
