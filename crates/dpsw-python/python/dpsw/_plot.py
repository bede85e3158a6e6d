"""Pictures of answers, where matplotlib is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._words import name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._results import History, Rows

# Told apart also without colour: unsure rows are hatched.
BAR, UNSURE, INK = "#3b78b8", "#b8b8b8", "#222222"


def rows(answer: Rows, ax: Axes | None) -> Axes:
    ax = _axes(0.35 * max(len(answer), 2) + 1.2) if ax is None else ax
    places = range(len(answer))
    values = [row.estimate for row in answer]
    below = [max(row.estimate - row.lower, 0) for row in answer]
    above = [max(row.upper - row.estimate, 0) for row in answer]
    bars = ax.barh(places, values, color=[UNSURE if row.unsure else BAR for row in answer], height=0.7)
    for bar, row in zip(bars, answer):
        bar.set_hatch("//" if row.unsure else "")
    ax.errorbar(values, places, xerr=[below, above], fmt="none", ecolor=INK, elinewidth=1, capsize=3)
    ax.set_yticks(list(places), [_label(row.item) for row in answer])
    ax.invert_yaxis()
    ax.set_xlim(left=0)
    ax.set_xlabel("count, with 95 % intervals")
    ax.set_title(answer.footer, fontsize="small", loc="left")
    _quiet(ax)
    return ax


def history(answer: History, ax: Axes | None) -> Axes:
    ax = _axes(3.2) if ax is None else ax
    ends = [estimate.window.end for estimate in answer]
    ax.fill_between(
        ends,  # type: ignore[arg-type]
        [max(estimate.lower, 0) for estimate in answer],
        [max(estimate.upper, 0) for estimate in answer],
        color=BAR,
        alpha=0.25,
        linewidth=0,
        label="95 % interval",
    )
    ax.plot(ends, [max(estimate.value, 0) for estimate in answer], color=BAR, marker="o", markersize=3)  # type: ignore[arg-type]
    ax.set_ylim(bottom=0)
    ax.set_ylabel("count per substream")
    is_count = bool(ends) and isinstance(ends[0], int)
    ax.set_xlabel("position" if is_count else "time (UTC)")
    ax.set_title(_label(answer.item), loc="left")
    ax.legend(frameon=False)
    if not is_count:
        ax.tick_params(axis="x", rotation=30)
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


def _quiet(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
