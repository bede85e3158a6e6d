"""Answers as tables of whatever library is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from ._results import History, Rows


def dicts(rows: Rows) -> list[dict[str, Any]]:
    return [
        {
            "rank": row.rank,
            "item": row.item,
            "estimate": row.estimate,
            "lower": row.lower,
            "upper": row.upper,
            "share": row.share,
            "trend": row.trend,
            "unsure": row.unsure,
        }
        for row in rows
    ]


def spells(history: History) -> list[dict[str, Any]]:
    return [
        {
            "start": estimate.window.start,
            "end": estimate.window.end,
            "estimate": estimate.value,
            "lower": estimate.lower,
            "upper": estimate.upper,
        }
        for estimate in history
    ]


def pandas_table(answer: Rows | History) -> pandas.DataFrame:
    import pandas

    columns = _columns(answer)
    table = pandas.DataFrame(columns)
    return table.set_index("rank") if "rank" in columns else table


def polars_table(answer: Rows | History) -> polars.DataFrame:
    import polars

    types = {"share": polars.Float64, "trend": polars.String}
    columns = _columns(answer)
    return polars.DataFrame(columns, schema_overrides={name: types[name] for name in types if name in columns})


def arrow_table(answer: Rows | History) -> pyarrow.Table:
    import pyarrow

    types = {"share": pyarrow.float64(), "trend": pyarrow.string()}
    columns = _columns(answer)
    arrays = {name: pyarrow.array(values, types.get(name)) for name, values in columns.items()}
    return pyarrow.table(arrays)


def _columns(answer: Rows | History) -> dict[str, list[Any]]:
    records = answer.to_dicts()
    names = ["rank", "item", "estimate", "lower", "upper", "share", "trend", "unsure"]
    if not hasattr(answer, "about"):
        names = ["start", "end", "estimate", "lower", "upper"]
    columns = {name: [record[name] for record in records] for name in names}
    if any(isinstance(item, bytes) for item in columns.get("item", [])):
        columns["item"] = [item.encode() if isinstance(item, str) else item for item in columns["item"]]
    return columns
