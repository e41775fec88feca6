"""Whether users are told that the engine has to be compiled first."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from greensched_simulator.policy import policy_named
from greensched_simulator.runs.machine_code import is_cached
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.testing.small_worlds import make_world

ROOT = Path(__file__).parents[3]
ASK = """
from pathlib import Path
import greensched_simulator
from greensched_simulator.runs.machine_code import is_cached
print(is_cached(), Path(greensched_simulator.__file__).parents[2])
"""

MAKE = """
from greensched_simulator.environments.single import GreenSchedEnv
from greensched_simulator.testing.small_worlds import make_world
GreenSchedEnv([make_world([{}])], "run-now")
"""


def test_after_a_run_the_engine_is_there() -> None:
    simulate(make_world([{}]), policy_named("run-now+spread"))
    assert is_cached()


def test_making_an_environment_says_that_it_takes_a_while(tmp_path: Path) -> None:
    begun = subprocess.Popen(
        [sys.executable, "-c", MAKE], env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with begun:
        assert begun.stderr is not None
        told = begun.stderr.readline()
        begun.kill()
    assert told.startswith("compiling the environments")


def test_a_checkout_uses_machine_code_that_another_made_of_the_same_sources(tmp_path: Path) -> None:
    simulate(make_world([{}]), policy_named("run-now+spread"))
    checkout = [tmp_path / name for name in ("core", "policies", "simulator")]
    for package in checkout:
        shutil.copytree(ROOT / package.name, package, ignore=shutil.ignore_patterns("__pycache__"))
    there = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, checkout))}
    assert asked(there) == f"True {tmp_path}"
    with (tmp_path / "simulator/greensched_simulator/arrays/heaps.py").open("a") as source:
        source.write("# an edit\n")
    assert asked(there) == f"False {tmp_path}"


def asked(environment: dict[str, str]) -> str:
    """Return whether the engine is compiled, and in which folder the simulator was found."""
    done = subprocess.run(
        [sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
