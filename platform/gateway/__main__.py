"""``python -m gateway``: the gateway on uvicorn, with a bounded drain."""

from __future__ import annotations

import logging
import os
import signal
import sys
from types import FrameType

import uvicorn

from gateway import logs
from gateway.app import GatewayApp
from gateway.errors import json_refusal
from gateway.settings import GatewaySettings
from http_server.connection_limits import ConnectionGuard, InvalidSetting, raise_open_file_limit


def _handle_stop_signal(_signal: int, _frame: FrameType | None) -> None:
    """Exit with status 0: uvicorn raises the signal again once it has drained."""
    sys.exit(0)


def main() -> int:
    """Serve until a signal; return the exit status of the process."""
    logs.configure_logging(os.environ)
    try:
        settings = GatewaySettings.from_environment(os.environ)
    except InvalidSetting as error:
        logging.getLogger("gateway").error("the gateway cannot start: %s", error)
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _handle_stop_signal)
    raise_open_file_limit()
    server = uvicorn.Server(
        uvicorn.Config(
            GatewayApp(settings),
            host=settings.host,
            port=settings.port,
            http=ConnectionGuard(settings.connections, format_refusal=json_refusal).protocol_class,
            # Metrics and usage records cover what an access log would.
            access_log=False,
            server_header=False,
            # Nothing here uses the client's forwarded address, so no proxy header is trusted.
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
