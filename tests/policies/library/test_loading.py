"""A library that is missing, or is given what it cannot take, is told in a sentence."""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.encoding.weights import Weights
from greensched_policies.library import functions
from greensched_policies.library.loading import NEWER, address_of, best_name, cpu_flags, file_name
from greensched_policies.library.sources import sources_of
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.outlook import outlook_of
from greensched_policies.planning.planning import StartRequest, plan_all

WITHOUT_NUMBA = """
import sys
from importlib.abc import MetaPathFinder
class Without(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numba", "llvmlite"):
            raise ModuleNotFoundError(name)
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "numba" else found(name, *rest)
sys.meta_path.insert(0, Without())
from greensched_core.errors import BadInput
from greensched_policies.library import loading
loading.find_spec = importlib.util.find_spec
loading.BUILT = loading.Path("/nowhere")
try:
    loading.load()
except BadInput as fault:
    print(fault)
"""


def test_an_installation_without_a_library_says_so_when_it_is_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_NUMBA], capture_output=True, text=True)
    assert done.stdout.startswith("/nowhere/"), done.stderr
    assert "is missing: this installation was made for another processor" in done.stdout
    assert "greensched[simulator]" in done.stdout


@pytest.mark.parametrize(
    "array",
    [
        pytest.param(np.zeros(3, np.float32), id="of-another-type"),
        pytest.param(np.zeros((4, 4))[:, ::2], id="not-in-c-order"),
    ],
)
def test_an_array_that_machine_code_would_misread_is_refused(array: npt.NDArray[Any]) -> None:
    with pytest.raises(TypeError, match="that is not float64 in C order"):
        address_of(array)


def test_the_name_of_the_library_changes_with_its_sources_and_nothing_else() -> None:
    names = {path.stem for path in sources_of("greensched_policies.kernel.build")}
    assert {"planning", "choosing", "starts", "when", "slots", "runtime", "units"} <= names
    assert not names & {"accounting", "bundle", "slot_planning", "library_calls"}
    assert Path(file_name("aarch64")).suffix == ".so"


def test_an_exception_of_a_policy_outside_the_library_reaches_the_caller() -> None:
    def broken(slots: SlotColumns) -> Floats:
        raise KeyError("no such head")

    outlook = outlook_of(0.0, 900.0, np.array([[2.0, 1.0]]), np.ones((1, 2)))
    asked = StartRequest(
        np.array([900.0]), 900.0, 1.0, np.array([9.0]), Weights(0.0, 1.0, 0.0), broken
    )
    plan = CorePlan(np.array([1.0]), 0.0, 900.0, 4)
    with pytest.raises(KeyError, match="no such head"):
        plan_all(outlook, plan, [asked], 0.0)


NEWER_FLAGS = NEWER["x86_64"].flags


@pytest.mark.parametrize(
    ("name", "processor", "flags", "wanted"),
    [
        pytest.param("rate_candidates", "x86_64", NEWER_FLAGS, "_x86_64_v3", id="newer"),
        pytest.param("rate_candidates", "x86_64", NEWER_FLAGS - {"fma"}, "", id="one-flag-lacks"),
        pytest.param("rate_candidates", "x86_64", frozenset(), "", id="nothing-known"),
        pytest.param("rate_candidates", "aarch64", NEWER_FLAGS, "", id="another-kind"),
        pytest.param("see_nodes", "x86_64", NEWER_FLAGS, "", id="not-made-twice"),
    ],
)
def test_what_is_made_twice_is_called_as_the_processor_can(
    name: str, processor: str, flags: frozenset[str], wanted: str
) -> None:
    assert best_name(name, processor, flags) == name + wanted


def test_a_processor_of_which_nothing_is_said_has_no_flags(tmp_path: Path) -> None:
    assert cpu_flags(tmp_path / "cpuinfo") == frozenset()
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nflags\t\t: fpu avx2\nflags\t\t: none\n")
    assert cpu_flags(tmp_path / "cpuinfo") == {"fpu", "avx2"}


def test_no_place_of_what_functions_take_has_the_name_of_another() -> None:
    """A second assignment would silently move what an older function reads."""
    names = [
        name.id
        for assignment in ast.parse(Path(functions.__file__).read_text()).body
        if isinstance(assignment, ast.Assign)
        for target in assignment.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    ]
    assert [name for name, times in Counter(names).items() if times > 1] == []
