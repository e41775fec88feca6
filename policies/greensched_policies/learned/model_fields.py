"""The fields of a GreenPolicy that name a `when` rule or a model: `whenPolicy` and `bundle`."""

from dataclasses import dataclass

from greensched_core.custom_resources.fields import (
    FieldKind,
    SchemaRule,
    custom_field,
    group,
    plain,
    text,
)
from greensched_core.errors import BadInput
from greensched_core.quoting import quoted
from greensched_policies.rules.names import WHEN_NAMES

ONNX = "onnx"  # instead of a rule's name: the model of a bundle


def _when_policy(raw: object, where: str) -> str:
    name = plain(str, raw, where)
    if name not in (known := (ONNX, *WHEN_NAMES)):
        raise BadInput(f"{where}: {quoted(name)} is none of {', '.join(known)}")
    return name


WHEN_POLICY = FieldKind(
    _when_policy,
    {"type": "string", "maxLength": 63},
    "name",
    (
        SchemaRule(
            f"self in {[ONNX, *WHEN_NAMES]}",
            f"whenPolicy is not known; choose {ONNX} or one of these rules: "
            + ", ".join(WHEN_NAMES),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class BundleFields:
    """The place of the model for whenPolicy onnx."""

    config_map: str = custom_field(
        "configMapName",
        text(
            253,
            "name",
            SchemaRule(
                "self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",
                "configMapName must be the name of a ConfigMap, lower case letters, digits, '-' "
                "and '.'",
            ),
        ),
        "Name of the ConfigMap with the model's bundle (`card.json` and ONNX graphs). It must be "
        "in the operator's namespace: a model runs inside the operator, so only users who may "
        "write there may add one.",
        needed="configMapName is missing",
    )


def _bundle(found: BundleFields, where: str) -> str:
    if not found.config_map:
        raise BadInput(f"{where}: configMapName is missing")
    return found.config_map


BUNDLE = group(
    BundleFields,
    _bundle,
    SchemaRule(
        "has(self.configMapName)",
        "a bundle needs configMapName, the ConfigMap in the operator's namespace that holds it",
    ),
)
