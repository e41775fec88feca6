"""A policy of the simulator by name: when to start, where, and who goes first when all is full."""

from dataclasses import dataclass
from typing import NamedTuple

from greensched_core.errors import BadInput
from greensched_policies.catalogue import (
    BAD_WHEN_RULES,
    BAD_WHERE_RULES,
    ORDER_RULES,
    WHEN_RULES,
    WHERE_RULES,
)


class QueuePolicy(NamedTuple):
    """In which order jobs get room that comes free, and who may pass a job that finds none."""

    order: str  # a name in ORDER_RULES
    discipline: str  # oldest-fit and any-fit: whoever fits; nobody-passes; easy: see QUEUES


QUEUES = {
    # What kube-scheduler does: room that comes free goes to the oldest job that fits there.
    "oldest-fit": QueuePolicy("first-come", "oldest-fit"),
    # Strictly in order of arrival; a job that finds no room holds up all behind it.
    "fcfs": QueuePolicy("first-come", "nobody-passes"),
    # EASY backfilling: later jobs may start if, as is expected, they do not delay the first one.
    "easy": QueuePolicy("first-come", "easy"),
    # The literature's orders; whoever fits may start.
    "sjf": QueuePolicy("shortest-first", "any-fit"),
    **{name: QueuePolicy(name, "any-fit") for name in ("f1", "f2", "f3", "f4", "wfp3", "unicep")},
}
assert all(queue.order in ORDER_RULES for queue in QUEUES.values())

USUAL_WHEN = "run-now"
USUAL_WHERE = "weighted-cost"
USUAL_QUEUE = "oldest-fit"
# Starts at once and on the emptiest node, as a cluster without GreenSched does.
BASELINE = "run-now+spread"
ALL = "all"
NODE_0 = "node-0"  # the where rule to which no other node is offered
assert NODE_0 in BAD_WHERE_RULES


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules that decide."""

    when: str  # a name in WHEN_RULES or BAD_WHEN_RULES
    where: str  # a name in WHERE_RULES or BAD_WHERE_RULES
    queue: str = USUAL_QUEUE  # a name in QUEUES

    @property
    def name(self) -> str:
        """Return the name by which results call it, such as `carbon-time+least-carbon`."""
        queue = "" if self.queue == USUAL_QUEUE else f"+{self.queue}"
        return f"{self.when}+{self.where}{queue}"

    @property
    def label(self) -> str:
        """Return the shortest text that `policy_named` reads as this policy."""
        given = (self.when, USUAL_WHEN), (self.where, USUAL_WHERE), (self.queue, USUAL_QUEUE)
        return "+".join(mine for mine, usual in given if mine != usual) or self.where


def policy_named(text: str) -> Policy:
    """Return the policy of `WHEN+WHERE+QUEUE`; what is left out is the usual.

    Raises BadInput that lists the names there are.
    """
    found: dict[str, str] = {}
    for part in (each.strip() for each in text.split("+")):
        kinds = {
            "when": {*WHEN_RULES, *BAD_WHEN_RULES},
            "where": {*WHERE_RULES, *BAD_WHERE_RULES},
            "queue": {*QUEUES},
        }
        kind = next((kind for kind, known in kinds.items() if part in known), None)
        if kind is None or kind in found:
            raise BadInput(
                f"there is no policy {text.strip()!r}: give WHEN+WHERE+QUEUE or some of them; WHEN "
                f"is one of {', '.join(WHEN_RULES)}; WHERE is one of {', '.join(WHERE_RULES)}; "
                f"QUEUE is one of {', '.join(QUEUES)}; deliberately bad, for comparison, are "
                f"{', '.join((*BAD_WHEN_RULES, *BAD_WHERE_RULES))}"
            )
        found[kind] = part
    return Policy(
        found.get("when", USUAL_WHEN),
        found.get("where", USUAL_WHERE),
        found.get("queue", USUAL_QUEUE),
    )


def policies_named(text: str) -> tuple[Policy, ...]:
    """Return the policies in a list parted by commas, each once.

    `all` stands for each rule of any kind with the usual ones of the others, and the baseline. What
    is deliberately bad is not among them. Raises BadInput as `policy_named` does.
    """
    names: list[str] = []
    for part in text.split(","):
        if part.strip() == ALL:
            names += [BASELINE, *WHEN_RULES, *WHERE_RULES, *QUEUES]
        else:
            names.append(part)
    return tuple(dict.fromkeys(policy_named(name) for name in names))
