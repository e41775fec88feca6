"""Pods of a GreenPolicy that names a bundle are scored by that bundle's `where` head."""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from greensched_core.testing import make_node
from greensched_extender.green_policies import decode_policy
from greensched_extender.policy_bundles import MOST_BUNDLES
from greensched_policies.learned.card import SHIPPED_PRIOR
from greensched_policies.learned.config_map import ConfigMapObject, decode_config_map

World = Any
PATIENCE_S = 20.0


def config_map(name: str, without: str = "", **changes: Any) -> ConfigMapObject:
    """A ConfigMap with a copy of the shipped bundle, whose card is changed."""
    card = json.loads((SHIPPED_PRIOR / "card.json").read_text()) | {"name": name, **changes}
    card["heads"] = {head: facts for head, facts in card["heads"].items() if head != without}
    graphs = {
        path.name: b64encode(path.read_bytes()).decode() for path in SHIPPED_PRIOR.glob("*.onnx")
    }
    found = {
        "metadata": {"name": name},
        "data": {"card.json": json.dumps(card)},
        "binaryData": graphs,
    }
    return decode_config_map(json.dumps(found).encode())


def follow(world: World, config_map_name: str, when: str = "onnx") -> None:
    """Make a policy with that bundle the one that all pods follow."""
    spec = {"whenPolicy": when, "bundle": {"configMapName": config_map_name}}
    meta = {"name": "default", "namespace": "system"}
    raw = json.dumps({"metadata": meta, "spec": spec}).encode()
    world.known.policies.upsert(decode_policy(raw))


@asynccontextmanager
async def loading(world: World, *items: ConfigMapObject) -> AsyncIterator[None]:
    """Load the ConfigMaps, one after the other."""
    task = asyncio.create_task(world.choice.bundles.keep_loading())
    try:
        for item in items:
            before = loads(world)
            world.choice.bundles.upsert(item)
            async with asyncio.timeout(PATIENCE_S):
                while loads(world) == before:
                    await asyncio.sleep(0.01)
        yield
    finally:
        task.cancel()


def loads(world: World) -> float:
    loaded: float = world.counted("bundle_loads_total", outcome="loaded")
    refused: float = world.counted("bundle_loads_total", outcome="refused")
    return loaded + refused


def answered(world: World) -> tuple[str, str]:
    """Score a pod; return the policy and the bundle that answered."""
    world.clock.advance(1.0)
    world.scores("a", "b")
    latest = world.decisions.of("default", "p1")[0]
    return latest.policy, latest.bundle


@pytest.fixture
def two_nodes(world: World) -> World:
    world.add(make_node("a", zone="FR"), make_node("b", zone="PL"))
    return world


async def test_the_bundle_that_the_policy_names_answers(two_nodes: World) -> None:
    async with loading(two_nodes, config_map("theirs"), config_map("others")):
        follow(two_nodes, "theirs")
        assert answered(two_nodes) == ("onnx", "theirs")
        follow(two_nodes, "others")
        assert answered(two_nodes) == ("onnx", "others")
    assert two_nodes.fallbacks("no_bundle") == 0


async def test_a_policy_of_a_rule_or_without_a_bundle_is_answered_by_the_extenders_own(
    two_nodes: World,
) -> None:
    async with loading(two_nodes, config_map("theirs")):
        follow(two_nodes, "theirs", when="planned-window")
        assert answered(two_nodes) == ("weighted-cost", "")
        follow(two_nodes, "")
        assert answered(two_nodes) == ("weighted-cost", "")
    assert two_nodes.fallbacks("no_bundle") == 0


async def test_a_bundle_without_a_where_head_leaves_placement_to_the_extenders_own(
    two_nodes: World,
) -> None:
    async with loading(two_nodes, config_map("theirs", without="where")):
        follow(two_nodes, "theirs")
        assert answered(two_nodes) == ("weighted-cost", "")
    assert two_nodes.fallbacks("no_bundle") == 0


async def test_a_missing_bundle_is_counted_and_the_extenders_own_answers(two_nodes: World) -> None:
    follow(two_nodes, "nowhere")
    assert answered(two_nodes) == ("weighted-cost", "")
    assert two_nodes.fallbacks("no_bundle") == 1


async def test_a_refused_version_leaves_the_one_before_in_use(two_nodes: World) -> None:
    spoilt = config_map("theirs", encoding_version=99)
    async with loading(two_nodes, config_map("theirs"), spoilt):
        follow(two_nodes, "theirs")
        assert answered(two_nodes) == ("onnx", "theirs")
    described = two_nodes.choice.describe()["policyBundles"]
    assert "encoding version 99" in described["refused"]["theirs"]
    assert "/tmp" not in described["refused"]["theirs"], "no folder that nobody can look into"


async def test_a_deleted_config_map_serves_no_more(two_nodes: World) -> None:
    theirs = config_map("theirs")
    async with loading(two_nodes, theirs):
        follow(two_nodes, "theirs")
        two_nodes.choice.bundles.remove(theirs)
        assert answered(two_nodes) == ("weighted-cost", "")


async def test_the_same_files_are_loaded_once(two_nodes: World) -> None:
    async with loading(two_nodes, config_map("theirs")):
        two_nodes.choice.bundles.upsert(config_map("theirs"))
        await asyncio.sleep(0.2)
    assert loads(two_nodes) == 1


async def test_config_maps_without_a_card_are_ignored(two_nodes: World) -> None:
    other = {"metadata": {"name": "other"}, "data": {"ca.crt": "text"}}
    two_nodes.choice.bundles.upsert(decode_config_map(json.dumps(other).encode()))
    assert two_nodes.choice.bundles.describe() == {"serving": {}, "refused": {}}
    task = asyncio.create_task(two_nodes.choice.bundles.keep_loading())
    await asyncio.sleep(0.1)
    task.cancel()
    assert loads(two_nodes) == 0


async def test_more_bundles_than_fit_are_refused_by_name(
    new_world: Callable[..., World],
) -> None:
    world = new_world()
    many = [config_map(f"bundle-{number}") for number in range(MOST_BUNDLES + 1)]
    async with loading(world, *many):
        described = world.choice.bundles.describe()
    assert len(described["serving"]) == MOST_BUNDLES
    assert described["refused"] == {
        f"bundle-{MOST_BUNDLES}": f"{MOST_BUNDLES} ConfigMaps with bundles serve already; "
        "delete some"
    }
