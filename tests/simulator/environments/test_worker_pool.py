"""Threads that help with steps: nobody does an episode twice, and nobody is left behind."""

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError

from greensched_simulator.environments.sharing import IDLE
from greensched_simulator.environments.vector import GreenSchedVectorEnv
from greensched_simulator.environments.worker_pool import WorkerPool, idle_counters
from greensched_simulator.testing.random_worlds import random_world

SOON_S = 10.0


def comes_true(told: Callable[[], bool]) -> bool:
    """Tell whether something comes true soon."""
    until = time.monotonic() + SOON_S
    while not told() and time.monotonic() < until:
        time.sleep(0.001)
    return told()


def helpers() -> int:
    return sum(thread.name.startswith("greensched-step") for thread in threading.enumerate())


def test_each_helper_gets_its_number_and_is_woken_for_every_step() -> None:
    helped: list[int] = []
    pool = WorkerPool(helped.append, 2, idle_counters(2))
    for step in range(1, 4):
        assert comes_true(lambda: all(pool.counters[-2:]))  # both sleep
        pool.call()
        assert comes_true(lambda step=step: sorted(helped) == [1] * step + [2] * step)  # type: ignore[misc]  # mypy cannot tell
    pool.close()


def test_what_a_helper_fails_with_is_raised() -> None:
    def fail(own: int) -> None:
        raise ValueError(f"helper {own} cannot")

    pool = WorkerPool(fail, 1, idle_counters(1))
    pool.check()
    assert comes_true(lambda: bool(pool.counters[-1]))
    pool.call()
    assert comes_true(lambda: helpers() == 0)
    with pytest.raises(ValueError, match="helper 1 cannot"):
        pool.check()


def test_whoever_leaves_a_step_early_waits_for_those_at_work() -> None:
    is_through = threading.Event()

    def work(own: int) -> None:
        pool.counters[IDLE] -= 1
        is_through.wait(SOON_S)
        pool.counters[IDLE] += 1

    pool = WorkerPool(work, 1, idle_counters(1))
    assert comes_true(lambda: bool(pool.counters[-1]))
    pool.call()
    assert comes_true(lambda: pool.counters[IDLE] == 0)
    threading.Timer(0.05, is_through.set).start()
    pool.wait()
    assert is_through.is_set() and pool.counters[IDLE] == 1
    pool.close()


ENDS_AT_ONCE = """
import sys
import numpy as np
from greensched_simulator.environments.vector import GreenSchedVectorEnv
from greensched_simulator.testing.small_worlds import make_world

count = int(sys.argv[1])
worlds = [make_world([{}], [{}, {}]) for _ in range(4)]  # one question, then another episode
env = GreenSchedVectorEnv(worlds, "run-now+spread", "where", num_envs=count, threads=count)
env.reset(seed=1)
for _ in range(5_000):
    env.step(np.zeros(count, np.int64))
"""


@pytest.mark.parametrize("count", [2, 4])
def test_helpers_that_come_late_touch_no_scene_that_is_being_replaced(count: int) -> None:
    GreenSchedVectorEnv([random_world(1)], "run-now", num_envs=1)  # compiled, which is told
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ENDS_AT_ONCE, str(count)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("is_closed", [True, False])
def test_no_helper_outlives_its_environment(is_closed: bool) -> None:
    many = GreenSchedVectorEnv([random_world(1)], "run-now+spread", "where", num_envs=32, threads=3)
    many.reset(seed=1)
    many.step(np.zeros(32, np.int64))
    assert helpers() == 2
    if is_closed:
        many.close()
        with pytest.raises(ClosedEnvironmentError):
            many.step(np.zeros(32, np.int64))
    del many
    gc.collect()
    assert comes_true(lambda: helpers() == 0)


@pytest.mark.parametrize("threads", [2, 3])
def test_helpers_that_sleep_or_come_late_change_nothing(threads: int) -> None:
    worlds = [random_world(seed) for seed in range(3)]
    dice, count = np.random.default_rng(threads), 64
    alone, together = (
        GreenSchedVectorEnv(worlds, "run-now+spread", "where", num_envs=count, threads=each)
        for each in (1, threads)
    )
    alone.reset(seed=1)
    together.reset(seed=1)
    for _ in range(300):
        if dice.random() < 0.1:
            time.sleep(dice.choice([0.0002, 0.002]))  # about when they fall asleep, and after
        actions = dice.integers(0, 4, count)
        said, seen = alone.step(actions), together.step(actions)
        for name, values in said[0].items():
            np.testing.assert_array_equal(seen[0][name], values)
        np.testing.assert_array_equal(seen[1], said[1])
    alone.close()
    together.close()
