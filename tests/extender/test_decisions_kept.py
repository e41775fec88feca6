import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from greensched_core.testing import make_node
from greensched_extender.decisions import render

World = Any
MakePod = Callable[..., dict[str, Any]]


def test_a_decision_tells_what_each_node_would_have_cost(world: World, pod: MakePod) -> None:
    world.add(make_node("a", zone="FR"), make_node("b", zone="PL"), make_node("c", zone="XX"))
    world.scores("b", "a", "c", "ghost", pod=pod(annotations={"greensched.io/runtime": "2h"}))
    told = render(world.decisions.of("default", "p1")[0])
    assert [candidate["node"] for candidate in told["candidates"]] == ["a", "c", "b"]
    cheapest = told["candidates"][0]
    assert cheapest["score"] == 10
    assert cheapest["runtimeSeconds"] == 7200.0
    kwh = cheapest["powerWatts"] * 2 / 1000
    assert abs(cheapest["energyJoules"] / 3.6e6 - kwh) < 1e-6
    assert abs(cheapest["carbonGrams"] - kwh * 50.0) < 1e-4
    assert abs(cheapest["cost"] - kwh * 60.0 / 1000) < 1e-6
    assert told["candidates"][1]["carbonGrams"] is None, "no data is told as no data"
    assert told["unknownNodes"] == {"count": 1, "some": ["ghost"]}
    assert (told["policy"], told["fallbackReason"]) == ("weighted-cost", None)
    assert (told["expectedNode"], told["outcome"]) == ("a", {"state": "not seen bound"})
    assert {zone["zone"]: zone["carbonGramsPerKwh"] for zone in told["zones"]}["PL"] == 700.0
    assert told["pod"]["runtimeIsDefault"] is False


def test_the_watch_tells_how_it_ended(world: World) -> None:
    world.add(make_node("a", zone="FR"), make_node("b", zone="PL"))
    world.scores("a", "b")
    world.scores("a", "b")
    world.decisions.bound("uid-p1", "b", world.clock.now() + 1)
    latest, first = (render(one) for one in world.decisions.of("default", "p1"))
    assert latest["outcome"] == {"state": "bound", "node": "b", "boundAt": world.clock.now() + 1}
    assert first["outcome"] == {"state": "superseded"}


def test_an_answer_that_came_after_the_binding_says_so_and_counts_nowhere(world: World) -> None:
    world.add(make_node("a", zone="FR"), make_node("b", zone="PL"))
    world.snapshot.put_pod("uid-p1", "b", (4.0, 2.0**30, 0.0))
    world.scores("a", "b")
    (told,) = (render(one) for one in world.decisions.of("default", "p1"))
    assert told["expectedNode"] == "a"
    assert told["outcome"] == {"state": "answered too late", "node": "b", "boundAt": None}
    assert world.snapshot.provisional_count == 0
    world.decisions.bound("uid-p1", "a", world.clock.now())
    assert render(world.decisions.of("default", "p1")[0])["outcome"] == told["outcome"]


def test_memory_is_bounded_and_the_oldest_go_first(
    new_world: Callable[..., World], pod: MakePod
) -> None:
    world = new_world(decisions_max_bytes=10_000)
    world.add(make_node("a"))
    for number in range(50):
        world.scores("a", pod=pod(f"p{number}"))
    assert 1 <= len(world.decisions) <= 5
    assert world.decisions.of("default", "p49")
    assert not world.decisions.of("default", "p0")
    world.decisions.bound("uid-p0", "a", 0.0)  # forgotten: nothing to note


@pytest.mark.parametrize("where", ["annotation", "cpu", "name", "unknown node"])
def test_long_texts_of_others_do_not_fill_the_memory(
    new_world: Callable[..., World], pod: MakePod, where: str
) -> None:
    world = new_world(decisions_max_bytes=200_000)
    world.add(make_node("a"))
    tracemalloc.start()
    try:
        for number in range(40):
            long = f"{number}" + "x" * 250_000
            asks = pod(f"p{number}")
            match where:
                case "annotation":
                    asks = pod(f"p{number}", annotations={"greensched.io/runtime": long})
                case "cpu":
                    asks = pod(f"p{number}", cpu=long)
                case "name":
                    asks = pod(long, uid=f"u{number}")
            world.scores("a", *([long] if where == "unknown node" else []), pod=asks)
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 1_000_000


def grown_bytes(world: World, ask: Callable[[int], None], times: int) -> int:
    """Return by how much memory grew while asking."""
    world.scores("stays")
    tracemalloc.start()
    try:
        for number in range(times):
            ask(number)
        gc.collect()  # free lists too
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("replaced", [1, 200], ids=["one-node", "all-nodes"])
@pytest.mark.parametrize("length", [8, 253])
def test_names_of_nodes_that_are_replaced_between_decisions_count(
    new_world: Callable[..., World], pod: MakePod, replaced: int, length: int
) -> None:
    def grown(world: World) -> int:
        names = [f"{number:0{length}}" for number in range(200)]
        world.add(make_node("stays"), *map(make_node, names))

        def ask(number: int) -> None:
            for place in range(replaced):
                world.snapshot.drop_node(names[place])
                names[place] = f"{200 * (number + 1) + place:0{length}}"
            world.add(*map(make_node, names[:replaced]))
            world.scores("stays", pod=pod(f"p{number}"))

        return grown_bytes(world, ask, 15)

    world = new_world(decisions_max_bytes=200_000)
    assert grown(world) - grown(new_world(decisions_max_bytes=0)) <= 200_000
    assert 1 <= len(world.decisions) < 15


def test_what_was_known_of_the_zones_counts_too(
    new_world: Callable[..., World], pod: MakePod
) -> None:
    def grown(world: World) -> int:
        zones = (f"zone-{number}" for number in range(50))
        world.add(make_node("stays"), *(make_node(zone, zone=zone) for zone in zones))

        def ask(number: int) -> None:
            world.clock.advance(1.0)
            runs = {"greensched.io/runtime": f"{60 + number}s"}
            world.scores("stays", pod=pod(f"p{number}", annotations=runs))

        return grown_bytes(world, ask, 60)

    world = new_world(decisions_max_bytes=200_000)
    assert grown(world) - grown(new_world(decisions_max_bytes=0)) <= 200_000
    assert 1 <= len(world.decisions) < 60


def test_what_decisions_share_counts_once(new_world: Callable[..., World], pod: MakePod) -> None:
    world = new_world(decisions_max_bytes=200_000)
    world.add(*(make_node(f"n-{number:04}") for number in range(1_000)))
    for number in range(40):
        world.scores("n-0000", pod=pod(f"p{number}"))
    assert len(world.decisions) == 40, "a list of 1,000 names takes some 70,000 bytes"


def test_a_decision_that_is_too_large_with_its_names_costs_no_other_its_place(
    new_world: Callable[..., World], pod: MakePod
) -> None:
    world = new_world(decisions_max_bytes=20_000)
    world.add(make_node("a"))
    world.scores("a")
    world.add(*(make_node(f"n-{number:04}") for number in range(1_000)))
    world.scores("a", pod=pod("p2"))
    assert world.decisions.of("default", "p1")
    assert not world.decisions.of("default", "p2")


def test_none_are_kept_when_there_is_no_memory_for_them(new_world: Callable[..., World]) -> None:
    world = new_world(decisions_max_bytes=0)
    world.add(make_node("a"))
    world.scores("a")
    assert len(world.decisions) == 0


def test_a_decision_keeps_its_names_when_nodes_come_and_go(world: World) -> None:
    world.add(make_node("a", zone="FR"), make_node("b", zone="PL"))
    world.scores("a", "b")
    world.clock.advance(60)
    world.snapshot.expire()
    world.snapshot.drop_node("a")
    world.add(make_node("new"))
    told = render(world.decisions.of("default", "p1")[0])
    assert {candidate["node"] for candidate in told["candidates"]} == {"a", "b"}
