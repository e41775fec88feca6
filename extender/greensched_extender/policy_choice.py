"""The policy in use: a rule, or a bundle's model, which is loaded without a restart."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from greensched_core.errors import BadInput
from greensched_extender.metrics import BundleLoad, Fallback
from greensched_extender.policy_bundles import PolicyBundles
from greensched_policies.learned.bundle import Bundle, load_bundle
from greensched_policies.learned.card import CARD_FILE, SHIPPED_PRIOR
from greensched_policies.learned.guard import FallbackReason, NamedPolicy, WhereGuard, WhereRule
from greensched_policies.learned.heads import HEADS, WHERE
from greensched_policies.learned.model_fields import ONNX
from greensched_policies.rules.catalogue import WHERE_RULES

log = structlog.get_logger()


def rule(name: str) -> WhereRule:
    """Return the rule of that name; raise BadInput that lists the known names."""
    if name not in WHERE_RULES:
        raise BadInput(f"there is no rule {name!r}; the rules are {', '.join(sorted(WHERE_RULES))}")
    return NamedPolicy(name, WHERE_RULES[name])


@dataclass(frozen=True)
class PolicySettings:
    """The settings of the policy."""

    policy: str  # onnx or a rule's name
    folder: Path | None  # of the bundle; None: the one in the package
    fallback: str
    budget_s: float


class Answering(NamedTuple):
    """What answers a request, and what was missing."""

    guard: WhereGuard
    bundle: str  # name of the bundle that the model is of
    fallback: Fallback | None = None


class PolicyChoice:
    """Holds the guarded policy that answers; a refused bundle never replaces it.

    Raises BadInput when the settings name a rule that does not exist. If the bundle is refused at
    start-up, the fallback rule serves until the folder holds a valid bundle.
    """

    def __init__(
        self,
        settings: PolicySettings,
        *,
        monotonic: Callable[[], float],
        count: Callable[[FallbackReason], None],
        count_load: Callable[[BundleLoad], None],
    ) -> None:
        self._settings = settings
        self._monotonic = monotonic
        self._count = count
        self._count_load = count_load
        self._fallback = rule(settings.fallback)
        self._folder = settings.folder or SHIPPED_PRIOR
        self._seen: tuple[object, ...] = ()
        self.bundle: Bundle | None = None
        self.bundles = PolicyBundles(self.guarded, count_load)
        self.refusal = ""  # why the newest bundle is not in use
        first = self._fallback if settings.policy == ONNX else rule(settings.policy)
        self.guard = self.guarded(first)
        self.serving = first.name
        if settings.policy == ONNX:
            self.reload()

    def reload(self) -> bool:
        """Load the bundle if its folder changed; return whether another bundle serves now.

        The self test of a new bundle blocks for about 10 ms: call this in a thread.
        """
        if self._settings.policy != ONNX:
            return False
        seen = self._fingerprint()
        if seen == self._seen:
            return False
        self._seen = seen
        try:
            bundle = load_bundle(self._folder)
        except BadInput as fault:
            self.refusal = str(fault)
            self._count_load(BundleLoad.REFUSED)
            log.warning("bundle refused", serving=self.serving, reason=self.refusal)
            return False
        self.bundle, self.refusal, self.serving = bundle, "", ONNX
        self.guard = self.guarded(NamedPolicy(ONNX, bundle.where))
        self._count_load(BundleLoad.LOADED)
        log.info(
            "bundle serves",
            folder=str(self._folder),
            name=bundle.card.name,
            runs_in=bundle.runners,
            not_in_kernel=bundle.not_in_kernel,
        )
        return True

    def answering(self, config_map: str) -> Answering:
        """Return what answers for a policy whose bundle is in a ConfigMap; "": it names none."""
        found = self.bundles.get(config_map) if config_map else None
        if found is not None and found.guard is not None:
            return Answering(found.guard, found.name)
        own = self.bundle.card.name if self.bundle else ""
        is_missing = config_map and found is None
        return Answering(self.guard, own, Fallback.NO_BUNDLE if is_missing else None)

    def describe(self) -> dict[str, Any]:
        """Return the policy in use as JSON values."""
        card = self.bundle.card if self.bundle else None
        return {
            "policy": self._settings.policy,
            "serving": self.serving,
            "fallbackPolicy": self._fallback.name,
            "budgetSeconds": self._settings.budget_s,
            "modelRests": self.guard.is_open,
            "bundle": None
            if card is None
            else {
                "folder": str(self._folder),
                "name": card.name,
                "encodingVersion": card.encoding_version,
                "untrained": card.untrained,
                "trainedOn": card.trained_on,
                "sha256": {head: facts.sha256 for head, facts in card.heads.items()},
                "runsIn": self.bundle.runners if self.bundle else {},
                "notInKernel": self.bundle.not_in_kernel if self.bundle else {},
            },
            "refusedBundle": self.refusal or None,
            "policyBundles": self.bundles.describe(),
        }

    def labels(self) -> tuple[str, str, str, str]:
        """Return the policy in use, its bundle and hash, and what computes it, for the metric."""
        if self.bundle is None:
            return self.serving, "", "", ""
        card, runner = self.bundle.card, self.bundle.runners[WHERE.name]
        return self.serving, card.name, card.heads[WHERE.name].sha256, runner

    def guarded(self, policy: WhereRule) -> WhereGuard:
        """Return a policy that the fallback rule and the time budget guard."""
        return WhereGuard(
            policy,
            self._fallback,
            budget_s=self._settings.budget_s,
            monotonic=self._monotonic,
            count=self._count,
        )

    def _fingerprint(self) -> tuple[object, ...]:
        """Return what changes with the card, or with graphs that are copied after the card."""
        try:
            card = (self._folder / CARD_FILE).read_bytes()
        except OSError:
            return (None,)
        return card, *(_stamp(self._folder / head.file) for head in HEADS.values())


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
