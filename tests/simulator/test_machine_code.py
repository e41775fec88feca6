"""Whether users are told that the engine has to be compiled first."""

import os
import subprocess
import sys
from pathlib import Path

import numba

from greensched_simulator.machine_code import is_cached
from greensched_simulator.policy import policy_named
from greensched_simulator.simulation import simulate
from greensched_simulator.testing import make_world

ASK = "from greensched_simulator.machine_code import is_cached; print(is_cached())"

MAKE = """
from greensched_simulator.environments.single import GreenSchedEnv
from greensched_simulator.testing import make_world
GreenSchedEnv([make_world([{}])], "run-now")
"""


def test_after_a_run_the_engine_is_there() -> None:
    simulate(make_world([{}]), policy_named("run-now+spread"))
    assert is_cached()


def test_whoever_makes_an_environment_is_told_that_it_takes_a_while(tmp_path: Path) -> None:
    begun = subprocess.Popen(
        [sys.executable, "-c", MAKE], env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with begun:
        assert begun.stderr is not None
        told = begun.stderr.readline()
        begun.kill()
    assert told.startswith("compiling the environments")


def test_machine_code_of_another_checkout_does_not_count(tmp_path: Path) -> None:
    own = Path(numba.config.CACHE_DIR)  # type: ignore[attr-defined]  # set by `compiled`
    theirs = tmp_path / "greensched" / "compiled" / own.name / "another_checkout"
    theirs.mkdir(parents=True)
    (theirs / "engine.run-77.py311.1.nbc").touch()
    there = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", ASK], env=there, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
