"""Whether the product's addresses are free, and if not, who has them."""

from __future__ import annotations

import socket

import psutil


class PortInUse(RuntimeError):
    """Another process listens where the product would; the message says which and what to do."""


def require_free(*, host: str, port: int, variable: str) -> None:
    """Return if a server could listen there now.

    :raises PortInUse: if none could; ``variable`` is the one that chooses another port.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As servers do: connections that are only fading away are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise PortInUse(
                f"cannot listen on {host}:{port} ({error.strerror}): {_holder(port)}. "
                f"Choose another port with {variable}, for example: {variable}={port + 10} make up"
            ) from error


def _holder(port: int) -> str:
    for pid in _listeners(port):
        try:
            process = psutil.Process(pid)
            home = process.environ().get("NINEFOLD_HOME")
            if home:
                return (
                    f"the Ninefold whose files are in {home} has it (process {pid}); "
                    f"stop that one with: NINEFOLD_HOME={home} make down"
                )
            return f"process {pid} ({process.name()}) has it"
        except psutil.Error:
            continue
    return "a process of another account has it, or the address is not one of this machine"


def _listeners(port: int) -> list[int]:
    try:
        connections = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:
        return []
    return [
        connection.pid
        for connection in connections
        if connection.status == psutil.CONN_LISTEN
        and connection.laddr.port == port
        and connection.pid is not None
    ]
