"""Answers in a notebook: bars with their intervals. Colours come from the page, so that dark ones look right."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from ._words import grouped, name, percent

if TYPE_CHECKING:
    from ._results import Estimate, History, Row, Rows

ARROWS = {"rising": "▲ rising", "falling": "▼ falling", "steady": "steady", None: ""}
CELL = "padding:2px 8px;text-align:right;white-space:nowrap"
SMALL = "opacity:.7;font-size:85%"
LEFT = CELL.replace("right", "left")
BAR = "#4a90d9"
UNSURE = "#9a9a9a"


def rows(answer: Rows) -> str:
    footer = f'<div style="{SMALL}">{escape(answer.footer)}</div>'
    if not answer.rows:
        return f"<div>{escape(answer.why or 'no rows')}</div>{footer}"
    most = max(max(row.upper for row in answer), 1.0)
    has_trend = any(row.trend for row in answer)
    heads = ["", "item", "count", "95 % interval", "", "share"] + (["trend"] if has_trend else [])
    head = "".join(f'<th style="{style}">{head}</th>' for style, head in zip(_styles(len(heads)), heads))
    body = "".join(_row(row, most, has_trend) for row in answer)
    return f'<table style="border-collapse:collapse;color:inherit"><tr>{head}</tr>{body}</table>{footer}'


def _row(row: Row, most: float, has_trend: bool) -> str:
    whole = name(row.item, 1000)
    mark = "~" if row.unsure else ""
    cells = [
        str(row.rank),
        f'<span dir="auto" style="unicode-bidi:isolate" title="{escape(whole)}">{escape(name(row.item))}</span>',
        mark + grouped(row.estimate),
        f"{grouped(row.lower)} to {grouped(row.upper)}",
        _bar(row, most),
        percent(row.share),
    ]
    cells += [ARROWS[row.trend]] if has_trend else []
    inside = "".join(f'<td style="{style}">{cell}</td>' for style, cell in zip(_styles(len(cells)), cells))
    return f"<tr>{inside}</tr>"


def _styles(columns: int) -> list[str]:
    """Names to the left, numbers to the right."""
    return [CELL, LEFT, *[CELL] * (columns - 2)]


def _bar(row: Row, most: float) -> str:
    """A bar up to the estimate, and a line over the interval."""
    width = 240
    value, low, high = (max(end, 0) / most * width for end in (row.estimate, row.lower, row.upper))
    colour = UNSURE if row.unsure else BAR
    label = f"{grouped(row.lower)} to {grouped(row.upper)}"
    return (
        f'<svg width="{width + 4}" height="16" style="vertical-align:middle" role="img" aria-label="{label}">'
        f'<rect x="1" y="3" width="{value:.1f}" height="10" fill="{colour}" fill-opacity=".6"/>'
        f'<path d="M{low + 1:.1f} 8H{high + 1:.1f}M{low + 1:.1f} 4v8M{high + 1:.1f} 4v8" stroke="currentColor"/></svg>'
    )


def history(answer: History) -> str:
    """A line with a band."""
    shown = whole(answer)
    most = grouped(max((estimate.upper for estimate in shown), default=0))
    title = f'<div dir="auto">{escape(name(answer.item))}: 0 to {most} in each of {len(shown)} substreams</div>'
    if len(shown) < 2:
        return title + "<div>too little is sealed to draw</div>"
    between = replace(shown[0].window, end=shown[-1].window.end)
    return f'{title}{_line(shown)}<div style="{SMALL}">{between}, with 95 % intervals</div>'


def whole(answer: History) -> list[Estimate]:
    """Without a last substream that a finished stream cut short: beside the others it would look like a fall."""
    lengths = [estimate.window.end - estimate.window.start for estimate in answer]  # type: ignore[operator]
    return [estimate for estimate, length in zip(answer, lengths) if length == max(lengths)]


def _line(estimates: list[Estimate]) -> str:
    width, height = 480, 120
    most = max(max(estimate.upper for estimate in estimates), 1.0)

    def place(index: int, value: float) -> str:
        x = 2 + index / (len(estimates) - 1) * (width - 4)
        return f"{x:.1f},{height - 2 - max(value, 0) / most * (height - 4):.1f}"

    upper = [place(index, estimate.upper) for index, estimate in enumerate(estimates)]
    lower = [place(index, estimate.lower) for index, estimate in enumerate(estimates)]
    line = [place(index, estimate.value) for index, estimate in enumerate(estimates)]
    return (
        f'<svg width="{width}" height="{height}" role="img" aria-label="from 0 to {grouped(most)} per substream">'
        f'<path d="M2 {height - 2}H{width - 2}" stroke="currentColor" stroke-opacity=".4"/>'
        f'<polygon points="{" ".join(upper + lower[::-1])}" fill="{BAR}" fill-opacity=".3"/>'
        f'<polyline points="{" ".join(line)}" fill="none" stroke="{BAR}" stroke-width="1.5"/></svg>'
    )
