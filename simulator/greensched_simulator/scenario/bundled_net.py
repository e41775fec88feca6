"""The nets of bundles, as the compiled library computes them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from greensched_core.errors import BadInput
from greensched_policies.learned.bundle import Bundle, load_bundle
from greensched_policies.learned.card import CARD_FILE, SHIPPED_PRIOR
from greensched_policies.learned.config_map import ConfigMapObject, bundle_files, load_files
from greensched_policies.learned.heads import WHEN, WHERE
from greensched_policies.library.nets import CandidateNet


def shipped_net() -> CandidateNet:
    """Return the net of the bundle that is shipped."""
    return _net_of(load_bundle(SHIPPED_PRIOR, needs=(WHEN.name,)), "the shipped bundle")


def nets_in(folder: Path) -> dict[str, CandidateNet]:
    """Return the nets of the bundle in a folder, by head; raises BadInput if it is refused."""
    bundle = load_bundle(folder, needs=())
    return {name: _net_of(bundle, f"the bundle {folder}", name) for name in bundle.heads}


def net_among(objects: Sequence[Any], name: str) -> tuple[CandidateNet, bool]:
    """Return the net of the bundle in the ConfigMap of that name among Kubernetes objects.

    The second value says whether the bundle has a `where` head too. Raises BadInput if there is no
    such ConfigMap, and if operator or simulator would refuse its bundle.
    """
    named = [each for each in objects if _is_config_map(each, name)]
    if not named:
        raise BadInput(
            f"spec.bundle names the ConfigMap {name}, which the file does not hold: add it behind "
            "a line `---`, as `kubectl get configmap -o yaml` prints it"
        )
    try:
        files = bundle_files(msgspec.convert(named[0], ConfigMapObject))
    except ValueError as fault:
        raise BadInput(f"ConfigMap {name}: {fault}") from fault
    if not files:
        raise BadInput(f"ConfigMap {name} holds no {CARD_FILE}, so no bundle")
    bundle = load_files(files, (WHEN.name,))
    return _net_of(bundle, f"the bundle of ConfigMap {name}"), WHERE.name in bundle.heads


def _is_config_map(item: object, name: str) -> bool:
    match item:
        case {"kind": "ConfigMap", "metadata": {"name": found}}:
            return bool(found == name)
    return False


def _net_of(bundle: Bundle, title: str, head: str = WHEN.name) -> CandidateNet:
    run = bundle.heads[head].run
    if run.net is None:
        raise BadInput(
            f"{title}: the compiled library cannot compute its {head} head ({run.reason}), "
            "and the simulator has nothing else that could"
        )
    return run.net
