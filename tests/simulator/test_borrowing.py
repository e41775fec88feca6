"""Tests that functions which count no references hand no array back: it would be freed in use."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, get_type_hints

import numpy as np

import greensched_policies.kernel
import greensched_simulator
from greensched_policies.billing.transfers import TransferColumns
from greensched_policies.costs.cost import NodeColumns, WorkloadColumns
from greensched_policies.costs.sleeping import SleepColumns
from greensched_policies.encoding.timing import Timing
from greensched_policies.kernel import choosing
from greensched_simulator.arrays.moving import Data
from greensched_simulator.engine.queue.reservations import Reservation
from greensched_simulator.engine.state import observing
from greensched_simulator.engine.state.observing import NewWorker
from greensched_simulator.environments import episodes
from greensched_simulator.environments.fast_bill import Taken

# What they may return; of a job's or a node's columns, those are numbers.
TUPLES = (
    tuple[int, int], tuple[float, int], tuple[float, float], tuple[float, float, float],
    tuple[float, float, float, float], tuple[np.uint64, int],
)  # fmt: skip
NUMBERS = (
    WorkloadColumns, NodeColumns, SleepColumns, TransferColumns,
    Data, NewWorker, Reservation, Taken, Timing,
)  # fmt: skip
WITHOUT_ARRAYS = (type(None), bool, int, float, np.uint64, *TUPLES, *NUMBERS)


def borrowers() -> dict[str, Any]:
    """Return all functions that are compiled to count no references."""
    found = {}
    for module in modules():
        for name, value in vars(importlib.import_module(module)).items():
            options = getattr(value, "options", None)  # numba's, where it is compiled
            if (
                isinstance(options, dict)
                and options.get("_nrt") is False
                and value.__module__ == module
            ):
                found[f"{module}.{name}"] = value
    return found


def modules() -> Iterator[str]:
    for package in (greensched_simulator, greensched_policies.kernel):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield module.name


def test_what_borrows_arrays_returns_none() -> None:
    returned = {
        name: get_type_hints(function.py_func)["return"] for name, function in borrowers().items()
    }
    assert {f"{observing.__name__}.describe", f"{episodes.__name__}._ask"} <= returned.keys()
    assert f"{choosing.__name__}.soonest_of" in returned
    assert {name: each for name, each in returned.items() if each not in WITHOUT_ARRAYS} == {}
