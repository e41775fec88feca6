"""Free TCP ports of this machine."""

import random
import socket

# Below Linux's ephemeral range (net.ipv4.ip_local_port_range starts at 32768), so that no outgoing
# connection takes a port between our look and the server's bind, or while a server restarts.
_FIRST, _LAST = 20_000, 31_999


def free_ports(count: int) -> tuple[int, ...]:
    """Return `count` different ports that nobody on 127.0.0.1 listens on just now.

    Raises OSError when there are not that many.
    """
    found: list[int] = []
    for port in random.SystemRandom().sample(range(_FIRST, _LAST + 1), _LAST - _FIRST + 1):
        if len(found) == count:
            break
        if _is_free(port):
            found.append(port)
    if len(found) < count:
        raise OSError(f"only {len(found)} free ports between {_FIRST} and {_LAST}")
    return tuple(found)


def free_port() -> int:
    """Return one port that nobody on 127.0.0.1 listens on just now."""
    return free_ports(1)[0]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True
