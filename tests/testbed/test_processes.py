import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import psutil
import pytest

from greensched_testbed.errors import NotReady, ProcessDied
from greensched_testbed.processes import Processes, start_process

STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('up', flush=True); time.sleep(60)",
]
SLEEPER = ["sleep", "60"]


def wait_until_gone(pid: int, timeout_s: float = 5.0) -> bool:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


def run_parent(folder: Path, body: str) -> tuple[subprocess.Popen[str], list[int]]:
    """Run a parent that starts two children, prints their ids, and then does `body`."""
    script = textwrap.dedent("""
        import sys, time, threading
        from pathlib import Path
        from greensched_testbed.processes import Processes
        processes = Processes(Path(sys.argv[1]))
        pids = [processes.start(name, ["sleep", "60"]).pid for name in ("first", "second")]
        time.sleep(0.3)
        print(*pids, flush=True)
    """) + textwrap.dedent(body)
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert all(psutil.pid_exists(pid) for pid in pids)
    return parent, pids


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_survives_the_end_of_the_parent(tmp_path: Path, blow: signal.Signals) -> None:
    parent, pids = run_parent(tmp_path, "time.sleep(60)")
    with parent:
        parent.send_signal(blow)
        parent.wait(5)
    assert all(wait_until_gone(pid) for pid in pids)


def test_a_child_started_by_a_thread_outlives_that_thread(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    thread = threading.Thread(target=lambda: processes.start("sleeper", SLEEPER))
    thread.start()
    thread.join()
    time.sleep(0.2)
    assert processes["sleeper"].is_running()
    processes.stop_all()


def test_a_process_that_ignores_the_request_to_end_is_killed(tmp_path: Path) -> None:
    process = start_process("stubborn", STUBBORN, tmp_path / "log")
    process.wait_until(lambda: "up" in (tmp_path / "log").read_text(), "its greeting", 10)
    process.stop(grace_s=0.2)
    assert process.popen.returncode == -signal.SIGKILL


def test_processes_are_stopped_in_reverse_order(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    ended: list[str] = []
    script = "import signal, sys, time\n" + (
        "signal.signal(signal.SIGTERM, lambda *_: (open(sys.argv[1], 'a').write(sys.argv[2]), "
        "sys.exit()))\nprint('up', flush=True)\ntime.sleep(60)"
    )
    for name in "abc":
        process = processes.start(
            name, [sys.executable, "-c", script, str(tmp_path / "order"), name]
        )
        log_file = process.log_file
        process.wait_until(lambda log_file=log_file: "up" in log_file.read_text(), "start", 10)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
    processes.stop_all()
    ended.extend((tmp_path / "order").read_text())
    assert ended == ["c", "b", "a"]


def test_the_death_of_a_process_is_reported_with_its_last_words(tmp_path: Path) -> None:
    process = start_process("brief", ["sh", "-c", "echo out of coal; exit 3"], tmp_path / "log")
    process.popen.wait(10)
    with pytest.raises(ProcessDied, match=r"(?s)brief exited with 3.*out of coal"):
        process.check()


def test_waiting_in_vain_says_for_what(tmp_path: Path) -> None:
    process = start_process("idle", SLEEPER, tmp_path / "log")
    with pytest.raises(NotReady, match="idle: a miracle did not come"):
        process.wait_until(lambda: False, "a miracle", 0.1)
    process.stop()


def test_a_detached_process_survives_its_parent(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; "
        "from greensched_testbed.processes import start_process; "
        "p = start_process('s', ['sleep', '60'], Path(sys.argv[1]), outlives_us=True); "
        "print(p.pid, flush=True); p.popen.returncode = 0"
    )
    reply = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "log")],
        capture_output=True,
        text=True,
        check=True,
    )
    pid = int(reply.stdout)
    assert psutil.pid_exists(pid)
    os.kill(pid, signal.SIGKILL)
