"""``python -m config.web_server``: pages and REST on uvicorn, by WSGI in threads.

Not by Django's ASGI handler, which costs about ten times as much per request.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from types import FrameType

import uvicorn
from django.conf import settings

from config.wsgi import application
from http_server.connection_limits import (
    ConnectionGuard,
    ConnectionLimits,
    InvalidSetting,
    raise_open_file_limit,
)
from http_server.wsgi import RequestThreadPool, WsgiServer

#: Between the signal and the end; requests that are open then are cut off.
_DRAIN_SECONDS = 5
#: Longer than the idle timeout of proxies, so that they do not reuse a closing connection.
_KEEP_ALIVE_SECONDS = 65


def web_application() -> WsgiServer:
    """Return the WSGI server, with separate threads for health checks and for our own processes.

    Every thread may use a database connection: the total stays well below the 100 of PostgreSQL's default.
    """
    return WsgiServer(
        application,
        lanes=(
            RequestThreadPool(name="health", threads=2, paths=("/healthz", "/readyz", "/metrics")),
            RequestThreadPool(
                name="long polls", threads=16, paths=tuple(settings.NINEFOLD_LONG_POLLS)
            ),
            RequestThreadPool(
                name="internal",
                threads=8,
                paths=("/internal/", "/api/v1/telemetry/push", "/api/v1/attempts/"),
            ),
        ),
        default=RequestThreadPool(name="requests", threads=16),
        # Completing a direct upload reads the whole file.
        uploads=RequestThreadPool(name="uploads", threads=8, suffixes=("/uploads/complete",)),
        streams=RequestThreadPool(name="streams", threads=24),
    )


def _handle_stop_signal(_signal: int, _frame: FrameType | None) -> None:
    """Uvicorn raises the signal again once it has drained."""
    logging.shutdown()
    sys.stdout.flush()
    # The interpreter would wait for long-polling threads, up to half a minute.
    os._exit(0)


def main() -> int:
    """Serve until a signal; the process's exit status."""
    try:
        limits = ConnectionLimits.from_environment(os.environ)
    except InvalidSetting as error:
        logging.getLogger("config").error("the web server cannot start: %s", error)
        return 2
    raise_open_file_limit()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _handle_stop_signal)
    server = uvicorn.Server(
        uvicorn.Config(
            web_application(),
            host=settings.BIND,
            port=settings.WEB_PORT,
            http=ConnectionGuard(limits).protocol_class,
            ws="none",
            lifespan="off",
            interface="asgi3",
            access_log=False,
            server_header=False,
            # `client_address` reads them, for proxies that are trusted only.
            proxy_headers=False,
            log_config=None,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_DRAIN_SECONDS,
        )
    )
    server.run()
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main())
