"""A way from pods to a server that listens on loopback alone: the bridge of the pods leads to it."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_CHUNK = 1 << 16


class _Server(socketserver.ThreadingTCPServer):
    def __init__(self, address: str, *, port: int) -> None:
        super().__init__((address, 0), _Handler)
        self.port = port
        self.ends: set[socket.socket] = set()

    def hang_up(self) -> None:
        """End every connection: whoever reads from one reads its end."""
        for end in list(self.ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        server, here = self.server, self.request
        assert isinstance(server, _Server)
        with suppress(OSError), socket.create_connection(("127.0.0.1", server.port)) as there:
            server.ends |= {here, there}
            back = threading.Thread(target=_copy, args=(there, here))
            back.start()
            _copy(here, there)
            back.join()
            server.ends -= {here, there}


@contextmanager
def forwarded(address: str, *, port: int) -> Iterator[int]:
    """The port on ``address`` that leads to ``port`` on loopback for as long as the block lasts."""
    with _Server(address, port=port) as server:
        thread = threading.Thread(target=server.serve_forever, name="forwarding")
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()
            server.hang_up()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Until one side has said all."""
    with suppress(OSError):
        while content := source.recv(_CHUNK):
            target.sendall(content)
        target.shutdown(socket.SHUT_WR)
