"""The benchmark on a real control plane whose nodes kwok plays."""

import asyncio
import json
import signal
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from typer.testing import CliRunner

from greensched_cli.__main__ import app
from greensched_core.clock import WallClock
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_extender.settings import ExtenderSettings
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.nodes import EqualNodes, create_nodes, delete_nodes, wait_until_ready
from greensched_testbed.stress.ground import looked_at
from greensched_testbed.stress.job_objects import JOB_LABEL, Images
from greensched_testbed.stress.play import pull_images
from greensched_testbed.stress.run import BenchmarkOptions, ProgressOutput, run_benchmark
from greensched_testbed.stress.strategies import parse_strategies
from greensched_testbed.stress.suite import SuiteOptions

pytestmark = [pytest.mark.controlplane, pytest.mark.usefixtures("nodes")]

GIB = 2.0**30
PATIENCE_S = 120.0
SHORT = SuiteOptions(jobs=4, span_s=0.5, runtime_s=1.0, wait_s=60.0)


@pytest_asyncio.fixture
async def nodes(control_plane: ControlPlane) -> AsyncIterator[None]:
    """Two nodes of known grids; those that other tests left behind are gone."""
    await asyncio.to_thread(control_plane.kubectl, "delete", "nodes", "--all")
    async with ApiClient(control_plane.access) as client:
        mark = uuid.uuid4().hex[:6]
        names = await create_nodes(
            client, [EqualNodes(1, f"{zone}-{mark}", 8, 32 * GIB, grid_zone=zone.upper())
                     for zone in ("de", "fr")]
        )  # fmt: skip
        await wait_until_ready(client, names)
        yield
        await delete_nodes(client, names)


def left_over(plane: ControlPlane) -> str:
    return plane.kubectl("get", "namespaces", "-l", f"{JOB_LABEL}=suite", "-o", "name")


async def test_what_no_scheduler_places_is_waited_for_no_longer_than_asked(
    control_plane: ControlPlane, api_access: ApiAccess
) -> None:
    options = BenchmarkOptions(
        parse_strategies("scheduler:nobody"), SHORT, rounds=1, patience_s=1.0
    )
    outcome = await run_benchmark(
        api_access, options, ProgressOutput(lambda _: None, lambda *_: None)
    )
    (result,) = outcome.results
    assert result.played.timed_out and not result.completed
    figures = outcome.figures["scheduler:nobody"]
    assert (figures["unfinished"].mean, figures["energy_j"].mean) == (4.0, None)
    assert left_over(control_plane) == ""


async def test_the_image_is_started_on_every_node_whatever_schedulers_think(
    control_plane: ControlPlane, api: ApiClient
) -> None:
    clock, signals = WallClock(), ExtenderSettings.model_construct().grid_signals()
    async with looked_at(api, {}, signals, clock) as ground:
        name = f"stress-{uuid.uuid4().hex[:6]}-pull"
        assert await pull_images(api, ground, Images(), name, clock) == {}
    assert left_over(control_plane) == ""


async def test_a_node_on_which_the_image_does_not_end_is_reported_with_the_reason(
    api: ApiClient,
) -> None:
    clock, signals = WallClock(), ExtenderSettings.model_construct().grid_signals()
    async with looked_at(api, {}, signals, clock) as ground:
        for_ever = replace(ground, is_played=False)  # kwok ends what tells it when
        name = f"stress-{uuid.uuid4().hex[:6]}-pull"
        told = await pull_images(api, for_ever, Images(), name, clock, limit_s=2.0)
    assert told == dict.fromkeys(ground.nodes, "not within 2 s")


def command(plane: ControlPlane, strategies: str, *options: str) -> list[str]:
    return [
        "benchmark", "--strategies", strategies, "--kubeconfig", str(plane.kubeconfig),
        "--rounds", "1", "--jobs", "4", "--span-s", "0", *options,
    ]  # fmt: skip


async def started(asked: list[str]) -> asyncio.subprocess.Process:
    """Start the command line in a process of its own, both outputs in one pipe."""
    command_line = [sys.executable, "-m", "greensched_cli", *asked]
    return await asyncio.create_subprocess_exec(
        *command_line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


async def test_nodes_of_which_kwok_plays_only_some_are_refused_by_name(
    control_plane: ControlPlane, api: ApiClient
) -> None:
    # kwok does not initialise a node that is Ready by its own word. Made by kubectl, it kept its
    # not-ready taint until the node lifecycle controller came by, and took no work until then.
    (real,) = await create_nodes(api, [EqualNodes(1, "real", 16, 64 * GIB)], plain=True)
    process = await started(command(control_plane, "default", "--cluster"))
    out, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    await delete_nodes(api, [real])
    told = " ".join(out.decode().split())
    assert process.returncode == 2, told
    assert "kwok plays 2 of the 3 nodes" in told
    assert "not real-0: cordon" in told
    assert left_over(control_plane) == ""


def test_unless_asked_to_run_it_only_says_what_it_would_run(control_plane: ControlPlane) -> None:
    told = CliRunner().invoke(app, command(control_plane, "default"))
    assert told.exit_code == 0, told.output
    assert "4 Jobs within 0 s" in told.output and "Nothing was run" in told.output
    document = CliRunner().invoke(app, [*command(control_plane, "default"), "-o", "yaml"]).stdout
    planned = yaml.safe_load(document)
    assert [job["name"] in told.output for job in planned["jobs"]] == [True] * 4
    assert (planned["strategies"], planned["cluster"]["nodes"]) == (["default"], 2)
    assert left_over(control_plane) == ""


def test_all_strategies_do_the_same_work_in_turn_and_leave_nothing(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    twice = "default,scheduler:default-scheduler"
    options = ["--runtime-s", "1", "--cluster", "--out", str(tmp_path), "-o", "json"]
    ran = CliRunner().invoke(app, command(control_plane, twice, *options))
    assert ran.exit_code == 0, ran.output
    assert "round 1, default: all ended" in ran.stderr
    told = json.loads((tmp_path / "summary.json").read_text())
    assert json.loads(ran.stdout) == told
    first, second = told["runs"]
    assert first["ended_at"] <= second["started_at"], "one after the other"
    assert first["grid"]["DE"]["carbon_g_per_kwh"] > 0.0, "of the static table"
    assert told["cluster"]["is_played"] and {"DE", "FR"} <= set(told["cluster"]["zones"])
    assert (told["meter"], told["is_estimated"]) == ("curve", True)
    for figures in told["strategies"].values():
        assert figures["completed"]["mean"] == 4.0 and figures["missed_deadlines"]["mean"] == 0.0
        assert figures["energy_j"]["mean"] > 0.0 and figures["completion_median_s"]["mean"] >= 0.5
    assert told["strategies"]["scheduler:default-scheduler"]["energy_j"]["change_pct"] is not None
    assert len((tmp_path / "jobs.csv").read_text().splitlines()) == 1 + 2 * 4
    assert (tmp_path / "report.html").exists() and (tmp_path / "took.png").exists()
    assert left_over(control_plane) == ""


@pytest.mark.parametrize(("ended_by", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_interrupted_it_deletes_what_it_made(
    control_plane: ControlPlane, ended_by: signal.Signals, status: int
) -> None:
    asked = command(control_plane, "default", "--runtime-s", "600", "--cluster")
    process = await started(asked)
    async with asyncio.timeout(PATIENCE_S):
        while not await asyncio.to_thread(left_over, control_plane):
            await asyncio.sleep(0.2)
        process.send_signal(ended_by)
        out, _ = await process.communicate()
    assert process.returncode == status, out.decode()
    assert "interrupted" in out.decode()
    assert await asyncio.to_thread(left_over, control_plane) == ""
