"""The library is made for any processor, and refuses code that needs more than the C library."""

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.np.numpy_support import carray

from greensched_core.errors import BadInput
from greensched_policies.kernel.build import link, object_code
from greensched_policies.kernel.entries import ENTRIES
from greensched_policies.kernel.runtime import new_strides
from greensched_policies.kernel.unlinked import functions_of
from greensched_policies.library.functions import FUNCTIONS

MACHINES = {"x86_64": 62, "aarch64": 183}  # in the header of an ELF file


def sorted_and_summed(integers_at: Any, numbers_at: Any) -> None:
    """Write the numbers, sorted, over the numbers, and the largest plus their sum behind them."""
    count = carray(integers_at, (1,))[0]
    numbers = carray(numbers_at, (count + 1,))
    rising = np.sort(numbers[:count])
    table = rising.copy().reshape((1, count))
    numbers[count] = np.max(table) + np.where(rising > 0.0, rising, 0.0).sum()
    for place in range(count):
        numbers[place] = rising[place]


def counted(integers_at: Any, numbers_at: Any) -> None:
    """Need numba at run time, for a dictionary."""
    count = carray(integers_at, (1,))[0]
    found = {count: 1.0}
    found[count + 1] = 2.0
    carray(numbers_at, (1,))[0] = found[count]


def answer_of(function: Any) -> list[float]:
    """Return what a function makes of four numbers."""
    function.restype, function.argtypes = ctypes.c_int32, [ctypes.c_void_p] * 4
    count, numbers = np.array([4]), np.array([3.0, -1.0, 2.0, 0.5, 0.0])
    unread = ctypes.c_void_p(), ctypes.c_void_p()
    places = [ctypes.addressof(each) for each in unread]
    assert function(*places, count.ctypes.data, numbers.ctypes.data) == 0
    return [float(each) for each in numbers]


WANTED = [-1.0, 0.5, 2.0, 3.0, 3.0 + 5.5]


@pytest.fixture(scope="module")
def code() -> dict[str, bytes]:
    """The function as an object file for each processor."""
    return {each: object_code(each, {"sorted_and_summed": sorted_and_summed}) for each in MACHINES}


def test_what_is_made_for_another_processor_is_for_that_one(code: dict[str, bytes]) -> None:
    found = {each: int.from_bytes(made[18:20], "little") for each, made in code.items()}
    assert found == MACHINES


def test_a_linked_library_needs_no_numba(code: dict[str, bytes], tmp_path: Path) -> None:
    """Arrays, lists and numpy's functions of numba run on the C library's memory."""
    path = tmp_path / "own.so"
    if not link(code["x86_64"], "x86_64", path):
        pytest.skip("no linker: neither ld nor ziglang")
    assert answer_of(ctypes.CDLL(str(path)).sorted_and_summed) == WANTED
    assert "numba" not in path.read_bytes().decode("latin-1").replace("numba_attempt", "")


def test_where_no_linker_is_the_object_file_answers_the_same(
    code: dict[str, bytes], tmp_path: Path
) -> None:
    path = tmp_path / "own.o"
    path.write_bytes(code["x86_64"])
    assert answer_of(functions_of(path)("sorted_and_summed")) == WANTED


def test_code_that_needs_numba_is_refused_by_what_it_needs() -> None:
    with pytest.raises(BadInput, match="need .*numba_dict_.*, which the C library does not have"):
        object_code("x86_64", {"counted": counted})


def test_an_unknown_processor_is_reported_with_those_there_are() -> None:
    with pytest.raises(BadInput, match="riscv64 is unknown: use one of x86_64, aarch64"):
        object_code("riscv64")


def test_the_command_refuses_a_processor_that_it_does_not_know() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "greensched_policies.kernel.build", "--processor", "sparc"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2 and "invalid choice: 'sparc'" in done.stderr


@pytest.mark.parametrize(
    ("strides", "shape", "wanted"),
    [
        pytest.param([24, 8], [6], [8], id="in-c-order"),
        pytest.param([24, 8], [3, 2], [16, 8], id="another-shape"),
        pytest.param([8, 16], [6], None, id="in-fortran-order"),
    ],
)
def test_only_an_array_in_c_order_gets_another_shape(
    strides: list[int], shape: list[int], wanted: list[int] | None
) -> None:
    found = np.zeros(len(shape), np.int64)
    before, steps, after, result = (
        each.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
        for each in (np.array([2, 3]), np.array(strides), np.array(shape), found)
    )
    is_possible = new_strides(2, before, steps, len(shape), after, result, 8)
    assert bool(is_possible) == (wanted is not None)
    assert wanted is None or found.tolist() == wanted


def test_what_the_components_call_is_what_is_compiled() -> None:
    assert tuple(ENTRIES) == FUNCTIONS
