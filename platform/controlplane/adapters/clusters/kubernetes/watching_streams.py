"""Answers of the API that are read as they come: pages of a listing, lines of a watch.

Each piece is parsed, looked at and dropped: what is held at one time is one page or one line, however
large the cluster is.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from urllib3.exceptions import HTTPError, ProtocolError
from urllib3.response import BaseHTTPResponse

from controlplane.adapters.clusters.kubernetes.api import Api, ApiRefused
from controlplane.adapters.clusters.kubernetes.watching_rules import Garbled
from controlplane.ports.clusters import ClusterError, ClusterUnavailable

Object = Mapping[str, Any]

#: Objects in one page.
PAGE: Final = 200
#: Only who an object is: name, labels, version. A tenth of a pod.
METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_PIECE = 1 << 16
#: etcd takes no object of more than 1.5 MB.
_LONGEST_LINE = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    items: Sequence[Object]
    #: Of the whole listing.
    version: str


def pages(
    api: Api, path: str, *, query: Mapping[str, str], answer_within: float, metadata_only: bool
) -> Iterator[Page]:
    """A listing, page by page.

    :raises ApiRefused: ``expired`` if it takes so long that the server forgets its version: begin anew.
    :raises ClusterUnavailable: if the server does not answer.
    :raises Garbled: if what it answers is no list.
    """
    asked = {**query, "limit": str(PAGE)}
    accept = f"{METADATA_LIST},application/json" if metadata_only else "application/json"
    while True:
        response = api.open(path, query=asked, read_within=answer_within, accept=accept)
        try:
            content = response.read()
        except HTTPError as error:
            raise ClusterUnavailable(f"a listing broke off: {error}") from error
        finally:
            response.release_conn()
        answer = _object(content)
        metadata, items = answer.get("metadata"), answer.get("items")
        if not isinstance(metadata, dict) or not isinstance(items, list | None):
            raise Garbled(f"this is no list of Kubernetes: {content[:80]!r}")
        yield Page(items=items or (), version=str(metadata.get("resourceVersion", "")))
        following = metadata.get("continue")
        if not following:
            return
        asked["continue"] = str(following)


class Stream:
    """One watch that is open. Another thread may end it while it is being read."""

    def __init__(self, response: BaseHTTPResponse, *, silence: float) -> None:
        self._response = response
        self._lock = threading.Lock()
        self._open = True
        # Until now the first byte was waited for; from now on a healthy server may be quiet.
        connection = getattr(response, "connection", None)
        socket = getattr(connection, "sock", None)
        if socket is not None:
            socket.settimeout(silence)

    @classmethod
    def to(
        cls,
        api: Api,
        path: str,
        *,
        query: Mapping[str, str],
        version: str,
        seconds: float,
        answer_within: float,
        silence: float,
        metadata_only: bool,
    ) -> Stream:
        """Ask for what happened after that version.

        :raises ApiRefused: ``expired`` if the version is too old.
        :raises ClusterUnavailable: if the server does not answer.
        """
        asked = {
            **query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(int(seconds)),
        }
        accept = f"{METADATA},application/json" if metadata_only else "application/json"
        response = api.open(path, query=asked, read_within=answer_within, accept=accept)
        return cls(response, silence=silence)

    def events(self, *, heard: Callable[[], None]) -> Iterator[Object]:
        """Each event as it comes, until the server ends it in good order; each sign of life is ``heard``.

        A line that was cut off is dropped: the same event comes again after the last version that was told.

        :raises ApiRefused: ``expired`` if the server says in between that the version is too old.
        :raises HTTPError: if the connection breaks or is silent for too long.
        :raises Garbled: if a line is no event.
        """
        rest = b""
        for piece in self._response.stream(_PIECE, decode_content=True):
            heard()
            *lines, rest = (rest + piece).split(b"\n")
            if len(rest) > _LONGEST_LINE:
                raise Garbled(f"a line of more than {_LONGEST_LINE} bytes: {rest[:80]!r}")
            for line in lines:
                if line.strip():
                    yield _event(line)
        if rest.strip():
            raise ProtocolError(f"the connection ended within a line: {rest[:80]!r}")

    def interrupt(self) -> None:
        """End it now: whoever reads it gets its end, or an error, at once."""
        with self._lock:
            if self._open:
                # It may be ending by itself at this very moment.
                with suppress(OSError, RuntimeError, ValueError):
                    self._response.shutdown()

    def close(self) -> None:
        with self._lock:
            self._open = False
            self._response.close()


def _event(line: bytes) -> Object:
    event = _object(line)
    told = event.get("object")
    if not isinstance(event.get("type"), str) or not isinstance(told, dict):
        raise Garbled(f"this is no event of Kubernetes: {line[:80]!r}")
    if event["type"] == "ERROR":
        raise _refusal(told)
    return event


def _refusal(status: Object) -> ClusterError:
    code = int(status.get("code") or 500)
    message = str(status.get("message") or f"the watch ended with {code}")
    if code >= 500:
        return ClusterUnavailable(message)
    return ApiRefused(status=code, reason=str(status.get("reason") or ""), message=message)


def _object(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError as error:
        raise Garbled(f"this is no JSON: {content[:80]!r}") from error
    if not isinstance(found, dict):
        raise Garbled(f"this is no object: {content[:80]!r}")
    return found
