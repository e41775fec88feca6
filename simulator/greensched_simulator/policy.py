"""A policy of the simulator by name: when to start and where, each a rule of the catalogue."""

from dataclasses import dataclass

from greensched_core.errors import BadInput
from greensched_policies.catalogue import WHEN_RULES, WHERE_RULES

USUAL_WHEN = "run-now"
USUAL_WHERE = "weighted-cost"
# Starts at once and on the emptiest node, as a cluster without GreenSched does.
BASELINE = "run-now+spread"
ALL = "all"


@dataclass(frozen=True, slots=True)
class Policy:
    """The two rules that decide."""

    when: str  # a name in WHEN_RULES
    where: str  # a name in WHERE_RULES

    @property
    def name(self) -> str:
        """Return the name by which results call it, such as `carbon-time+least-carbon`."""
        return f"{self.when}+{self.where}"

    @property
    def label(self) -> str:
        """Return the shortest text that `policy_named` reads as this policy."""
        if self.when == USUAL_WHEN:
            return self.where
        return self.when if self.where == USUAL_WHERE else self.name


def policy_named(text: str) -> Policy:
    """Return the policy of `WHEN+WHERE`, or of one of the two, the other one being the usual.

    Raises BadInput that lists the names there are.
    """
    when, plus, where = (part.strip() for part in text.partition("+"))
    if not plus:
        when, where = (when, USUAL_WHERE) if when in WHEN_RULES else (USUAL_WHEN, when)
    if when not in WHEN_RULES or where not in WHERE_RULES:
        raise BadInput(
            f"there is no policy {text.strip()!r}: give WHEN+WHERE or one of the two; WHEN is one "
            f"of {', '.join(WHEN_RULES)}; WHERE is one of {', '.join(WHERE_RULES)}"
        )
    return Policy(when, where)


def policies_named(text: str) -> tuple[Policy, ...]:
    """Return the policies in a list parted by commas, each once.

    `all` stands for each rule of either kind with the usual one of the other, and the baseline.
    Raises BadInput as `policy_named` does.
    """
    names: list[str] = []
    for part in text.split(","):
        if part.strip() == ALL:
            names += [BASELINE, *WHEN_RULES, *WHERE_RULES]
        else:
            names.append(part)
    return tuple(dict.fromkeys(policy_named(name) for name in names))
