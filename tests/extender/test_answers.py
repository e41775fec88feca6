"""What is answered when all is well, and what when something is missing."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greensched_core.power.hardware import Gpu
from greensched_core.testing import make_node
from greensched_extender.metrics import Fallback
from greensched_policies.learned.guard import Guard, NamedPolicy

World = Any
MakePod = Callable[..., dict[str, Any]]


def test_the_cheapest_node_gets_10_and_the_dearest_0(world: World) -> None:
    world.add(*(make_node(zone, zone=zone) for zone in ("PL", "DE", "FR")))
    scores = world.scores("PL", "DE", "FR")
    assert list(scores) == ["PL", "DE", "FR"], "in the order asked"
    assert (scores["FR"], scores["PL"]) == (10, 0)
    assert 0 < scores["DE"] < 10


def test_equal_nodes_score_equally(world: World) -> None:
    world.add(*(make_node(name) for name in "abc"))
    assert set(world.scores("a", "b", "c").values()) == {10}
    assert world.snapshot.provisional_count == 0, "no node is the top-scored one"


def test_a_burst_sees_its_own_pods(world: World, pod: MakePod) -> None:
    world.add(make_node("a", cpu_cores=8.0, zone="FR"), make_node("b", cpu_cores=8.0, zone="DE"))
    for number in range(3):
        assert world.scores("a", "b", pod=pod(f"p{number}", cpu="8"))["a"] == 10
    assert world.snapshot.provisional_count == 3
    assert world.snapshot.report("a").requested[0] == 24.0


def test_a_pod_asked_for_again_does_not_stand_in_its_own_way(world: World, pod: MakePod) -> None:
    world.add(make_node("a", zone="FR"), make_node("b", zone="DE"))
    first = world.scores("a", "b", pod=pod("p"))
    assert world.scores("a", "b", pod=pod("p")) == first
    assert world.snapshot.provisional_count == 1


def test_a_pod_without_the_opt_in_passes_untouched(world: World, pod: MakePod) -> None:
    world.add(make_node("a", power_budget_w=1.0))
    other = pod(scheduler="default-scheduler")
    assert world.extender.prioritize(world.body(["a"], other)).body == b"[]"
    assert world.filtered("a", pod=other)["NodeNames"] == ["a"]
    assert world.snapshot.provisional_count == 0
    assert len(world.decisions) == 0


def test_an_unknown_node_gets_the_median_score_and_never_fails_filter(world: World) -> None:
    world.add(*(make_node(zone, zone=zone) for zone in ("PL", "DE", "FR")))
    scores = world.scores("PL", "ghost", "DE", "FR", 'gh"ost')
    assert scores["ghost"] == scores['gh"ost'] == scores["DE"]
    assert world.fallbacks(Fallback.UNKNOWN_NODE) == 2
    assert world.filtered("ghost", "DE")["NodeNames"] == ["ghost", "DE"]


def test_a_node_without_capacity_is_answered_neutrally(world: World) -> None:
    world.add(make_node("a", zone="FR"), make_node("b", zone="PL"), make_node("z", cpu_cores=0.0))
    assert world.scores("a", "b", "z")["z"] == 5
    assert world.fallbacks(Fallback.UNREADABLE_NODE) == 1
    assert world.fallbacks(Fallback.UNKNOWN_NODE) == 0


def test_when_no_node_is_known_all_score_0(world: World) -> None:
    assert world.scores("a", "b") == {"a": 0, "b": 0}
    assert world.fallbacks(Fallback.NO_CANDIDATE) == 1


@pytest.mark.parametrize(
    ("age_s", "reason"),
    [
        pytest.param(None, Fallback.NOT_SYNCED, id="first-lists-not-done"),
        pytest.param(120.1, Fallback.STALE, id="stale"),
        pytest.param(120.0, None, id="just-fresh"),
    ],
)
def test_without_a_fresh_picture_it_abstains(
    world: World, age_s: float | None, reason: str | None
) -> None:
    world.add(make_node("a", zone="FR", power_budget_w=1.0), make_node("b", zone="PL"))
    world.age_s[0] = age_s
    scores = world.scores("a", "b")
    if reason is None:
        assert scores == {"a": 10, "b": 0}
    else:
        assert scores == {"a": 0, "b": 0}
        assert world.fallbacks(reason) == 1
    passed = world.filtered("a", "b")["NodeNames"]
    assert passed == (["b"] if reason is None else ["a", "b"])
    assert world.fallbacks(Fallback.STALE) == (2 if reason == Fallback.STALE else 0)


def test_a_zone_without_data_counts_as_the_mean_of_the_others(world: World) -> None:
    world.add(*(make_node(zone, zone=zone) for zone in ("PL", "FR", "XX")))
    scores = world.scores("PL", "FR", "XX")
    assert scores["FR"] == 10
    assert scores["PL"] < scores["XX"] < 10
    assert (world.fallbacks(Fallback.NO_CARBON), world.fallbacks(Fallback.NO_PRICE)) == (1, 1)


def test_without_any_signal_the_joules_decide(world: World) -> None:
    world.carbon.clear()
    world.price.clear()
    world.add(make_node("thrifty", peak_w=200.0), make_node("thirsty", peak_w=800.0))
    assert world.scores("thrifty", "thirsty") == {"thrifty": 10, "thirsty": 0}
    assert world.fallbacks(Fallback.NO_CARBON) == 1


def test_a_negative_price_is_a_price(world: World) -> None:
    world.price["PL"] = -500.0
    world.add(make_node("a", zone="PL"), make_node("b", zone="DE"))
    assert world.scores("a", "b") == {"a": 10, "b": 0}


@pytest.mark.parametrize(
    ("pod_change", "said"),
    [
        pytest.param({"cpu": "1e3Ki"}, "1e3Ki", id="quantity"),
        pytest.param({"annotations": {"greensched.io/runtime": "soon"}}, "soon", id="annotation"),
    ],
)
def test_what_cannot_be_read_of_a_pod_counts_as_absent(
    world: World, pod: MakePod, pod_change: dict[str, Any], said: str
) -> None:
    world.add(make_node("a", zone="FR"), make_node("b", zone="PL"))
    assert world.scores("a", "b", pod=pod(**pod_change))
    assert world.fallbacks(Fallback.UNREADABLE_POD) == 1
    assert said in world.decisions.of("default", "p1")[0].workload.faults[0]


def test_an_absurd_request_does_not_wipe_out_the_load_there_is(world: World, pod: MakePod) -> None:
    world.add(make_node("a", zone="FR"), make_node("b", zone="PL"))
    for name in "ab":
        world.snapshot.put_pod(f"real-{name}", name, (0.1, 3e9, 1.0))
    world.scores("a", "b", pod=pod("x", cpu="1e30", memory="1e40", gpus="1e20"))
    world.scores("a", "b", pod=pod("y", cpu="1e6", memory="1e16", gpus="1e5"))
    world.clock.advance(60.0)
    world.snapshot.expire()
    for name in "ab":
        assert world.snapshot.report(name).requested == pytest.approx((0.1, 3e9, 1.0), rel=1e-6)


def test_absurd_numbers_of_the_grid_are_answered_without_a_warning(
    world: World, pod: MakePod
) -> None:
    world.price["DE"] = world.carbon["DE"] = 1e308
    world.add(make_node("a", zone="FR"), make_node("b", zone="DE"))
    asks = pod(cpu="8", annotations={"greensched.io/runtime": "3650d"})
    assert set(world.scores("a", "b", pod=asks)) == {"a", "b"}
    assert world.fallbacks(Fallback.EXCEPTION) == 0


def test_an_answer_without_any_rule_is_counted(world: World) -> None:
    def broken(nodes: Any, context: Any) -> Any:
        raise RuntimeError("no policy")

    rule = NamedPolicy("broken", broken)
    world.choice.guard = Guard(
        rule, rule, budget_s=1.0, monotonic=world.clock.monotonic, count=lambda reason: None
    )
    world.add(make_node("a", zone="FR"), make_node("b", zone="PL"))
    assert world.scores("a", "b") == {"a": 10, "b": 10}
    assert world.counted("guard_fallbacks_total", reason="rule_failed") == 1


def test_names_that_are_no_text_get_400_and_are_no_fault_of_ours(
    world: World, pod: MakePod
) -> None:
    world.add(make_node("a"), make_node("b"))
    body = world.body(["a", "?"], pod()).replace(b'["a", "?"]', b'["a","\xff"]')
    for verb in (world.extender.prioritize, world.extender.filter):
        assert verb(body).status == 400
    assert world.fallbacks(Fallback.EXCEPTION) == 0


def test_a_fault_of_our_own_still_answers(world: World) -> None:
    world.add(make_node("a"), make_node("b"))

    def broken() -> float:
        raise RuntimeError("bug")

    world.extender._snapshot_age_s = broken
    assert world.scores("a", "b") == {"a": 0, "b": 0}
    assert world.filtered("a", "b")["NodeNames"] == ["a", "b"]
    assert world.fallbacks(Fallback.EXCEPTION) == 2


def test_only_a_node_over_its_power_budget_is_refused(world: World, pod: MakePod) -> None:
    world.add(make_node("tight", cpu_cores=8.0, power_budget_w=150.0))
    world.add(make_node("free", cpu_cores=8.0))
    reply = world.filtered("tight", "free", "ghost", pod=pod(cpu="8"))
    assert reply["NodeNames"] == ["free", "ghost"]
    (reason,) = reply["FailedAndUnresolvableNodes"].values()
    assert "power budget" in reason
    assert "limit 150 W" in reason
    assert reply["FailedNodes"] == {}
    assert world.filtered("tight", pod=pod(cpu="1m"))["NodeNames"] == ["tight"]


@pytest.mark.parametrize("nodes", [1, 2, 30])
def test_a_burst_fills_every_budget_and_exceeds_none(
    world: World, pod: MakePod, nodes: int
) -> None:
    names = [f"n{number}" for number in range(nodes)]
    for name in names:
        world.add(make_node(name, cpu_cores=20.0, power_budget_w=180.0))  # 173.5 W at 20 %
    chosen: Counter[str] = Counter()
    for number in range(4 * nodes):  # room for four pods of 5 % on each
        asks = pod(f"p{number}", cpu="2")
        passed = world.filtered(*names, pod=asks)["NodeNames"]
        assert passed, f"pod {number} is refused although there is room"
        scores = world.scores(*passed, pod=asks) if len(passed) > 1 else {passed[0]: 10}
        (best,) = (name for name, score in scores.items() if score == 10)
        chosen[best] += 1
    assert chosen == dict.fromkeys(names, 4)
    assert world.filtered(*names, pod=pod("late", cpu="2"))["NodeNames"] == []
    assert world.snapshot.provisional_count == 4 * nodes
    world.clock.advance(10.0)
    assert world.filtered(*names, pod=pod("later", cpu="2"))["NodeNames"] == names


def test_equal_nodes_without_a_budget_stay_equal_and_the_second_best_is_not_lowered(
    world: World,
) -> None:
    world.add(*(make_node(name, zone="DE") for name in "ab"), make_node("c", zone="PL"))
    assert world.scores("a", "b", "c") == {"a": 10, "b": 10, "c": 0}
    world.add(*(make_node(name, zone="DE", power_budget_w=1e6) for name in "xyz"))
    scores = world.scores("x", "y", "z", "c")
    assert sorted(scores.values()) == [0, 9, 9, 10]
    (best,) = (name for name, score in scores.items() if score == 10)
    assert world.snapshot.report(best).provisional == 1


def test_gpus_count_against_the_power_budget(world: World, pod: MakePod) -> None:
    gpu = Gpu("A100", 4, idle_w=50.0, peak_w=400.0)
    world.add(make_node("a", gpu=gpu, idle_w=100.0, peak_w=400.0, power_budget_w=520.0))
    assert world.filtered("a", pod=pod(cpu="1m", gpus="1"))["NodeNames"] == ["a"]  # 300 + 210 W
    assert world.filtered("a", pod=pod(cpu="1m", gpus="2"))["NodeNames"] == []


def test_filter_that_is_off_lets_all_pass(new_world: Callable[..., World]) -> None:
    world = new_world(filter_enabled=False)
    world.add(make_node("a", power_budget_w=1.0))
    assert world.filtered("a")["NodeNames"] == ["a"]


@pytest.mark.parametrize("nodes", ['"Nodes":5', '"Nodes":"a"', '"NodeNames":{}'])
def test_filter_that_is_off_refuses_what_are_no_nodes(
    new_world: Callable[..., World], nodes: str
) -> None:
    world = new_world(filter_enabled=False)
    body = b'{"Pod":{"spec":{"schedulerName":"greensched"}},%b}' % nodes.encode()
    assert world.extender.filter(body).status == 400


def test_a_hundred_thousand_names_are_answered(world: World) -> None:
    world.add(*(make_node(f"node-{number}") for number in range(10)))
    scores = world.scores(*(f"node-{number}" for number in range(100_000)))
    assert len(scores) == 100_000


def test_names_of_any_length_fit_the_reply(world: World) -> None:
    names = ["a", "b" * 60, "c" * 253, "d", "ü" * 40]
    for number, name in enumerate(names):
        world.add(make_node(name, peak_w=200.0 + 100 * number))
    scores = world.scores(*names)
    assert list(scores) == names
    assert scores["a"] == 10


names = st.lists(
    st.one_of(st.sampled_from([f"n{i}" for i in range(8)]), st.text(max_size=8)), max_size=12
)
pods = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "name": st.text(max_size=5),
                "uid": st.text(max_size=3),
                "annotations": st.dictionaries(
                    st.sampled_from(["greensched.io/runtime", "x"]), st.text(max_size=6), max_size=2
                ),
            },
        ),
        "spec": st.fixed_dictionaries(
            {"schedulerName": st.sampled_from(["greensched", "default-scheduler"])},
            optional={
                "containers": st.lists(
                    st.fixed_dictionaries(
                        {
                            "resources": st.fixed_dictionaries(
                                {
                                    "requests": st.dictionaries(
                                        st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]),
                                        st.one_of(
                                            st.sampled_from(["1", "500m", "1e3Ki", "-1", "9E", ""]),
                                            st.text(max_size=5),
                                        ),
                                        max_size=3,
                                    )
                                }
                            )
                        }
                    ),
                    max_size=3,
                )
            },
        ),
    },
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)
KEYS = ["Pod", "pod", "Nodes", "nodes", "NodeNames", "nodenames", "nodeNames"]
bodies = st.one_of(
    st.builds(lambda pod, names: {"Pod": pod, "NodeNames": names}, pods, names),
    st.dictionaries(st.sampled_from(KEYS), st.one_of(pods, names, json_values)),
    json_values,
)


def body_with_bytes_as_a_name(pod: dict[str, Any], name: bytes) -> bytes:
    pod = {**pod, "spec": {"schedulerName": "greensched"}}
    return b'{"Pod":%b,"NodeNames":["n1","%b"]}' % (json.dumps(pod).encode(), name)


@settings(max_examples=1000, deadline=None)
@given(
    st.one_of(
        bodies.map(lambda body: json.dumps(body).encode()),
        st.binary(max_size=60),
        st.builds(body_with_bytes_as_a_name, pods, st.binary(max_size=8)),
    )
)
def test_no_request_crashes_it_and_no_node_is_returned_that_was_not_asked_for(
    shared_world: World, body: bytes
) -> None:
    scored = shared_world.extender.prioritize(body)
    filtered = shared_world.extender.filter(body)
    assert {scored.status, filtered.status} <= {200, 400}
    assert json.loads(filtered.body) is not None
    assert shared_world.fallbacks(Fallback.EXCEPTION) == 0
    if scored.status == 400:
        assert json.loads(scored.body)["Error"]
        return
    asked = json.loads(body)
    lists = [value for key, value in asked.items() if key.lower() == "nodenames"]
    given_names = [name for names in lists if isinstance(names, list) for name in names]
    for entry in json.loads(scored.body):
        assert entry["Host"] in given_names
        assert type(entry["Score"]) is int
        assert 0 <= entry["Score"] <= 10
    if filtered.status == 200:
        reply = json.loads(filtered.body)
        assert all(name in given_names for name in reply["NodeNames"] or [])
