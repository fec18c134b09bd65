"""Which pages of other origins may call the gateway from a browser (CORS)."""

from __future__ import annotations

from collections.abc import Collection

from gateway.exchanges import Exchange


class Origins:
    """The origins of the settings; without any, answers say nothing about origins."""

    def __init__(self, allowed: Collection[str]) -> None:
        self._allowed = frozenset(allowed)

    def mark(self, exchange: Exchange) -> None:
        """Let a page of an allowed origin read the answer, whatever it will be."""
        if not self._allowed:
            return
        exchange.add_headers([("vary", "Origin")])
        if self._allows(exchange):
            exchange.add_headers(
                [
                    ("access-control-allow-origin", exchange.header(b"origin")),
                    ("access-control-expose-headers", "x-request-id, retry-after"),
                ]
            )

    def asked(self, exchange: Exchange) -> bool:
        """Whether a browser asks before it sends the request itself."""
        return bool(self._allowed) and exchange.method == "OPTIONS"

    async def answer(self, exchange: Exchange) -> None:
        """What the browser asked: the methods and headers of an allowed origin, nothing of another."""
        headers = [
            ("access-control-allow-methods", "GET, POST"),
            ("access-control-allow-headers", "authorization, content-type"),
            ("access-control-max-age", "600"),
        ]
        await exchange.respond(
            status=204, body=b"", headers=headers if self._allows(exchange) else ()
        )

    def _allows(self, exchange: Exchange) -> bool:
        return exchange.header(b"origin") in self._allowed
