"""Figures of runs as rows of text, for terminals and pages.

Work done comes first, then energy, money and carbon, then waits.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain

import numpy as np

from greensched_core.units import SECONDS_PER_HOUR, kwh_from_joules
from greensched_simulator.policy import Policy
from greensched_simulator.results.cells import (
    Cell,
    ConfidenceInterval,
    ResultRow,
    amount,
    change_cell,
    change_text,
    count,
    large,
    short,
    tone_of,
)
from greensched_simulator.results.comparison import (
    CARBON,
    COST,
    ENERGY,
    LATE,
    MARGINAL,
    MISSED,
    NEVER_RAN,
    SLOWDOWN,
    WAIT,
    ComparedFigure,
    Difference,
    Results,
    captured,
    difference,
    does_less,
    mean_outcome,
)
from greensched_simulator.results.completion_tables import completion_lines
from greensched_simulator.results.levers import (
    LEVERS,
    levers_of,
    parts,
    parts_do_less,
    with_all_combinations,
)
from greensched_simulator.results.optional_metrics import (
    failure_rows,
    in_time,
    latency,
    request_rows,
    supplied,
)
from greensched_simulator.runs.outcome import Outcome

HOW_LEVERS = (
    "Change that each lever adds against the baseline: the mean over all orders in which the "
    "levers can be switched on (Shapley values). They add up to the whole change."
)
_HOW_CAPTURED = (
    "Share of the largest possible saving against the baseline, for each of the three by itself. "
    "100 % is the bound: no schedule is below it, and perhaps none reaches it. If any of the "
    "policies caps nodes or suspends jobs, the bound assumes that all work may run at any cap, "
    "or stop at no cost; all shares are then smaller."
)
_REPLICAS = "The bound includes replicas that run under all of these policies."
_FAILURES = "In the bound, no work is lost when nodes fail."
_UNDONE = "In the bound, jobs that one of them never ran may stay undone, for their charge."
_PARTS = ("active", "idle", "sleep", "wake", "transfer", "charged")
COMPARED = (("energy", ENERGY), ("cost", COST), ("carbon", CARBON))
_MARGINAL = ("marginal carbon", MARGINAL)


def outcome_rows(outcome: Outcome, currency: str) -> list[ResultRow]:
    """Return a line for each figure of one run."""
    missed = outcome.deadlines - outcome.deadlines_met
    taken = (_split(name, figures, outcome) for name, figures in _taken(outcome, currency).items())
    return [
        ("jobs done", _of_all(outcome)),
        ("work done, core-h", large(outcome.work_core_h)),
        ("  GPU-h", large(outcome.work_gpu_h)),
        ("  GiB-h of memory", large(outcome.work_memory_gib_h)),
        (
            "deadlines met",
            f"{count(outcome.deadlines_met)} of {count(outcome.deadlines)}, {count(missed)} missed",
        ),
        *chain.from_iterable(taken),
        *supplied(outcome),
        *_not_in_totals(outcome),
        *request_rows(outcome),
        *failure_rows(outcome),
        *completion_lines(outcome),
        ("wait, h: mean", amount(outcome.wait_mean_s / SECONDS_PER_HOUR)),
        ("  95th percentile", amount(outcome.wait_p95_s / SECONDS_PER_HOUR)),
        ("slowdown: mean", amount(outcome.slowdown_mean)),
        ("  95th percentile", amount(outcome.slowdown_p95)),
        ("fairness (Jain, of slowdowns)", amount(outcome.fairness)),
        ("nodes used", count(outcome.nodes_used)),
        ("billed, h", amount(outcome.billed_s / SECONDS_PER_HOUR)),
    ]


def _not_in_totals(outcome: Outcome) -> Iterator[ResultRow]:
    """Yield the known carbon figures that are not in the total."""
    if outcome.carbon_marginal_g:
        yield "marginal carbon, kg", large(_kg(outcome.carbon_marginal_g))
    if outcome.carbon_embodied_g:
        yield "embodied carbon of the nodes, kg", large(_kg(outcome.carbon_embodied_g))


def done_rows(results: Results) -> list[ResultRow]:
    """Return a head and a line for each policy: work done and waits."""
    has_services = _has_services(results)
    rows: list[ResultRow] = [
        ("policy", "jobs\ndone", "work,\ncore-h", "deadlines\nmet", "missed", "wait,\nh",
         "95 %,\nh", "slow-\ndown", "fair-\nness",
         *(("requests\nin time, %", "99 %,\ns") if has_services else ()))
    ]  # fmt: skip
    for policy in results.policies:
        outcome = mean_outcome(results.outcomes[policy])
        waits = (outcome.wait_mean_s / SECONDS_PER_HOUR, outcome.wait_p95_s / SECONDS_PER_HOUR)
        is_all = outcome.jobs_done == outcome.jobs
        rows.append(
            (
                policy.label,
                count(outcome.jobs_done) if is_all else Cell(_of_all(outcome), "worse"),
                short(outcome.work_core_h),
                count(outcome.deadlines_met),
                _lost_cell(results, policy, MISSED),
                *map(short, waits),
                short(outcome.slowdown_mean),
                amount(outcome.fairness),
                *((in_time(outcome), latency(outcome.latency_p99_s)) if has_services else ()),
            )
        )
    return rows


def _has_services(results: Results) -> bool:
    return any(outcome.requests for own in results.outcomes.values() for outcome in own)


def _of_all(outcome: Outcome) -> str:
    return f"{count(outcome.jobs_done)} of {count(outcome.jobs)}"


def taken_rows(results: Results, currency: str) -> list[ResultRow]:
    """Return a head and a line for each policy: energy, money, carbon, active and idle.

    Sleeping, waking, moving data and charges have columns if there are any.
    """
    means = {policy: mean_outcome(results.outcomes[policy]) for policy in results.policies}
    parts = _parts_shown(means.values())
    units = {"energy": "kWh", "cost": currency, "carbon": "kg"}
    names = (f"{each},\n{unit}" for name, unit in units.items() for each in (name, *parts))
    rows: list[ResultRow] = [("policy", *names)]
    for policy, outcome in means.items():
        taken = _taken(outcome, currency).values()
        rows.append(
            (policy.label, *(short(figures[each]) for figures in taken for each in ("", *parts)))
        )
    return rows


def change_rows(results: Results) -> list[ResultRow]:
    """Return a head and a line for each policy: missed deadlines and changes.

    With services, also late requests; if any job never ran, also those.
    """
    compared = _compared(results)
    losses = (*_never_ran(results), ("deadlines\nmissed", MISSED), *_late(results))
    names = (name for name, _ in (*losses, *compared))
    rows: list[ResultRow] = [("policy", *names)]
    for policy in results.policies:
        lost = (_lost_cell(results, policy, figure) for _, figure in losses)
        if policy == results.baseline:
            is_billed = all(outcome.is_billed for outcome in results.outcomes[policy])
            told = "baseline" if is_billed else "no bill"
            rows.append((policy.label, *lost, *(told for _ in compared)))
            continue
        changes = (changed_cell(figure, results, policy) for _, figure in compared)
        rows.append((policy.label, *lost, *changes))
    return rows


def changed_cell(figure: ComparedFigure, results: Results, policy: Policy) -> Cell:
    """Return a figure's change against the baseline; only work done in full makes it better."""
    percent = difference(figure, results, policy).percent
    return change_cell(percent, does_less=does_less(results, policy))


def _never_ran(results: Results) -> tuple[tuple[str, ComparedFigure], ...]:
    every = (outcome for own in results.outcomes.values() for outcome in own)
    some = any(outcome.jobs_never_ran for outcome in every)
    return (("jobs that\nnever ran", NEVER_RAN),) if some else ()


def _late(results: Results) -> tuple[tuple[str, ComparedFigure], ...]:
    return (("requests\nlate", LATE),) if _has_services(results) else ()


def _compared(results: Results) -> tuple[tuple[str, ComparedFigure], ...]:
    """Return the figures whose changes are shown."""
    marginal_g = (outcome.carbon_marginal_g for own in results.outcomes.values() for outcome in own)
    return (*COMPARED, _MARGINAL) if any(marginal_g) else COMPARED


def how_captured(results: Results) -> str:
    """Return the meaning of the shares of `captured_rows`, and what the bounds leave out."""
    every = [outcome for own in results.outcomes.values() for outcome in own]
    remarks = (
        (_REPLICAS, _has_services(results)),
        (_FAILURES, any(outcome.failures for outcome in every)),
        (_UNDONE, any(outcome.energy_charged_j for outcome in every)),
    )
    return " ".join([_HOW_CAPTURED, *(text for text, holds in remarks if holds)])


def captured_rows(results: Results) -> list[ResultRow]:
    """Return a head and a line for each policy: its share of the largest possible saving.

    Without bounds or a baseline, only the head.
    """
    rows: list[ResultRow] = [("policy", *(name for name, _ in COMPARED))]
    if not results.least or results.baseline is None:
        return rows
    for policy in results.policies:
        if policy != results.baseline:
            shares = (captured(figure, results, policy) for _, figure in COMPARED)
            rows.append((policy.label, *map(_share_text, shares)))
    return rows


def _share_text(share: ConfidenceInterval) -> str:
    return "–" if math.isnan(share.mean) else change_text(share).removeprefix("+")


def lever_rows(results: Results) -> list[ResultRow]:
    """Return a head and a line for each policy and figure: each lever's part of the change.

    Only policies with several levers whose combinations were all run have lines.
    """
    policies = with_all_combinations(results)
    of_each = [levers_of(policy, results.baseline) for policy in policies if results.baseline]
    levers = [lever for lever in LEVERS if any(lever in own for own in of_each)]
    rows: list[ResultRow] = [("policy", "of", *levers, "together")]
    for policy in policies:
        less = parts_do_less(results, policy)
        for name, figure in COMPARED:
            found = parts(figure, results, policy)
            cells = (
                change_cell(found[lever], does_less=less) if lever in found else ""
                for lever in levers
            )
            rows.append((policy.label, name, *cells, changed_cell(figure, results, policy)))
    return rows


def losses(results: Results) -> list[str]:
    """Return a sentence for each figure in which policies are worse than the baseline.

    Every policy with a worse mean is named, even if the difference is not significant.
    """
    if results.baseline is None:
        return []
    sentences = []
    for name, figure, in_unit, unit in _lost(results):
        worse = []
        for policy in results.policies:
            found = in_unit(difference(figure, results, policy))
            if found.mean > 0 and amount(found.mean) != amount(0.0):
                worse.append(f"{policy.label} ({_more(found, unit)})")
        if worse:
            sentences.append(f"more {name} than {results.baseline.label}: {', '.join(worse)}")
    return sentences


def _more(found: ConfidenceInterval, unit: str) -> str:
    half = (found.high - found.low) / 2
    shown = f"+{short(found.mean)}"
    return f"{shown}{unit}" if math.isnan(half) else f"{shown} ±{short(half)}{unit}"


_IN_ORDER = (
    "Policies are in the order of their carbon, the least first; those that left work undone are "
    "last."
)


def how_compared(results: Results) -> str:
    """Return a sentence on the meaning of a comparison's changes."""
    assert results.baseline is not None, "there is no baseline"
    seeds = len(results.seeds)
    if seeds == 1:
        return (
            f"Change against {results.baseline.label} with one seed, so without an interval. "
            f"{_IN_ORDER}"
        )
    return (
        f"Change against {results.baseline.label}, paired by seed: mean over {seeds} seeds, ± half "
        "the 95 % interval of that mean (Student's t). It shows how much results vary with the "
        f"seed, not with other clusters or grids. {_IN_ORDER}"
    )


def _hours(found: Difference) -> ConfidenceInterval:
    return ConfidenceInterval(*(each / SECONDS_PER_HOUR for each in found.change))


def _lost(
    results: Results,
) -> Iterator[tuple[str, ComparedFigure, Callable[[Difference], ConfidenceInterval], str]]:
    """Yield name, figure and unit of all figures that a policy may worsen."""
    yield "jobs that never ran", NEVER_RAN, lambda found: found.change, ""
    yield "deadlines missed", MISSED, lambda found: found.change, ""
    for _, figure in _late(results):
        yield "requests late", figure, lambda found: found.change, ""
    for name, figure in _compared(results):
        yield name, figure, lambda found: found.percent, " %"
    yield "wait", WAIT, _hours, " h"
    yield "slowdown", SLOWDOWN, lambda found: found.change, ""


def embodied_text(results: Results) -> str:
    """Return a sentence on the nodes' embodied carbon; empty if it is not known."""
    means = map(mean_outcome, results.outcomes.values())
    grams = next((mean.carbon_embodied_g for mean in means if mean.is_billed), 0.0)
    if not grams:
        return ""
    return (
        f"In addition, the nodes' embodied carbon is {large(_kg(grams))} kg for the time billed, "
        "under any policy."
    )


def _lost_cell(results: Results, policy: Policy, figure: ComparedFigure) -> Cell:
    """Return the mean count of missed deadlines or the like, marked if unlike the baseline's."""
    lost = count(float(np.mean([figure.of(each) for each in results.outcomes[policy]])))
    if results.baseline is None:
        return Cell(lost)
    change = difference(figure, results, policy).change
    return Cell(lost, tone_of(change, does_less=does_less(results, policy)))


def _taken(outcome: Outcome, currency: str) -> dict[str, dict[str, float]]:
    """Return the total, under "", and the parts of energy, cost and carbon, by name."""
    amounts: dict[str, tuple[str, str, Callable[[float], float]]] = {
        "energy, kWh": ("energy", "_j", kwh_from_joules),
        f"cost, {currency}": ("cost", "", float),
        "carbon, kg": ("carbon", "_g", _kg),
    }
    return {
        name: {
            part: shown(getattr(outcome, f"{kind}{part and '_'}{part}{unit}"))
            for part in ("", *_PARTS)
        }
        for name, (kind, unit, shown) in amounts.items()
    }


def _kg(grams: float) -> float:
    return grams / 1e3


def _parts_shown(outcomes: Iterable[Outcome]) -> list[str]:
    """Return the parts to show: active, idle, and all others that are not 0."""
    every = list(outcomes)
    return [
        part
        for part in _PARTS
        if part in ("active", "idle") or any(_has(each, part) for each in every)
    ]


def _has(outcome: Outcome, part: str) -> bool:
    """Return whether a part is not 0; moving data may cost money but no energy."""
    found = (getattr(outcome, f"energy_{part}_j"), getattr(outcome, f"cost_{part}"))
    return any(value and not math.isnan(value) for value in found)


def _split(name: str, figures: Mapping[str, float], outcome: Outcome) -> Iterator[ResultRow]:
    yield name, large(figures[""])
    noun = "job" if outcome.jobs_never_ran == 1 else "jobs"
    names = {
        "active": "above idle",
        "sleep": "asleep",
        "wake": "waking",
        "transfer": "bringing data",
        "charged": f"charged for {count(outcome.jobs_never_ran)} {noun} that never ran",
    }
    for part in _parts_shown([outcome]):
        yield f"  {names.get(part, part)}", large(figures[part])
