"""Figures that only some scenarios have: requests, failures, panels and batteries."""

import math
from collections.abc import Iterator

from greensched_core.units import kwh_from_joules
from greensched_simulator.results.cells import ResultRow, amount, count, large, short
from greensched_simulator.results.comparison import Results, mean_outcome
from greensched_simulator.runs.outcome import Outcome


def request_rows(outcome: Outcome) -> Iterator[ResultRow]:
    """Yield the figures of services' requests, if there are any."""
    if outcome.requests:
        late = outcome.requests - outcome.requests_in_time
        yield (
            "requests in time",
            f"{in_time(outcome)} % of {count(round(outcome.requests))}, {count(round(late))} late",
        )
        yield "  of these turned away", count(round(outcome.requests_turned_away))
        yield "latency, s: median", latency(outcome.latency_p50_s)
        yield "  99th percentile", latency(outcome.latency_p99_s)


def failure_rows(outcome: Outcome) -> Iterator[ResultRow]:
    """Yield the counts of node failures and stopped jobs, if nodes failed."""
    if outcome.failures:
        yield "failures of nodes", count(outcome.failures)
        yield "  jobs stopped by them", count(outcome.jobs_stopped)


def latency(seconds: float) -> str:
    """Return a latency as text."""
    return "∞" if math.isinf(seconds) else amount(seconds)


def in_time(outcome: Outcome) -> str:
    """Return the percentage of requests in time."""
    return f"{100 * outcome.requests_in_time / outcome.requests:.2f}"


def supplied(outcome: Outcome) -> Iterator[ResultRow]:
    """Yield the energy by source in zones with panels; nothing without panels."""
    if not (outcome.solar_used_j + outcome.solar_stored_j + outcome.solar_curtailed_j):
        return
    rows: list[tuple[str, float]] = [
        ("from panels, kWh", outcome.solar_used_j),
        ("  into the battery", outcome.solar_stored_j),
        ("  curtailed", outcome.solar_curtailed_j),
    ]
    if outcome.solar_stored_j:
        rows += [
            ("from the battery, kWh", outcome.battery_given_j),
            ("  lost in it", outcome.battery_lost_j),
            ("  left in it", outcome.battery_left_j),
        ]
    rows.append(("from the grid in zones with panels, kWh", outcome.imported_j))
    for name, joules in rows:
        yield name, large(kwh_from_joules(joules))


def supply_rows(results: Results) -> list[ResultRow]:
    """Return a head and a line for each policy: energy by source in zones with panels.

    Without panels, only the head.
    """
    rows: list[ResultRow] = [
        ("policy", "panels,\nkWh", "stored", "curtailed", "battery,\nkWh", "lost", "left",
         "grid,\nkWh")
    ]  # fmt: skip
    for policy in results.policies:
        found = mean_outcome(results.outcomes[policy])
        if any(name for name, _ in supplied(found)):
            joules = (
                found.solar_used_j, found.solar_stored_j, found.solar_curtailed_j,
                found.battery_given_j, found.battery_lost_j, found.battery_left_j,
                found.imported_j,
            )  # fmt: skip
            rows.append((policy.label, *(short(kwh_from_joules(each)) for each in joules)))
    return rows
