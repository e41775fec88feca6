"""Finds free TCP ports of this machine, and reserves each for one caller.

A port stays reserved while this process runs, even if nothing listens on it yet. The reservation is
a lock on one byte of a file; the byte's offset is the port. The kernel releases it when the process
ends in any way.
"""

import fcntl
import functools
import os
import random
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

# Below Linux's ephemeral range (net.ipv4.ip_local_port_range starts at 32768), so that no outgoing
# connection takes a port between our check and the server's bind, or while a server restarts.
_FIRST, _LAST = 20_000, 31_999

_one_at_a_time = threading.Lock()
_reserved: set[int] = set()  # needed since a process's second lock on a byte succeeds


def free_ports(count: int) -> tuple[int, ...]:
    """Return `count` ports on which nothing listens at 127.0.0.1, and that no other caller gets.

    Raises OSError if there are fewer.
    """
    found: list[int] = []
    with _one_at_a_time:
        for port in _from_anywhere():
            if len(found) == count:
                break
            if port not in _reserved and _is_free(port) and _is_ours(port):
                found.append(port)
                _reserved.add(port)
    if len(found) < count:
        raise OSError(f"only {len(found)} free ports between {_FIRST} and {_LAST}")
    return tuple(found)


def free_port() -> int:
    """Return a port on which nothing listens at 127.0.0.1, and that no other caller gets."""
    return free_ports(1)[0]


def _from_anywhere() -> Iterator[int]:
    """Yield every port of the range once, from a random one on, so that callers rarely collide."""
    start = random.SystemRandom().randint(_FIRST, _LAST)
    yield from range(start, _LAST + 1)
    yield from range(_FIRST, start)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True


def _is_ours(port: int) -> bool:
    try:
        fcntl.lockf(_lock_file(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


@functools.cache
def _lock_file() -> int:
    """Return the open lock file, which is never closed: that would release all its locks."""
    path = Path(tempfile.gettempdir()) / f"greensched-ports-{os.getuid()}.lock"
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
