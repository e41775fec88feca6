"""`make bench-ledger`: write rate of the ledger, its memory, and the delay of the event loop.

For each database a separate process writes records as fast as the writer takes them. Meanwhile its
event loop measures how late it wakes, which is how long a decision would wait. Writes
build/bench/ledger.json.
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.bench_cluster import machine
from benchmarks.command_line import ROOT, parse, result_file, write_json
from greensched_core.clock import WallClock
from greensched_core.errors import BadInput
from greensched_core.ledger_records import Amounts, LedgerRecord, LossReason, Subject, What
from greensched_operator.ledger.store import LedgerStore
from greensched_operator.ledger.writer import LedgerWriter, WriterLimits
from greensched_testbed.postgres import PostgresServer

_RECORDS = 100_000
_TICK_S = 0.002
_IDLE_TICKS = 1_000
_PER_TICK = 20  # 10,000 decisions a second, more than any database here can take
_SMALLEST = {"records": 1_000}


def main(arguments: list[str]) -> None:
    """Measure both databases, or the one named in `arguments`, and print the figures."""
    parser = argparse.ArgumentParser(prog="make bench-ledger", description=__doc__)
    parser.add_argument("database", nargs="?", help="a file, or the DSN of a PostgreSQL server")
    parser.add_argument("--records", type=int, default=_RECORDS, help="written to each database")
    given = parse(parser, _SMALLEST, arguments)
    if given.database:
        print(json.dumps(asyncio.run(_measured(given.database, given.records))))
        return
    figures: dict[str, Any] = {"records": given.records, "machine": machine()}
    with tempfile.TemporaryDirectory() as folder:
        figures["sqlite"] = _in_process(str(Path(folder) / "ledger.db"), given.records)
        figures["sqlite"]["file_mib"] = _mib(sum(f.stat().st_size for f in Path(folder).iterdir()))
    try:
        with PostgresServer() as server:
            figures["postgresql"] = _in_process(server.url, given.records)
    except BadInput as fault:
        figures["postgresql"] = str(fault)
    print(json.dumps(figures, indent=2))
    write_json(result_file("ledger", given), figures)


def _in_process(database: str, records: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.ledger", database, "--records", str(records)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


async def _measured(database: str, records: int) -> dict[str, Any]:
    lost: dict[LossReason, int] = {}
    limits = WriterLimits()
    store = LedgerStore(database)
    store.write([])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    writer = LedgerWriter(
        store, clock=WallClock(), count_lost=lambda reason, count: lost.update({reason: count})
    )
    writer.start()
    idle_late_s = [await _late_s() for _ in range(_IDLE_TICKS)]
    started, late_s, calls_s = perf_counter(), [], []
    for number in range(records):
        record = _record(number)
        while writer.waiting >= limits.most_waiting:
            await asyncio.sleep(_TICK_S)
        called = perf_counter()
        writer.write(record)
        calls_s.append(perf_counter() - called)
        if number % _PER_TICK == 0:
            late_s.append(await _late_s())
    writer.stop(600.0)
    seconds = perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = perf_counter()
    read = sum(1 for _ in store.records(0.0))
    return {
        "records_per_s": round(records / seconds),
        "read_records_per_s": round(read / (perf_counter() - begun)),
        "lost": sum(lost.values()) + records - read,
        "write_call_p99_us": round(_p99(calls_s) * 1e6, 1),
        "loop_late_idle_p99_ms": round(_p99(idle_late_s) * 1e3, 2),
        "loop_late_p99_ms": round(_p99(late_s) * 1e3, 2),
        "loop_late_most_ms": round(max(late_s) * 1e3, 2),
        "rss_mib_before": _mib(before * 1024),
        "rss_mib_peak": _mib(peak * 1024),
    }


async def _late_s() -> float:
    asleep = perf_counter()
    await asyncio.sleep(_TICK_S)
    return perf_counter() - asleep - _TICK_S


def _record(number: int) -> LedgerRecord:
    return LedgerRecord(
        what=What.RELEASED, at=WallClock().now(),
        subject=Subject(
            kind="Job", namespace=f"team-{number % 20}", name=f"train-{number}",
            uid=f"00000000-0000-4000-8000-{number:012}", cpu_cores=4.0, memory_bytes=2.0**33,
        ),
        policy="default", mode="enforce", reason="planned start", zone="DE", currency="EUR",
        planned_start=1.8e9, latest_start=1.8e9, deadline=1.8e9, run_now_start=1.8e9,
        planned=Amounts(3.6e6, 100.0, 0.1), run_now=Amounts(3.6e6, 300.0, 0.2),
    )  # fmt: skip


def _p99(values: list[float]) -> float:
    return sorted(values)[int(0.99 * len(values))]


def _mib(size_bytes: float) -> float:
    return round(size_bytes / 2**20, 1)


if __name__ == "__main__":
    main(sys.argv[1:])
