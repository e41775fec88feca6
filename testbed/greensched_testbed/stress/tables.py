"""Formats the benchmark's figures as rows of text, for the terminal and the page."""

import time
from collections.abc import Callable, Sequence

from greensched_simulator.results.cells import count, short
from greensched_testbed.changes import relative_change_text
from greensched_testbed.stress.amounts import MEANING, METERS, is_estimated
from greensched_testbed.stress.results import LINES, StrategyFigure
from greensched_testbed.stress.run import BenchmarkOutcome

BenchmarkRow = tuple[str, ...]
_UNKNOWN = "–"


def strategy_rows(outcome: BenchmarkOutcome) -> list[BenchmarkRow]:
    """Return a header, and a row per figure: mean, spread over rounds, change to the first."""
    rows: list[BenchmarkRow] = [("", *outcome.figures)]
    for key, line in LINES.items():
        factor, unit = _units(key, outcome.currency)
        shown = count if not unit else short
        title = f"{line.title}, {unit}" if unit else line.title
        cells = (_cell(figures[key], factor, shown) for figures in outcome.figures.values())
        rows.append((title, *cells))
    return rows


def _units(key: str, currency: str) -> tuple[float, str]:
    """Return a figure's factor in a table, and its unit there; "" for a count."""
    if key == "cost":
        return 1_000.0, f"{currency} for 1,000 times"  # a suite takes less than a cent
    return 1.0, LINES[key].unit


def _cell(figure: StrategyFigure, factor: float, shown: Callable[[float], str]) -> str:
    if figure.mean is None or figure.least is None or figure.most is None:
        return _UNKNOWN
    mean, least, most = (shown(each * factor) for each in (figure.mean, figure.least, figure.most))
    text = mean if least == most else f"{mean} ({least} to {most})"
    if figure.change_pct is not None:
        text += f"  {relative_change_text(100.0 + figure.change_pct, 100.0)}"
    return text


def meter_rows(outcome: BenchmarkOutcome) -> list[BenchmarkRow]:
    """Return the mean energy above idle by every meter that measured all runs, in joules."""
    names = list(outcome.figures)
    rows: list[BenchmarkRow] = [("energy above idle, J", *names)]
    for meter in METERS:
        means = []
        for name in names:
            mine = [each for each in outcome.results if each.played.strategy.name == name]
            measured = [each.amounts[meter].energy_j for each in mine if meter in each.amounts]
            known = [energy_j for energy_j in measured if energy_j is not None]
            means.append(short(sum(known) / len(mine)) if len(known) == len(mine) else _UNKNOWN)
        if any(mean != _UNKNOWN for mean in means):
            rows.append((f"{meter}{' (estimated)' if is_estimated(meter) else ''}", *means))
    return rows if len(rows) > 1 else []


def fact_rows(outcome: BenchmarkOutcome) -> list[BenchmarkRow]:
    """Return rows on the cluster, the suite, the meter, and the grid during the runs."""
    cluster, options, suite = outcome.cluster, outcome.options, outcome.suite
    first = min(each.played.started_at for each in outcome.results)
    last = max(each.played.ended_at for each in outcome.results)
    hardware = ", ".join(f"{number} × {name}" for name, number in sorted(cluster.hardware.items()))
    return [
        ("cluster", f"{cluster.url}, Kubernetes {cluster.version}"),
        ("nodes", f"{cluster.nodes} with {cluster.cores:g} cores: {hardware}"),
        *_kwok_rows(outcome),
        ("suite", f"{suite.digest}: {len(suite.jobs)} Jobs of seed {options.suite.seed}"),
        ("rounds", f"{options.rounds}; each strategy begins in turn"),
        ("energy", meter_text(outcome.meter)),
        ("from, to", f"{_moment(first)}, {_moment(last)}"),
        *_grid_rows(outcome),
        *(("note", note) for note in outcome.notes),
    ]  # fmt: skip


def _kwok_rows(outcome: BenchmarkOutcome) -> list[BenchmarkRow]:
    text = "by kwok: no container ran, and runtimes are the expected ones"
    return [("played", text)] if outcome.cluster.is_played else []


def meter_text(meter: str | None) -> str:
    """Return the meter's name and meaning."""
    return "no meter saw all runs: not known" if meter is None else f"{meter}: {MEANING[meter]}"


def _grid_rows(outcome: BenchmarkOutcome) -> list[BenchmarkRow]:
    """Return a row per zone: carbon and price over the starts of the runs, with sources."""
    rows: list[BenchmarkRow] = []
    for zone in outcome.cluster.zones:
        states = [each.played.grid[zone] for each in outcome.results]
        carbon = [each.carbon_g_per_kwh for each in states if each.carbon_g_per_kwh is not None]
        price = [each.price_per_mwh for each in states if each.price_per_mwh is not None]
        sources = ", ".join(dict.fromkeys(each.source for each in states if each.source))
        text = (
            f"{_range(carbon)} g/kWh, {_range(price)} {outcome.currency}/MWh at the starts of the "
            f"runs ({sources or 'unknown source'})"
        )
        rows.append((f"grid {zone}", text))
    return rows or [("grid", "no node's grid zone is known: no carbon and no cost")]


def _range(values: Sequence[float]) -> str:
    if not values:
        return _UNKNOWN
    least, most = min(values), max(values)
    return short(least) if least == most else f"{short(least)} to {short(most)}"


def _moment(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_s))
