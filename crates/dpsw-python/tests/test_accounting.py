"""What plans claim, against accountants that are not ours.

A plan says what noise each range of a substream has. From that and from what an event can touch, its cost is calculated anew:
exactly in rationals (Laplace), by the privacy loss distributions of the package dp-accounting (Laplace, Gaussian, the paper's
method), and by the exact law of the check at which a key comes out (found keys). A claim must be at least that cost, and not
much more: each test says how much more, and why.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy
import pytest
from dp_accounting import ZCDpEvent
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import brentq
from scipy.stats import norm

import dpsw

# What the accountants' transforms lose; they also cut tails of 1e-15.
ROUNDING = 1e-13


def counters_moved(plan: dpsw.Plan) -> int:
    """Of each row, by one event."""
    return 1 if plan.unit == "add-remove" else 2


def substreams_touched(plan: dpsw.Plan) -> int:
    """By what is protected together: an event, or all that a user sends in a window."""
    return 1 if plan.per_user is None else math.ceil(plan.window / plan.substream) + 1  # type: ignore[operator]


def events(plan: dpsw.Plan) -> int:
    """That are protected together."""
    return (plan.per_user or 1) * substreams_touched(plan)


def of_search(plan: dpsw.Plan) -> tuple[Fraction, float]:
    """Epsilon and delta of finding keys: one key has an event more and one has an event less, for each event."""
    if plan.search is None:
        return Fraction(0), 0.0
    return (1 / plan.search.lasting_scale + 1 / plan.search.fresh_scale) * events(plan), plan.search.delta


def of_sketches(plan: dpsw.Plan) -> tuple[Fraction, float]:
    """Epsilon and delta that the plan claims for sketches: what keys leave."""
    epsilon, delta = of_search(plan)
    return Fraction(Decimal(repr(plan.epsilon))) - epsilon, plan.delta - delta


def at_one_offset(plan: dpsw.Plan) -> list[list[dpsw.Noise]]:
    """The ranges over an offset, for every offset at which they change."""
    starts = {noise.start for noise in plan.noise}
    return [[noise for noise in plan.noise if noise.start <= at < noise.end] for at in starts]  # type: ignore[operator]


def is_within(plan: dpsw.Plan, said: dict[str, Any]) -> bool:
    """Whether the plan costs no more than was allowed."""
    return plan.epsilon <= said.get("epsilon", math.inf) and plan.delta <= said.get("delta", 1e-10)


# Laplace


def laplace_cost(plan: dpsw.Plan) -> Fraction:
    """The largest loss, exactly: old and new item count in one range each, and may choose the dearest."""
    dearest = max(noise.rows / noise.scale for noise in plan.noise if noise.scale is not None)
    return dearest * counters_moved(plan) * events(plan)


def judge_laplace(plan: dpsw.Plan) -> None:
    assert {noise.law for noise in plan.noise} == {"discrete Laplace"}
    assert all(noise.variance == pytest.approx(laplace_variance(noise.scale), rel=1e-9) for noise in plan.noise)
    claimed, _ = of_sketches(plan)
    # Scales are exact rationals of an epsilon of nine decimal places: nothing is lost but what is said in them.
    assert laplace_cost(plan) <= claimed <= laplace_cost(plan) * (1 + Fraction(1, 10**9))


def laplace_variance(scale: Fraction | None) -> float:
    """By the sum itself, not by a formula."""
    assert scale is not None
    z = numpy.arange(-60 * math.ceil(scale), 60 * math.ceil(scale) + 1)
    weights = numpy.exp(-abs(z) / float(scale))
    return float((weights * z**2).sum() / weights.sum())


HOUR = {"window": "1h", "clock": "caller", "expected_items": 50_000}
LAPLACE: list[dict[str, Any]] = [
    {"window": window, "epsilon": epsilon, "keys": keys}
    for window in (5_000, 100_000, 1_000_000)
    for epsilon in (0.01, 0.3, 1, 8)
    for keys in (40, 20_000)
] + [
    {"window": 100_000, "epsilon": 0.123456789, "keys": 1000},
    {"window": 100_000, "epsilon": 1, "keys": "asked"},
    # Hashed rows, with and without keys that have counters of their own beside them.
    {"window": 1_000_000, "epsilon": 1, "keys": 100_000, "memory": "112KB"},
    {"window": 1_000_000, "epsilon": 0.5, "keys": 100_000, "memory": "400KB"},
    {"window": 50_000, "epsilon": 1, "keys": "asked", "memory": "10KB"},
    HOUR | {"epsilon": 1, "keys": 1000, "unit": "add-remove"},
    HOUR | {"epsilon": 0.1, "keys": 30_000, "unit": "add-remove", "memory": "60KB"},
    HOUR | {"epsilon": 1, "keys": 1000},
    {"window": 100_000, "epsilon": 1, "keys": 1000, "unit": "users"},
    {"window": 100_000, "epsilon": 2, "keys": 1000, "unit": "users", "per_user": 5},
    {"window": 200_000, "epsilon": 2, "keys": 50_000, "unit": "users", "per_user": 2, "memory": "60KB"},
    HOUR | {"epsilon": 3, "keys": 500, "unit": "users", "per_user": 3},
    # The smallest epsilon that reaches an error.
    {"window": 100_000, "keys": 1000, "target_error": 100},
    # A delta that no noise needs is not claimed.
    {"window": 100_000, "epsilon": 1, "keys": 1000, "delta": 1e-8},
]


@pytest.mark.parametrize("said", LAPLACE, ids=str)
def test_a_laplace_plan_costs_what_it_claims(said: dict[str, Any]) -> None:
    plan = dpsw.plan(**said)
    judge_laplace(plan)
    assert plan.delta == 0 and is_within(plan, said)


def test_the_plan_of_one_line_costs_what_its_view_promises() -> None:
    items, times = [7] * 30_000, [1000 * place for place in range(30_000)]
    views = [
        dpsw.view(items, window=5_000, epsilon=1, keys=100),
        dpsw.view(items, window=50_000, epsilon=0.5, keys=100),
        dpsw.view(items, times, window="1h", epsilon=1, keys=100, time_unit="ms"),
        dpsw.view(items, users=items, window=5_000, epsilon=2, keys=100, per_user=2),
        dpsw.view(items, window=5_000, epsilon=1, keys="found"),
    ]
    for view in views:
        judge_laplace(view.plan)
        assert view.about.epsilon is not None and view.about.delta is not None
        assert view.plan.epsilon <= view.about.epsilon and view.plan.delta <= view.about.delta
    judge_keys(views[-1].plan)


def test_the_plans_with_laplace_noise_are_of_all_kinds() -> None:
    plans = [dpsw.plan(**said) for said in LAPLACE]
    assert any(len(plan.noise) == 1 for plan in plans)
    assert any(len({noise.scale for noise in plan.noise}) == 1 < len(plan.noise) for plan in plans), "several levels"
    assert any(1 < len({noise.scale for noise in plan.noise}) for plan in plans), "pinned keys"
    assert {"replace-one", "add-remove", "users"} == {plan.unit for plan in plans}


@pytest.mark.parametrize("said", LAPLACE, ids=str)
def test_slices_of_a_level_do_not_overlap(said: dict[str, Any]) -> None:
    """So that an event whose item has a level counts once: over each offset there is one slice of each length."""
    plan = dpsw.plan(**said)
    own = [noise for noise in plan.noise if noise.scale == plan.noise[-1].scale]
    for over in at_one_offset(replace(plan, noise=tuple(own))):
        lengths = [noise.end - noise.start for noise in over]  # type: ignore[operator]
        assert len(set(lengths)) == len(lengths)
    whole = 0 if isinstance(plan.substream, int) else timedelta()
    assert (plan.noise[0].start, plan.noise[0].end) == (whole, plan.substream)


def laplace_pld(noise: dpsw.Noise, shift: int, counters: int) -> pld.PrivacyLossDistribution:
    """Of so many counters that move by ``shift``. Losses are multiples of 1 / scale: steps a little above it round none up."""
    assert noise.scale is not None
    step = float(1 / noise.scale) * (1 + 1e-12)
    one = pld.from_discrete_laplace_mechanism(float(1 / noise.scale), shift, value_discretization_interval=step)
    return one.self_compose(counters)


@pytest.mark.parametrize("said", [said for said in LAPLACE if said.get("keys") != "asked"], ids=str)
def test_the_loss_of_a_laplace_plan_reaches_epsilon_and_not_more(said: dict[str, Any]) -> None:
    plan = dpsw.plan(**said)
    shift, counters = plan.per_user or 1, counters_moved(plan) * substreams_touched(plan)
    for noise in {noise.scale: noise for noise in plan.noise}.values():
        loss = laplace_pld(noise, shift, counters * noise.rows)
        assert loss.get_delta_for_epsilon(plan.epsilon * (1 + 1e-9)) <= ROUNDING
        # All counters lose the most at once with this probability: then a claim of 1 % less has the delta below.
        side = 1 / (1 + math.exp(-1 / noise.scale))
        below = side ** (counters * noise.rows) * -math.expm1(-0.01 * plan.epsilon)
        assert loss.get_delta_for_epsilon(0.99 * plan.epsilon) >= 0.99 * below > 2 * ROUNDING


# Gaussian noise


def exact_delta(variance: float, shift: int, counters: int, epsilon: float) -> float:
    """Of so many counters that move by ``shift``: the law of the sum of their noise, by the transform of the law of one."""
    reach = math.ceil(14 * math.sqrt(variance))
    weights = numpy.exp(-(numpy.arange(-reach, reach + 1) ** 2) / (2 * variance))
    size = next_fast_len(2 * reach * counters + 1)
    law = irfft(rfft(weights / weights.sum(), size) ** counters, size)[: 2 * reach * counters + 1]
    noise = numpy.arange(len(law)) - reach * counters
    loss = (2 * shift * noise + counters * shift**2) / (2 * variance)
    return float(-(law * numpy.expm1(numpy.minimum(epsilon - loss, 0))).sum())


def gaussian_pld(variance: float, counters: int, step: float, *, over: bool = True) -> pld.PrivacyLossDistribution:
    """Of so many counters that move by one; ``over`` rounds losses up to multiples of the step, else they are rounded down."""
    one = pld.from_discrete_gaussian_mechanism(
        math.sqrt(variance), 1, value_discretization_interval=step, pessimistic_estimate=over
    )
    return one.self_compose(counters)


def judge_gaussian(plan: dpsw.Plan) -> None:
    (noise,) = plan.noise
    assert noise.law == "discrete Gaussian"
    counters = counters_moved(plan) * noise.rows * substreams_touched(plan)
    epsilon, claimed = (float(part) for part in of_sketches(plan))
    exact = exact_delta(noise.variance, plan.per_user or 1, counters, epsilon)
    assert exact <= claimed
    if plan.per_user in (None, 1):
        # The variance is the smallest integer that does with delta (1 - 1e-6): one less is too little.
        assert claimed * (1 - 2e-6) <= exact_delta(noise.variance - 1, 1, counters, epsilon)
        # Rounding may move the loss of all counters by a thousandth of epsilon; delta falls with about its 25th power.
        step = min(0.1 / (2 * noise.variance), 1e-3 * epsilon / counters)
        losses = (gaussian_pld(noise.variance, counters, step, over=over) for over in (False, True))
        below, above = (loss.get_delta_for_epsilon(epsilon) for loss in losses)
        assert below <= exact * (1 + 1e-6) and exact <= above * (1 + 1e-6) and above <= 1.1 * below
    else:
        # Counters that move by more than one are calibrated by zCDP: nothing is lost but what its conversion loses. Epsilon goes
        # with the root of the variance, which is rounded up by 0.02 % here at most.
        assert epsilon == pytest.approx(zcdp_epsilon(zcdp(plan, plan.noise), claimed), rel=1e-3)


def zcdp(plan: dpsw.Plan, ranges: Any) -> float:
    """Of ranges that an event touches together: half of the squared changes over the variance, added up."""
    squares = counters_moved(plan) * substreams_touched(plan) * (plan.per_user or 1) ** 2
    return sum(noise.rows * squares / (2 * noise.variance) for noise in ranges)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """By dp-accounting's accountant of Renyi divergences."""
    accountant = RdpAccountant(orders=1 + numpy.geomspace(1e-2, 1e4, 3000))
    return float(accountant.compose(ZCDpEvent(rho)).get_epsilon(delta))


def users(window: int, epsilon: float, per_user: int, **more: Any) -> dict[str, Any]:
    return {"window": window, "epsilon": epsilon, "keys": 1000, "delta": 1e-6, "unit": "users", "per_user": per_user} | more


GAUSSIAN: list[dict[str, Any]] = [
    users(10_000, 0.5, 1),
    users(100_000, 1, 1),
    users(1_000_000, 4, 1, memory="20KB"),
    users(10_000, 1, 1, keys=50_000, memory="20KB"),
    users(10_000, 10, 1, keys=50_000, memory="20KB"),
    users(100_000, 0.5, 1, keys=50_000, memory="20KB", delta=1e-8),
    users(10_000, 1, 1, keys="found"),
    users(10_000, 0.5, 3),
    users(100_000, 4, 3, keys=50_000, memory="20KB"),
    users(100_000, 1, 20),
    users(100_000, 10, 20, keys=50_000, memory="20KB", delta=1e-8),
    users(10_000, 1, 3, keys="found"),
]


@pytest.mark.parametrize("said", GAUSSIAN, ids=str)
def test_a_gaussian_plan_costs_what_it_claims(said: dict[str, Any]) -> None:
    plan = dpsw.plan(**said)
    judge_gaussian(plan)
    assert is_within(plan, said)


# The paper's method


def paper_epsilon(rho: float, delta: float) -> float:
    """The conversion that is printed in the paper."""
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def gauss_epsilon(mu: float, delta: float) -> float:
    """Of continuous Gaussian noise, exactly (Balle and Wang 2018)."""

    def excess(epsilon: float) -> float:
        return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu)) - delta

    return float(brentq(excess, 0, 100 + mu * mu))


def paper_loss(plan: dpsw.Plan, over: list[dpsw.Noise]) -> pld.PrivacyLossDistribution:
    """Of all ranges over an offset. Every counter's loss is rounded up to 1e-5 at most."""
    losses = [gaussian_pld(noise.variance, counters_moved(plan) * noise.rows, 1e-5) for noise in over]
    whole = losses[0]
    for loss in losses[1:]:
        whole = whole.compose(loss)
    return whole


def judge_paper(plan: dpsw.Plan) -> None:
    assert {noise.law for noise in plan.noise} == {"discrete Gaussian"}
    dearest = max(at_one_offset(plan), key=lambda over: zcdp(plan, over))
    epsilon, delta = (float(part) for part in of_sketches(plan))
    rho = zcdp(plan, dearest)
    # It claims the paper's conversion of the ranges over the dearest offset, and nothing else.
    assert epsilon == pytest.approx(paper_epsilon(rho, delta), rel=1e-9)
    recalculated = paper_loss(plan, dearest).get_epsilon_for_delta(delta)
    assert recalculated <= epsilon
    # The conversion is loose and we keep to it; the loss itself is that of a Gaussian, but for rounding up: at most 1e-5 for
    # each of the counters.
    counters = counters_moved(plan) * sum(noise.rows for noise in dearest)
    exact = gauss_epsilon(math.sqrt(2 * rho), delta)
    assert 0.998 * exact <= recalculated <= 1.002 * exact + 1e-5 * counters
    # How loose: sqrt(2 ln(1/delta)) over the quantile of delta at most, and 1.35 for all that is asked here.
    assert epsilon <= 1.35 * exact


def paper(epsilon: float, delta: float = 1e-7, /, **said: Any) -> dict[str, Any]:
    window = said.pop("plan", {"window": 100_000, "keys": 1000})
    return window | {"epsilon": epsilon, "delta": delta, "paper": dpsw.Paper(**said)}


# The two longest prefixes and suffixes overlap in the middle, where most is spent.
OVERLAPPING = (0.2, 0.19, 0.19, *[0.005] * 5)
PAPER: list[dict[str, Any]] = [
    paper(1),
    paper(0.3, rows=2, columns=500),
    paper(4, substreams=5),
    paper(1, 1e-9, alpha=0.5),
    paper(1, alpha=0.25, shares=OVERLAPPING),
    paper(2, shares=(0.8, 0.1, 0.1)),
    paper(1, zeta=0.01, eta=0.05),
    paper(1, plan={"window": 100_000}),
    paper(1, plan=HOUR | {"keys": 1000, "unit": "add-remove"}),
]


@pytest.mark.parametrize("said", PAPER, ids=str)
def test_a_plan_of_the_paper_costs_what_it_claims(said: dict[str, Any]) -> None:
    plan = dpsw.plan(**said)
    judge_paper(plan)
    assert is_within(plan, said)
    if plan.search is not None:
        judge_keys(plan)


def test_prefixes_and_suffixes_of_the_paper_that_overlap_are_charged_together() -> None:
    plan = dpsw.plan(**paper(1, alpha=0.25, shares=OVERLAPPING))
    dearest = max(at_one_offset(plan), key=lambda over: zcdp(plan, over))
    assert 2 <= sum(noise.start == 0 and noise.end != plan.substream for noise in dearest)
    assert 2 <= sum(noise.start != 0 for noise in dearest)


# Found keys


def outcomes(search: dpsw.Search, counts: list[int]) -> numpy.ndarray[Any, Any]:
    """The probability of each check to let a key out that has these counts, less three, at the checks; last that of none."""
    stay = math.exp(-1 / search.lasting_scale)
    lasting = numpy.arange(max(max(counts), 1))
    left = stay**lasting * (1 - stay)
    law = numpy.zeros(len(counts) + 1)
    for check, count in enumerate(counts):
        above = count - lasting
        fresh = numpy.exp(-numpy.maximum(search.threshold - above, 0) / float(search.fresh_scale))
        out = left * numpy.where(1 <= above, fresh, 0)
        law[check], left = out.sum(), left - out
    law[-1] = left.sum() + stay ** len(lasting)
    return law


def both(one: numpy.ndarray[Any, Any], other: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """The law of two independent outcomes."""
    return numpy.outer(one, other).ravel()


def excess(one: numpy.ndarray[Any, Any], other: numpy.ndarray[Any, Any], epsilon: float) -> float:
    """The smallest delta for these two laws."""
    return float(numpy.maximum(one - math.exp(epsilon) * other, 0).sum())


def sketch_laws(plan: dpsw.Plan) -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
    """How many of the counters that an event moves lean to the stream in which they are larger, in either stream."""
    noise = max(plan.noise, key=lambda noise: noise.rows / noise.scale)  # type: ignore[operator]
    side = 1 / (1 + math.exp(-1 / noise.scale))  # type: ignore[operator]
    counters = counters_moved(plan) * noise.rows
    ways = [math.comb(counters, lean) for lean in range(counters + 1)]
    law = numpy.array([way * side**lean * (1 - side) ** (counters - lean) for lean, way in enumerate(ways)])
    return law, law[::-1]


def path_pairs(search: dpsw.Search) -> list[tuple[list[int], list[int]]]:
    """Counts of a key at the checks, and the same with an event more from some check on."""
    rng = numpy.random.default_rng(7)
    worst = [([0] * search.checks, [1] * search.checks)]
    scale, near = float(search.lasting_scale), search.threshold
    for _ in range(40):
        steps = rng.poisson((near + scale) / search.checks * rng.exponential(), search.checks)
        counts = numpy.maximum(numpy.cumsum(steps) - 3, 0)
        more = counts + (rng.integers(search.checks) <= numpy.arange(search.checks))
        worst.append((counts.tolist(), more.tolist()))
    return worst


def key_deltas(plan: dpsw.Plan) -> list[float]:
    """Delta at the claimed epsilon of an event that moves from one key to another, with what Laplace sketches show of it. Others
    have a delta of their own: then keys are alone, at their epsilon."""
    assert plan.search is not None
    is_pure = plan.noise[0].scale is not None
    epsilon = plan.epsilon if is_pure else float(of_search(plan)[0])
    pairs = [tuple(outcomes(plan.search, path) for path in pair) for pair in path_pairs(plan.search)]
    one, other = sketch_laws(plan) if is_pure else (numpy.ones(1), numpy.ones(1))
    deltas = []
    for (before, after), (lost, kept) in itertools.product(pairs[:8], pairs[:8]):
        first, second = both(both(after, lost), one), both(both(before, kept), other)
        deltas += [excess(first, second, epsilon), excess(second, first, epsilon)]
    for before, after in pairs:
        deltas += [excess(after, before, 1 / plan.search.fresh_scale), excess(before, after, 1 / plan.search.lasting_scale)]
    return deltas


def judge_keys(plan: dpsw.Plan) -> None:
    search = plan.search
    assert search is not None
    assert max(key_deltas(plan)) <= search.delta + 1e-15
    # The threshold is the smallest integer that delta allows: a lower one would have exp(1 / fresh scale) times as much.
    assert search.delta <= max(key_deltas(plan)) * math.exp(1 / search.fresh_scale) * (1 + 1e-6)


FOUND: list[dict[str, Any]] = [
    {"window": window, "epsilon": epsilon, "delta": delta}
    for window in (20_000, 300_000)
    for epsilon in (0.5, 1, 4)
    for delta in (1e-6, 1e-10)
] + [
    {"window": 100_000, "epsilon": 1, "kind": "integers"},
    HOUR | {"epsilon": 1, "unit": "add-remove", "delta": 1e-8},
]


@pytest.mark.parametrize("said", FOUND, ids=str)
def test_found_keys_and_sketches_together_cost_what_they_claim(said: dict[str, Any]) -> None:
    plan = dpsw.plan(**said)
    judge_keys(plan)
    judge_laplace(plan)
    assert plan.delta == plan.search.delta and is_within(plan, said)  # type: ignore[union-attr]


@pytest.mark.parametrize("said", FOUND[:3], ids=str)
def test_dp_accounting_finds_the_same_delta_of_found_keys(said: dict[str, Any]) -> None:
    search = dpsw.plan(**said).search
    assert search is not None
    for path, raised in path_pairs(search):
        with numpy.errstate(divide="ignore"):
            before, after = (numpy.log(outcomes(search, counts)) for counts in (path, raised))
        epsilon = float(1 / search.fresh_scale)
        more, less = numpy.exp(after), numpy.exp(before)
        exact = max(excess(more, less, epsilon), excess(less, more, epsilon))
        low, high = (delta_of_laws(before, after, epsilon, over=over) for over in (False, True))
        assert low <= exact * (1 + 1e-6) + 1e-15 and exact <= high * (1 + 1e-6) + 1e-15
        if max(raised) == 1:
            # All that is seen of a key that only one stream lets out is loss without end, which is not rounded.
            assert exact == pytest.approx(high, rel=1e-6)


def delta_of_laws(lower: numpy.ndarray[Any, Any], upper: numpy.ndarray[Any, Any], epsilon: float, *, over: bool) -> float:
    """The larger one of both directions, of logarithms of probabilities; losses are rounded up or down to 1e-6."""
    laws = [{place: float(log) for place, log in enumerate(law) if -math.inf < log} for law in (lower, upper)]
    loss = pld.from_two_probability_mass_functions(
        *laws, pessimistic_estimate=over, value_discretization_interval=1e-6, symmetric=False
    )
    return float(loss.get_delta_for_epsilon(epsilon))


def group_delta(plan: dpsw.Plan) -> float:
    """Of all events of a user, one after the other: each has its part of epsilon and the delta of one event."""
    search = plan.search
    assert search is not None
    alone = search.checks * -math.expm1(-1 / search.lasting_scale) * math.exp(-(search.threshold - 1) / search.fresh_scale)
    each = plan.epsilon / events(plan)
    return alone * math.expm1(plan.epsilon) / math.expm1(each)


def judge_group(plan: dpsw.Plan) -> None:
    search = plan.search
    assert search is not None
    assert group_delta(plan) <= search.delta <= group_delta(plan) * math.exp(1 / search.fresh_scale) * (1 + 1e-6)
    epsilon, _ = of_search(plan)
    for path, _ in path_pairs(search):
        for extra in (1, events(plan)):
            more, less = (outcomes(search, counts) for counts in ([count + extra for count in path], path))
            assert max(excess(more, less, float(epsilon)), excess(less, more, float(epsilon))) <= search.delta


FOUND_BY_USERS: list[dict[str, Any]] = [
    users(100_000, 2, 1, keys="found", delta=1e-10),
    users(100_000, 4, 3, keys="found", delta=1e-10),
    users(10_000, 1, 1, keys="found"),
    users(10_000, 1, 3, keys="found"),
]


@pytest.mark.parametrize("said", FOUND_BY_USERS, ids=str)
def test_found_keys_protect_all_that_a_user_sends(said: dict[str, Any]) -> None:
    plan = dpsw.plan(**said)
    judge_group(plan)
    (judge_gaussian if plan.noise[0].scale is None else judge_laplace)(plan)
    assert is_within(plan, said)


# Claims that are wrong


def with_noise(plan: dpsw.Plan, factor: Fraction) -> dpsw.Plan:
    """The same claim with other noise."""

    def other(noise: dpsw.Noise) -> dpsw.Noise:
        if noise.scale is not None:
            return replace(noise, scale=noise.scale * factor, variance=laplace_variance(noise.scale * factor))
        return replace(noise, variance=noise.variance * float(factor))

    return replace(plan, noise=tuple(other(noise) for noise in plan.noise))


@pytest.mark.parametrize(
    ("judge", "said"),
    [(judge_laplace, LAPLACE[0]), (judge_laplace, LAPLACE[-4]), (judge_paper, PAPER[0])]
    + [(judge_gaussian, GAUSSIAN[0]), (judge_gaussian, GAUSSIAN[7])],
    ids=str,
)
@pytest.mark.parametrize("factor", [Fraction(98, 100), Fraction(102, 100)], ids=str)
def test_two_percent_less_or_more_noise_is_seen(judge: Any, said: dict[str, Any], factor: Fraction) -> None:
    plan = dpsw.plan(**said)
    judge(plan)
    with pytest.raises(AssertionError):
        judge(with_noise(plan, factor))


@pytest.mark.parametrize(("judge", "said"), [(judge_keys, FOUND[0]), (judge_group, FOUND_BY_USERS[0])], ids=str)
def test_a_threshold_or_scale_that_is_wrong_is_seen(judge: Any, said: dict[str, Any]) -> None:
    plan = dpsw.plan(**said)
    search = plan.search
    assert search is not None
    far = 2 + math.ceil(search.fresh_scale)
    for wrong in (
        replace(search, threshold=search.threshold - 1),
        replace(search, threshold=search.threshold + far),
        replace(search, fresh_scale=search.fresh_scale * Fraction(11, 10)),
        replace(search, checks=2 * search.checks),
    ):
        with pytest.raises(AssertionError):
            judge(replace(plan, search=wrong))
