"""Figure 2 of the paper (fig-freq-eps-high) from Python: errors of the 50 most frequent items against epsilon.

Its two synthetic streams, with the settings of `dpsw-eval figure frequency-high`, which also has the other baselines: windows of
1,000,000 items, 25,600 keys, 2,500,000 items, 1,120,000 bytes, delta = n^-1.5, three streams, 25 query times in each. The
structure of the paper has the number of rows, from 2 to 5, that does best in a shorter run before; so has the plain answer,
tumbling buckets (a noisy histogram for each piece of the window), with its number of pieces.

    python crates/dpsw-python/examples/paper_figure.py --out docs/figures/python-figure.png

takes less than a minute and needs numpy and matplotlib. It also writes the numbers, as CSV. Noise comes from the system, so that no
two runs are equal.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as pyplot
import numpy

import dpsw

WINDOW, DOMAIN, ITEMS, BYTES = 1_000_000, 25_600, 2_500_000, 1_120_000
EPSILONS = (0.1, 0.2, 0.4, 1.0, 2.0)
SEEDS, QUERIES, FREQUENT = 3, 25, 50
PILOT_ITEMS, PILOT_QUERIES = 1_500_000, 5
DELTA = ITEMS**-1.5
# The structure of the paper keeps 35 sketches of 4-byte counters.
COUNTERS = BYTES // (4 * 35)

Items = numpy.ndarray[Any, Any]
Answers = Iterator[Items]


# Streams


def stream(name: str, count: int, rng: numpy.random.Generator) -> Items:
    """95 % Zipf with exponent 1 or normal with mean 50 and deviation 25, 5 % uniform, as in the paper's appendix."""
    drawn = zipf(count, rng) if name == "zipf" else gauss(count, rng)
    return numpy.where(rng.random(count) < 0.05, rng.integers(DOMAIN, size=count), drawn).astype("uint64")


def zipf(count: int, rng: numpy.random.Generator) -> Items:
    ends = numpy.cumsum(1 / numpy.arange(1, DOMAIN + 1))
    return numpy.searchsorted(ends, rng.random(count) * ends[-1], side="right").clip(max=DOMAIN - 1)


def gauss(count: int, rng: numpy.random.Generator) -> Items:
    drawn = rng.normal(50, 25, 2 * count)
    return drawn[0 <= drawn][:count].round().clip(1, DOMAIN).astype(int) - 1


# Methods: the counts of the questions at each query time


def by_dpsw(items: Items, times: Items, asked: list[Items], plan: dpsw.Plan) -> Answers:
    sketch, position = dpsw.Sketch(plan), 0
    for time, keys in zip(times.tolist(), asked):
        sketch.extend(items[position:time])
        position = time
        yield numpy.array([row.estimate for row in sketch.view().frequencies(keys.tolist())])


def tuned(epsilon: float) -> dpsw.Plan:
    return dpsw.plan(window=WINDOW, epsilon=epsilon, keys=DOMAIN, memory=BYTES)


def of_paper(epsilon: float, rows: int, shares: tuple[float, ...]) -> dpsw.Plan:
    paper = dpsw.Paper(rows=rows, columns=COUNTERS // rows, shares=shares)
    return dpsw.plan(window=WINDOW, epsilon=epsilon, keys=DOMAIN, delta=DELTA, paper=paper)


def tumbling(items: Items, times: Items, asked: list[Items], epsilon: float, pieces: int, rng: numpy.random.Generator) -> Answers:
    """All whole pieces that overlap the window. A replaced item moves two counts by one: Laplace noise of scale 2 / epsilon,
    which is the difference of two geometric draws. The window cuts the first piece; the last one, still open, is not seen."""
    length = -(-WINDOW // pieces)
    sealed = numpy.array([numpy.bincount(items[at : at + length], minlength=DOMAIN) for at in range(0, len(items), length)])
    chance = -numpy.expm1(-epsilon / 2)
    sealed = sealed + rng.geometric(chance, sealed.shape) - rng.geometric(chance, sealed.shape)
    for time, keys in zip(times.tolist(), asked):
        yield sealed[(time - WINDOW) // length : time // length, keys].sum(axis=0)


# Measuring


class Workload:
    """A stream, when it is asked, and what is true then."""

    def __init__(self, name: str, seed: int, items: int = ITEMS, queries: int = QUERIES) -> None:
        self.rng = numpy.random.default_rng(seed)
        self.items = stream(name, items, self.rng)
        self.times = numpy.sort(self.rng.integers(WINDOW, items, size=queries, endpoint=True))
        counts = [numpy.bincount(self.items[time - WINDOW : time].astype(int), minlength=DOMAIN) for time in self.times]
        self.asked = [numpy.argsort(-count, kind="stable")[:FREQUENT] for count in counts]
        self.truth = numpy.array([count[keys] for count, keys in zip(counts, self.asked)])

    def errors(self, answers: Answers) -> tuple[float, float]:
        """MAE and MRE."""
        wrong = abs(numpy.array(list(answers)) - self.truth)
        return float(wrong.mean()), float((wrong / self.truth).mean())

    def of_plan(self, plan: dpsw.Plan) -> tuple[float, float]:
        return self.errors(by_dpsw(self.items, self.times, self.asked, plan))

    def of_tumbling(self, epsilon: float, pieces: int) -> tuple[float, float]:
        return self.errors(tumbling(self.items.astype(int), self.times, self.asked, epsilon, pieces, self.rng))


SHARES = {"DPSW, printed budgets": (), "DPSW, balanced budgets": (0.8, 0.05, 0.05)}


def methods(pilot: Workload, epsilon: float) -> dict[str, Callable[[Workload], tuple[float, float]]]:
    """Each with the parameters that did best on the pilot."""

    fitting = [pieces for pieces in (2, 3, 4, 5, 6, 8, 10) if 4 * DOMAIN * (pieces + 2) <= BYTES]
    pieces = min(fitting, key=lambda pieces: pilot.of_tumbling(epsilon, pieces))

    def best(shares: tuple[float, ...]) -> dpsw.Plan:
        return min((of_paper(epsilon, rows, shares) for rows in range(2, 6)), key=pilot.of_plan)

    plans = {"tuned (ours)": tuned(epsilon)} | {name: best(shares) for name, shares in SHARES.items()}
    found = {name: lambda workload, plan=plan: workload.of_plan(plan) for name, plan in plans.items()}
    return found | {"tumbling buckets": lambda workload: workload.of_tumbling(epsilon, pieces)}


def measure() -> Iterator[dict[str, Any]]:
    for name in ("gauss", "zipf"):
        pilot = Workload(name, 1000, PILOT_ITEMS, PILOT_QUERIES)
        workloads = [Workload(name, seed) for seed in range(SEEDS)]
        for epsilon in EPSILONS:
            for method, errors in methods(pilot, epsilon).items():
                for seed, workload in enumerate(workloads):
                    mae, mre = errors(workload)
                    yield {"stream": name, "method": method, "epsilon": epsilon, "seed": seed, "mae": mae, "mre": mre}


# Drawing


STYLES = {
    "tuned (ours)": ("#0067b1", "o"),
    "DPSW, printed budgets": ("#d04a00", "s"),
    "DPSW, balanced budgets": ("#c98a00", "D"),
    "tumbling buckets": ("#008a63", "^"),
}


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    figure, axes = pyplot.subplots(2, 2, figsize=(8, 6), sharex=True, layout="constrained")
    for (line, metric), (column, name) in ((a, b) for a in enumerate(("mae", "mre")) for b in enumerate(("gauss", "zipf"))):
        ax = axes[line][column]
        for method, (colour, marker) in STYLES.items():
            curve(ax, [row for row in rows if row["stream"] == name and row["method"] == method], metric, method, colour, marker)
        ax.set(xscale="log", yscale="log", title=name if line == 0 else "", xlabel="epsilon" if line == 1 else "")
        ax.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        ax.minorticks_off()
        ax.grid(color="#e4e4e4")
        ax.spines[["top", "right"]].set_visible(False)
        ax.yaxis.set_major_formatter("{x:,.0f}" if metric == "mae" else lambda share, _: f"{100 * share:g} %")
    axes[0][0].set_ylabel("MAE, frequent items")
    axes[1][0].set_ylabel("MRE, frequent items")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False, fontsize="small")
    figure.savefig(path, dpi=110)


def curve(ax: Any, rows: list[dict[str, Any]], metric: str, label: str, colour: str, marker: str) -> None:
    """The mean of all seeds, with a band from the smallest to the largest."""
    values = [[row[metric] for row in rows if row["epsilon"] == epsilon] for epsilon in EPSILONS]
    ax.plot(EPSILONS, [numpy.mean(some) for some in values], color=colour, marker=marker, markersize=5, label=label)
    ax.fill_between(EPSILONS, [min(some) for some in values], [max(some) for some in values], color=colour, alpha=0.2, linewidth=0)


def write(rows: list[dict[str, Any]], path: Path) -> None:
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows({**row, "mae": f"{row['mae']:.4g}", "mre": f"{row['mre']:.4g}"} for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Figure 2 of the paper: errors of frequent items against epsilon")
    parser.add_argument("--out", type=Path, default=Path("python-figure.png"), help="the picture; numbers go beside it, as .csv")
    out = parser.parse_args().out
    rows = list(measure())
    write(rows, out.with_suffix(".csv"))
    draw(rows, out)


if __name__ == "__main__":
    main()
