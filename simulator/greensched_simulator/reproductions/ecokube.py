"""A saving that comes from the bill alone: EcoKube's comparison, as a check of our own.

EcoKube, TDIS 2026, code Large-scale-Sustainable-Computing-LSC/EcoKube: 45 % less carbon than
Kubernetes' default on eight nodes in NL, FR and DE. There only the baselines are billed at
300 g/kWh and a PUE of 1.18; the policy is billed at the grids of its nodes. Its nodes and jobs are
not available. Ours are synthetic, at the constant intensities that its jobs met. They show the
saving that such a bill reports for equal decisions, whatever these are.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from greensched_policies.billing.accounting import total_bill
from greensched_simulator.policy import policies_named
from greensched_simulator.reproductions.tables import ComparedLine
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import bill_of, billed_until_s, simulate
from greensched_simulator.scenario.model import Scenario
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_simulator.world.world import World, build_world

NEEDS_DATA = False
TITLE = "EcoKube's bill, in a synthetic world of eight nodes (TDIS 2026)"
# Kubernetes without GreenSched, then a rule that considers only carbon.
POLICIES = policies_named("run-now+kubernetes-default, run-now+least-carbon")
ELSEWHERE_G_PER_KWH, ELSEWHERE_PUE = 300.0, 1.18  # at which the baselines are billed
GRIDS_G_PER_KWH = {"NL": 168.5, "FR": 22.1, "DE": 205.5}  # the last values of EcoKube's traces
THREE_GRIDS = {"NL": 3, "FR": 2, "DE": 3}  # nodes
ONE_GRID = {"DE": 8}
PUE = 1.12
# EcoKube's code run again, all nodes on the German grid, 1,000 jobs: emissions of Kubernetes'
# default as billed there, and if billed like the policy.
AS_SHIPPED_G, BILLED_ALIKE_G = 32_417.0, 22_108.0
TOLERANCE = 1.0  # points: these figures include the PUE of sites that are not available


class EcoKubeCase(NamedTuple):
    """A world, and the schedules of the two policies there."""

    world: World
    baseline: Schedule
    carbon_aware: Schedule
    until_s: float  # both are billed until then


def reproduce(data: Path | None = None) -> list[ComparedLine]:
    """Return the saving of equal decisions, which is 0 if both are billed alike; needs no data.

    If the baseline is billed elsewhere, it is the saving that EcoKube's code reports.
    """
    three = case_of(scenario_of(THREE_GRIDS))
    one = case_of(scenario_of(ONE_GRID, ELSEWHERE_PUE))
    alike, apart = "saving, billed alike, %", "saving, baseline billed elsewhere, %"
    theirs = 100.0 * (1.0 - BILLED_ALIKE_G / AS_SHIPPED_G)
    ours = saving_percent(one, one.baseline, billed_elsewhere=True)
    return [
        ComparedLine(
            "equal decisions, NL FR DE", alike, 0.0, saving_percent(three, three.baseline), 0.0
        ),
        ComparedLine("equal decisions, DE", alike, 0.0, saving_percent(one, one.baseline), 0.0),
        ComparedLine("equal decisions, DE", apart, theirs, ours, TOLERANCE),
    ]


def scenario_of(nodes: Mapping[str, int], pue: float = PUE) -> Scenario:
    """Return a synthetic day on equal nodes, `nodes` by zone; 40 % of their cores are requested."""
    machine = {"hardware": "epyc-7763-1s", "cpu_cores": 128, "memory": "512Gi", "pue": pue}
    return parse_scenario({
        "name": "eight-nodes",
        "start": "2025-01-01T00:00:00Z",
        "length": "1d",
        "cluster": {"nodes": [
            {"name": zone.lower(), "count": count, "zone": zone, **machine}
            for zone, count in nodes.items()
        ]},
        "grids": {
            zone: {"carbon": {"constant": GRIDS_G_PER_KWH[zone]},
                   "price": {"constant": 60, "unit": "EUR/MWh"}}
            for zone in nodes
        },
        "workload": {"load": 0.4, "generator": {"cpu_cores": [4, 8, 16]}, "slack": "none"},
    })  # fmt: skip


def case_of(scenario: Scenario) -> EcoKubeCase:
    """Return the schedules of the two policies in a scenario."""
    world = build_world(scenario)
    baseline, carbon_aware = (simulate(world, policy) for policy in POLICIES)
    return EcoKubeCase(world, baseline, carbon_aware, billed_until_s(world, baseline, carbon_aware))


def saving_percent(case: EcoKubeCase, other: Schedule, *, billed_elsewhere: bool = False) -> float:
    """Return a schedule's reported saving against the baseline, which may be billed elsewhere.

    If it is not 0 for the baseline's own schedule, the comparison bills the two differently.
    """
    baselines = elsewhere(case.world) if billed_elsewhere else case.world
    baseline_g = carbon_g(baselines, case.baseline, case.until_s)
    return 100.0 * (1.0 - carbon_g(case.world, other, case.until_s) / baseline_g)


def carbon_g(world: World, schedule: Schedule, until_s: float) -> float:
    """Return the carbon of a schedule, active and idle, as billed in a world."""
    total = total_bill(bill_of(world, schedule, until_s))
    return total.carbon_active_g + total.carbon_idle_g


def elsewhere(world: World) -> World:
    """Return the world with the grid and PUE at which EcoKube's baselines are billed."""
    nodes, grids = world.nodes, world.grids
    return world._replace(
        nodes=nodes._replace(pue=np.full_like(nodes.pue, ELSEWHERE_PUE)),
        grids=grids._replace(
            carbon_g_per_kwh=np.full_like(grids.carbon_g_per_kwh, ELSEWHERE_G_PER_KWH)
        ),
    )
