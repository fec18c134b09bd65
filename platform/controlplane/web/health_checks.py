"""Liveness and readiness checks."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
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
from controlplane.persistence.transactions import execute
from controlplane.ports.artifacts import ArtifactStore
from controlplane.web.response_cache import TimedCache

log = logging.getLogger(__name__)

OK = "ok"
#: Checks run at most once in this time.
CACHE_SECONDS = 1.5
_PLAIN = b"a key that decrypts what it encrypted"

#: Raises any exception if the component is not usable.
Check = Callable[[], object]


class HealthCheckFailed(Exception):
    """A check failed; the message is public."""


class Readiness:
    """Runs the checks, at most every :data:`CACHE_SECONDS`."""

    def __init__(
        self, checks: Mapping[str, Check], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        #: By component :data:`OK`, or what is wrong, without secrets and addresses.
        self.parts = TimedCache(
            lambda: {name: _run_check(name, check) for name, check in checks.items()},
            seconds=CACHE_SECONDS,
            clock=clock,
        )

    def answer(self) -> JsonResponse:
        """Return 200 while every component is usable, else 503, with the status of each."""
        parts = self.parts()
        ready = all(status == OK for status in parts.values())
        return JsonResponse(
            {"status": OK if ready else "unavailable", "parts": parts},
            status=HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE,
        )


def _run_check(name: str, check: Check) -> str:
    try:
        check()
    except HealthCheckFailed as refusal:
        return str(refusal)
    # One failing check must not prevent the others.
    except Exception:
        log.warning("a part of the product cannot be used", exc_info=True, extra={"part": name})
        return "does not answer; the log says why"
    return OK


@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """Return 200 while the database answers, else 503."""
    try:
        check_database()
    except Error:
        # The reason is logged only: this endpoint is public.
        return JsonResponse(
            {"status": "unavailable", "database": "does not answer"},
            status=HTTPStatus.SERVICE_UNAVAILABLE,
        )
    return JsonResponse({"status": "ok", "database": "answers"})


def check_database() -> None:
    """:raises Error: if it does not."""
    execute("SELECT 1")


def check_migrations() -> None:
    """:raises HealthCheckFailed: with how many are missing."""
    missing = len(_migrations_on_disk() - set(MigrationRecorder(connection).applied_migrations()))
    if missing:
        raise HealthCheckFailed(f"{missing} not applied; run: manage.py migrate")


@cache
def _migrations_on_disk() -> frozenset[tuple[str, str]]:
    """Return the migrations on disk, which do not change while the process runs."""
    return frozenset(MigrationLoader(None).disk_migrations or ())


def check_broker() -> None:
    """:raises BrokerUnreachable: if it does not."""
    broker.celery_queue_depths()


#: A store on a network may not respond for tens of seconds; probes of load balancers wait for less.
ARTIFACT_STORE_SECONDS = 5.0
_artifact_store_checks = ThreadPoolExecutor(1, thread_name_prefix="artifact-store-check")


def check_artifact_store(store: ArtifactStore, *, seconds: float = ARTIFACT_STORE_SECONDS) -> None:
    """Write and delete a blob.

    :raises ArtifactError: if it cannot be stored.
    :raises HealthCheckFailed: if the store does not respond in time.
    """

    def write_and_delete() -> None:
        store.delete(store.put([secrets.token_bytes(32)]).digest)

    check = _artifact_store_checks.submit(write_and_delete)
    try:
        check.result(timeout=seconds)
    except TimeoutError:
        # One that waits behind an earlier check has nothing to tell.
        check.cancel()
        raise HealthCheckFailed(f"no response within {seconds:g} s") from None


def check_encryption_key() -> None:
    """:raises HealthCheckFailed: if there is no key, or one that is none."""
    try:
        if encryption.decrypt(encryption.encrypt(_PLAIN)) == _PLAIN:
            return
    except (ValueError, IndexError, InvalidToken):
        pass
    raise HealthCheckFailed("NINEFOLD_ENCRYPTION_KEY has no key that can be used")
