"""`make bench-when`: deadlines missed and carbon of the default policy beside every `when` rule.

With `--policy FILE` it is another GreenPolicy, and the figures go into a file of its name.

The scenarios are those of the gallery, and published traces on real grids at five loads, all with
estimates of runtimes that are off by 20 % and forecasts that are off by 10 %. All policies place
work alike. Prints a table per scenario, and writes build/bench/when.json.
"""

import argparse
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.baselines import DATA, GALLERY, results_of
from benchmarks.bench_cluster import machine
from benchmarks.command_line import DEFAULT_POLICY, parse, result_file, write_json
from greensched_policies.rules.names import WHEN_NAMES
from greensched_simulator.policy import BASELINE, GREEN_POLICY, Policy, policy_named
from greensched_simulator.results.cells import ConfidenceInterval
from greensched_simulator.results.comparison import (
    CARBON,
    COST,
    Results,
    confidence_interval,
    difference,
    does_less,
)
from greensched_simulator.runs.outcome import Outcome
from greensched_simulator.scenario.file import read_document
from greensched_simulator.scenario.model import Scenario
from greensched_simulator.world.scenario_loading import parse_scenario

ON_REAL_GRIDS = "pai-on-real-grids"  # its cluster and slack are those of all traces
THRESHOLD = "clean-threshold"
APART = "failing-nodes"  # no policy can know when a node fails
LOADS = (0.6, 0.7, 0.8, 0.9, 0.95)
_MODERATE = 0.8  # the highest load at which deadlines can be promised
_ESTIMATE_ERROR, _FORECAST_ERROR = 0.2, 0.1
_SEEDS = 5
_SMALLEST = {"scenarios": ["one-solar-grid"], "rules": [], "seeds": 2}


class RealTrace(NamedTuple):
    """A published trace, and the grids and the week on which it is played."""

    file: str
    zones: tuple[str, str]
    start: str


# Two zones each, whose clean hours lie apart; no week is another's.
TRACES = {
    "pai": RealTrace("pai-70k", ("DE-LU", "US-CAL-CISO"), "2023-06-05"),
    "azure": RealTrace("azure-70k", ("AU-NSW", "US-TEX-ERCO"), "2023-01-16"),
    "mustang": RealTrace("mustang-trace-2015-70k", ("DE-LU", "AU-NSW"), "2023-10-02"),
}
_CURRENCIES = {"DE-LU": "EUR", "US-CAL-CISO": "USD", "US-TEX-ERCO": "USD", "AU-NSW": "AUD"}
_EXCHANGE_RATES = {"USD": 0.92, "AUD": 0.61}  # EUR, mean of 2023 (European Central Bank), rounded


class Case(NamedTuple):
    """A scenario, and the mean load that it asks for; None if it asks for a number of jobs."""

    scenario: Scenario
    load: float | None


def main() -> None:
    """Run every case, with `--smallest` one of them, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenarios", nargs="*", help="only these, such as one-solar-grid pai-0.8")
    parser.add_argument("--rules", nargs="*", help=f"only these, beside {THRESHOLD}")
    parser.add_argument("--seeds", type=int)
    parser.add_argument(
        "--policy", type=Path, help="a file of another GreenPolicy than the default"
    )
    parser.set_defaults(rules=WHEN_NAMES, seeds=_SEEDS, policy=DEFAULT_POLICY)
    given = parse(parser, _SMALLEST)
    warnings.simplefilter("ignore")
    os.environ.setdefault("GREENSCHED_DATA", str(DATA))
    named = [GREEN_POLICY, BASELINE, *dict.fromkeys((THRESHOLD, *given.rules))]
    policies = [policy_named(each) for each in named]
    found: dict[str, dict[str, Any]] = {}
    for name, case in cases(given.scenarios, given.policy.resolve()):
        found[name] = _row(case, results_of(name, case.scenario, policies, given.seeds))
        _print(name, found[name])
    figures: dict[str, Any] = {"machine": machine(), "seeds": given.seeds, "scenarios": found}
    totals = summary(found)
    figures |= totals
    print()
    for key, value in totals.items():
        print(f"{key}: {value:.2f}" if isinstance(value, float) else f"{key}: {value}")
    is_default = given.policy == DEFAULT_POLICY
    figures["policy"] = given.policy.name
    name = "when" if is_default else f"when-{given.policy.stem}"
    write_json(result_file(name, given), figures)


def cases(
    only: Sequence[str] | None = None, policy: Path = DEFAULT_POLICY
) -> Iterator[tuple[str, Case]]:
    """Yield the scenarios of the gallery and the traces, or those of these names."""
    documents = dict(_documents(policy))
    if unknown := sorted({*(only or ())} - documents.keys()):
        known = ", ".join(documents)
        raise SystemExit(f"there is no scenario {', '.join(unknown)}; known: {known}")
    for name, content in documents.items():
        if only is None or name in only:
            load = content["workload"].get("load")
            yield name, Case(parse_scenario(content, GALLERY, os.environ), load)


def _documents(policy: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the content of each scenario, with the policy and errors of estimates."""
    for file in sorted(GALLERY.glob("*.yaml")):
        if file.stem != ON_REAL_GRIDS:
            yield file.stem, _with_errors(read_document(file).content, policy)
    for name, trace in TRACES.items():
        for load in LOADS:
            yield f"{name}-{load:g}", _with_errors(_on_real_grids(trace, load), policy)


def _on_real_grids(trace: RealTrace, load: float) -> dict[str, Any]:
    content = read_document(GALLERY / f"{ON_REAL_GRIDS}.yaml").content
    content["start"] = f"{trace.start}T00:00:00Z"
    content["exchange_rates"] = _EXCHANGE_RATES
    content["grids"] = {zone: _real_grid(zone) for zone in trace.zones}
    for nodes, zone in zip(content["cluster"]["nodes"], trace.zones, strict=True):
        nodes["zone"] = zone
    content["workload"] |= {
        "trace": {"file": f"${{GREENSCHED_DATA}}/gaia-cluster-traces/{trace.file}.csv.gz"},
        "load": load,
    }
    return content


def _real_grid(zone: str) -> dict[str, Any]:
    currency, time_column = _CURRENCIES[zone], "datetime_utc"
    carbon = f"${{GREENSCHED_DATA}}/sustain-cluster-carbon/{zone}_2021-2023_hourly.csv.gz"
    price = f"${{GREENSCHED_DATA}}/sustain-cluster-prices/{zone}_2020-2023_hourly.csv.gz"
    return {
        "carbon": {"file": carbon, "time_column": time_column, "column": "ci_lca_g_per_kwh"},
        "price": {
            "file": price,
            "time_column": time_column,
            "column": f"price_{currency.lower()}_per_mwh",
            "unit": f"{currency}/MWh",
        },
    }


def _with_errors(content: dict[str, Any], policy: Path) -> dict[str, Any]:
    content["green_policy"] = str(policy)
    content["workload"]["estimate_error"] = _ESTIMATE_ERROR
    for grid in content["grids"].values():
        grid["forecast_error"] = _FORECAST_ERROR
    return content


def _row(case: Case, results: Results) -> dict[str, Any]:
    """Return the figures of a scenario: of each policy, and of the default against a rule."""
    rows = {policy.label: _policy_row(results, policy) for policy in results.policies}
    outcomes = results.outcomes[results.policies[0]]
    rules = [policy for policy in results.policies[1:] if policy.label in WHEN_NAMES]
    return {
        "load": case.load,
        "jobs": float(np.mean([outcome.jobs for outcome in outcomes])),
        "policies": rows,
        "carbon_against_pct": {each.when: _as_json(_change(results, each)) for each in rules},
        "unequal_work": [each.when for each in rules if _differ_in_work(results, each)],
    }


def _policy_row(results: Results, policy: Policy) -> dict[str, Any]:
    outcomes = results.outcomes[policy]
    row: dict[str, Any] = {
        "missed_pct": float(np.mean([missed_pct(each) for each in outcomes])),
        "wait_mean_h": float(np.mean([each.wait_mean_s for each in outcomes])) / 3600.0,
        "does_less": does_less(results, policy),
    }
    for name, figure in (("carbon_pct", CARBON), ("cost_pct", COST)):
        row[name] = difference(figure, results, policy).percent.mean
    return row


def missed_pct(outcome: Outcome) -> float:
    """Return the share of deadlines that were missed; 0 without deadlines."""
    missed = outcome.deadlines - outcome.deadlines_met
    return 100.0 * missed / outcome.deadlines if outcome.deadlines else 0.0


def _change(results: Results, rule: Policy) -> ConfidenceInterval:
    """Return the change of carbon by the default policy against a rule, in %."""
    against = results._replace(baseline=rule)
    return difference(CARBON, against, results.policies[0]).percent


def _differ_in_work(results: Results, rule: Policy) -> bool:
    """Return whether the default policy or a rule did less work than the other."""
    default = results.policies[0]
    pairs = ((default, rule), (rule, default))
    return any(does_less(results._replace(baseline=base), less) for less, base in pairs)


def summary(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures over all scenarios but the one that is apart.

    The interval is over scenarios: how much they vary, each being the mean of its seeds. Carbon is
    compared only where both did the same work.
    """
    default, baseline = policy_named(GREEN_POLICY).label, policy_named(BASELINE).label
    missed, above, changes = {"none": 0.0}, {"none": 0.0}, dict[str, float]()
    apart = [APART] if APART in found else []
    for name, row in found.items():
        if name == APART:
            continue
        own = row["policies"][default]["missed_pct"]
        if (row["load"] or 0.0) > _MODERATE:
            above[name] = own - row["policies"][baseline]["missed_pct"]
        else:
            missed[name] = own
        if THRESHOLD in row["unequal_work"]:
            apart.append(name)
        else:
            changes[name] = row["carbon_against_pct"][THRESHOLD]["mean"]
    mean = confidence_interval(np.array(list(changes.values()) or [np.nan]))
    worst = max(changes, key=lambda name: changes[name], default="")
    return {
        "miss_pct": max(missed.values()),
        "miss_worst_scenario": max(missed, key=lambda name: missed[name]),
        "miss_above_run_now_points": max(above.values()),
        "miss_above_worst_scenario": max(above, key=lambda name: above[name]),
        "carbon_vs_threshold_worst_pct": max(changes.values(), default=float("nan")),
        "carbon_vs_threshold_worst_scenario": worst,
        "carbon_vs_threshold_mean_pct": mean.mean,
        "carbon_vs_threshold_mean_low": mean.low,
        "carbon_vs_threshold_mean_high": mean.high,
        "carbon_vs_threshold_scenarios": len(changes),
        "carbon_not_compared": apart,
    }


def _as_json(change: ConfidenceInterval) -> dict[str, float]:
    return {"mean": change.mean, "low": change.low, "high": change.high}


def _print(name: str, row: Mapping[str, Any]) -> None:
    load = "" if row["load"] is None else f", load {row['load']:g}"
    print(f"\n{name}: {row['jobs']:.0f} jobs{load}", flush=True)
    for policy, of in row["policies"].items():
        less = "  (leaves work undone)" if of["does_less"] else ""
        print(
            f"  {policy:24} missed {of['missed_pct']:6.2f} %  carbon {of['carbon_pct']:+6.1f} %"
            f"  cost {of['cost_pct']:+6.1f} %  wait {of['wait_mean_h']:5.1f} h{less}",
            flush=True,
        )


if __name__ == "__main__":
    main()
