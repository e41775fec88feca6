"""kube-scheduler's extender protocol, v1: its JSON ↔ our values.

Keys are Go's field names (k8s.io/kube-scheduler/extender/v1/types.go has no json tags). Go ignores
the case of keys; so do we, at no cost for a request that is spelt as in Go.

A request is decoded in two steps. First only the pod is decoded and the node names stay bytes, so
that a pod without the opt-in costs little.
"""

from collections.abc import Mapping, Sequence

import msgspec

from greensched_core.errors import BadInput
from greensched_core.objects import PodObject
from greensched_policies.library.node_names import HEAD

_NULL = msgspec.Raw(b"null")
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class ExtenderArgs(msgspec.Struct):
    """The body of /filter and /prioritize; nodes are undecoded."""

    Pod: PodObject | None = None
    Nodes: msgspec.Raw = _NULL
    NodeNames: msgspec.Raw = _NULL


class _LowerCaseArgs(msgspec.Struct):
    pod: PodObject | None = None
    nodes: msgspec.Raw = _NULL
    nodenames: msgspec.Raw = _NULL


class BindingArgs(msgspec.Struct):
    """The body of /bind."""

    PodName: str = ""
    PodNamespace: str = ""
    PodUID: str = ""
    Node: str = ""


class _LowerCaseBinding(msgspec.Struct):
    podname: str = ""
    podnamespace: str = ""
    poduid: str = ""
    node: str = ""


class _NodeMeta(msgspec.Struct):
    name: str


class _NodeItem(msgspec.Struct):
    metadata: _NodeMeta


class _NodeList(msgspec.Struct):
    items: list[_NodeItem] | None = None


class _RawNodeList(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


_decode_args = msgspec.json.Decoder(ExtenderArgs).decode
_decode_lower_args = msgspec.json.Decoder(_LowerCaseArgs).decode
_decode_binding = msgspec.json.Decoder(BindingArgs).decode
_decode_lower_binding = msgspec.json.Decoder(_LowerCaseBinding).decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_names = msgspec.json.Decoder(list[str]).decode
_decode_nodes = msgspec.json.Decoder(_NodeList | None).decode
_decode_raw_nodes = msgspec.json.Decoder(_RawNodeList).decode
encode = msgspec.json.Encoder().encode


def read_args(body: bytes) -> ExtenderArgs:
    """Decode a request except its node names; raise BadInput that says what is wrong where."""
    try:
        args = _decode_args(body)
        if args.Pod is None or not (_is_given(args.NodeNames) or _is_given(args.Nodes)):
            lower = _decode_lower_args(_in_lower_case(body))
            args = ExtenderArgs(lower.pod, lower.nodes, lower.nodenames)
    except _UNREADABLE as fault:
        raise BadInput(f"the body is not ExtenderArgs: {fault}") from fault
    if args.Pod is None:
        raise BadInput("the body is not ExtenderArgs: `Pod` is missing")
    return args


def _in_lower_case(body: bytes) -> bytes:
    """Return the body with lower-case keys; of two spellings, the one with more capitals counts."""
    fields = sorted(_decode_fields(body).items(), reverse=True)
    return encode({key.lower(): value for key, value in fields if _is_given(value)})


def read_names(args: ExtenderArgs) -> list[str]:
    """Decode the node names of a request; raise BadInput when they are not a list of names.

    A scheduler without `nodeCacheCapable: true` sends whole nodes; their names are returned.
    """
    try:
        if _is_given(args.NodeNames):
            return _decode_names(args.NodeNames)
        nodes = _decode_nodes(args.Nodes)
    except _UNREADABLE as fault:
        where = "NodeNames" if _is_given(args.NodeNames) else "Nodes"
        raise BadInput(f"{where} of the body: {fault}") from fault
    return [item.metadata.name for item in (nodes.items or ())] if nodes else []


def sends_whole_nodes(args: ExtenderArgs) -> bool:
    """Return whether the scheduler sent nodes instead of names, and so expects nodes back."""
    return not _is_given(args.NodeNames) and _is_given(args.Nodes)


def read_binding(body: bytes) -> BindingArgs:
    """Decode the body of /bind; raise BadInput when pod, namespace or node is missing."""
    try:
        args = _decode_binding(body)
        if not (args.PodName and args.PodNamespace and args.PodUID and args.Node):
            lower = _decode_lower_binding(_in_lower_case(body))
            args = BindingArgs(lower.podname, lower.podnamespace, lower.poduid, lower.node)
    except _UNREADABLE as fault:
        raise BadInput(f"the body is not ExtenderBindingArgs: {fault}") from fault
    for name in ("PodName", "PodNamespace", "Node"):
        if not getattr(args, name):
            raise BadInput(f"the body is not ExtenderBindingArgs: `{name}` is missing")
    return args


def all_pass(args: ExtenderArgs) -> bytes:
    """Return the filter reply that lets every node of the request pass, without decoding them.

    Raises BadInput when the nodes are neither an array of names nor a NodeList.
    """
    if sends_whole_nodes(args):
        if not bytes(memoryview(args.Nodes)[:1]) == b"{":
            raise BadInput("Nodes of the body: Expected `object`")
        return b'{"Nodes":%b,"NodeNames":null%b' % (bytes(args.Nodes), _NOTHING_FAILED)
    names = bytes(args.NodeNames) if _is_given(args.NodeNames) else b"[]"
    if not names.startswith(b"["):
        raise BadInput("NodeNames of the body: Expected `array`")
    return b'{"Nodes":null,"NodeNames":%b%b' % (names, _NOTHING_FAILED)


_NOTHING_FAILED = b',"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}'


def some_pass(
    args: ExtenderArgs, offered: Sequence[str], passed: Sequence[str], refused: Mapping[str, str]
) -> bytes:
    """Return the filter reply that refuses nodes permanently, each with its reason.

    `offered` are the names from `read_names`, so that whole nodes are not decoded again. Refused
    nodes are in FailedAndUnresolvableNodes: evicting other pods would not help, and preemption's
    dry run does not ask extenders (kubernetes/kubernetes#94418).
    """
    nodes: object = None
    names: Sequence[str] | None = passed
    if sends_whole_nodes(args):
        names = None
        items = _decode_raw_nodes(args.Nodes).items or []
        given = zip(items, offered, strict=True)
        nodes = {"items": [item for item, name in given if name not in refused]}
    return encode(
        {
            "Nodes": nodes,
            "NodeNames": names,
            "FailedNodes": {},
            "FailedAndUnresolvableNodes": refused,
            "Error": "",
        }
    )


def error(message: str) -> bytes:
    """Return a body with an error, in the form of ExtenderFilterResult and -BindingResult."""
    return encode({"Error": message})


def score_head(name: str) -> bytes:
    """Return a node's entry in a prioritize reply up to its score."""
    return HEAD + encode(name) + b',"Score":'


def equal_scores(names: Sequence[str], score: int = 0) -> bytes:
    """Return the prioritize reply that gives every name the same score: no preference."""
    return encode([{"Host": name, "Score": score} for name in names])


def _is_given(raw: msgspec.Raw) -> bool:
    return memoryview(raw).nbytes != 4 or bytes(raw) != b"null"
