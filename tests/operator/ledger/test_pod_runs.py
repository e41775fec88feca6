"""Runs of pods as a watch brings them: whose, where, from when to when."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from greensched_core import labels
from greensched_core.clock import ManualClock
from greensched_core.metering.pod_runs import PodRun
from greensched_core.power.curves import PowerCurve
from greensched_core.signals.timestamps import format_timestamp
from greensched_core.state import Node
from greensched_operator.ledger.pod_runs import PodRuns, RanPod
from greensched_operator.objects.placed_pods import PlacedPod
from greensched_operator.planning.cluster_state import NodeSite

NOW_S = 1_700_000_000.0
SITE = NodeSite("DE", 1.3)
FLAT = PowerCurve((100.0,) * 11)


class Inner:
    """A sink that notes what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def list_began(self) -> None:
        self.told.append("began")

    def upsert(self, item: PlacedPod) -> None:
        self.told.append(item.metadata.uid)

    def list_ended(self) -> None:
        self.told.append("ended")

    def remove(self, item: PlacedPod) -> None:
        self.told.append(f"no {item.metadata.uid}")


@dataclass
class Scene:
    """Runs before a sink, on a clock that stands."""

    inner: Inner = field(default_factory=Inner)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_S))
    sites: dict[str, NodeSite] = field(default_factory=lambda: {"n1": SITE})
    ended: list[tuple[str, float | None, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.runs = PodRuns(
            self.inner, frozenset({labels.SCHEDULER_NAME}), self.sites.get, self.clock,
            lambda *told: self.ended.append(told),
        )  # fmt: skip


def pod(
    uid: str = "p1",
    job: str = "",
    began_s: float | None = NOW_S,
    scheduler: str = labels.SCHEDULER_NAME,
) -> PlacedPod:
    owners = [{"kind": "Job", "name": job, "uid": f"uid-of-{job}", "controller": True}]
    state: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}
    if began_s is not None:
        state = {"running": {"startedAt": format_timestamp(began_s)}}
    body = {
        "metadata": {"name": f"name-{uid}", "namespace": "team", "uid": uid,
                     "ownerReferences": owners if job else None},
        "spec": {"nodeName": "n1", "schedulerName": scheduler, "containers": []},
        "status": {"phase": "Running", "containerStatuses": [{"state": state}]},
    }  # fmt: skip
    return msgspec.convert(body, PlacedPod)


def test_the_pods_of_a_job_are_its_runs_and_are_given_once() -> None:
    scene = Scene()
    for uid in ("p1", "p2"):
        scene.runs.upsert(pod(uid, "train"))
    scene.clock.advance(60.0)
    scene.runs.remove(pod("p1", "train"))
    first, second = scene.runs.take("uid-of-train")
    assert first.run == PodRun("p1", "team", "name-p1", NOW_S, NOW_S + 60.0)
    assert (first.site, second.run) == (SITE, None), "the second still runs"
    assert scene.runs.take("uid-of-train") == []
    assert scene.ended == []


def on_node(speed: float) -> NodeSite:
    return NodeSite("DE", None, Node("n1", "DE", 4.0, 1.0, None, FLAT, "label", "m", speed, None))


def test_a_workloads_speed_is_the_mean_of_its_nodes_over_its_runs() -> None:
    """A pod that fails at once says little about a Job that then runs for an hour elsewhere."""
    scene = Scene(sites={"n1": on_node(2.0)})
    scene.runs.upsert(pod("p1", "train"))
    scene.clock.advance(600.0)
    scene.runs.remove(pod("p1", "train"))
    assert scene.runs.speed("uid-of-train") == 2.0
    scene.sites["n1"] = on_node(0.5)
    scene.runs.upsert(pod("p2", "train", began_s=NOW_S + 600.0))
    scene.clock.advance(1200.0)
    assert scene.runs.speed("uid-of-train") == pytest.approx((600.0 * 2.0 + 1200.0 * 0.5) / 1800.0)


def test_of_pods_side_by_side_the_last_to_end_decides_how_long_a_workload_takes() -> None:
    """Two pods of an hour of a reference node each: the one on the slow node takes two."""
    scene = Scene(sites={"n1": on_node(1.0)})
    scene.runs.upsert(pod("fast", "train"))
    scene.sites["n1"] = on_node(0.5)
    scene.runs.upsert(pod("slow", "train"))
    scene.clock.advance(3600.0)
    scene.runs.remove(pod("fast", "train"))
    scene.clock.advance(3600.0)
    assert scene.runs.speed("uid-of-train") == 0.5


def test_a_pod_whose_end_is_told_late_still_ran_before_its_successor() -> None:
    scene = Scene(sites={"n1": on_node(2.0)})
    scene.runs.upsert(pod("p1", "train"))
    scene.clock.advance(602.0)
    scene.sites["n1"] = on_node(0.5)
    scene.runs.upsert(pod("p2", "train", began_s=NOW_S + 600.0))
    scene.runs.remove(pod("p1", "train"))
    scene.clock.advance(598.0)
    speed = scene.runs.speed("uid-of-train")
    assert speed == pytest.approx((602.0 * 2.0 + 600.0 * 0.5) / 1202.0)


def test_the_speed_of_a_node_that_was_listed_after_its_pod_counts() -> None:
    scene = Scene(sites={})
    scene.runs.upsert(pod("p1", "train"))
    scene.sites["n1"] = on_node(2.0)
    assert scene.runs.speed("uid-of-train") == 2.0
    scene.runs.remove(pod("p1", "train"))
    assert [ran.site for ran in scene.runs.take("uid-of-train")] == [on_node(2.0)]


@pytest.mark.parametrize("site", [None, SITE], ids=["no-node", "of-unknown-make"])
def test_the_speed_of_a_workload_nobody_saw_on_a_known_node_is_unknown(
    site: NodeSite | None,
) -> None:
    scene = Scene(sites={} if site is None else {"n1": site})
    scene.runs.upsert(pod("p1", "train"))
    assert scene.runs.speed("uid-of-train") is None
    assert scene.runs.speed("uid-of-other") is None


def test_a_bare_pod_is_its_own_workload_and_its_end_is_reported() -> None:
    scene = Scene()
    scene.runs.upsert(pod())
    scene.clock.advance(60.0)
    scene.runs.remove(pod())
    scene.runs.remove(pod())
    assert scene.ended == [("p1", NOW_S, NOW_S + 60.0)]
    assert len(scene.runs.take("p1")) == 1


def test_it_begins_with_its_first_container_not_with_its_binding() -> None:
    scene = Scene()
    scene.runs.upsert(pod(began_s=None))
    scene.runs.upsert(pod(began_s=NOW_S + 40.0))
    scene.runs.upsert(pod(began_s=NOW_S + 50.0))
    scene.clock.advance(90.0)
    scene.runs.remove(pod())
    assert scene.ended == [("p1", NOW_S + 40.0, NOW_S + 90.0)]


def test_a_pod_that_was_not_seen_to_run_has_an_end_but_no_run() -> None:
    scene = Scene()
    scene.runs.upsert(pod(began_s=None))
    scene.runs.remove(pod(began_s=None))
    assert scene.ended == [("p1", None, NOW_S)]
    assert [ran.run for ran in scene.runs.take("p1")] == [None]


def test_what_ended_while_nobody_watched_has_ended_by_the_next_list() -> None:
    scene = Scene()
    for uid in ("p1", "p2"):
        scene.runs.upsert(pod(uid))
    scene.runs.list_began()
    scene.runs.upsert(pod("p2"))
    scene.runs.list_ended()
    assert [uid for uid, *_ in scene.ended] == ["p1"]


def test_a_node_that_goes_first_was_known_while_the_pod_ran() -> None:
    scene = Scene()
    scene.sites.clear()
    scene.runs.upsert(pod())
    scene.sites["n1"] = SITE
    scene.runs.upsert(pod())
    scene.sites.clear()
    scene.runs.upsert(pod())
    assert [ran.site for ran in scene.runs.take("p1")] == [SITE]


def test_others_pods_are_handed_on_and_not_remembered() -> None:
    scene = Scene()
    other = pod("p9", scheduler="default-scheduler")
    scene.runs.list_began()
    scene.runs.upsert(other)
    scene.runs.list_ended()
    scene.runs.remove(other)
    assert scene.runs.take("p9") == []
    assert scene.inner.told == ["began", "p9", "ended", "no p9"]


def test_the_oldest_workloads_are_forgotten_first() -> None:
    scene = Scene()
    for place in range(20_001):
        scene.runs.upsert(pod(f"p{place}"))
    kept: list[list[RanPod]] = [scene.runs.take(f"p{place}") for place in (0, 1, 20_000)]
    assert [len(each) for each in kept] == [0, 1, 1]
