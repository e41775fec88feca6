"""The recipes of CONTRIBUTING.md, walked in a scratch copy: what it shows works as it stands."""

import re
import sys
from pathlib import Path

import pytest

from tests.repository_files import ROOT
from tests.scratch_checkout import copy_checkout, run_in

pytestmark = pytest.mark.recipe

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```python\n# (\S+\.py)\n(.*?)```", PAGE, re.DOTALL))
CATALOGUES = dict(re.findall(r"```diff\n--- (\S+\.py)\n(.*?)```", PAGE, re.DOTALL))
LINE = re.compile(r"^ ((\w+): .*)\n\+(.*)$", re.MULTILINE)
TESTS = [name for name in FILES if name.startswith("tests/")]
# Of all tests those that hold for whatever a catalogue names.
WHATEVER_IS_NAMED = [
    "tests/policies/rules/test_rules.py",
    "tests/policies/rules/test_order_rules.py",
    "tests/policies/rules/test_sleep_rules.py",
    "tests/policies/rules/test_when_rules.py",
    "tests/operator/providers/test_own_providers.py",
    "tests/operator/providers/test_provider_garbage.py",
    "tests/core/metering/test_power_measured.py",
    "tests/core/metering/test_pod_energy.py",
    "tests/simulator/formats/test_traces.py",
    "tests/simulator/test_policy_names.py",
]
RULES_OF_THE_HOUSE = [
    f"tests/test_{rules}.py" for rules in ("documents", "imports", "repository", "style")
]
PYTHON = (sys.executable, "-m")
CRDS = "deploy/helm/greensched/files/crds"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what git knows of the checkout, with all examples added as the page says."""
    copy = tmp_path_factory.mktemp("checkout")
    copy_checkout(copy)
    for name, text in FILES.items():
        (copy / name).write_text(text, encoding="utf-8")
    for name, lines in CATALOGUES.items():
        path = copy / name
        path.write_text(with_lines(path.read_text(encoding="utf-8"), lines), encoding="utf-8")
    run_in(copy, *PYTHON, "ruff", "check", "--fix", "--quiet", *CATALOGUES)
    run_in(copy, *PYTHON, "docs.generate_tables")
    return copy


def with_lines(catalogue: str, lines: str) -> str:
    """Return a catalogue with each line at the head of its table, and its name imported."""
    for head, table, entry in LINE.findall(lines):
        assert catalogue.count(f"\n{head}\n") == 1, f"the catalogue has no {table} as shown"
        catalogue = catalogue.replace(f"\n{head}\n", f"\n{head}\n{entry}\n")
        name = re.findall(r"\w+", entry)[-1]
        added = f"\nfrom {module_of(name)} import {name}"
        catalogue = catalogue.replace("\nfrom ", f"{added}\nfrom ", 1)
    return catalogue


def module_of(name: str) -> str:
    """Return the module of the page's examples that defines a name."""
    (path,) = (
        Path(path)
        for path, text in FILES.items()
        if re.search(rf"^(def |class )?{name}\b", text, re.MULTILINE)
    )
    return ".".join(path.with_suffix("").parts[1:])


def test_each_kind_is_one_file_one_line_and_one_test() -> None:
    lines = [found for text in CATALOGUES.values() for found in LINE.findall(text)]
    assert len(lines) == len(TESTS) == len(FILES) - len(TESTS)
    assert {table for _, table, _ in lines} == {
        "WHERE_RULES", "WHEN_RULES", "ORDER_RULES", "CAP_RULES", "SLEEP_RULES", "PAUSE_RULES",
        "ALL", "METERS", "FORMATS",
    }  # fmt: skip


def test_the_examples_keep_format_types_layers_and_the_rules_of_the_house(scratch: Path) -> None:
    run_in(scratch, *PYTHON, "ruff", "check", "--quiet", *FILES, *CATALOGUES)
    run_in(scratch, *PYTHON, "ruff", "format", "--quiet", "--check", *FILES, *CATALOGUES)
    run_in(scratch, Path(sys.executable).with_name("lint-imports"))
    run_in(scratch, *PYTHON, "mypy", *FILES, *CATALOGUES)
    run_in(scratch, "git", "init", "--quiet")
    run_in(scratch, *PYTHON, "pytest", "-q", "-p", "no:cacheprovider", *RULES_OF_THE_HOUSE)


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (f"{CRDS}/greenpolicies.yaml", "'least-price'"),
        ("deploy/helm/greensched/values.schema.json", '"fewest-watts"'),
        (f"{CRDS}/gridsignals.yaml", "has(self.awattar)"),
        (f"{CRDS}/gridsignals.yaml", "enum: [at, de]"),
        ("docs/policies.md", "| `sleep-after-1h` | an hour for each node that saves watts"),
        ("docs/policies.md", "candidate's relative energy | Beloglazov et al., FGCS 2012 |"),
        ("docs/policies.md", "each start | this project |"),
        ("docs/policies.md", "| `smallest-first` | the requested cores | any that fits |"),
        ("docs/signals.md", "| `awattar` | price | Day-ahead prices of Germany or Austria"),
        ("docs/metrics.md", "`provider`: awattar, "),
        ("docs/power.md", "| 1 | `ipmi` | IPMI: `ipmi_dcmi_power_consumption_watts`"),
        ("docs/traces.md", "| Slurm's `sacct` | `JobIDRaw,Submit,ElapsedRaw,ReqCPUS` |"),
        ("docs/scenarios.md", "| `memory_per_core` | text such as `2Gi` | none | Memory per"),
    ],
)
def test_pages_and_definitions_follow(scratch: Path, page: str, words: str) -> None:
    assert words in (scratch / page).read_text(encoding="utf-8")


def test_the_command_line_names_what_was_added(scratch: Path) -> None:
    listed = run_in(scratch, *PYTHON, "greensched_cli", "policy", "list")
    for rule in (
        "fewest-watts", "least-price", "smallest-first", "slowest-in-time", "sleep-after-1h",
        "pause-rarely",
    ):  # fmt: skip
        assert rule in listed
    for verb in ("replay", "demo"):
        told = run_in(scratch, *PYTHON, "greensched_cli", verb, "--help")
        assert "Slurm" in told and "--memory-per-core" in told


def test_a_scenario_takes_the_option_of_the_trace_format(scratch: Path) -> None:
    (scratch / "tell.py").write_text(
        "from greensched_simulator.scenario.trace_workload import TraceWorkload\n\n"
        "told = {'file': 'tell.py', 'memory_per_core': '2Gi'}\n"
        "print(TraceWorkload.model_validate(told).options())\n",
        encoding="utf-8",
    )
    assert run_in(scratch, *PYTHON, "tell").strip() == "{'memory_per_core': 2147483648.0}"


def test_the_simulator_compiles_the_rules(scratch: Path) -> None:
    added = "least-price or fewest-watts or smallest-first or slowest-in-time or pause-rarely"
    file = "tests/policies/rules/test_rules_compile.py"
    told = run_in(scratch, *PYTHON, "pytest", "-q", "-p", "no:cacheprovider", file, "-k", added)
    assert "5 passed" in told


def test_malformed_answers_are_given_to_the_provider_without_a_line_in_their_test(
    scratch: Path,
) -> None:
    tests = "tests/operator/providers/test_provider_garbage.py"
    listed = run_in(scratch, *PYTHON, "pytest", "-q", "--collect-only", tests)
    assert listed.count("[awattar-price-1]") == 3


def test_their_tests_pass_and_so_do_those_of_whatever_is_named(scratch: Path) -> None:
    run_in(scratch, *PYTHON, "pytest", "-q", "-p", "no:cacheprovider", *TESTS, *WHATEVER_IS_NAMED)
