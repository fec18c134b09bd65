"""Whether the product answers, and whether it can work."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus

from cryptography.fernet import InvalidToken
from django.db import Error, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from controlplane.outbox import broker
from controlplane.persistence import encryption
from controlplane.ports.artifacts import ArtifactStore
from controlplane.web.kept import Kept

log = logging.getLogger(__name__)

OK = "ok"
#: However often somebody asks, the parts are looked at once in this time.
KEPT_SECONDS = 1.5
_PLAIN = b"a key that decrypts what it encrypted"

#: Returns a word if the part can be used, and raises whatever it raises if it cannot.
Check = Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Something that the product needs, as it was found."""

    name: str
    ready: bool
    #: Of a ready part :data:`OK`, else what is wrong, without a secret or an address.
    word: str


class NotReady(Exception):
    """A part cannot be used; the message is for anybody who asks."""


class Readiness:
    """Looks at the parts, not more often than every :data:`KEPT_SECONDS`."""

    def __init__(
        self, checks: Mapping[str, Check], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        #: Each part with its word, at most :data:`KEPT_SECONDS` old.
        self.parts = Kept(
            lambda: tuple(_look(name, check) for name, check in checks.items()),
            seconds=KEPT_SECONDS,
            clock=clock,
        )

    def answer(self) -> JsonResponse:
        """200 while every part can be used, else 503; each part with its word."""
        parts = self.parts()
        ready = all(part.ready for part in parts)
        return JsonResponse(
            {
                "status": OK if ready else "unavailable",
                "parts": {part.name: part.word for part in parts},
            },
            status=HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE,
        )


def _look(name: str, check: Check) -> Part:
    try:
        return Part(name=name, ready=True, word=check())
    except NotReady as refusal:
        return Part(name=name, ready=False, word=str(refusal))
    # Whatever is wrong with a part, the others are still to be looked at.
    except Exception:
        log.warning("a part of the product cannot be used", exc_info=True, extra={"part": name})
        return Part(name=name, ready=False, word="does not answer; the log says why")


@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """200 while this process runs and its database answers, 503 while the database does not."""
    try:
        database_answers()
    except Error:
        # Why stays in the log: whoever asks here need not be logged in.
        return JsonResponse(
            {"status": "unavailable", "database": "does not answer"},
            status=HTTPStatus.SERVICE_UNAVAILABLE,
        )
    return JsonResponse({"status": "ok", "database": "answers"})


def database_answers() -> str:
    """:raises Error: if it does not."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return OK


def migrations_applied() -> str:
    """:raises NotReady: with how many are missing."""
    missing = len(_migrations_on_disk() - set(MigrationRecorder(connection).applied_migrations()))
    if missing:
        raise NotReady(f"{missing} not applied; run: manage.py migrate")
    return OK


@cache
def _migrations_on_disk() -> frozenset[tuple[str, str]]:
    """They do not change while the process runs."""
    return frozenset(MigrationLoader(None).disk_migrations or ())


def broker_answers() -> str:
    """:raises BrokerSilent: if it does not."""
    broker.waiting()
    return OK


def writes_into(store: ArtifactStore) -> str:
    """Store something and take it out again.

    :raises ArtifactError: if it cannot be stored.
    """
    store.delete(store.put([secrets.token_bytes(32)]).digest)
    return OK


def key_is_loaded() -> str:
    """:raises NotReady: if there is no key, or one that is none."""
    try:
        if encryption.decrypt(encryption.encrypt(_PLAIN)) == _PLAIN:
            return OK
    except (ValueError, IndexError, InvalidToken):
        pass
    raise NotReady("NINEFOLD_ENCRYPTION_KEY has no key that can be used")
