"""No process is left of a training that was killed."""

import os
import subprocess
import sys
import time

_KILLED = """
import os, signal
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from greensched_train.world_pool import begin_process

if __name__ == "__main__":
    pool = ProcessPoolExecutor(1, get_context("spawn"), begin_process)
    print(pool.submit(os.getpid).result(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def is_alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended but was not waited for does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_processes_end_when_the_one_that_began_them_is_killed() -> None:
    done = subprocess.run([sys.executable, "-c", _KILLED], capture_output=True, text=True)
    child, before_s = int(done.stdout), time.monotonic()
    assert child != os.getpid()
    while is_alive(child) and time.monotonic() < before_s + 30.0:
        time.sleep(0.05)
    assert not is_alive(child)
