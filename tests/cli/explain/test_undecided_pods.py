from dataclasses import replace

import pytest

from greensched_cli.explain.undecided import HeldUntil, NoPod, PodSeen, SchedulingCondition, about

UNFIT = SchedulingCondition(
    "False", "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu."
)
GATED = SchedulingCondition("False", "SchedulingGated", "Scheduling is blocked due to gates")
HELD = HeldUntil("2026-11-27T09:00:00Z", "2026-11-27T10:00:00Z")
PLACED = SchedulingCondition("True", "no reason", "no message")


def told(
    scheduler: str = "greensched",
    scheduled: SchedulingCondition | None = None,
    node: str = "",
    age_s: float = 120.0,
    was_asked: bool = True,
    hold: HeldUntil | None = None,
    installed_in: str | None = "green",
) -> str:
    pod = PodSeen(scheduler, "Running" if node else "Pending", node, age_s, scheduled, hold)
    return about(pod, "default/web", installed_in, was_asked)


@pytest.mark.parametrize(("text", "parts"), [
    pytest.param(told(scheduled=UNFIT), [
        "Pod default/web: schedulerName greensched, phase Pending, on no node",
        "PodScheduled is False (Unschedulable): 0/3 nodes are available: 3 Insufficient cpu.",
        "asks for scores once more than one node fits",
    ], id="no-node-fits"),
    pytest.param(told(scheduled=GATED), ["until its scheduling gates are removed"], id="gated"),
    pytest.param(told(scheduled=GATED, hold=HELD), [
        "GreenSched holds it: planned for 2026-11-27T09:00:00Z, at the latest 2026-11-27T10:00:00Z",
        "`greensched status pod/web -n default`", "`greensched release pod/web -n default`",
    ], id="held"),
    pytest.param(about(NoPod(["old"], replace(HELD, planned_start="")), "default/web", "green",
                       was_asked=True), [
        "no pod default/web yet, but a Job. GreenSched holds it: planned for no time yet",
        "`greensched release job/web -n default`",
    ], id="a-held-job"),
    pytest.param(told(), [
        "No scheduler named greensched has answered for 2m",
        "kubectl get deploy,pods -n green -l app",
    ], id="a-dead-scheduler"),
    pytest.param(told(installed_in=None), [
        "kubectl get deploy,pods -A -l app",
    ], id="a-dead-scheduler-anywhere"),
    pytest.param(told(age_s=2.0), ["has not answered yet"], id="made-just-now"),
    pytest.param(told("greenshed"), [
        "schedulerName greenshed, phase Pending",
        "asked about pods of `schedulerName: greensched` (or the chart's scheduler.name) only",
        "No scheduler named greenshed has answered for 2m: is the name spelt right",
    ], id="a-misspelt-scheduler"),
    pytest.param(told("default-scheduler", PLACED, node="n1"), [
        "schedulerName default-scheduler, phase Running, on node n1",
        "asked about pods of `schedulerName: greensched`",
    ], id="anothers-pod"),
    pytest.param(told(scheduled=PLACED, node="n1"), [
        "only one node was feasible", "the extender did not answer", "restarted",
        "is not recorded",
    ], id="placed-without-us"),
    pytest.param(about(NoPod([]), "default/web", "green", was_asked=True), [
        "There is no pod default/web in the cluster",
    ], id="no-pod"),
    pytest.param(about(NoPod(["web-1", "web-2", "web-3", "web-4"]), "default/web", "green",
                       was_asked=True), [
        "There is no pod default/web, but a Job; try one of its pods: web-1, web-2, web-3",
    ], id="a-job"),
])  # fmt: skip
def test_a_pod_without_a_decision_is_reported_with_what_that_means(
    text: str, parts: list[str]
) -> None:
    for part in parts:
        assert part in text


@pytest.mark.parametrize("text", [
    pytest.param(told("default-scheduler", PLACED, node="n1"), id="anothers-pod"),
    pytest.param(told(scheduled=PLACED, node="n1", was_asked=False), id="nobody-could-be-asked"),
    pytest.param(told(scheduled=UNFIT), id="no-node-fits"),
])  # fmt: skip
def test_why_it_was_placed_is_guessed_only_where_a_replica_denied_it(text: str) -> None:
    assert "only one node was feasible" not in text
