"""Watches of REST lists: ``?watch=true`` or ``Accept: text/event-stream`` answers with server-sent events.

::

    ADDED …            an object of the list, for each that exists (without ``id:``)
    BOOKMARK           a position; the first one ends the initial events
    ADDED, MODIFIED    the object as the list shows it
    DELETED            its uid: deleted, or no longer in the list
    ERROR              a problem; the stream ends

Each event after the initial ones has a position as its ``id:``. A request with ``Last-Event-ID`` continues after
that position: all later changes follow, each once. Several changes between two reads of the log are one event. A
position is valid for an hour, and a bookmark comes every 15 s. A stream ends after 15 minutes, and when the token
or session of its request is no longer valid.

Positions and their order: see ``controlplane.outbox.resource_changes``.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, ClassVar, Protocol

from django.contrib import auth
from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from rest_framework import exceptions, status
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request

from controlplane.outbox.resource_changes import (
    RETENTION,
    LoggedChange,
    change_horizon,
    changes_between,
)
from controlplane.web.problem_details import ProblemDetails, problem_of_exception

MEDIA_TYPE = "text/event-stream"
#: Query parameters of a watch.
PARAMETERS = frozenset({"watch", "send_initial_events"})

#: Streams of one process; each occupies a thread of the web server (``config.web_server``, "streams").
MAX_WATCHES = 12
#: Of these, streams of one user.
MAX_WATCHES_OF_USER = 4
#: Longest duration of a stream.
WATCH_WITHIN = timedelta(minutes=15)
_BOOKMARK_EVERY = 15.0
#: How often token or session are checked.
_AUTHENTICATE_EVERY = 3.0
_POLL_SECONDS = 0.5
#: Objects that are read at once.
_CHUNK = 200
_TRUE, _FALSE = frozenset({"true", "1"}), frozenset({"false", "0"})

#: Of a user: their entries of ``ResourceChange.owner``; None: all.
OwnersOf = Callable[[Any], Collection[str] | None]
_owners_of: list[OwnersOf] = []


def set_watch_owners(owners_of: OwnersOf) -> None:
    """Say whose changes a user may read, besides those of objects that are nobody's alone."""
    _owners_of[:] = [owners_of]


class WatchPositionExpired(Exception):
    """The log does not reach back to the position; list again and watch without a position."""


class TooManyWatches(exceptions.APIException):
    """The maximum number of streams is reached."""

    status_code = status.HTTP_429_TOO_MANY_REQUESTS
    default_code = "too-many-watches"
    #: Seconds; becomes Retry-After.
    wait = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPosition:
    """What was sent: all transactions below ``after``, and of those below ``until`` the rows up to ``row``."""

    log: int
    after: int
    #: Unix time in seconds.
    issued_at: int
    until: int = 0
    row: int = 0

    def __str__(self) -> str:
        parts = [self.log, self.after, self.issued_at]
        return ".".join(
            str(part) for part in [*parts, *([self.until, self.row] if self.until else [])]
        )

    @classmethod
    def parse(cls, text: str) -> WatchPosition:
        """:raises ValidationError: if it is no position."""
        if not re.fullmatch(r"\d{1,18}(\.\d{1,18}){2}((\.\d{1,18}){2})?", text):
            message = f"must be the id of an event of a watch, got {text[:80]!r}"
            raise exceptions.ValidationError({"Last-Event-ID": [message]})
        log, after, issued_at, *batch = (int(part) for part in text.split("."))
        until, row = batch or (0, 0)
        return cls(log=log, after=after, issued_at=issued_at, until=until, row=row)


class EventStreamRenderer(BaseRenderer):
    """For content negotiation only: events are rendered by :class:`ListWatchStream`."""

    media_type = MEDIA_TYPE
    format = "event-stream"

    def render(self, data: Any, *_arguments: Any, **_more: Any) -> bytes:
        return JSONRenderer().render(data)


class WatchedView(Protocol):
    """What a stream needs of ``ResourceViewSet``."""

    request: Request
    watch_key: ClassVar[str]
    append_only: ClassVar[bool]

    def get_authenticators(self) -> list[Any]: ...
    def check_permissions(self, request: Request) -> None: ...
    def watched_rows(self) -> Sequence[QuerySet[Any]]: ...
    def get_serializer(self, *arguments: Any, **options: Any) -> Any: ...


def is_watch(request: Request) -> bool:
    """Whether the request asks for a stream.

    :raises ValidationError: if ``watch`` is neither true nor false.
    :raises NotAcceptable: if it asks for one and does not accept events.
    """
    accepted = getattr(request, "accepted_media_type", "") or ""
    wanted = _boolean(request, "watch", default=accepted.startswith(MEDIA_TYPE))
    if wanted:
        accept = request.headers.get("Accept", "*/*")
        if not any(part in accept for part in (MEDIA_TYPE, "text/*", "*/*")):
            raise exceptions.NotAcceptable
    return wanted


def _boolean(request: Request, name: str, *, default: bool) -> bool:
    values = request.query_params.getlist(name)
    if not values:
        return default
    if len(values) > 1 or values[0] not in _TRUE | _FALSE:
        raise exceptions.ValidationError(
            {name: [f"must be true or false, got {values[-1][:40]!r}"]}
        )
    return values[0] in _TRUE


def watch_response(view: WatchedView) -> StreamingHttpResponse:
    """The stream of the list of a view.

    :raises WatchPositionExpired: if changes after ``Last-Event-ID`` are no longer in the log.
    :raises TooManyWatches: if no stream is free.
    """
    request = view.request
    # Some views check permissions with their rows: refuse before the stream begins.
    view.watched_rows()
    initial = _boolean(request, "send_initial_events", default=True)
    text = request.headers.get("Last-Event-ID", "")
    horizon = change_horizon()
    position = None
    if text:
        position = WatchPosition.parse(text)
        age = time.time() - position.issued_at
        # The log is another one after the restore of a backup.
        if (
            age > RETENTION.total_seconds()
            or position.log != horizon.log
            or position.after > horizon.xid
        ):
            raise WatchPositionExpired(
                "the position of Last-Event-ID is older than one hour or of another database; "
                "watch without it and take the initial events as the new list"
            )
    stream = ListWatchStream(view, position=position, initial=initial)
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingHttpResponse(
        stream, content_type=f"{MEDIA_TYPE}; charset=utf-8", headers=headers
    )


_slots = threading.BoundedSemaphore(MAX_WATCHES)
_by_user: Counter[Any] = Counter()
_lock = threading.Lock()


class ListWatchStream:
    """The events of one watch. Occupies one of ``MAX_WATCHES`` slots until it is closed.

    :raises TooManyWatches: if no slot is free.
    """

    def __init__(
        self,
        view: WatchedView,
        *,
        position: WatchPosition | None,
        initial: bool,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._view = view
        self._user = view.request.user.pk
        self._acquire_slot()
        self._sleep = sleep
        #: Table and uid → digest of the object as it was sent; empty for one that was not sent on this connection.
        self._sent: dict[tuple[str, str], bytes] = {}
        self._events = self._run(position, initial=initial)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._events)

    def close(self) -> None:
        """Release the slot. The server calls it when the client disconnects."""
        self._events.close()
        with _lock:
            if self._user is None:
                return
            _by_user[self._user] -= 1
            self._user = None
        _slots.release()

    def _acquire_slot(self) -> None:
        with _lock:
            if _by_user[self._user] >= MAX_WATCHES_OF_USER:
                raise TooManyWatches(
                    f"you have {MAX_WATCHES_OF_USER} watches already, which is the limit; end one of them, or poll"
                )
            if not _slots.acquire(blocking=False):
                raise TooManyWatches(
                    f"{MAX_WATCHES} watches are open already, which is the limit; try again later, or poll"
                )
            _by_user[self._user] += 1

    def _run(self, position: WatchPosition | None, *, initial: bool) -> Generator[bytes]:
        ends_at = time.monotonic() + WATCH_WITHIN.total_seconds()
        horizon = change_horizon()
        if position is None:
            position = WatchPosition(log=horizon.log, after=horizon.xid, issued_at=int(time.time()))
            if initial:
                yield from self._initial_events()
            else:
                self._know_existing()
            yield _event("BOOKMARK", {"initial_events_end": True}, position=position)
            resumed_until = 0
        else:
            self._know_existing()
            # Whatever was deleted before the objects were read is below it.
            resumed_until = change_horizon().next_xid
        marked = authenticated = time.monotonic()
        while True:
            now = time.monotonic()
            if now - authenticated >= _AUTHENTICATE_EVERY:
                authenticated = now
                if (problem := self._authentication_problem()) is not None:
                    yield _event("ERROR", problem.as_json())
                    return
            horizon = change_horizon()
            if position.until:
                # Interrupted within a batch: first its other half.
                yield from self._changes(position, resumed_until=resumed_until)
                position = replace(position, after=position.until, until=0, row=0)
            if horizon.xid > position.after:
                batch = replace(position, until=horizon.xid, row=0, issued_at=int(time.time()))
                yield from self._changes(batch, resumed_until=resumed_until)
                position = replace(batch, after=horizon.xid, until=0)
            if now - marked >= _BOOKMARK_EVERY:
                marked = now
                position = replace(position, issued_at=int(time.time()))
                yield _event("BOOKMARK", {}, position=position)
            if now > ends_at:
                return
            # Sends nothing, but lets the server notice a disconnected client.
            yield b""
            self._sleep(_POLL_SECONDS)

    def _know_existing(self) -> None:
        if self._view.append_only:
            return
        for rows in self._view.watched_rows():
            keys = rows.order_by().values_list(self._view.watch_key, flat=True)
            self._sent |= {(_source(rows), str(key)): b"" for key in keys}

    def _initial_events(self) -> Iterator[bytes]:
        for part in range(len(self._view.watched_rows())):
            after = 0
            while True:
                # Read anew: the caller may see other objects by now.
                found = self._view.watched_rows()[part]
                rows = list(found.filter(pk__gt=after).order_by("pk")[:_CHUNK])
                if not rows:
                    break
                after = rows[-1].pk
                for uid, shown in self._serialized(rows):
                    self._sent[_source(found), uid] = _digest(shown)
                    yield _event("ADDED", shown)

    def _changes(self, batch: WatchPosition, *, resumed_until: int) -> Iterator[bytes]:
        """Events of the changes from ``batch.after`` and below ``batch.until``, after ``batch.row``.

        :param resumed_until: below it, a deletion may be of an object that was sent on an earlier connection.
        """
        found = [
            change
            for change in changes_between(
                [_source(rows) for rows in self._view.watched_rows()],
                after=batch.after,
                until=batch.until,
                owners=_owners_of[0](self._view.request.user) if _owners_of else (),
            )
            if change.key > batch.row
        ]
        for start in range(0, len(found), _CHUNK):
            changes = found[start : start + _CHUNK]
            shown = self._objects(changes)
            for change in changes:
                yield from self._event_of_change(
                    change,
                    shown.get((change.source, change.uid)),
                    position=replace(batch, row=change.key),
                    resumed=batch.after < resumed_until,
                )

    def _objects(self, changes: Sequence[LoggedChange]) -> dict[tuple[str, str], Any]:
        """The changed objects that are in the list, by table and uid."""
        found: dict[tuple[str, str], Any] = {}
        for rows in self._view.watched_rows():
            source = _source(rows)
            keys = [change.uid for change in changes if change.source == source]
            if keys:
                listed = list(rows.filter(**{f"{self._view.watch_key}__in": keys}))
                found |= {(source, uid): shown for uid, shown in self._serialized(listed)}
        return found

    def _event_of_change(
        self, change: LoggedChange, shown: Any, *, position: WatchPosition, resumed: bool
    ) -> Iterator[bytes]:
        key = change.source, change.uid
        sent = self._sent.get(key)
        if shown is None:
            self._sent.pop(key, None)
            # On an earlier connection; of objects that are nobody's alone only if they no longer exist.
            earlier = resumed and not change.created and (change.owned or change.deleted)
            if sent or earlier or (sent is not None and not change.created):
                yield _event("DELETED", {"uid": change.uid}, position=position)
            return
        digest = _digest(shown)
        if sent == digest:
            return
        added = sent is None or (not sent and change.created)
        self._sent[key] = digest
        yield _event("ADDED" if added else "MODIFIED", shown, position=position)

    def _serialized(self, rows: list[Any]) -> Iterable[tuple[str, Any]]:
        data = self._view.get_serializer(rows, many=True).data
        return zip([str(getattr(row, self._view.watch_key)) for row in rows], data, strict=True)

    def _authentication_problem(self) -> ProblemDetails | None:
        """Authenticate the request again, and let the view act as the user of now.

        None if that is possible; else the problem.
        """
        http = copy.copy(self._view.request._request)
        _reload_session(http)
        request = Request(
            http,
            authenticators=self._view.get_authenticators(),
            parser_context=self._view.request.parser_context,
        )
        try:
            if not request.user.is_authenticated:
                raise exceptions.NotAuthenticated
            self._view.check_permissions(request)
            for name in (
                "accepted_renderer",
                "accepted_media_type",
                "version",
                "versioning_scheme",
            ):
                setattr(request, name, getattr(self._view.request, name, None))
            self._view.request = request
            self._view.watched_rows()
        except Exception as error:
            problem = problem_of_exception(error)
            if problem is None:
                raise
            return problem
        return None


def _source(rows: QuerySet[Any]) -> str:
    """The table whose changes are logged for these rows."""
    return str(rows.model._meta.db_table)


def _reload_session(http: HttpRequest) -> None:
    """Read the session of the request again: it may have been ended."""
    session = getattr(http, "session", None)
    if session is None or not session.session_key:
        return
    http.session = type(session)(session.session_key)
    http.user = auth.get_user(http)
    http.__dict__.pop("_cached_user", None)


def _digest(shown: Any) -> bytes:
    return hashlib.blake2b(JSONRenderer().render(shown), digest_size=12).digest()


def _event(kind: str, shown: Any, *, position: WatchPosition | None = None) -> bytes:
    head = f"id: {position}\n" if position is not None else ""
    body = JSONRenderer().render(shown).decode()
    return f'{head}event: {kind}\ndata: {{"type":{json.dumps(kind)},"object":{body}}}\n\n'.encode()


_WATCH_PARAMETERS: list[dict[str, Any]] = [
    {
        "name": "watch",
        "in": "query",
        "schema": {"type": "boolean", "default": False},
        "description": "Stream objects and changes as server-sent events. Not with cursor and page_size.",
    },
    {
        "name": "send_initial_events",
        "in": "query",
        "schema": {"type": "boolean", "default": True},
        "description": "With watch: begin with an ADDED event for each object.",
    },
    {
        "name": "Last-Event-ID",
        "in": "header",
        "schema": {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+){2}((\.[0-9]+){2})?$"},
        "description": "With watch: continue after the event with this id. 410 if it is older than one hour.",
    },
]
_EVENT_STREAM = {
    "schema": {
        "type": "string",
        "description": "Server-sent events; see `WatchEvent` for their data.",
    },
    "examples": {
        "watch": {
            "value": 'event: ADDED\ndata: {"type":"ADDED","object":{"uid":"0f4f6b0c7a4e4d5b9d3c1c8f2f6f5a10"}}\n\n'
        }
    },
}
_WATCH_EVENT = {
    "type": "object",
    "description": "The data of an event of a watch.",
    "properties": {
        "type": {"type": "string", "enum": ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]},
        "object": {
            "type": "object",
            "additionalProperties": True,
            "description": "ADDED, MODIFIED: as in the list; DELETED: uid; ERROR: a problem; BOOKMARK: empty, or "
            "initial_events_end.",
        },
    },
    "required": ["type", "object"],
}


def add_watches_to_openapi(result: dict[str, Any], generator: Any, **_more: Any) -> dict[str, Any]:
    """Describe the watches of lists; a post-processing hook of drf-spectacular."""
    for path, _regex, method, answer in generator.endpoints:
        actions = getattr(answer, "actions", None) or {}
        watched = getattr(answer.cls, "watchable", False) and actions.get("get") == "list"
        operation = result["paths"].get(path, {}).get("get")
        if method != "GET" or operation is None or not watched:
            continue
        operation["parameters"] = [*operation.get("parameters", []), *_WATCH_PARAMETERS]
        operation["responses"]["200"]["content"][MEDIA_TYPE] = _EVENT_STREAM
    result["components"].setdefault("schemas", {})["WatchEvent"] = _WATCH_EVENT
    return result
