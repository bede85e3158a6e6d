"""Pictures of answers, where matplotlib is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._html import whole
from ._words import name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._results import History, Rows

# Told apart also without colour: unsure rows are hatched.
BAR, UNSURE = "#4a90d9", "#9a9a9a"


def rows(answer: Rows, ax: Axes | None) -> Axes:
    ax = _axes(0.35 * max(len(answer), 2) + 1.2) if ax is None else ax
    places = range(len(answer))
    values = [row.estimate for row in answer]
    below = [max(row.estimate - row.lower, 0) for row in answer]
    above = [max(row.upper - row.estimate, 0) for row in answer]
    bars = ax.barh(places, values, color=[UNSURE if row.unsure else BAR for row in answer], height=0.7)
    for bar, row in zip(bars, answer):
        bar.set_hatch("//" if row.unsure else "")
    ax.errorbar(values, places, xerr=[below, above], fmt="none", ecolor=_ink(ax), elinewidth=1, capsize=3)
    ax.set_yticks(list(places), [_label(row.item) for row in answer])
    # The first row on top, and few rows no thicker than many.
    ax.set_ylim(max(len(answer), 4) - 0.5, -0.5)
    if not answer:
        ax.text(0.5, 0.5, answer.why or "no rows", transform=ax.transAxes, ha="center", va="center", wrap=True)
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(left=0)
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlabel("count, with 95 % intervals")
    ax.set_title(answer.footer, fontsize="small", loc="left")
    _quiet(ax)
    return ax


def history(answer: History, ax: Axes | None) -> Axes:
    ax = _axes(3.2) if ax is None else ax
    shown = whole(answer)
    ends = [estimate.window.end for estimate in shown]
    ax.fill_between(
        ends,  # type: ignore[arg-type]
        [max(estimate.lower, 0) for estimate in shown],
        [max(estimate.upper, 0) for estimate in shown],
        color=BAR,
        alpha=0.3,
        linewidth=0,
        label="95 % interval",
    )
    ax.plot(ends, [max(estimate.value, 0) for estimate in shown], color=BAR, marker="o", markersize=3)  # type: ignore[arg-type]
    ax.set_ylim(bottom=0)
    ax.yaxis.set_major_formatter("{x:,.0f}")
    ax.set_ylabel("count per substream")
    is_count = bool(ends) and isinstance(ends[0], int)
    if is_count:
        ax.xaxis.set_major_formatter("{x:,.0f}")
    else:
        _short_times(ax)
    ax.set_xlabel("position" if is_count else "time (UTC)")
    ax.set_title(_label(answer.item), loc="left")
    ax.legend(frameon=False)
    _quiet(ax)
    return ax


def _axes(height: float) -> Axes:
    try:
        import matplotlib.pyplot as pyplot
    except ImportError as error:
        raise ImportError("plot() needs matplotlib: pip install matplotlib") from error
    return pyplot.subplots(figsize=(7, height), layout="constrained")[1]


def _label(item: str | bytes | int) -> str:
    # A dollar sign would begin a formula.
    return name(item, 32).replace("$", r"\$")


def _ink(ax: Axes) -> Any:
    """The colour of words, which is light where the background is dark."""
    return ax.xaxis.label.get_color()


def _short_times(ax: Axes) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _quiet(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
