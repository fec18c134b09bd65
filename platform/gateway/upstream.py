"""The connections to the engines."""

from __future__ import annotations

import aiohttp

from gateway.errors import upstream_failed
from gateway.snapshots import Operation
from gateway.tables import Target

#: Engines behind uvicorn close an idle connection after 5 s. Letting go first means that no request
#: is ever sent on a connection that the engine is closing.
_KEEP_ALIVE_SECONDS = 4.0

#: An answer that is not streamed is held in memory whole.
LARGEST_ANSWER_BYTES = 64 * 1024 * 1024
#: Of an error only the message matters.
LARGEST_ERROR_BYTES = 64 * 1024


class ConnectFailed(Exception):
    """No connection to the endpoint was made, so the request was not sent."""


class Upstream:
    """One client session for all engines; must be made inside a running loop."""

    def __init__(self, *, connect_seconds: float) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=_KEEP_ALIVE_SECONDS, ttl_dns_cache=30
            ),
            # An engine's cookies must never meet another client's request.
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds),
            auto_decompress=False,
            trust_env=False,
        )

    async def close(self) -> None:
        await self._session.close()

    async def post(
        self, target: Target, *, operation: Operation, body: bytes, request_id: str
    ) -> aiohttp.ClientResponse:
        """The engine's answer with its body still to be read; the caller releases it.

        Nothing of the client's own headers is sent.

        :raises ConnectFailed: if the endpoint takes no connection.
        :raises ApiError: 502 if it takes the request and ends the connection without an answer.
        """
        try:
            return await self._session.post(
                target.urls[operation],
                data=body,
                headers={**target.headers, "X-Request-Id": request_id},
                # A redirect could point the credential anywhere.
                allow_redirects=False,
            )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise ConnectFailed from error
        except aiohttp.ClientError as error:
            raise upstream_failed(
                "The model's engine ended the connection without an answer."
            ) from error


async def read_answer(response: aiohttp.ClientResponse, *, limit: int) -> bytes:
    """The whole body.

    :raises ApiError: 502 if it is longer than ``limit`` bytes or breaks off.
    """
    body = b""
    try:
        async for piece in response.content.iter_any():
            body = body + piece if body else piece
            if len(body) > limit:
                raise upstream_failed(f"The engine's answer is longer than {limit} bytes.")
    except aiohttp.ClientError as error:
        raise upstream_failed("The model's engine broke off its answer.") from error
    return body
