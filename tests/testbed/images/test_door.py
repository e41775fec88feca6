"""How a door connects the clients of its network to a server of this machine."""

import socket
from concurrent.futures import ThreadPoolExecutor

from greensched_testbed.images.door import forward
from greensched_testbed.ports import free_port

HOST = "127.0.0.1"


def test_a_connection_that_fails_does_not_end_the_next_one() -> None:
    port, opened = free_port(), list[socket.socket]()
    with socket.create_server((HOST, 0)) as listening, ThreadPoolExecutor(1) as threads:
        threads.submit(forward, listening, port, opened)
        try:
            with socket.create_connection(listening.getsockname(), timeout=10.0) as refused:
                assert refused.recv(1) == b"", "nothing serves the port yet"
            with socket.create_server((HOST, port)) as server:
                server.settimeout(10.0)
                with socket.create_connection(listening.getsockname(), timeout=10.0) as client:
                    client.sendall(b"hello")
                    served, _ = server.accept()
                    with served:
                        assert served.recv(5) == b"hello"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            for each in opened:
                each.close()
