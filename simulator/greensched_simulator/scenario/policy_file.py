"""The GreenPolicy that a scenario names: the manifest that users apply to a cluster."""

from pathlib import Path

import yaml

from greensched_core.errors import BadInput
from greensched_operator.objects.green_policy import GreenPolicy, Mode, parse
from greensched_policies.learned.model_fields import ONNX

KIND = "GreenPolicy"


def read_policy_file(path: Path) -> GreenPolicy:
    """Return the one GreenPolicy in a YAML file, which may hold other objects too.

    Raises BadInput if there is not exactly one, if the operator would refuse it, and if it asks for
    what the simulator cannot do.
    """
    try:
        objects = list(yaml.safe_load_all(path.read_text(encoding="utf-8-sig")))
    except (yaml.YAMLError, RecursionError, ValueError, OSError) as fault:
        raise BadInput(f"{path} cannot be read as YAML: {fault}") from fault
    found = [each for each in objects if isinstance(each, dict) and each.get("kind") == KIND]
    if len(found) != 1:
        raise BadInput(f"{path} holds {len(found)} objects of kind {KIND}; it must hold one")
    policy = parse(found[0])
    if faults := policy.faults or _not_simulated(policy):
        raise BadInput(f"{path}: {'; '.join(faults)}")
    return policy


def _not_simulated(policy: GreenPolicy) -> tuple[str, ...]:
    faults = list[str]()
    if policy.mode != Mode.ENFORCE:
        faults.append(
            f"spec.mode is {policy.mode}, with which nothing is held; set `mode: enforce` here, or "
            "simulate run-now"
        )
    if policy.when_policy == ONNX:
        faults.append(f"spec.whenPolicy is {ONNX}; the simulator runs rules only")
    return tuple(faults)
