import subprocess
import sys

from greensched_testbed.ports import free_port, free_ports

# Takes ports, tells them, and lives on until its input ends.
TAKES_PORTS = "import sys; from greensched_testbed.ports import free_ports; "
TAKES_PORTS += "print(*free_ports(400), flush=True); sys.stdin.read()"


def test_processes_that_look_at_once_never_get_the_same_port() -> None:
    takers = [
        subprocess.Popen(
            [sys.executable, "-c", TAKES_PORTS],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    try:
        taken = [port for each in takers if each.stdout for port in each.stdout.readline().split()]
        ours = free_ports(400)
    finally:
        for each in takers:
            each.communicate(timeout=30)
    assert len(taken) == 1200
    assert len({*map(int, taken), *ours}) == 1600


def test_a_port_is_not_given_out_twice_though_nobody_listens_yet() -> None:
    ports = [free_port() for _ in range(300)]
    assert len(set(ports)) == 300
