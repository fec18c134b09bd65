"""An engine that answers at once with the same bytes: what is left to measure is the way to it."""

from __future__ import annotations

import asyncio
import sys
from typing import cast

_CHUNK = (
    b'data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"engine",'
    b'"choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}\n\n'
)
_USAGE = (
    b'data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"engine",'
    b'"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":64,"total_tokens":71}}\n\n'
)
_WHOLE = (
    b'{"id":"x","object":"chat.completion","created":1,"model":"engine","choices":[{"index":0,'
    b'"message":{"role":"assistant","content":"word"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}}'
)
_CHUNKS = 64


def _piece(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
    len(_WHOLE),
    _WHOLE,
)
_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    + _piece(_CHUNK) * _CHUNKS
    + _piece(_USAGE)
    + _piece(b"data: [DONE]\n\n")
    + b"0\r\n\r\n"
)


class Engine(asyncio.Protocol):
    """As little HTTP as serves: bodies with a Content-Length, answers prepared."""

    def __init__(self) -> None:
        self._rest = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not checked by class: uvloop's transports are none of asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._rest += data
        while (end := self._rest.find(b"\r\n\r\n")) >= 0:
            head = self._rest[:end].lower()
            at = head.find(b"content-length:")
            length = 0 if at < 0 else int(head[at + 15 :].split(b"\r\n", 1)[0])
            if len(self._rest) < end + 4 + length:
                return
            body = self._rest[end + 4 : end + 4 + length]
            self._rest = self._rest[end + 4 + length :]
            if self._transport is not None:
                self._transport.write(_STREAM if b'"stream":true' in body else _ANSWER)


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Engine, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(int(sys.argv[1])))
