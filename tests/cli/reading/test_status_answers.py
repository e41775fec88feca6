"""What `greensched status` makes of what it read: JSON for programs, and advice; nothing real."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from greensched_cli.reading.held_work import HeldWork, HoldSurroundings, read_held, read_released
from greensched_cli.reading.operator_state import (
    ClusterPart,
    Leader,
    OperatorState,
    Signal,
    WebhookState,
    advice,
)
from greensched_cli.status.json_output import as_json
from greensched_cli.status.text import StatusContent
from greensched_core import labels
from greensched_operator.objects.green_policy import BUILT_IN, GreenPolicy, Mode
from greensched_operator.objects.workloads import Work, WorkKind

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "cli" / "status.json"
NOW_S = 1_795_000_000.0
POLICY = GreenPolicy("team", "default", mode=Mode.ENFORCE)
AROUND = HoldSurroundings({("team", "default"): POLICY}, {}, "greensched", knows_policies=True)
HELD = Work(
    kind=WorkKind.JOB, namespace="team", name="train", uid="u-1", created_s=NOW_S - 3600.0,
    annotations={
        labels.DEADLINE: "6h", labels.RUNTIME: "1h",
        labels.HELD_AT: "2026-11-18T11:06:40Z", labels.LATEST_START: "2026-11-18T15:30:00Z",
        labels.PLANNED_START: "2026-11-18T14:00:00Z", labels.HOLD_REASON: "saves 43 %",
        labels.DECISION: '{"why": "planned", "saving": 0.43, "zone": "DE", '
        '"carbonChange": -0.75, "costChange": 0.04, "carbonGramsPerKwh": [120.0, 480.0], '
        '"runtime": "1h (annotation)", "new": 1}',
    },
    scheduler="greensched", cpu_cores=2.0, memory_bytes=0.0, gpus=0.0, node_selector={}, gang="",
    owner=None, is_stopped=True, is_finished=False, is_leaving=False,
)  # fmt: skip
FREED = replace(
    HELD, name="before", uid="u-2", is_stopped=False,
    annotations={
        labels.HELD_AT: "2026-11-18T11:06:40Z", labels.RELEASED_AT: "2026-11-18T12:00:00Z",
        labels.RELEASE_REASON: "planned-start",
    },
)  # fmt: skip
WELL = OperatorState(
    namespace="greensched",
    is_certain=True,
    leader=Leader("leader-1", 3.0, 15.0),
    releasers=(1, 1),
    heartbeat_age_s=4.0,
    webhooks=(WebhookState("greensched", is_trusted=True),),
    is_emergency_release=False,
    signals=(Signal("DE", "test", 600.0),),
    unread={},
)


def held(**said: str) -> HeldWork:
    names = {f"{labels.GROUP}/{name.replace('_', '-')}": text for name, text in said.items()}
    return read_held(replace(HELD, annotations={**HELD.annotations, **names}), AROUND)


def advised(state: OperatorState, *works: HeldWork, mode: Mode = Mode.ENFORCE) -> str:
    return "\n".join(advice(state, works, {"team": replace(POLICY, mode=mode)}, {}, NOW_S))


def test_json_is_as_it_always_was() -> None:
    state = replace(WELL, unread={ClusterPart.SIGNALS: "you have no right to read them"})
    told = StatusContent("namespace team", False, [read_held(HELD, AROUND)],
        [read_released(FREED)], state,
                {"team": POLICY}, ["do this"], state.unread)  # fmt: skip
    found = json.dumps(as_json(told, NOW_S), indent=2) + "\n"
    assert found == GOLDEN.read_text(encoding="utf-8")


def test_where_all_is_well_nothing_is_advised() -> None:
    assert advised(WELL, held()) == ""


@pytest.mark.parametrize(("state", "told"), [
    pytest.param(replace(WELL, leader=None), "No operator has ever led", id="no-lease"),
    pytest.param(replace(WELL, leader=Leader("", 3.0, 15.0)), "given its Lease up", id="given-up"),
    pytest.param(replace(WELL, leader=Leader("x", 15.1, 15.0)), "x has not renewed", id="silent"),
    pytest.param(replace(WELL, releasers=(0, 0)), "it has no pod", id="no-releaser"),
    pytest.param(replace(WELL, releasers=(0, 2)), "none of its 2 pods is ready", id="unready"),
    pytest.param(replace(WELL, heartbeat_age_s=None), "has ever given a sign", id="no-sign"),
    pytest.param(replace(WELL, heartbeat_age_s=60.0), "a sign of life for 1m,", id="silent-sign"),
    pytest.param(replace(WELL, webhooks=()), "new work is not held", id="no-webhook"),
    pytest.param(replace(WELL, webhooks=(WebhookState("w", False),)), "w has no caBundle",
        id="no-ca"),
    pytest.param(replace(WELL, webhooks=(WebhookState("w", False),)), "within ten seconds",
        id="soon"),
    pytest.param(replace(WELL, is_emergency_release=True), "--emergency-release off",
        id="emergency"),
    pytest.param(replace(WELL, signals=()), "There is no GridSignal", id="no-signal"),
    pytest.param(replace(WELL, signals=(Signal("DE", "", None),)), "values: DE.", id="no-data"),
    pytest.param(replace(WELL, signals=(Signal("DE", "t", 5401.0),)), "DE (1h30m)", id="stale"),
    pytest.param(replace(WELL, signals=(Signal("DE", "t", 60.0, ("price (Unreachable)",)),)),
        "first provider fails: DE price (Unreachable).", id="second-provider"),
])  # fmt: skip
def test_what_is_wrong_is_one_sentence_alone(state: OperatorState, told: str) -> None:
    text = advised(state, held())
    assert told in text and len(text.splitlines()) == 1


@pytest.mark.parametrize("age_s", [59.9, -5.0])
def test_a_sign_of_life_counts_as_long_as_for_the_webhook(age_s: float) -> None:
    assert advised(replace(WELL, heartbeat_age_s=age_s), held()) == ""


@pytest.mark.parametrize("leader", [Leader("x", 15.0, 15.0), Leader("x", -5.0, 15.0)])
def test_a_leader_lives_as_long_as_its_lease_and_with_a_clock_that_differs(leader: Leader) -> None:
    assert leader.is_alive


SENTENCES = {
    ClusterPart.LEASE: "No operator has ever led",
    ClusterPart.RELEASER: "No releaser runs",
    ClusterPart.HEARTBEAT: "a sign of life",
    ClusterPart.WEBHOOK: "No webhook of GreenSched",
    ClusterPart.SIGNALS: "There is no GridSignal",
    ClusterPart.POLICIES: "has mode off",
}


@pytest.mark.parametrize("part", SENTENCES)
def test_what_was_not_read_is_not_said_to_be_wrong(part: ClusterPart) -> None:
    nothing = OperatorState("g", False, None, (0, 0), None, (), False, (), {part: "why"})
    text = advised(nothing, mode=Mode.OFF)
    assert {each for each, told in SENTENCES.items() if told not in text} == {part}


@pytest.mark.parametrize(("after_s", "is_told"), [(60.0, False), (60.5, True)])
def test_work_is_overdue_a_minute_past_its_latest_start(after_s: float, is_told: bool) -> None:
    work = replace(held(), latest_s=NOW_S - after_s)
    assert ("Past the latest start" in advised(WELL, work)) == is_told


def test_what_is_overdue_in_several_namespaces_is_started_by_one_command() -> None:
    late = replace(held(), latest_s=0.0)
    other = replace(late, work=replace(late.work, namespace="other"))
    assert "greensched release -A" in advised(WELL, late, other)
    assert "greensched release --all -n team" in advised(WELL, *[late] * 4)
    assert "and 1 more" in advised(WELL, *[late] * 4)


def test_where_the_built_in_policy_serves_it_says_what_is_not_there_and_where_to_look() -> None:
    others = {"team": POLICY, "all other namespaces": BUILT_IN}
    text = "\n".join(advice(WELL, [], others, {}, NOW_S))
    assert "There is no GreenPolicy named default in namespace greensched" in text
    assert "kubectl -n greensched get events --field-selector reason=PolicyRefused" in text
    unread = replace(WELL, unread={ClusterPart.POLICIES: "why"})
    assert advice(unread, [], others, {}, NOW_S) == []


def test_without_policies_the_operators_own_words_stand() -> None:
    work = HELD.annotations[labels.DECISION].replace('"new": 1', '"policy": "GreenPolicy a/b"')
    blind = HoldSurroundings({}, {}, "greensched", knows_policies=False)
    found = read_held(replace(HELD, annotations={**HELD.annotations, labels.DECISION: work}), blind)
    assert (found.policy, found.bound, found.runtime) == ("GreenPolicy a/b", "", "1h (annotation)")
    assert found.deadline_s == NOW_S + 6 * 3600.0


def test_what_bounds_the_latest_start_is_distinguished_from_what_holds_now() -> None:
    assert held().bound == "deadline"
    assert held(max_delay="30m").bound == "max-delay or window"
