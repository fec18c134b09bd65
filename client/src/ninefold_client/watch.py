"""Watch a list of the server: every object, and each of its changes as it happens."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ninefold_client.client import Client
from ninefold_client.errors import ApiError, ConnectionFailed, NinefoldError

#: Statuses of a server that has no watches: of an earlier version, or of another resource.
_UNSUPPORTED = frozenset({400, 404, 406})
_EXPIRED = 410
#: Seconds before a broken stream is opened again; doubled up to the longest.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0


class WatchUnsupported(NinefoldError):
    """The server cannot stream changes of this list; poll it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """One event of a watch."""

    #: ``ADDED``, ``MODIFIED``, ``DELETED`` or ``BOOKMARK``.
    type: str
    #: The object as the list shows it; of ``DELETED`` only its ``uid``.
    object: Mapping[str, Any]


def watch(client: Client, path: str, **query: str) -> Iterator[WatchEvent]:
    """Iterate over the events of a list: ``ADDED`` for each object, a ``BOOKMARK``, then the changes.

    A broken connection is opened again after the last event. If the server no longer has the changes since then,
    ``ADDED`` comes again for each object.

    :param path: a list below ``/api/v1``, for example ``jobs``; ``query`` are its filters.
    :raises WatchUnsupported: if the server has no watch of it.
    :raises ApiError: if the server refuses it, or the token is no longer valid.
    """
    position, pause, opened = "", _FIRST_PAUSE, False
    while True:
        try:
            for identifier, event in _events(client, path, position, query):
                opened, pause = True, _FIRST_PAUSE
                position = identifier or position
                yield event
        except ApiError as error:
            if error.status == _EXPIRED and position:
                position = ""
                continue
            if error.status in _UNSUPPORTED and not opened:
                raise WatchUnsupported(f"{path} cannot be watched: {error.message}") from error
            if error.status not in (429, 502, 503, 504):
                raise
        except ConnectionFailed:
            if not opened:
                raise
        else:
            # The server ends streams after some minutes.
            continue
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _events(
    client: Client, path: str, position: str, query: Mapping[str, str]
) -> Iterator[tuple[str, WatchEvent]]:
    """Position and event of one stream until it ends.

    :raises ApiError: if the stream is refused, or the server ends it with a problem.
    """
    identifier, data = "", ""
    for line in client.stream_events(path, last_event_id=position, **query):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "id":
            identifier = value
        elif field == "data":
            data += value
        elif not line and data:
            parsed = json.loads(data)
            if parsed["type"] == "ERROR":
                problem = parsed["object"]
                raise ApiError(
                    status=problem["status"], code=problem["code"], message=problem["detail"]
                )
            yield identifier, WatchEvent(type=parsed["type"], object=parsed["object"])
            identifier, data = "", ""
