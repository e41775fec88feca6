"""CarbonScaler on an elastic n-body simulation that may take 36 hours for 24 hours of work.

Hanafy, Liang, Bashir, Irwin, Shenoy, "CarbonScaler: Leveraging Cloud Workload Elasticity for
Optimizing Carbon-Efficiency", Proc. ACM Meas. Anal. Comput. Syst. 7(3), 2023; code
umassos/CarbonScaler. The paper saves 51 % against running at once, 37 % against suspend-resume and
8 % against the best static size, on intensities that are not available. Here its profile nbody100k
runs on 363 days of 2023 in Ontario and in Germany. The figures to reproduce come from other code
that ran the same protocol before. The greedy algorithm is the policies' own; a job of one size
that may pause is the greedy algorithm with only that size.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from greensched_core.errors import BadInput
from greensched_policies.costs.carbon_scaler import carbon_scaler
from greensched_policies.costs.cost import Floats
from greensched_simulator.formats.trace_rows import read_table, refusal, require_columns, rows_of
from greensched_simulator.reproductions.gaia import read_column
from greensched_simulator.reproductions.tables import ComparedLine

NEEDS_DATA = True
TITLE = "CarbonScaler, nbody100k in 2023 (after Hanafy et al., 2023; published: by other code)"
FIRST_HOUR = 17_520  # row of the carbon files: 2023-01-01 00:00 UTC
STARTS = 363  # a day apart
WORK_H, DEADLINE_H = 24, 36  # hours on one node, hours from the start

TOLERANCE = 0.05  # percentage points: all digits of the known figures
BASELINES = ("agnostic", "suspend-resume", "best static size", "best static size of each job")
SAVED = {"CA-ON": (47.9, 34.4, 3.1, 1.2), "DE-LU": (25.0, 16.0, 1.1, 0.5)}  # %
BEST_STATIC = {"CA-ON": 4, "DE-LU": 3}  # nodes


class ScalingProfile(NamedTuple):
    """Throughput and power of an elastic job on 1, 2, … nodes, [K]."""

    work_per_h: Floats  # iterations
    power_w: Floats  # of all its nodes

    def only(self, nodes: int) -> "ScalingProfile":
        """Return the profile of the same job with either `nodes` nodes or none."""
        return ScalingProfile(*(column[nodes - 1 : nodes] for column in self))


def reproduce(data: Path) -> list[ComparedLine]:
    """Return the known figures and ours; raise BadInput if a file cannot be read."""
    profile = read_profile(data / "carbonscaler-profiles" / "nbody100k.csv")
    return [line for zone in SAVED for line in _lines(zone, read_windows(data, zone), profile)]


def _lines(zone: str, carbon_g_per_kwh: Floats, profile: ScalingProfile) -> Iterator[ComparedLine]:
    work = WORK_H * float(profile.work_per_h[0])
    scaled = emitted_g(carbon_g_per_kwh, profile, work).sum()
    sizes = range(1, profile.work_per_h.size + 1)
    static = np.array([emitted_g(carbon_g_per_kwh, profile.only(k), work) for k in sizes])
    best = int(np.argmin(static.sum(axis=1)))
    agnostic = emitted_g(carbon_g_per_kwh[:, :WORK_H], profile.only(1), work)
    bills = agnostic, static[0], static[best], static.min(axis=0)
    for name, bill, theirs in zip(BASELINES, bills, SAVED[zone], strict=True):
        saved = 100.0 * (1.0 - float(scaled / bill.sum()))
        yield ComparedLine(f"{zone} against {name}", "saving, %", theirs, saved, TOLERANCE)
    yield ComparedLine(f"{zone} best static size", "nodes", BEST_STATIC[zone], best + 1, 0.0)


def emitted_g(carbon_g_per_kwh: Floats, profile: ScalingProfile, work: float) -> Floats:
    """Return the grams that each job emits under the greedy algorithm, [B] of hours [B,S].

    Raises BadInput if a job cannot be done within its hours.
    """
    wanted = np.full(carbon_g_per_kwh.shape[0], work)
    share = carbon_scaler(carbon_g_per_kwh, *profile, wanted)
    done = share.sum(axis=1) @ np.diff(profile.work_per_h, prepend=0.0)
    if not np.allclose(done, work):
        raise BadInput(f"{work:g} of work cannot be done within {carbon_g_per_kwh.shape[1]} h")
    power_w = share @ np.diff(profile.power_w, prepend=0.0)
    grams: Floats = (power_w * carbon_g_per_kwh).sum(axis=1) / 1000.0
    return grams


def read_windows(data: Path, zone: str) -> Floats:
    """Return the hours that each job may use, [363,36] g/kWh."""
    first = FIRST_HOUR + 24 * np.arange(STARTS)
    found: Floats = read_column(data, zone)[first[:, None] + np.arange(DEADLINE_H)]
    return found


def read_profile(path: Path) -> ScalingProfile:
    """Return the profile in CarbonScaler's file; raise BadInput that lists faulty rows."""
    table = read_table(path)
    require_columns(table, ("nodes", "throughput", "power"))
    figures, faults = [], []
    for place, row in enumerate(rows_of(table)):
        if row.whole("nodes") != place:
            row.fault(f"nodes is {row.text('nodes')}, not {place}: they count up from 0")
        figures.append((row.figure("throughput", at_least=0), row.figure("power", at_least=0)))
        faults.extend(row.faults)
    if faults:
        raise refusal(path, faults, "correct the file")
    if len(figures) < 2:
        raise BadInput(f"{path} has no row for one node: a profile has rows for 0, 1, … nodes")
    return ScalingProfile(*np.array(figures[1:]).T)
