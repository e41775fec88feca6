"""An edit compiles anew what it could change, and nothing else."""

import inspect
import os
import time
from pathlib import Path

import pytest

from greensched_policies.compiling.code_cache import own_folder
from greensched_policies.compiling.compiled_sources import compiled_sources
from greensched_policies.library.sources import imported_by
from greensched_policies.rules.catalogue import CAP_RULES, ORDER_RULES, WHEN_RULES, WHERE_RULES

NAMES = [path.stem for path in compiled_sources()]


@pytest.mark.parametrize(
    "name", ["engine", "compiled", "cost", "slots", "capping", "nodes", "jobs"]
)
def test_machine_code_is_made_from_what_the_engine_and_its_rules_import(name: str) -> None:
    assert name in NAMES


@pytest.mark.parametrize(
    "name",
    ["bound", "charges", "accounting", "comparison", "catalogue", "world", "traces",
     "model", "job_building", "zone_grids", "services", "policy"],
)  # fmt: skip
def test_what_only_makes_worlds_or_reckons_afterwards_is_no_part_of_it(name: str) -> None:
    assert name not in NAMES


def test_a_rule_is_compiled_apart() -> None:
    """numba keeps each one's machine code under the time and size of its own file."""
    for rules in (WHEN_RULES, WHERE_RULES, ORDER_RULES, CAP_RULES):
        files = {Path(inspect.getfile(rule)) for rule in rules.values()}
        assert not files & {*compiled_sources()}


def test_machine_code_that_no_sources_used_for_a_month_is_dropped(tmp_path: Path) -> None:
    for name, days in (("stale", 31), ("fresh", 29)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, times=(time.time() - days * 86400,) * 2)
    own = own_folder(tmp_path)
    assert {each.name for each in tmp_path.iterdir()} == {"fresh", own.name}
    os.utime(own, times=(0, 0))
    assert own_folder(tmp_path) == own
    assert own.is_dir(), "whatever is in use is kept"


def test_the_order_does_not_depend_on_the_folder() -> None:
    assert [path.stem for path in compiled_sources()] == NAMES
    assert all(isinstance(path, Path) and path.is_file() for path in compiled_sources())


@pytest.mark.parametrize(
    ("line", "module"),
    [
        ("from greensched_simulator.arrays.jobs import Jobs", "greensched_simulator.arrays.jobs"),
        ("from greensched_simulator.arrays import heaps, jobs", "greensched_simulator.arrays.jobs"),
        ("from greensched_policies.costs import (cost)", "greensched_policies.costs.cost"),
        ("import greensched_simulator.policy", "greensched_simulator.policy"),
        (
            "from greensched_policies.kernel import (\n    choosing,\n    starts,\n)",
            "greensched_policies.kernel.starts",
        ),
    ],
)
def test_a_module_counts_however_it_is_imported(line: str, module: str) -> None:
    assert module in set(imported_by(f"import os\n{line}\n"))
