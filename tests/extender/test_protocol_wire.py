"""Bodies that a real kube-scheduler sent and understood, in both directions."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from greensched_core.errors import BadInput
from greensched_core.testing import make_node
from greensched_extender import protocol

World = Any
NAMES = ["fake-00002", "fake-00001", "fake-00000"]


def opted_in(body: dict[str, Any]) -> bytes:
    body["Pod"]["spec"]["schedulerName"] = "greensched"
    return json.dumps(body).encode()


@pytest.mark.parametrize("file", ["filter.json", "prioritize.json"])
def test_a_real_request_is_read(wire: Path, file: str) -> None:
    args = protocol.read_args((wire / file).read_bytes())
    assert args.Pod is not None
    assert args.Pod.metadata.name == "p-00001"
    assert args.Pod.spec.schedulerName == "default-scheduler"
    assert protocol.read_names(args) == NAMES
    assert not protocol.sends_whole_nodes(args)


def test_a_prioritize_reply_has_the_shape_that_was_understood(wire: Path, world: World) -> None:
    world.add(*(make_node(name, peak_w=300.0 + 100 * i) for i, name in enumerate(NAMES)))
    body = opted_in(json.loads((wire / "prioritize.json").read_bytes()))
    ours = json.loads(world.extender.prioritize(body).body)
    theirs = json.loads((wire / "prioritize.reply.json").read_bytes())
    assert [entry["Host"] for entry in ours] == [entry["Host"] for entry in theirs]
    assert [list(entry) for entry in ours] == [list(entry) for entry in theirs]
    assert all(type(entry["Score"]) is int and 0 <= entry["Score"] <= 10 for entry in ours)


def test_a_filter_reply_has_the_shape_that_was_understood(wire: Path, world: World) -> None:
    world.add(*(make_node(name) for name in NAMES))
    body = opted_in(json.loads((wire / "filter.json").read_bytes()))
    ours = json.loads(world.extender.filter(body).body)
    theirs = json.loads((wire / "filter.reply.json").read_bytes())
    assert {key: ours[key] for key in theirs} == theirs
    assert ours["Nodes"] is None
    assert ours["FailedAndUnresolvableNodes"] == {}


def test_a_scheduler_that_sends_whole_nodes_gets_scores(wire: Path, world: World) -> None:
    body = json.loads((wire / "prioritize.nodes-not-cached.json").read_bytes())
    names = [item["metadata"]["name"] for item in body["Nodes"]["items"]]
    world.add(*(make_node(name) for name in names))
    ours = json.loads(world.extender.prioritize(opted_in(body)).body)
    assert [entry["Host"] for entry in ours] == names


@pytest.mark.parametrize("budget_w", [None, 1.0], ids=["all-pass", "one-refused"])
def test_a_scheduler_that_sends_whole_nodes_gets_whole_nodes_back(
    wire: Path, world: World, budget_w: float | None
) -> None:
    body = json.loads((wire / "filter.nodes-not-cached.json").read_bytes())
    items = body["Nodes"]["items"]
    names = [item["metadata"]["name"] for item in items]
    world.add(make_node(names[0], power_budget_w=budget_w), *map(make_node, names[1:]))
    ours = json.loads(world.extender.filter(opted_in(body)).body)
    assert ours["NodeNames"] is None
    assert ours["Nodes"]["items"] == (items if budget_w is None else items[1:])
    assert list(ours["FailedAndUnresolvableNodes"]) == ([] if budget_w is None else names[:1])


def test_a_real_binding_is_read(wire: Path) -> None:
    args = protocol.read_binding((wire / "bind.json").read_bytes())
    assert (args.PodNamespace, args.PodName, args.Node) == ("bench", "p-00001", "fake-00002")
    assert args.PodUID == "c5cf4b64-870b-4d15-b265-8f1b8339e987"
    assert json.loads(protocol.error("")) == json.loads((wire / "bind.reply.json").read_bytes())


def test_keys_are_read_whatever_their_case_and_capitals_win(
    pod: Callable[..., dict[str, Any]],
) -> None:
    for pod_key in ("Pod", "pod", "POD"):
        for key in ("nodenames", "nodeNames", "NodeNames", "NODENAMES"):
            args = protocol.read_args(json.dumps({pod_key: pod(), key: ["a"]}).encode())
            assert protocol.read_names(args) == ["a"]
    args = protocol.read_args(b'{"Pod":{},"nodes":{"items":[{"metadata":{"name":"a"}}]}}')
    assert protocol.read_names(args) == ["a"]
    assert protocol.sends_whole_nodes(args)
    args = protocol.read_args(
        json.dumps({"Pod": pod(), "NodeNames": ["a"], "nodenames": ["b"]}).encode()
    )
    assert protocol.read_names(args) == ["a"]
    binding = b'{"podName":"p","podNamespace":"d","podUID":"u","node":"n"}'
    assert protocol.read_binding(binding).Node == "n"
    binding = b'{"PodName":"p","PodNamespace":"d","poduid":"u","NODE":"n"}'
    assert protocol.read_binding(binding) == protocol.BindingArgs("p", "d", "u", "n")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(b"", "not ExtenderArgs", id="empty"),
        pytest.param(b"<html>", "not ExtenderArgs", id="html"),
        pytest.param(b"[]", "not ExtenderArgs: Expected `object`", id="array"),
        pytest.param(b"{}", "`Pod` is missing", id="no-pod"),
        pytest.param(b'{"Pod":5}', r"\$\.Pod", id="pod-is-a-number"),
        pytest.param(b'{"Pod":{"metadata":{"name":5}}}', r"\$\.Pod\.metadata\.name", id="name"),
        pytest.param(b'{"Pod":{},"NodeNames":["a"', "not ExtenderArgs", id="cut-off"),
        pytest.param(b"[" * 100_000, "not ExtenderArgs", id="deep"),
        pytest.param(b'{"Pod":{"metadata":{"name":"\xff"}}}', "not ExtenderArgs", id="no-utf-8"),
    ],
)
def test_a_body_that_cannot_be_read_is_reported_where(body: bytes, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        protocol.read_args(body)


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        pytest.param('"NodeNames":"a"', "NodeNames of the body", id="a-name"),
        pytest.param('"NodeNames":[1]', r"NodeNames of the body.*\$\[0\]", id="numbers"),
        pytest.param('"Nodes":{"items":[{}]}', "Nodes of the body", id="nodes-without-names"),
    ],
)
def test_names_that_cannot_be_read_are_reported_where(rest: str, said: str) -> None:
    args = protocol.read_args(b'{"Pod":{},' + rest.encode() + b"}")
    with pytest.raises(BadInput, match=said):
        protocol.read_names(args)


def test_no_nodes_at_all_is_an_empty_list() -> None:
    for rest in (
        "",
        ',"NodeNames":[]',
        ',"Nodes":null,"NodeNames":null',
        ',"Nodes":{"items":null}',
    ):
        assert protocol.read_names(protocol.read_args(b'{"Pod":{}%b}' % rest.encode())) == []
