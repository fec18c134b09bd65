"""``python -m gateway``: the gateway on uvicorn, with its drain bounded."""

from __future__ import annotations

import logging
import os
import signal
import sys
from types import FrameType

import uvicorn

from gateway import logs
from gateway.app import Gateway
from gateway.settings import Settings, SettingsError
from http_server.connections import ConnectionGuard, raise_file_limit


def _end(_signal: int, _frame: FrameType | None) -> None:
    """Uvicorn raises the signal again once it has drained; an ordered end is no failure."""
    sys.exit(0)


def main() -> int:
    """Serve until a signal; the process's exit status."""
    logs.configure(os.environ)
    try:
        settings = Settings.from_environment(os.environ)
    except SettingsError as error:
        logging.getLogger("gateway").error("the gateway cannot start: %s", error)
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    raise_file_limit()
    server = uvicorn.Server(
        uvicorn.Config(
            Gateway(settings),
            host=settings.host,
            port=settings.port,
            http=ConnectionGuard(settings.connections).protocol_class,
            # The metrics and the usage records tell more than a line for each request would.
            access_log=False,
            server_header=False,
            # Nothing here looks at the address of the client, so no header need be believed.
            proxy_headers=False,
            log_config=None,
            timeout_graceful_shutdown=int(settings.drain_seconds),
            lifespan="on",
        )
    )
    server.run()
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main())
