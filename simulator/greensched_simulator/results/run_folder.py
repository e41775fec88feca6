"""The folder of a run: its scenario, its command, its rows and its outcomes.

Reports read everything from it. All files are written into a folder within it and moved to their
places when the run has ended, `run.json` last: without that file, the run did not end.
"""

import csv
import gzip
import hashlib
import io
import json
import math
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from greensched_core.errors import BadInput
from greensched_policies.learned.card import CARD_FILE
from greensched_simulator.bounds.bound import Least
from greensched_simulator.policy import Policy, policy_named
from greensched_simulator.results.comparison import Results, Round, ranked
from greensched_simulator.results.notes import notes_of_first, without_bill
from greensched_simulator.results.recorded_columns import (
    ALWAYS,
    OF_SERVICES,
    OUTCOMES,
    WHOLE,
    RecordedTable,
)
from greensched_simulator.results.recorded_rows import (
    decision_rows,
    decisions_made,
    grid_rows,
    job_rows,
    node_hour_rows,
    replica_rows,
    service_rows,
)
from greensched_simulator.results.unfinished import Unfinished
from greensched_simulator.runs.outcome import Outcome
from greensched_simulator.scenario.model import CarbonFile, PriceFile, Scenario
from greensched_simulator.scenario.site import SolarFile, TemperatureFile

FORMAT = 1  # of the folder; readers refuse other formats
SUMMARY, SCENARIO = "run.json", "scenario.yaml"
_OUTCOMES = f"{OUTCOMES.name}.csv"
_LIBRARIES = ("greensched", "numba", "numpy", "pyarrow", "scipy")
# 0 means no value here: the scenario does not give it, or there is no service.
_EMPTY_IF_ZERO = {"carbon_marginal_g", "carbon_embodied_g", "latency_p50_s", "latency_p99_s"}
_FIGURES = OUTCOMES.schema.names[2:]  # without seed and policy
_COUNTS = {column.name for column in OUTCOMES.columns if column.kind == WHOLE}


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The request for a run, and its time."""

    scenario: Scenario
    scenario_file: Path
    policies: tuple[Policy, ...]
    baseline: Policy | None
    seeds: tuple[int, ...]
    command: tuple[str, ...]
    started_at: str  # RFC 3339


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """The content of a finished run's folder."""

    folder: Path
    results: Results
    summary: Mapping[str, Any]  # run.json

    def rows(self, table: str) -> Path:
        """Return the Parquet file of a table; raise BadInput if it is missing or truncated."""
        path = self.folder / f"{table}.parquet"
        if not path.is_file():
            raise BadInput(f"{self.folder} has no {path.name}: copy the whole folder of the run")
        try:
            pyarrow.parquet.read_metadata(path)
        except (OSError, pa.ArrowException) as fault:
            raise BadInput(
                f"{path} was changed or is damaged: {fault}; copy the whole folder of the run again"
            ) from fault
        return path

    def document(self) -> dict[str, Any]:
        """Return run.json and the rows of outcomes.csv as JSON values; None if one is unknown."""
        outcomes = [
            {"policy": policy.name, "seed": seed, **_json_figures(outcome)}
            for policy, found in self.results.outcomes.items()
            for seed, outcome in zip(self.results.seeds, found, strict=True)
        ]
        return {"folder": str(self.folder), **self.summary, "outcomes": outcomes}


def _json_figures(outcome: Outcome) -> dict[str, float | None]:
    return {name: _cell(name, getattr(outcome, name)) for name in _FIGURES}


class _RowFiles:
    """Writes one table as CSV (gzipped) and as Parquet."""

    def __init__(self, folder: Path, table: RecordedTable) -> None:
        self._file = (folder / f"{table.name}.csv.gz").open("wb")
        # Fast compression, and no name or date in the file: equal rows give equal bytes.
        self._packed = gzip.GzipFile("", "wb", compresslevel=1, fileobj=self._file, mtime=0)
        self._csv = pyarrow.csv.CSVWriter(self._packed, table.schema)
        self._parquet = pyarrow.parquet.ParquetWriter(
            folder / f"{table.name}.parquet", table.schema, compression="zstd"
        )

    def write(self, parts: Iterable[pa.Table]) -> None:
        """Append rows."""
        for part in parts:
            self._csv.write_table(part)
            self._parquet.write_table(part)

    def close(self) -> None:
        """Complete both files; if one fails, the other is still closed."""
        with ExitStack() as ending:  # closes in reverse order
            ending.callback(self._close_parquet)
            ending.callback(self._file.close)
            ending.callback(self._packed.close)
            ending.callback(self._csv.close)

    def _close_parquet(self) -> None:
        try:
            self._parquet.close()
        finally:
            self._parquet.is_open = False  # or its destructor tries again and prints to stderr


@dataclass
class RunFolder:
    """Writes a run's folder round by round; `finish` completes it, leaving it earlier undoes all.

    The first round creates the folder. Raises BadInput if it has files, now or then.
    """

    folder: Path
    run: RecordedRun
    _files: dict[str, _RowFiles] = field(default_factory=dict)
    _rounds: list[tuple[int, tuple[Outcome, ...]]] = field(default_factory=list)
    _summary: dict[str, Any] = field(default_factory=dict)
    _decisions: Counter[Policy] = field(default_factory=Counter)
    _engine_s: defaultdict[Policy, float] = field(default_factory=lambda: defaultdict(float))
    _unfinished: Unfinished = field(init=False)

    def __post_init__(self) -> None:
        self._unfinished = Unfinished(self.folder)

    @property
    def is_whole(self) -> bool:
        """Return whether this run wrote all of its rows."""
        return self._unfinished.is_whole

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._close()
        finally:
            self._unfinished.leave()

    def add(self, done: Round) -> None:
        """Write the rows of one round."""
        if not self._files:
            self._begin()
        world, until_s = done.world, done.billed_s
        runs = zip(done.policies, done.schedules, done.outcomes, strict=True)
        for policy, schedule, outcome in runs:
            self._files["jobs"].write(job_rows(world, policy, schedule))
            if world.services:
                self._files["replicas"].write(replica_rows(world, policy, schedule))
                self._files["services"].write(service_rows(world, policy, schedule))
            own_s = until_s if outcome.is_billed else outcome.billed_alone_s
            self._decisions[policy] += decisions_made(world, schedule, own_s)
            self._files["decisions"].write(decision_rows(world, policy, schedule, own_s))
            if outcome.is_billed:
                self._files["node-hours"].write(node_hour_rows(world, policy, schedule, until_s))
        self._files["grid"].write(grid_rows(world, until_s))
        for policy, taken_s in zip(done.policies, done.engine_s, strict=False):  # or not measured
            self._engine_s[policy] += taken_s
        self._rounds.append((world.seed, done.outcomes))
        if done.least is not None:
            self._summary.setdefault("least", []).append(done.least._asdict())
        self._summary.setdefault("notes", [*world.notes, *notes_of_first(done)]).extend(
            without_bill(done)
        )
        self._summary.setdefault("jobs", done.outcomes[0].jobs)
        self._summary.setdefault("nodes", len(world.node_names))
        self._summary.setdefault("zones", list(world.zones))

    def finish(self) -> FinishedRun:
        """Write outcomes and summary, and return the folder's content."""
        self._close()
        unfinished = self._unfinished.path
        _write_outcomes(unfinished / _OUTCOMES, self.run.policies, self._rounds)
        document = {**_described(self.run), **self._summary, "decisions": self._timed_decisions()}
        summary = json.dumps(document, indent=2) + "\n"
        (unfinished / SUMMARY).write_text(summary, encoding="utf-8")
        rows = sorted(path.name for path in unfinished.iterdir() if path.name != SUMMARY)
        self._unfinished.settle([*rows, SUMMARY])
        self._unfinished.leave()
        return read_run(self.folder)

    def _timed_decisions(self) -> dict[str, dict[str, float | None]]:
        """Return each policy's decisions over all seeds, and the mean wall seconds of one."""

        def each_s(policy: Policy, count: int) -> float | None:
            return self._engine_s[policy] / count if policy in self._engine_s and count else None

        return {
            policy.name: {"count": count, "seconds_each": each_s(policy, count)}
            for policy, count in self._decisions.items()
        }

    def _close(self) -> None:
        begun, self._files = self._files, {}
        with ExitStack() as ending:
            for files in begun.values():
                ending.callback(files.close)

    def _begin(self) -> None:
        self._unfinished.begin()
        unfinished = self._unfinished.path
        shutil.copyfile(self.run.scenario_file, unfinished / SCENARIO)
        for table in (*ALWAYS, *(OF_SERVICES if self.run.scenario.services else ())):
            self._files[table.name] = _RowFiles(unfinished, table)


def read_run(folder: Path) -> FinishedRun:
    """Return a run's folder; raise BadInput if it is not one, or of another version."""
    try:
        summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        text = (folder / _OUTCOMES).read_text(encoding="utf-8")
    except (OSError, ValueError) as fault:
        why = f"{SUMMARY} or {_OUTCOMES} is missing" if isinstance(fault, OSError) else fault
        raise BadInput(
            f"{folder} is not the folder of a finished run: {why}. `greensched simulate` and "
            "`greensched compare` write such folders"
        ) from fault
    if not isinstance(summary, dict) or summary.get("format") != FORMAT:
        raise _stale(folder)
    try:
        return FinishedRun(folder, _results(summary, text), summary)
    except (KeyError, TypeError, ValueError, BadInput) as fault:
        raise _stale(folder) from fault


def _stale(folder: Path) -> BadInput:
    return BadInput(
        f"{folder} was written by another version of GreenSched, or changed since: run the command "
        f"in its {SUMMARY} again"
    )


def _results(summary: Mapping[str, Any], outcomes: str) -> Results:
    rows = {(row["policy"], int(row["seed"])): row for row in csv.DictReader(io.StringIO(outcomes))}
    policies = tuple(policy_named(name) for name in summary["policies"])
    seeds = tuple(int(seed) for seed in summary["seeds"])
    baseline = summary["baseline"]
    results = Results(
        policies,
        None if baseline is None else policy_named(baseline),
        seeds,
        {policy: tuple(_outcome(rows[policy.name, seed]) for seed in seeds) for policy in policies},
        tuple(Least(**each) for each in summary.get("least", ())),
        {
            policy_named(name): each["seconds_each"]
            for name, each in summary["decisions"].items()
            if each["seconds_each"] is not None
        },
    )
    return results if results.baseline is None else ranked(results)


def _outcome(row: Mapping[str, str]) -> Outcome:
    figures = {
        name: int(row[name]) if name in _COUNTS else _figure(name, row[name]) for name in _FIGURES
    }
    return Outcome(**figures)  # type: ignore[arg-type]  # counts are whole, as just made


def _figure(name: str, cell: str) -> float:
    """Return the figure in a cell; NaN if it is not known."""
    if cell:
        return float(cell)
    return 0.0 if name in _EMPTY_IF_ZERO else math.nan


def _write_outcomes(
    path: Path, policies: Sequence[Policy], rounds: Sequence[tuple[int, tuple[Outcome, ...]]]
) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(("policy", "seed", *_FIGURES))
        for number, policy in enumerate(policies):
            for seed, outcomes in rounds:
                cells = (_cell(name, getattr(outcomes[number], name)) for name in _FIGURES)
                lines.writerow((policy.name, seed, *cells))


def _cell(name: str, value: float) -> float | None:
    """Return a figure, or None, an empty cell, if it is not known."""
    is_unknown = math.isnan(value) or (name in _EMPTY_IF_ZERO and value == 0.0)
    return None if is_unknown else value


def _described(run: RecordedRun) -> dict[str, Any]:
    scenario = run.scenario
    return {
        "format": FORMAT,
        "scenario": scenario.name,
        "description": scenario.description,
        "policies": [policy.name for policy in run.policies],
        "baseline": None if run.baseline is None else run.baseline.name,
        "seeds": list(run.seeds),
        "currency": scenario.currency,
        "start_s": scenario.start_s,
        "length_s": scenario.length_s,
        "carbon": "operational, location-based",
        "started_at": run.started_at,
        "command": list(run.command),
        "versions": {
            "python": ".".join(map(str, sys.version_info[:3])),
            **{name: version(name) for name in _LIBRARIES},
        },
        "inputs": [_input(path) for path in (*_files_of(scenario), *_cards_of(run.policies))],
    }


def _files_of(scenario: Scenario) -> list[Path]:
    sources = [source for grid in scenario.grids.values() for source in (grid.carbon, grid.price)]
    found = [each.file for each in sources if isinstance(each, CarbonFile | PriceFile)]
    sites = scenario.sites.values()
    own = [site.weather.temperature for site in sites if site.weather]
    yields = [site.solar.output for site in sites if site.solar]
    found += [e.file for e in (*own, *yields) if isinstance(e, TemperatureFile | SolarFile)]
    trace = scenario.workload.trace
    found += [trace.file] if trace else []
    logs = (service.requests.trace for service in scenario.services)
    found += [log.file for log in logs if log]
    models = (service.model for service in scenario.services)
    found += [each.figures for each in models if each and each.figures]
    found += [scenario.green_policy] if scenario.green_policy else []
    return list(dict.fromkeys(found))


def _cards_of(policies: Sequence[Policy]) -> list[Path]:
    """Return the cards of learned bundles; each has the hashes of its graphs."""
    return list(dict.fromkeys(Path(each.bundle) / CARD_FILE for each in policies if each.bundle))


def _input(path: Path) -> dict[str, str]:
    with path.open("rb") as file:
        return {"file": path.name, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
