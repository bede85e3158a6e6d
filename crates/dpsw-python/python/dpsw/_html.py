"""Answers in a notebook: bars with their intervals. Colours come from the page, so that dark ones look right."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ._words import grouped, name, percent

if TYPE_CHECKING:
    from ._results import Estimate, History, Row, Rows

ARROWS = {"rising": "▲ rising", "falling": "▼ falling", "steady": "steady", None: ""}
CELL = "padding:2px 8px;text-align:right;white-space:nowrap"
BAR = "#3b78b8"
UNSURE = "#9a9a9a"


def rows(answer: Rows) -> str:
    footer = f'<div style="opacity:.7;font-size:85%">{escape(answer.footer)}</div>'
    if not answer.rows:
        return f"<div>{escape(answer.why or 'no rows')}</div>{footer}"
    most = max(max(row.upper for row in answer), 1.0)
    has_trend = any(row.trend for row in answer)
    heads = ["", "item", "count", "95 % interval", "", "share"] + (["trend"] if has_trend else [])
    head = "".join(f'<th style="{CELL}">{head}</th>' for head in heads)
    body = "".join(_row(row, most, has_trend) for row in answer)
    return f'<table style="border-collapse:collapse"><tr>{head}</tr>{body}</table>{footer}'


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
    styles = [CELL, CELL.replace("right", "left"), *[CELL] * (len(cells) - 2)]
    inside = "".join(f'<td style="{style}">{cell}</td>' for style, cell in zip(styles, cells))
    return f"<tr>{inside}</tr>"


def _bar(row: Row, most: float) -> str:
    """A bar up to the estimate, and a line over the interval."""
    width = 240
    value, low, high = (max(end, 0) / most * width for end in (row.estimate, row.lower, row.upper))
    colour = UNSURE if row.unsure else BAR
    return (
        f'<svg width="{width + 4}" height="16" role="img" aria-label="{grouped(row.lower)} to {grouped(row.upper)}">'
        f'<rect x="1" y="3" width="{value:.1f}" height="10" fill="{colour}" fill-opacity=".55"/>'
        f'<path d="M{low + 1:.1f} 8H{high + 1:.1f}M{low + 1:.1f} 4v8M{high + 1:.1f} 4v8" stroke="currentColor"/></svg>'
    )


def history(answer: History) -> str:
    """A line with a band."""
    title = f'<div dir="auto">{escape(name(answer.item))}: the last {len(answer)} substreams</div>'
    if len(answer) < 2:
        return title + "<div>too little is sealed to draw</div>"
    return title + _line(list(answer))


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
        f'<polygon points="{" ".join(upper + lower[::-1])}" fill="{BAR}" fill-opacity=".25"/>'
        f'<polyline points="{" ".join(line)}" fill="none" stroke="{BAR}" stroke-width="1.5"/></svg>'
        f"<div>0 to {grouped(most)} per substream, with 95 % intervals</div>"
    )
