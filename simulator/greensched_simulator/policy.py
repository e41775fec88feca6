"""The simulator's policies by name: when, where, how fast and in which order work runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from greensched_core.errors import BadInput
from greensched_core.quoting import near
from greensched_policies.learned.model_fields import ONNX
from greensched_policies.rules.names import (
    BAD_WHEN_NAMES,
    CAP_NAMES,
    ORDER_NAMES,
    PAUSE_NAMES,
    SCALE_NAMES,
    SLEEP_NAMES,
    WHEN_NAMES,
    WHERE_NAMES,
)


class Placing(NamedTuple):
    """The rule that ranks nodes with room, and how these are searched for."""

    rule: str  # a name in WHERE_NAMES
    stops_at_first: bool = False  # otherwise finds as many nodes as kube-scheduler scores
    goes_on: bool = True  # from where the last search stopped; otherwise from the first node
    only_node_0: bool = False  # no other node has room


PLACINGS = {
    **{name: Placing(name) for name in WHERE_NAMES},
    "first-fit": Placing("first-fit", stops_at_first=True, goes_on=False),
    # Nodes in turn: the next with room after the last one found.
    "round-robin": Placing("first-fit", stops_at_first=True),
}
# Deliberately bad, for tests and teaching: jobs wait for the first node despite room elsewhere.
BAD_PLACINGS = {
    "node-0": Placing("first-fit", stops_at_first=True, goes_on=False, only_node_0=True)
}


class QueuePolicy(NamedTuple):
    """The order in which jobs get freed room, and which jobs may overtake one without room."""

    order: str  # a name in ORDER_NAMES
    discipline: str  # one of DISCIPLINES in `engine/run.py`


_QUEUES = {
    # As kube-scheduler: freed room goes to the oldest job that fits there.
    "oldest-fit": QueuePolicy("first-come", "oldest-fit"),
    # Strictly in order of arrival; a job without room blocks all jobs behind it.
    "fcfs": QueuePolicy("first-come", "strict-order"),
    # Like fcfs, with the number of busy cores limited by the grid's carbon intensity.
    "cap-fifo": QueuePolicy("first-come", "provisioned"),
    # EASY backfilling: later jobs may start if they are not expected to delay the first one.
    "easy": QueuePolicy("first-come", "easy"),
    # All waiting jobs are placed at once, for the least total cost by the `where` rule.
    "concurrent": QueuePolicy("first-come", "together"),
    # The literature's orders; any job that fits may start.
    "sjf": QueuePolicy("shortest-first", "any-fit"),
    "ljf": QueuePolicy("longest-first", "any-fit"),
}
_NAMED_ORDERS = {queue.order for queue in _QUEUES.values()}
QUEUES = {
    **_QUEUES,
    # Likewise each other order, by its name.
    **{name: QueuePolicy(name, "any-fit") for name in ORDER_NAMES if name not in _NAMED_ORDERS},
}
assert all(queue.order in ORDER_NAMES for queue in QUEUES.values())

USUAL_WHEN = "run-now"
GREEN_POLICY = "green-policy"  # in place of a `when` rule: the scenario's GreenPolicy holds jobs
LEARNED = ONNX  # in place of a `when`, `where` or `cap` rule: a head of a learned bundle
LEARNED_PREFIX = f"{LEARNED}:"  # before a bundle's folder
OPERATORS_PAUSE = "pause-if-worth"  # the only pause rule beside `green-policy`
USUAL_WHERE = "weighted-cost"
USUAL_QUEUE = "oldest-fit"
USUAL_SLEEP = "stay-awake"
USUAL_CAP = "full-speed"
USUAL_PAUSE = "run-through"
# Starts at once on the emptiest node, as a cluster without GreenSched does.
BASELINE = "run-now+spread"
ALL = "all"
_HOW_NAMED = "`greensched policy list` prints all names"


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules that decide, or the heads of a learned bundle in place of some of them."""

    when: str  # a name in WHEN_NAMES or BAD_WHEN_NAMES, GREEN_POLICY or LEARNED
    where: str  # a name in PLACINGS or BAD_PLACINGS, or LEARNED
    queue: str = USUAL_QUEUE  # a name in QUEUES
    sleep: str = USUAL_SLEEP  # a name in SLEEP_NAMES
    cap: str = USUAL_CAP  # a name in CAP_NAMES, or LEARNED
    pause: str = USUAL_PAUSE  # a name in PAUSE_NAMES
    bundle: str = ""  # the folder of the bundle, if anything is LEARNED

    @property
    def placing(self) -> Placing:
        """Return how nodes are searched for and ranked; by a rule where a head cannot rank them."""
        return (PLACINGS | BAD_PLACINGS)[USUAL_WHERE if self.where == LEARNED else self.where]

    @property
    def cap_rule(self) -> str:
        """Return the rule that caps nodes, also where a head gives no number."""
        return USUAL_CAP if self.cap == LEARNED else self.cap

    @property
    def is_held(self) -> bool:
        """Return whether a GreenPolicy holds jobs, by a rule or by a head."""
        return self.when in (GREEN_POLICY, LEARNED)

    @property
    def name(self) -> str:
        """Return the name used in results, such as `carbon-time+least-carbon`."""
        return "+".join(self._parts())

    def _parts(self) -> Iterator[str]:
        """Yield the bundle, and the rules that a name tells: the first two, others if unusual."""
        if self.bundle:
            yield f"{LEARNED_PREFIX}{self.bundle}"
        usual_cap = LEARNED if self.bundle else USUAL_CAP
        for rule, untold in (
            (self.when, LEARNED), (self.where, LEARNED), (self.queue, USUAL_QUEUE),
            (self.sleep, USUAL_SLEEP), (self.cap, usual_cap), (self.pause, USUAL_PAUSE),
        ):  # fmt: skip
            if rule != untold:
                yield rule

    @property
    def label(self) -> str:
        """Return its preset's name, or the shortest text that `policy_named` reads as it.

        The baseline has both rules: its second alone would hide that it starts work on arrival.
        """
        if self.name == BASELINE:
            return BASELINE
        if self.bundle:
            return self.name
        for name, preset in PRESETS.items():
            if preset == self:
                return name
        given = (
            (self.when, USUAL_WHEN), (self.where, USUAL_WHERE), (self.queue, USUAL_QUEUE),
            (self.sleep, USUAL_SLEEP), (self.cap, USUAL_CAP), (self.pause, USUAL_PAUSE),
        )  # fmt: skip
        return "+".join(rule for rule, usual in given if rule != usual) or self.name


# Policies with one name in the literature.
PRESETS = {
    # The shortest, or the longest, waiting job first, on the node where it ends first.
    "min-min": Policy("run-now", "fastest", "sjf"),
    "max-min": Policy("run-now", "fastest", "ljf"),
    # Concurrent placement with Tetris' dot product as the cost.
    "ecsched": Policy("run-now", "tetris", "concurrent"),
    # Tetris with its order of least remaining work first, here not weighed against alignment.
    "tetris-srtf": Policy("run-now", "tetris", "sjf"),
    # The baseline with sleeping empty nodes.
    "sleep-only": Policy("run-now", "spread", sleep="sleep-at-break-even"),
    # The baseline with a power cap on all nodes.
    "cap-only": Policy("run-now", "spread", cap="cap-60"),
    # Suspended work runs in its cleanest slots; other work in the cleanest window.
    "wait-awhile": Policy("lowest-window", "spread", pause="pause-freely"),
    # Suspended while the grid is dirtier than its forecast, until there is no time left.
    "ecovisor": Policy("clean-threshold", "spread", pause="pause-freely"),
    # Elastic work has more workers in cleaner slots; see `scaling`.
    "carbon-scaler": Policy("lowest-window", "spread", pause="scale-freely"),
}


def policy_named(text: str) -> Policy:
    """Return the policy of `WHEN+WHERE+QUEUE+SLEEP+CAP+PAUSE`, or a preset.

    Omitted rules are the usual ones. `onnx:FOLDER` in place of any of them is a learned bundle,
    whose heads decide when, where and how fast unless a rule for it is named. Raises BadInput for
    an unknown name, with close ones.
    """
    (policy,) = _each_named([text])
    return policy


def _each_named(texts: Sequence[str]) -> list[Policy]:
    """Return the policies of several texts; raise BadInput that lists all their faults."""
    read = [_read(text.strip()) for text in texts]
    doubled = [fault for each in read for fault in each.doubled]
    unknown = [fault for each in read for fault in each.unknown]
    if doubled or unknown:
        faults = "; ".join(dict.fromkeys((*doubled, *unknown)))
        raise BadInput(f"{faults}; {_HOW_NAMED}" if unknown else faults)
    return [each.policy for each in read]


class _Read(NamedTuple):
    """A policy read from a text; meaningless if there are faults."""

    policy: Policy
    doubled: Sequence[str] = ()  # faults: two rules of a kind
    unknown: Sequence[str] = ()  # faults: names of no rule


def _read(text: str) -> _Read:
    if text in PRESETS:
        return _Read(PRESETS[text])
    found: dict[str, str] = {}
    doubled, unknown = [], []
    kinds = _rules()
    for part in (each.strip() for each in text.split("+")):
        kind = next((kind for kind, known in kinds.items() if part in known), None)
        if part.startswith(LEARNED_PREFIX):
            kind, part = "bundle", part.removeprefix(LEARNED_PREFIX).strip()
        if kind == "bundle" and not part:
            unknown.append(f"{text!r} names no bundle: give its folder, as in onnx:models/prior")
        elif part in PRESETS and kind != "bundle":
            unknown.append(f"{part!r} is a preset and cannot be combined, as in {text!r}")
        elif kind is None:
            within = "" if part == text else f" in {text!r}"
            close = near(part, [*PRESETS, *(name for known in kinds.values() for name in known)])
            unknown.append(f"there is no policy {part!r}{within}{close}")
        elif kind in found:
            each = "bundles" if kind == "bundle" else f"{kind} rules"
            doubled.append(f"{text!r} names two {each}, {found[kind]} and {part}: give one")
        else:
            found[kind] = part
    usual = {"when": USUAL_WHEN, "where": USUAL_WHERE}
    if "bundle" in found:
        usual = {"when": LEARNED, "where": LEARNED, "cap": LEARNED}
    return _Read(Policy(**{**usual, **found}), doubled, unknown)


def _rules() -> dict[str, set[str]]:
    """Return the names of each kind of rule, by the field of a policy."""
    return {
        "when": {*WHEN_NAMES, *BAD_WHEN_NAMES, GREEN_POLICY},
        "where": {*PLACINGS, *BAD_PLACINGS},
        "queue": {*QUEUES},
        "sleep": {*SLEEP_NAMES},
        "cap": {*CAP_NAMES},
        "pause": {*PAUSE_NAMES},
    }


def names_by_kind() -> dict[str, tuple[str, ...]]:
    """Return all names by kind, in the order of WHEN+WHERE+QUEUE+SLEEP+CAP+PAUSE.

    After them come the presets, which cannot be combined, and the deliberately bad rules.
    """
    return {
        "when": (*WHEN_NAMES, GREEN_POLICY),
        "where": tuple(PLACINGS),
        "queue": tuple(QUEUES),
        "sleep": SLEEP_NAMES,
        "cap": CAP_NAMES,
        "pause": PAUSE_NAMES,
        "preset": tuple(PRESETS),
        "deliberately bad": (*BAD_WHEN_NAMES, *BAD_PLACINGS),
    }


class Able(NamedTuple):
    """The actions that have an effect in the scenario in which policies are compared."""

    nodes_sleep: bool = True
    jobs_suspend: bool = True
    jobs_scale: bool = True
    has_green_policy: bool = False  # the scenario names one


def policies_named(text: str, able: Able = Able()) -> tuple[Policy, ...]:  # noqa: B008 - frozen
    """Return the policies in a comma-separated list, each once.

    `all` means each rule of any kind with the usual rules of the other kinds, the pause rules with
    `planned-window`, the presets, the baseline, and `green-policy` if the scenario names one, also
    with its pause rule. It leaves out deliberately bad rules, and rules without effect: sleep rules
    if no node can sleep, pause rules if no job can be suspended, and scale rules if none is
    elastic. These must be named. Raises BadInput as `policy_named` does, for all names at once.
    """
    names: list[str] = []
    for part in text.split(","):
        names += _all(able) if part.strip() == ALL else [part]
    return tuple(dict.fromkeys(_each_named(names)))


def _all(able: Able) -> list[str]:
    pauses = {USUAL_PAUSE}
    if able.jobs_suspend:
        pauses = {rule for rule in PAUSE_NAMES if able.jobs_scale or rule not in SCALE_NAMES}
    presets = [
        name
        for name, preset in PRESETS.items()
        if (able.nodes_sleep or preset.sleep == USUAL_SLEEP) and preset.pause in pauses
    ]
    sleeps = [*SLEEP_NAMES] if able.nodes_sleep else []
    # A job that starts at once has no reason to pause.
    planned = [f"planned-window+{rule}" for rule in PAUSE_NAMES if rule in pauses]
    whens = [*WHEN_NAMES, GREEN_POLICY] if able.has_green_policy else [*WHEN_NAMES]
    if able.has_green_policy and able.jobs_suspend:
        planned.append(f"{GREEN_POLICY}+{OPERATORS_PAUSE}")
    return [BASELINE, *whens, *PLACINGS, *QUEUES, *sleeps, *CAP_NAMES, *planned, *presets]
