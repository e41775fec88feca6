"""What the `where` head of a bundle is shown of a pod: a graph answers with one of its inputs."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greensched_core import labels
from greensched_core.signals.timestamps import format_timestamp
from greensched_core.testing import make_node
from greensched_policies.encoding import observation as obs
from greensched_policies.encoding.timing import MOST_SLACK_H
from greensched_policies.learned.heads import WHERE
from greensched_policies.learned.onnx_policy import CONTEXT_INPUT, NODES_INPUT, OUTPUT
from greensched_train.export import Origin, card_of, head_card, sample_of
from greensched_train.graphs import Graph, model_of

World = Any
HOUR_S = 3600.0


@pytest.fixture
def telling(repository: Path, tmp_path: Path) -> Callable[..., Path]:
    """Return a builder of bundles that answer with a feature of the nodes, or of the context."""

    def bundle(*, node: int | None = None, context: int | None = None) -> Path:
        graph = Graph(WHERE)
        place = graph.constant("place.node", [node or 0], np.int64)
        own = graph.add("Gather", [NODES_INPUT, place], "own", axis=1)
        axis = graph.constant("axis", [1], np.int64)
        if context is None:
            graph.add("Squeeze", [own, axis], OUTPUT)
        else:
            row = graph.add("Squeeze", [own, axis], "row")
            nothing = graph.add("Sub", [row, row], "nothing")
            place = graph.constant("place.context", [context], np.int64)
            shared = graph.add("Gather", [CONTEXT_INPUT, place], "shared", axis=1)
            graph.add("Add", [nothing, shared], OUTPUT)
        content = model_of(graph).SerializeToString()
        nodes, told = sample_of(WHERE)
        answer = nodes[:, :, node] if context is None else np.repeat(told[:, [context]], 4, 1)
        (tmp_path / WHERE.file).write_bytes(content)
        origin = Origin("telling", "nothing", (1,), "none", None, {}, untrained=True)
        whole = card_of({WHERE.name: head_card(graph, content, answer)}, origin)
        (tmp_path / "card.json").write_text(json.dumps(whole))
        return tmp_path

    return bundle


def answers(
    world: World, pod: Callable[..., dict[str, Any]], decision: dict[str, Any] | None = None
) -> dict[str, float]:
    """Score a pod of an hour on a node in DE and one in FR; return the costs, by node."""
    world.add(make_node("de", zone="DE"), replace(make_node("fr", zone="FR"), speed=2.0))
    notes = {labels.RUNTIME: "1h"}
    if decision is not None:
        notes[labels.DECISION] = json.dumps(decision)
    world.scores("de", "fr", pod=pod(annotations=notes))
    (told,) = world.explanations().decisions("default", "p1")[:1]
    assert (told["policy"], told["fallbackReason"]) == ("onnx", None)
    return {each["node"]: each["relativeCost"] for each in told["candidates"]}


def planned(world: World, after_s: float = 0.0, **more: Any) -> dict[str, Any]:
    start = format_timestamp(world.clock.now() + after_s)
    return {"zone": "FR", "start": start, "runtimeSeconds": HOUR_S} | more


@pytest.mark.parametrize(
    ("feature", "wanted"),
    [
        pytest.param(obs.SPEED, {"de": 1.0, "fr": 2.0}, id="speed"),
        pytest.param(obs.POWER_CAP, {"de": 1.0, "fr": 1.0}, id="no-cap"),
        pytest.param(obs.IS_MEASURED, {"de": 0.0, "fr": 0.0}, id="nothing-measured"),
        pytest.param(obs.CARBON_OF_DAY, {"de": 1.0, "fr": 1.0}, id="a-steady-day"),
        pytest.param(obs.IS_PLANNED_ZONE, {"de": 0.0, "fr": 0.0}, id="no-plan"),
    ],
)
def test_of_each_node_it_is_shown(
    new_world: Callable[..., World],
    pod: Callable[..., dict[str, Any]],
    telling: Callable[..., Path],
    feature: int,
    wanted: dict[str, float],
) -> None:
    world = new_world(policy="onnx", bundle=telling(node=feature))
    assert answers(world, pod) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("after_s", "there"),
    [
        pytest.param(900.0, 1.0, id="a-slot-early"),
        pytest.param(-HOUR_S, 1.0, id="at-its-planned-end"),
        pytest.param(901.0, 0.0, id="earlier-still"),
        pytest.param(-HOUR_S - 1.0, 0.0, id="long-over"),
    ],
)
def test_it_is_shown_the_planned_zone_about_the_time_of_the_plan(
    new_world: Callable[..., World],
    pod: Callable[..., dict[str, Any]],
    telling: Callable[..., Path],
    after_s: float,
    there: float,
) -> None:
    world = new_world(policy="onnx", bundle=telling(node=obs.IS_PLANNED_ZONE))
    found = answers(world, pod, planned(world, after_s))
    assert found == {"de": 0.0, "fr": there}


@pytest.mark.parametrize(
    ("feature", "more", "wanted"),
    [
        pytest.param(obs.LOG_SLACK, None, math.log1p(MOST_SLACK_H), id="no-plan-no-deadline"),
        pytest.param(obs.RUNTIME_ERROR, None, 0.2, id="the-usual-error"),
        pytest.param(obs.ON_TIME_NINES, None, -math.log10(0.005), id="the-usual-target"),
        pytest.param(obs.LOG_SLACK, {}, math.log1p(MOST_SLACK_H), id="a-plan-of-release-0.1"),
        pytest.param(obs.RUNTIME_ERROR, {"runtimeError": 0.5}, 0.5, id="error"),
        pytest.param(obs.ON_TIME_NINES, {"onTimeTarget": 0.99}, 2.0, id="target"),
    ],
)
def test_of_the_pod_it_is_shown(
    new_world: Callable[..., World],
    pod: Callable[..., dict[str, Any]],
    telling: Callable[..., Path],
    feature: int,
    more: dict[str, Any] | None,
    wanted: float,
) -> None:
    world = new_world(policy="onnx", bundle=telling(context=feature))
    found = answers(world, pod, None if more is None else planned(world, **more))
    assert found == pytest.approx({"de": wanted, "fr": wanted})


def test_it_is_shown_the_slack_until_the_deadline_that_the_operator_wrote(
    new_world: Callable[..., World],
    pod: Callable[..., dict[str, Any]],
    telling: Callable[..., Path],
) -> None:
    world = new_world(policy="onnx", bundle=telling(context=obs.LOG_SLACK))
    deadline = format_timestamp(world.clock.now() + 3 * HOUR_S)
    found = answers(world, pod, planned(world, deadline=deadline))
    assert found["de"] == pytest.approx(math.log1p(2.0))
