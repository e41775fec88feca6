"""The suite is the same for the same seed, fits its nodes, and is told as Jobs."""

import os
import re
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_testbed.stress.job_objects import Images, job_object, namespace_object
from greensched_testbed.stress.strategies import (
    AT_ONCE,
    DEFAULT,
    HELD,
    Strategy,
    order_of,
    parse_strategies,
)  # fmt: skip
from greensched_testbed.stress.suite import (
    MIB,
    Room,
    StressJob,
    StressKind,
    SuiteOptions,
    make_suite,
)

GIB = 2.0**30
ROOM = Room(8.0, 32 * GIB, has_gpus=True)


@given(
    st.integers(0, 10_000),
    st.integers(1, 40),
    st.floats(0.5, 256.0),
    st.floats(0.25, 1024.0),
    st.integers(0, 10),
)
def test_a_suite_is_the_same_for_the_same_seed_and_fits_its_nodes(
    seed: int, jobs: int, cores: float, memory_gib: float, gpu_jobs: int
) -> None:
    options = SuiteOptions(jobs=jobs, seed=seed, gpu_jobs=gpu_jobs)
    room = Room(cores, memory_gib * GIB, has_gpus=True)
    suite = make_suite(options, room)
    assert suite == make_suite(options, room)
    arrivals = [job.arrival_s for job in suite.jobs]
    assert len(arrivals) == jobs and arrivals == sorted(arrivals)
    assert len({job.name for job in suite.jobs}) == jobs
    assert sum(job.kind is StressKind.GPU for job in suite.jobs) == min(gpu_jobs, jobs)
    for job in suite.jobs:
        assert 0.0 <= job.arrival_s <= options.span_s and job.work >= 1 and job.runtime_s > 0.0
        if job.kind is not StressKind.GPU:
            assert job.cores <= room.cores / 2 and job.memory_bytes <= room.memory_bytes / 2
        if job.deadline_s is not None:
            assert job.deadline_s > options.wait_s + job.runtime_s


def test_another_seed_and_another_size_of_node_are_another_suite() -> None:
    digests = {
        make_suite(SuiteOptions(seed=seed), Room(cores, 32 * GIB)).digest
        for seed in (1, 2)
        for cores in (1.0, 8.0)
    }
    assert len(digests) == 4


def test_a_suite_wears_out_cpu_and_memory_and_some_of_it_may_wait() -> None:
    jobs = make_suite(SuiteOptions(jobs=12), ROOM).jobs
    assert Counter(job.kind for job in jobs) == {StressKind.CPU: 9, StressKind.MEMORY: 3}
    assert sum(job.deadline_s is not None for job in jobs) == 4


@pytest.mark.parametrize(
    ("options", "room", "words"),
    [
        pytest.param(SuiteOptions(), Room(0.4, GIB), "no stress Job fits", id="no-cores"),
        pytest.param(SuiteOptions(), Room(4.0, GIB / 8), "no stress Job fits", id="no-memory"),
        pytest.param(SuiteOptions(gpu_jobs=1), Room(4.0, GIB), "nvidia.com/gpu", id="no-gpu"),
    ],
)
def test_what_fits_no_node_is_refused(options: SuiteOptions, room: Room, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        make_suite(options, room)


def test_a_refusal_names_the_smallest_node_that_fits() -> None:
    with pytest.raises(BadInput, match=r"it needs \S+ and \d+$") as refused:
        make_suite(SuiteOptions(), Room(0.1, 0.0))
    cores, mib = map(float, re.findall(r"needs (\S+) and (\d+)", str(refused.value))[0])
    assert make_suite(SuiteOptions(), Room(cores, mib * MIB)).jobs
    for room in (Room(cores - 0.01, mib * MIB), Room(cores, mib * MIB - 1)):
        with pytest.raises(BadInput):
            make_suite(SuiteOptions(), room)


CPU = StressJob("cpu-0", StressKind.CPU, 0.0, 2.0, 2**26, 0, 900, 6.0, deadline_s=100.0)
MEMORY = StressJob("memory-1", StressKind.MEMORY, 0.0, 1.0, 2**28, 0, 3, 4.0, fill_mib=128)
GPU = StressJob("gpu-2", StressKind.GPU, 0.0, 1.0, 2**30, 1, 44, 6.0)
IMAGES = Images("mirror.example/busybox:1", "mirror.example/nbody:1")


def pod_of(job: StressJob, strategy: Strategy = DEFAULT) -> dict[str, Any]:
    spec: dict[str, Any] = job_object(job, strategy, IMAGES)["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("job", [CPU, MEMORY, GPU], ids=lambda job: job.kind)
def test_no_pod_asks_for_more_than_a_restricted_namespace_gives(job: StressJob) -> None:
    pod = pod_of(job)
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not container["securityContext"]["allowPrivilegeEscalation"]
    assert container["resources"]["limits"] == container["resources"]["requests"]
    enforced = namespace_object("n")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
    assert enforced == "restricted"


def test_work_is_an_amount_and_images_may_come_from_a_mirror() -> None:
    (cpu,), (memory,), (gpu,) = (pod_of(job)["containers"] for job in (CPU, MEMORY, GPU))
    assert cpu["env"] == [{"name": "CORES", "value": "2"}, {"name": "MIB", "value": "900"}]
    assert memory["env"] == [{"name": "MIB", "value": "128"}, {"name": "PASSES", "value": "3"}]
    assert gpu["command"] == ["nbody", "-benchmark", "-numbodies=262144", "-i=44"]
    assert [each["image"] for each in (cpu, memory, gpu)] == [
        IMAGES.plain, IMAGES.plain, IMAGES.gpu,
    ]  # fmt: skip
    assert gpu["resources"]["limits"]["nvidia.com/gpu"] == "1"
    (volume,) = pod_of(MEMORY)["volumes"]
    assert volume["emptyDir"] == {"medium": "Memory", "sizeLimit": "129Mi"}


@pytest.mark.parametrize(
    ("strategy", "scheduler", "told"),
    [
        pytest.param(DEFAULT, "default-scheduler", {}, id="who-does-not-opt-in-is-told-nothing"),
        pytest.param(
            AT_ONCE, "greensched",
            {"greensched.io/runtime": "6s", "greensched.io/run-now": "true"}, id="nothing-waits",
        ),
        pytest.param(
            HELD, "greensched",
            {"greensched.io/runtime": "6s", "greensched.io/deadline": "100s"}, id="it-may-wait",
        ),
    ],
)  # fmt: skip
def test_a_strategy_is_a_scheduler_and_its_arguments(
    strategy: Strategy, scheduler: str, told: dict[str, str]
) -> None:
    assert pod_of(CPU, strategy)["schedulerName"] == scheduler
    assert job_object(CPU, strategy, IMAGES)["metadata"].get("annotations", {}) == told


def test_strategies_are_read_and_each_begins_in_turn() -> None:
    names = parse_strategies("default, greensched,scheduler:my-scheduler")
    assert [each.scheduler for each in names] == ["default-scheduler", "greensched", "my-scheduler"]
    firsts = [order_of(names, number)[0].name for number in range(4)]
    assert firsts == ["default", "greensched", "scheduler:my-scheduler", "default"]
    assert all(set(order_of(names, number)) == set(names) for number in range(4))


@pytest.mark.parametrize(
    "text", ["", ",", "default,default", "best", "scheduler:", "scheduler:A b"]
)
def test_a_strategy_that_nobody_knows_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--strategies"):
        parse_strategies(text)


def run_here(job: StressJob, path: str) -> int:
    """Run a Job's own script with this machine's shell, and return its exit status."""
    (container,) = pod_of(job)["containers"]
    told = {each["name"]: each["value"] for each in container["env"]}
    return subprocess.run(
        container["command"], env={"PATH": path, **told}, timeout=60, check=False
    ).returncode


def test_the_script_does_its_work_and_fails_where_it_cannot(tmp_path: Path) -> None:
    small = replace(CPU, work=2)
    assert run_here(small, os.environ["PATH"]) == 0
    broken = tmp_path / "sha256sum"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    assert run_here(small, f"{tmp_path}:{os.environ['PATH']}") == 3
