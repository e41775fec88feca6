"""A JobPowerProfile becomes phases that the simulator's job model takes."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from greensched_operator.objects.job_power_profile import (
    JobPowerProfile,
    ProfilePhase,
    parse_job_power_profile,
)
from greensched_simulator.phase_jobs.phases import Phase, PhasedJob, spent

ROOT = Path(__file__).parents[3]
CRD = ROOT / "deploy/helm/greensched/files/crds/jobpowerprofiles.yaml"
LOAD = {"name": "load", "duration": "2m", "watts": 80}
TRAIN = {"name": "train", "duration": "1h", "watts": 300}
EVALUATE = {"name": "evaluate", "duration": "10m", "watts": 150, "checkpoint": True}


def read(**spec: Any) -> JobPowerProfile:
    parsed = parse_job_power_profile(
        {"metadata": {"name": "p", "namespace": "team", "generation": 2}, "spec": spec}
    )
    assert parsed.profile is not None, parsed.faults
    return parsed.profile


def simulated(phases: tuple[ProfilePhase, ...]) -> tuple[Phase, ...]:
    return tuple(Phase(one.name, one.duration_s, one.power_w, one.is_checkpoint) for one in phases)


def job(profile: JobPowerProfile) -> PhasedJob:
    restart = None if profile.restart is None else simulated(profile.restart)
    return PhasedJob(simulated(profile.startup), simulated(profile.work), restart)


def test_phases_are_read_in_their_order() -> None:
    resume = [{"duration": "30s", "watts": 60}]
    profile = read(startup=[LOAD], work=[TRAIN, EVALUATE], resume=resume)
    assert (profile.namespace, profile.name, profile.generation) == ("team", "p", 2)
    assert profile.startup == (ProfilePhase("load", 120.0, 80.0),)
    assert profile.work == (
        ProfilePhase("train", 3600.0, 300.0),
        ProfilePhase("evaluate", 600.0, 150.0, is_checkpoint=True),
    )
    assert profile.restart == (ProfilePhase("resume[0]", 30.0, 60.0),)
    assert (profile.runtime_s, profile.resume_s) == (4320.0, 30.0)


@pytest.mark.parametrize(
    ("resume", "seconds"),
    [
        pytest.param({}, 120.0, id="absent-starts-up-as-ever"),
        pytest.param({"resume": []}, 0.0, id="empty-is-free"),
    ],
)
def test_a_resumed_run_starts_up_as_the_first_unless_asked_to(
    resume: dict[str, Any], seconds: float
) -> None:
    assert read(startup=[LOAD], work=[TRAIN], **resume).resume_s == seconds


@pytest.mark.parametrize(
    ("checkpoints", "saved_at_s"),
    [
        pytest.param({}, [4200], id="the-ends-of-phases-alone"),
        pytest.param({"every": "20m"}, [1200, 2400, 3600, 4200], id="on-a-phases-end"),
        pytest.param({"every": "25m"}, [1500, 3000, 4200], id="within-phases"),
        pytest.param({"every": "50m"}, [3000, 4200], id="across-phases"),
        pytest.param({"every": "2h"}, [4200], id="beyond-the-end"),
        pytest.param({"at": ["65m", "10m"]}, [600, 3900, 4200], id="at-times-in-any-order"),
        pytest.param({"at": ["70m"]}, [4200], id="at-the-very-end"),
        pytest.param({"every": "30m", "at": ["30m"]}, [1800, 3600, 4200], id="both-at-once"),
    ],
)
def test_work_is_cut_where_it_is_saved(
    checkpoints: dict[str, Any], saved_at_s: list[float]
) -> None:
    work = read(work=[TRAIN, EVALUATE], checkpoints=checkpoints).work
    ends = [sum(phase.duration_s for phase in work[: n + 1]) for n in range(len(work))]
    saved = [end for end, phase in zip(ends, work, strict=True) if phase.is_checkpoint]
    assert saved == pytest.approx(saved_at_s)
    assert sum(phase.duration_s * phase.power_w for phase in work) == pytest.approx(1_170_000.0)


RESUMED = [{"duration": "1m", "watts": 60}]


@pytest.mark.parametrize(
    ("done_s", "mean_w"),
    [
        pytest.param(0.0, (120 * 80 + 3600 * 300 + 600 * 150) / 4320, id="all-of-it"),
        pytest.param(1920.0, (1800 * 300 + 600 * 150 + 60 * 60) / 2460, id="half-of-the-training"),
        pytest.param(4020.0, (300 * 150 + 60 * 60) / 360, id="within-the-last-phase"),
        pytest.param(9999.0, 60.0, id="only-the-startup"),
    ],
)
def test_the_mean_watts_are_of_what_is_left_and_of_starting_up_again(
    done_s: float, mean_w: float
) -> None:
    profile = read(startup=[LOAD], work=[TRAIN, EVALUATE], resume=RESUMED)
    assert profile.mean_power_w(done_s) == pytest.approx(mean_w)


def test_where_nothing_is_left_the_watts_are_those_of_the_last_phase() -> None:
    assert read(work=[TRAIN], resume=[]).mean_power_w(1e9) == 300.0


@pytest.mark.parametrize(
    ("done_s", "saved_s"),
    [
        pytest.param(100.0, 0.0, id="before-the-work"),
        pytest.param(1319.9, 0.0, id="before-the-first"),
        pytest.param(1320.0, 1320.0, id="at-the-first"),
        pytest.param(2000.0, 1320.0, id="after-it"),
        pytest.param(5000.0, 4320.0, id="after-the-end"),
    ],
)
def test_a_stop_keeps_what_was_done_up_to_the_last_checkpoint(
    done_s: float, saved_s: float
) -> None:
    profile = read(startup=[LOAD], work=[TRAIN, EVALUATE], checkpoints={"every": "20m"})
    assert profile.saved_s(done_s) == pytest.approx(saved_s)


def test_a_thousand_phases_cost_a_judgement_next_to_nothing() -> None:
    """Every workload that names the profile asks, in the loop that starts held work."""
    profile = read(work=[{"duration": "1000m", "watts": 3}], checkpoints={"every": "1m"})
    assert len(profile.work) == 1000
    began_s = time.process_time()
    for done_s in range(1000):
        assert profile.mean_power_w(60.0 * done_s) == pytest.approx(3.0)
        assert profile.saved_s(60.0 * done_s + 1.0) == 60.0 * done_s
    assert time.process_time() - began_s < 1.0


def test_work_without_checkpoints_saves_when_it_is_stopped() -> None:
    assert read(startup=[LOAD], work=[TRAIN]).saved_s(1000.0) == 1000.0


def test_a_suspended_run_repeats_what_its_checkpoints_did_not_save() -> None:
    profile = read(startup=[LOAD], work=[TRAIN], checkpoints={"every": "20m"})
    # Suspended 30 min into the work: 10 of them are repeated, and it starts up once more.
    assert spent(job(profile), [1920.0]).running_s == pytest.approx(3720.0 + 600.0 + 120.0)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        pytest.param({}, "spec.work: a profile needs", id="no-work"),
        pytest.param({"work": [{"watts": 1}]}, "spec.work[0]: a phase needs", id="no-duration"),
        pytest.param({"work": [{**TRAIN, "duration": "0s"}]}, "above zero", id="takes-no-time"),
        pytest.param({"work": [{**TRAIN, "watts": -1}]}, "spec.work[0].watts", id="negative"),
        pytest.param({"work": [{**TRAIN, "watts": 2e6}]}, "from 0 to 1000000", id="milliwatts"),
        pytest.param({"work": {"a": 1}}, "spec.work: an object is not a list", id="no-list"),
        pytest.param(
            {"work": [TRAIN], "checkpoints": {"at": ["61m"]}},
            "checkpoints.at[0]: 3660 s is after the end of the work, which takes 3600 s",
            id="saved-after-the-end",
        ),
        pytest.param(
            {"work": [TRAIN], "checkpoints": {"every": "1s"}}, "more than 1000 checkpoints in 3600",
            id="too-many",
        ),
        pytest.param(
            {"work": [TRAIN], "checkpoints": {"every": "0." + "0" * 330 + "1s"}}, "every",
            id="smaller-than-a-double",
        ),
    ],
)  # fmt: skip
def test_a_profile_that_cannot_be_followed_tells_why(spec: dict[str, Any], told: str) -> None:
    parsed = parse_job_power_profile({"spec": spec})
    assert parsed.profile is None
    assert told in parsed.faults[0]


durations = st.sampled_from(["90s", "1h30m", "2d", "0.5ms", "0s", "soon", ""])
anything = st.none() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.none())
phases = st.lists(
    st.fixed_dictionaries({}, optional={"duration": durations, "watts": st.floats(-1, 1e5),
                                        "checkpoint": st.booleans(), "name": anything}),
    max_size=3,
)  # fmt: skip
specs = st.fixed_dictionaries(
    {},
    optional={
        "startup": phases | anything,
        "work": phases,
        "resume": phases,
        "checkpoints": st.fixed_dictionaries(
            {}, optional={"every": durations, "at": st.lists(durations, max_size=3)}
        ),
    },
)


@given(specs)
def test_any_profile_is_a_job_of_the_simulator_or_a_fault(spec: object) -> None:
    parsed = parse_job_power_profile({"spec": spec})
    assert (parsed.profile is None) is bool(parsed.faults)
    if parsed.profile is not None:
        assert spent(job(parsed.profile)).running_s == pytest.approx(parsed.profile.runtime_s)


@given(anything | st.binary() | st.dictionaries(st.sampled_from(["metadata", "spec"]), anything))
def test_anything_else_is_a_fault_and_no_exception(raw: object) -> None:
    assert parse_job_power_profile(raw).faults


def test_the_definition_knows_every_field() -> None:
    (version,) = yaml.safe_load(CRD.read_text(encoding="utf-8"))["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert set(spec) == {"startup", "work", "resume", "checkpoints"}
    assert set(spec["work"]["items"]["properties"]) == {"name", "duration", "watts", "checkpoint"}
    assert set(spec["checkpoints"]["properties"]) == {"every", "at"}
