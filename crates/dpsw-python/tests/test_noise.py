"""The law of the noise, seen through the public interface, against exact laws and against OpenDP's samplers.

A stream of missing items counts nothing, so that what a view says of a key in one substream is the noise of one counter. Noise
comes from the system and cannot be repeated: each test says how often it raises a false alarm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy
import opendp.prelude as opendp
import pytest
from scipy.stats import chi2

import dpsw

opendp.enable_features("contrib")

Draws = numpy.ndarray[Any, Any]
Law = dict[int, float]

DRAWS = 400_000
# OpenDP takes some ten microseconds for each.
OPENDP_DRAWS = 200_000
KEYS = 20_000
# Of each judgement; there are less than a hundred.
FALSE_ALARM = 1e-8
START = datetime(2026, 1, 1, tzinfo=timezone.utc)


# Draws


def seen(view: dpsw.View, keys: int) -> Draws:
    """The newest whole substream of a view, for all keys."""
    length, end = view.plan.substream, view.window.end
    if isinstance(length, int) and isinstance(end, int):
        view = view.as_of(end // length * length)
    newest = view.last(length)
    return numpy.array([row.estimate for row in newest.frequencies(range(keys))])


def empty_view(plan: dpsw.Plan) -> dpsw.View:
    """Of a stream in which nothing counts, over one window."""
    sketch = dpsw.Sketch(plan)
    if isinstance(plan.window, timedelta):
        sketch.advance(START)
        sketch.advance(START + plan.window)
        return sketch.view()
    users = [0] * plan.window if plan.unit == "users" else None
    sketch.extend([None] * plan.window, users=users)
    return sketch.finish()


def draws(plan: dpsw.Plan, count: int = DRAWS) -> Draws:
    """Of the newest substreams of as many streams as it takes."""
    assert plan.keys is not None
    streams = math.ceil(count / plan.keys)
    found = numpy.concatenate([seen(empty_view(plan), plan.keys) for _ in range(streams)])
    assert (found == found.round()).all(), "single draws are integers"
    return found.astype(int)


# Laws


def law(noise: dpsw.Noise, factor: float = 1.0) -> Law:
    """The exact probabilities, from the definition; ``factor`` changes the scale."""
    spread = factor * (math.sqrt(noise.variance) if noise.scale is None else float(noise.scale))
    z = numpy.arange(-math.ceil(45 * spread), math.ceil(45 * spread) + 1)
    weights = numpy.exp(-(z**2) / (2 * spread**2) if noise.scale is None else -abs(z) / spread)
    return dict(zip(z.tolist(), (weights / weights.sum()).tolist()))


def twice(law: Law) -> Law:
    """Of the sum of two independent draws."""
    weights = numpy.convolve(list(law.values()), list(law.values()))
    first = 2 * min(law)
    return {first + place: float(weight) for place, weight in enumerate(weights)}


def is_of_law(found: Draws, law: Law) -> bool:
    """Kolmogorov's distance. By Massart's inequality, which holds for every law and number of draws, one of n draws exceeds
    sqrt(ln(2 / a) / (2 n)) with probability a at most."""
    ends = numpy.array(sorted(law))
    expected = numpy.cumsum([law[end] for end in ends.tolist()])
    observed = numpy.searchsorted(numpy.sort(found), ends, side="right") / len(found)
    return bool(abs(observed - expected).max() <= math.sqrt(math.log(2 / FALSE_ALARM) / (2 * len(found))))


def fits_in_cells(found: Draws, law: Law) -> bool:
    """Chi-square, which sees single values that are missing; cells expect 200 draws or more, so that the limit law holds well
    beyond one in a million when the limit is set at one in a hundred million."""
    edges = cells([(end, weight * len(found)) for end, weight in sorted(law.items())])
    places = numpy.digitize(numpy.array(list(law)), edges)
    expected = numpy.bincount(places, weights=numpy.array(list(law.values())) * len(found), minlength=len(edges) + 1)
    observed = numpy.bincount(numpy.digitize(found, edges), minlength=len(edges) + 1)
    return is_small(((observed - expected) ** 2 / expected).sum(), len(edges))


def fit_each_other(one: Draws, other: Draws) -> bool:
    """Chi-square of two samples of equal length: in each cell the difference has the sum for its variance."""
    values, counts = numpy.unique(numpy.concatenate([one, other]), return_counts=True)
    edges = cells(list(zip(values.tolist(), (counts / 2).tolist())))
    first, second = (numpy.bincount(numpy.digitize(found, edges), minlength=len(edges) + 1) for found in (one, other))
    return is_small(((first - second) ** 2 / (first + second)).sum(), len(edges))


def is_small(statistic: float, freedom: int) -> bool:
    return statistic <= float(chi2.isf(FALSE_ALARM, freedom))


def cells(expected: list[tuple[int, float]], least: float = 200) -> list[int]:
    """The first values of all cells but the first."""
    edges, held = [], 0.0
    for value, weight in expected:
        if least <= held:
            edges.append(value)
            held = 0.0
        held += weight
    return edges[:-1] if held < least else edges


def opendp_draws(noise: dpsw.Noise, factor: float = 1.0) -> Draws:
    domain = opendp.vector_domain(opendp.atom_domain(T=int))
    if noise.scale is not None:
        mechanism = opendp.m.make_laplace(domain, opendp.l1_distance(T=int), scale=factor * float(noise.scale))
    else:
        mechanism = opendp.m.make_gaussian(domain, opendp.l2_distance(T=float), scale=factor * math.sqrt(noise.variance))
    return numpy.array(mechanism([0] * OPENDP_DRAWS))


# Plans whose newest substream has one counter for each key, with one draw.
PLANS: dict[str, Callable[[], dpsw.Plan]] = {
    "Laplace of scale 2": lambda: dpsw.plan(window=1000, epsilon=1, keys=KEYS),
    "Laplace of scale 20/3": lambda: dpsw.plan(window=1000, epsilon=0.3, keys=KEYS),
    "Laplace of scale 1/4": lambda: dpsw.plan(window=100, epsilon=8, keys=KEYS),
    "Laplace with levels": lambda: dpsw.plan(window=100_000, epsilon=1, keys=KEYS),
    "Laplace for users": lambda: dpsw.plan(window=1000, epsilon=4, keys=KEYS, unit="users"),
    "Laplace for presence": lambda: dpsw.plan(
        window="1h", epsilon=0.5, keys=KEYS, unit="add-remove", clock="caller", expected_items=1000
    ),
    "Gaussian for users": lambda: dpsw.plan(window=10_000, epsilon=1, keys=KEYS, unit="users", delta=1e-6),
    # Two of 20,000 keys share one of 2^22 counters 48 times: 0.2 % of the draws stand twice, which is far from being seen.
    "Gaussian of the paper": lambda: dpsw.plan(
        window=1000, epsilon=1, keys=KEYS, delta=1e-7, paper=dpsw.Paper(substreams=1, grid=1, rows=1, columns=1 << 22)
    ),
}


@pytest.fixture(scope="module", params=PLANS)
def sample(request: pytest.FixtureRequest) -> tuple[dpsw.Noise, Draws]:
    plan = PLANS[request.param]()
    assert plan.noise[0].rows == 1
    assert plan.noise[0].law.endswith(request.param.split()[0])
    return plan.noise[0], draws(plan)


def test_noise_has_the_exact_law(sample: tuple[dpsw.Noise, Draws]) -> None:
    noise, found = sample
    assert is_of_law(found, law(noise))
    assert fits_in_cells(found, law(noise))


# Laplace draws of a scale that is off by a share f add n f^2 to chi-square, Gaussian ones 2 n f^2: 500 and more here, where the
# limit lies near 110 for 40 cells. Kolmogorov's distance becomes f / (2 e) = 0.009 or more, with a deviation below 0.0008, where
# the limit is 0.005. So one that is off is missed with probability 1e-6 at most.
@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_a_scale_that_is_five_percent_off_is_seen(sample: tuple[dpsw.Noise, Draws], factor: float) -> None:
    noise, found = sample
    assert not fits_in_cells(found, law(noise, factor))
    # At a scale of 1/4 nearly all draws are 0, whatever the scale: there chi-square alone sees it.
    assert noise.variance < 0.1 or not is_of_law(found, law(noise, factor))


@pytest.mark.parametrize(
    "name", ["Laplace of scale 2", "Laplace for presence", "Gaussian for users", "Gaussian of the paper"]
)
def test_noise_has_the_law_of_opendp(name: str) -> None:
    # Of two samples of n the sum is n f^2 / 2 = 250 or more, with a deviation of 33: five percent off is missed with probability
    # 1e-7 at most.
    plan = PLANS[name]()
    ours = draws(plan, OPENDP_DRAWS)
    assert fit_each_other(ours, opendp_draws(plan.noise[0]))
    assert not fit_each_other(ours, opendp_draws(plan.noise[0], 1.05)), "five percent off is seen"


def test_each_of_two_slices_has_noise_of_its_own() -> None:
    """In the first substream of a plan with levels all keys are cut in two, and their count is the sum of two draws."""
    plan = dpsw.plan(window=100_000, epsilon=1, keys=KEYS)
    assert 1 < len(plan.noise)
    streams = [empty_view(plan).as_of(plan.substream).last(plan.substream) for _ in range(10)]  # type: ignore[arg-type]
    found = numpy.array([row.estimate for view in streams for row in view.frequencies(range(KEYS))])
    once = law(plan.noise[0])
    assert is_of_law(found, twice(once)) and fits_in_cells(found, twice(once))
    assert not is_of_law(found, once)


def test_noise_of_neighbouring_counters_and_substreams_is_independent() -> None:
    """The mean product of n pairs of independent draws, over their variance, has a deviation of 1 / sqrt(n)."""
    view = empty_view(dpsw.plan(window=1000, epsilon=1, keys=KEYS))
    newest = seen(view, KEYS)
    before = seen(view.as_of(1000 - int(view.plan.substream)), KEYS)  # type: ignore[arg-type]
    for one, other in [(newest[1:], newest[:-1]), (newest, before)]:
        correlation = (one * other).mean() / view.plan.noise[0].variance
        # Six deviations: 2e-9 of a normal law, and products of Laplace draws are close to one in 20,000 pairs.
        assert abs(correlation) < 6 / math.sqrt(len(one))
    assert 0.8 < (newest * newest).mean() / view.plan.noise[0].variance < 1.2, "the same draws would be seen"


# Found keys


def test_keys_come_out_as_often_as_the_law_of_their_noise_says() -> None:
    plan = dpsw.plan(window=20_000, epsilon=4, kind="integers")
    assert plan.search is not None and isinstance(plan.substream, int)
    search, keys = plan.search, 40
    count = search.threshold + 6
    came_out = numpy.array([checks_of_release(plan, keys, count) for _ in range(3000)]).sum(axis=0)
    expected = release_law(search, count, len(came_out) - 1) * came_out.sum()
    # Chi-square with its limit at one in a hundred million, in three cells of thousands of keys; a scale that is off by a tenth
    # adds 200 to it, where the limit is 37.
    assert expected.min() > 200, expected
    assert is_small(((came_out - expected) ** 2 / expected).sum(), len(expected) - 1)
    for wrong in (0.9, 1.1):
        other = release_law(search, count, len(came_out) - 1, wrong) * came_out.sum()
        assert not is_small(((came_out - other) ** 2 / other).sum(), len(expected) - 1)


def checks_of_release(plan: dpsw.Plan, keys: int, count: int, checks: int = 2) -> list[int]:
    """How many of so many keys, with the same count from the first check on, come out at each check; last those that do not."""
    sketch = dpsw.Sketch(plan)
    sketch.extend([key for key in range(keys) for _ in range(count)])
    sketch.extend([None] * (int(plan.substream) - keys * count))  # type: ignore[arg-type]
    out = [len(sketch.view().keys)]
    for _ in range(1, checks):
        sketch.extend([None] * int(plan.substream))  # type: ignore[arg-type]
        out.append(len(sketch.view().keys) - sum(out))
    return [*out, keys - sum(out)]


def release_law(search: dpsw.Search, count: int, checks: int, factor: float = 1.0) -> Draws:
    """The probability of each check to let out a key of this count, from the definition."""
    lasting, fresh = factor * float(search.lasting_scale), factor * float(search.fresh_scale)
    noise = numpy.arange(count - 3)
    left = numpy.exp(-noise / lasting) * -numpy.expm1(-1 / lasting)
    lets_out = numpy.exp(-numpy.maximum(search.threshold - (count - 3 - noise), 0) / fresh)
    at_check = [(left * (1 - lets_out) ** check * lets_out).sum() for check in range(checks)]
    return numpy.array([*at_check, 1 - sum(at_check)])
