"""Finds the `when` policy that a GreenPolicy names: a rule, or the `when` head of a bundle."""

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import structlog

from greensched_core.errors import BadInput
from greensched_operator.holding.judging import MayWait
from greensched_operator.objects.green_policy import BUILT_IN, GreenPolicy
from greensched_policies.costs.cost import WorkloadColumns
from greensched_policies.encoding.observation import DecisionToMake
from greensched_policies.encoding.timing import Timing
from greensched_policies.learned.bundle import Bundle, load_bundle
from greensched_policies.learned.card import SHIPPED_PRIOR, BundleError
from greensched_policies.learned.config_map import ConfigMapObject, bundle_files, load_files
from greensched_policies.learned.guard import FallbackReason
from greensched_policies.learned.model_fields import ONNX
from greensched_policies.learned.when_head import GuardedWhen
from greensched_policies.planning.outlook import Outlook, coming_day
from greensched_policies.rules.catalogue import WHEN_RULES, WhenPolicy

log = structlog.get_logger()

_FALLBACK = BUILT_IN.when_policy
_BUDGET_S = 0.02  # for one workload's starts; the head takes 0.1 ms


class WhenChoice:
    """Loads bundles, and returns each workload's `when` policy."""

    def __init__(self, count: Callable[[FallbackReason], None]) -> None:
        self._count = count
        self._heads: dict[str, GuardedWhen] = {}  # by ConfigMap; "" is the shipped bundle
        self._faults: dict[str, str] = {}

    def load_shipped(self) -> None:
        """Load the bundle that the image contains."""
        self._take("", partial(load_bundle, SHIPPED_PRIOR))

    def put(self, item: ConfigMapObject) -> None:
        """Load a ConfigMap's bundle; ignore a ConfigMap without a card."""
        files = bundle_files(item)
        if files:
            self._take(item.metadata.name, partial(load_files, files))

    def drop(self, name: str) -> None:
        """Forget a deleted ConfigMap."""
        self._heads.pop(name, None)
        self._faults.pop(name, None)

    def fault_of(self, policy: GreenPolicy) -> str | None:
        """Return why the bundle that a policy names cannot be used; None if it can."""
        if policy.when_policy != ONNX:
            return None
        name = policy.bundle_config_map or ""
        if name in self._heads:
            return None
        return self._faults.get(name, "there is no ConfigMap of that name with a card.json")

    def at(
        self, now_s: float, outlook: Outlook, mean_memory_bytes: float
    ) -> Callable[[MayWait], WhenPolicy]:
        """Return what gives the policy that chooses a workload's start, or the fallback rule.

        `mean_memory_bytes` is that of the nodes.
        """
        day = coming_day(outlook, now_s)

        def policy_for(waiting: MayWait) -> WhenPolicy:
            policy = waiting.policy
            head = self._heads.get(policy.bundle_config_map or "")
            if policy.when_policy != ONNX or head is None:
                return WHEN_RULES.get(policy.when_policy, WHEN_RULES[_FALLBACK])
            return head.policy(decision_to_make(waiting, now_s, mean_memory_bytes), day)

        return policy_for

    def _take(self, name: str, load: Callable[..., Bundle]) -> None:
        try:
            bundle = load(needs=("when",))
        except BundleError as fault:
            self._heads.pop(name, None)
            self._faults[name] = str(fault)
            log.warning("bundle refused", config_map=name or "(shipped)", reason=str(fault))
            return
        self._faults.pop(name, None)
        log.info(
            "bundle loaded",
            config_map=name or "(shipped)",
            runs_in=bundle.runners,
            not_in_kernel=bundle.not_in_kernel,
        )
        model = bundle.when
        if model is None:
            raise BadInput(f"{name}: the bundle has no `when` head, which whenPolicy: onnx needs")
        self._heads[name] = GuardedWhen(
            bundle.card.name,
            model,
            (_FALLBACK, WHEN_RULES[_FALLBACK]),
            budget_s=_BUDGET_S,
            monotonic=perf_counter,
            count=self._count,
        )


def decision_to_make(waiting: MayWait, now_s: float, mean_memory_bytes: float) -> DecisionToMake:
    """Return what the decision on a workload rests on besides its starts, as numbers.

    `mean_memory_bytes` is that of the nodes.
    """
    work, terms, policy = waiting.work, waiting.terms, waiting.policy
    # Work that must only begin in time is asked for as if it had to end as soon as is expected.
    end_s = terms.latest_start_s + terms.runtime_s
    left_s = (end_s if terms.deadline_s is None else terms.deadline_s) - now_s
    asks: tuple[Any, ...] = (work.cpu_cores, work.memory_bytes, work.gpus, terms.runtime_s)
    mean_memory: Any = mean_memory_bytes
    return DecisionToMake(
        WorkloadColumns(*asks),
        policy.weights,
        mean_memory,
        Timing(now_s, left_s, terms.runtime_error, policy.on_time_target),
    )


class BundleSink:
    """Passes on the ConfigMaps of the operator's namespace; a sink for their watch."""

    def __init__(self, choice: WhenChoice, changed: Callable[[], None]) -> None:
        self._choice = choice
        self._changed = changed

    def list_began(self) -> None:
        """Do nothing: a bundle that a new list lacks stays in use."""

    def list_ended(self) -> None:
        """Do nothing: a bundle that a new list lacks stays in use."""

    def upsert(self, item: ConfigMapObject) -> None:
        """Load an added or updated ConfigMap."""
        self._choice.put(item)
        self._changed()

    def remove(self, item: ConfigMapObject) -> None:
        """Forget a deleted ConfigMap."""
        self._choice.drop(item.metadata.name)
        self._changed()
