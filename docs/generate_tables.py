"""Writes the tables in docs/, definitions of custom resources, chart schema and some examples.

`--check` only compares them with the files.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from docs.catalogue_tables import (
    ledger_meters,
    policies_page,
    power_page,
    signals_page,
    traces_page,
)
from docs.custom_resources import SPECS, definition, resource_tables
from docs.markdown import table
from docs.policy_values import DEFINITION, policy_spec
from docs.rule_names import FILE as RULE_NAMES
from docs.rule_names import rule_names
from docs.run_folder_tables import run_folder_tables
from docs.scenario_tables import scenario_tables
from docs.stress_examples import stress_examples
from greensched_core.settings import ComponentSettings
from greensched_extender.metrics import ExtenderMetrics
from greensched_extender.settings import ExtenderSettings
from greensched_operator.install_check.settings import InstallCheckSettings
from greensched_operator.ledger.metrics import LedgerMetrics, MeasuringMetrics
from greensched_operator.ledger.tables import COLUMNS
from greensched_operator.release.metrics import ReleaserMetrics
from greensched_operator.runtime.settings import OperatorSettings
from greensched_operator.signals.metrics import SignalMetrics
from greensched_operator.webhook.metrics import WebhookMetrics
from greensched_operator.writing.metrics import ControllerMetrics
from greensched_policies.learned.model_fields import ONNX
from greensched_policies.rules.catalogue import WHERE_RULES

ROOT = Path(__file__).parent.parent
CHART_SCHEMA = "deploy/helm/greensched/values.schema.json"
GENERATED = "<!-- Written by `make docs` from the code; changes by hand are lost. -->"

# A new component is one line in each table.
SETTINGS: Mapping[str, type[ComponentSettings]] = {
    "Extender": ExtenderSettings,
    "Operator": OperatorSettings,
    "Operator: check-install": InstallCheckSettings,
}
METRICS: Mapping[str, Callable[[CollectorRegistry], object]] = {
    "Extender": ExtenderMetrics,
    "Operator: controller": ControllerMetrics,
    "Operator: webhook": WebhookMetrics,
    "Operator: releaser": ReleaserMetrics,
    "Operator: the ledger": LedgerMetrics,
    "Operator: measured energy": MeasuringMetrics,
    "Operator: grid signals": SignalMetrics,
}

_BOUNDS = {
    "minimum": "≥ ",
    "exclusiveMinimum": "> ",
    "maximum": "≤ ",
    "exclusiveMaximum": "< ",
    "pattern": "matches ",
}


def main(arguments: list[str]) -> int:
    """Write the files, or with --check name the stale ones; return the exit status."""
    if arguments != ["--check"] and _read(ROOT / RULE_NAMES) != rule_names():
        (ROOT / RULE_NAMES).write_text(rule_names(), encoding="utf-8")
        # This process defined the fields of GreenPolicies with the old names: run again.
        return subprocess.call([sys.executable, "-m", "docs.generate_tables"], cwd=ROOT)
    definitions = {
        str(path): definition(_read(ROOT / path), resource.spec) for path, resource in SPECS.items()
    }
    pages = {
        **definitions,
        "docs/green-policy.md": _resources("docs/green-policy.md"),
        "docs/settings.md": settings_page(),
        "docs/metrics.md": metrics_page(),
        "docs/run-folder.md": run_folder_page(),
        "docs/ledger.md": ledger_page(ledger_meters(_read(ROOT / "docs/ledger.md"))),
        "docs/policies.md": policies_page(_read(ROOT / "docs/policies.md")),
        "docs/power.md": power_page(_read(ROOT / "docs/power.md")),
        "docs/signals.md": signals_page(_resources("docs/signals.md")),
        "docs/traces.md": traces_page(_read(ROOT / "docs/traces.md")),
        "docs/scenarios.md": scenarios_page(_read(ROOT / "docs/scenarios.md")),
        RULE_NAMES: rule_names(),
        CHART_SCHEMA: chart_schema(_read(ROOT / CHART_SCHEMA), definitions[str(DEFINITION)]),
        **stress_examples(),
    }
    if arguments == ["--check"]:
        stale = [name for name, text in pages.items() if _read(ROOT / name) != text]
        for name in stale:
            print(f"{name} is stale: run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    for name, text in pages.items():
        (ROOT / name).write_text(text, encoding="utf-8")
    return 0


def chart_schema(text: str, green_policies: str) -> str:
    """Return the schema of the chart's values with policy names and the GreenPolicy's spec."""
    schema = json.loads(text)
    schema["properties"]["policy"]["properties"]["spec"] = policy_spec(green_policies)
    settings = schema["properties"]["extender"]["properties"]["settings"]["properties"]
    settings["policy"]["enum"] = [ONNX, *WHERE_RULES]
    settings["fallbackPolicy"]["enum"] = list(WHERE_RULES)
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def settings_page() -> str:
    """Return the page of every component's settings."""
    parts = [
        GENERATED,
        "# Settings",
        "A setting comes from the first of these that sets it: a flag, its environment variable, "
        "a line in the YAML file that the component's `…_CONFIG_FILE` names, its default. Names in "
        "the file are those of the first column; a flag has dashes: `--listen-port=8888`. Lists "
        "and maps in a variable are JSON. A component reports all faults at once when it starts. "
        "In a cluster, the chart's values set the settings.",
    ]
    for component, kind in SETTINGS.items():
        parts += [f"## {component}", _settings_table(kind)]
    return "\n\n".join(parts) + "\n"


def metrics_page() -> str:
    """Return the page of every component's metrics."""
    parts = [
        GENERATED,
        "# Metrics",
        "Names contain the unit, which is a base unit. Labels are aggregates: there is never a "
        "series per pod or per node. If a label's values are known in advance, the table lists "
        "them, and their series start at 0. A name in several tables is one metric of several "
        "processes: the labels of Prometheus's target, such as `pod`, tell them apart.",
    ]
    for component, create in METRICS.items():
        parts += [f"## {component}", _metrics_table(create)]
    return "\n\n".join(parts) + "\n"


def scenarios_page(written: str) -> str:
    """Return the page of scenario files: the part written by hand, then the tables."""
    return f"{written.partition(GENERATED)[0]}{GENERATED}\n\n{scenario_tables()}\n"


def ledger_page(written: str) -> str:
    """Return the page of the ledger: the part written by hand, then the table of its columns."""
    types = {"Text": "text", "Double": "number", "Boolean": "true or false"}
    rows = ((f"`{n}`", types[a.type.__name__], a.meaning) for n, a in COLUMNS.items())
    columns = table(("column", "type", "meaning"), rows)
    return f"{written.partition(GENERATED)[0]}{GENERATED}\n\n{columns}\n"


def run_folder_page() -> str:
    """Return the page with every column of every table in a run's folder."""
    parts = [
        GENERATED,
        "# Tables of a run",
        "`greensched simulate` and `greensched compare` write a [folder](simulator.md#the-runs-"
        "folder) with these tables. The rows of CSV and Parquet are the same.",
        "- **Times** are seconds since the scenario's start.\n"
        "- **Money** is in the scenario's currency.\n"
        "- **A missing value** is an empty cell, never a number.\n"
        "- **Units.** `count` is a number of things; `which` identifies one of them by its number. "
        "Both are whole numbers. `1` is a ratio without a unit.",
        run_folder_tables(),
    ]
    return "\n\n".join(parts) + "\n"


class _RecordingRegistry(CollectorRegistry):
    """Keeps its collectors, because a labelled metric without series is in no exposition."""

    def __init__(self) -> None:
        super().__init__()
        self.collectors: list[Collector] = []

    def register(self, collector: Collector) -> None:
        super().register(collector)
        self.collectors.append(collector)


def _settings_table(kind: type[ComponentSettings]) -> str:
    prefix = str(kind.model_config.get("env_prefix", ""))
    properties = kind.model_json_schema()["properties"]
    rows = []
    for name, field in kind.model_fields.items():
        default = field.get_default(call_default_factory=True)
        rows.append(
            (
                f"`{name}`",
                f"`{prefix}{name}`".upper(),
                _type_words(properties[name]),
                _default_words(default),
                field.description or "",
            )
        )
    return table(("setting", "environment variable", "type", "default", "meaning"), rows)


def _metrics_table(create: Callable[[CollectorRegistry], object]) -> str:
    registry = _RecordingRegistry()
    create(registry)
    rows = []
    for collector in registry.collectors:
        for family in collector.collect():
            # prometheus_client gives a metric's label names nowhere else.
            names: Iterable[str] = getattr(collector, "_labelnames", ())
            suffix = "_total" if family.type == "counter" else ""
            values = {
                name: list(dict.fromkeys(s.labels[name] for s in family.samples)) for name in names
            }
            rows.append(
                (
                    f"`{family.name}{suffix}`",
                    family.type,
                    "<br>".join(_label_words(name, seen) for name, seen in values.items()),
                    family.documentation,
                )
            )
    return table(("metric", "type", "labels", "meaning"), sorted(rows))


def _label_words(name: str, values: list[str]) -> str:
    return f"`{name}`: {', '.join(values)}" if values else f"`{name}`"


def _type_words(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        kinds = [part for part in schema["anyOf"] if part.get("type") != "null"]
        return " or ".join(_type_words(part) for part in kinds)
    if "enum" in schema:
        return " · ".join(f"`{value}`" for value in schema["enum"])
    words = str(schema.get("format") or schema.get("type", "any"))
    if words == "array":
        words = f"list of {_type_words(schema['items'])}"
    if words == "object":
        words = f"map to {_type_words(schema['additionalProperties'])}"
    bounds = [f"{sign}{_bound(schema[key])}" for key, sign in _BOUNDS.items() if key in schema]
    return ", ".join([words, *bounds])


def _bound(value: object) -> str:
    return f"`{value}`" if isinstance(value, str) else f"{value:g}" if value else "0"


def _default_words(value: object) -> str:
    if value is None or value == "":
        return "empty"
    if isinstance(value, bool | list | dict):
        return f"`{json.dumps(value)}`"
    return f"`{value}`"


def _resources(page: str) -> str:
    return resource_tables(page, _read(ROOT / page))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
