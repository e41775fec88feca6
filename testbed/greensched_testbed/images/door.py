"""A network from which only one server of this machine can be reached."""

import ctypes
import fcntl
import os
import socket
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Self

_CLONE_NEWNET = 0x40000000  # sched.h
_SIOCSIFFLAGS = 0x8914  # linux/sockios.h
_IFF_UP = 1  # linux/if.h


class Door:
    """An empty network in which 127.0.0.1:port leads to the same port of this machine.

    A socket stays in the network in which it was created, so this needs no veth, route or rule.
    The network ends with this and all processes in it. Raises OSError if we are not root.
    """

    def __init__(self, port: int) -> None:
        self._open: list[socket.socket] = []
        with ThreadPoolExecutor(max_workers=1) as inside:  # its thread stays in the new network
            self._network, self._listening = inside.submit(_new_network, port).result()
        self._thread = threading.Thread(
            target=forward, args=(self._listening, port, self._open), name="door", daemon=True
        )

    @property
    def network(self) -> Path:
        """Return the path by which processes join the network while this is open."""
        return Path(f"/proc/{os.getpid()}/fd/{self._network}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listening, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._thread.join()
        os.close(self._network)


def forward(listening: socket.socket, to_port: int, opened: list[socket.socket]) -> None:
    """Connect each client to 127.0.0.1:`to_port`, until `listening` is shut down.

    `opened` gets the sockets of each connection.
    """
    with suppress(OSError):  # accept fails when the socket is shut down
        while True:
            here, _ = listening.accept()
            try:
                there = socket.create_connection(("127.0.0.1", to_port))
            except OSError:  # no server at this moment: only this connection fails
                here.close()
                continue
            opened += [here, there]
            for source, sink in ((here, there), (there, here)):
                threading.Thread(target=_pump, args=(source, sink), daemon=True).start()


def _new_network(port: int) -> tuple[int, socket.socket]:
    """Move this thread into a new network; return its file descriptor and a listening socket."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare: only root can create a network")
    listening = socket.socket()
    # The loopback interface of a new network is down.
    fcntl.ioctl(listening, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
    listening.bind(("127.0.0.1", port))
    listening.listen(64)
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC), listening


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
