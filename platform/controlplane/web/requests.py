"""Each request has an id, one line in the log, and is counted by the pattern of its address."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable
from functools import lru_cache
from http import HTTPStatus

from django.conf import settings
from django.db import DataError
from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.utils.functional import LazyObject
from django.views.decorators.csrf import requires_csrf_token
from django.views.defaults import bad_request

from controlplane.web import logs, metrics
from controlplane.web.password_hashing import RETRY_AFTER_SECONDS, PasswordHashingBusy

log = logging.getLogger("controlplane.web.access")

HEADER = "X-Request-ID"
SLOW_SECONDS = 1.0
STATIC, UNMATCHED = "static", "unmatched"
_SANE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: What a pattern may look like: ``path()``'s parameters, and groups of a regular expression.
_CONVERTED = re.compile(r"<(?:\w+:)?(\w+)>")
_GROUP = re.compile(r"\(\?P<(\w+)>(?:[^()\[\]]|\[[^\]]*\]|\([^()]*\))*\)")


class RequestMiddleware:
    """Stands outermost, so that nothing is answered without it.

    An id that the caller sends is kept if it is a sane one, so that a proxy's lines and ours can be put
    side by side; the answer bears it in any case.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        request_id = given if _SANE_ID.fullmatch(given) else secrets.token_hex(8)
        began = time.perf_counter()
        with logs.in_request(request_id):
            response = self.get_response(request)
            seconds = time.perf_counter() - began
            route = route_of(request)
            metrics.observe(
                method=request.method or "",
                route=route,
                status=response.status_code,
                seconds=seconds,
            )
            _write_line(request, response, route=route, seconds=seconds)
        response[HEADER] = request_id
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Respond to errors that can occur in any view.

        400 where a URL or a field contains a NUL character, which PostgreSQL does not store; 503 with
        ``Retry-After`` where too many passwords are being hashed.
        """
        if isinstance(exception, DataError) and "NUL (0x00)" in str(exception):
            return bad_request(request, exception)
        if isinstance(exception, PasswordHashingBusy):
            return HttpResponse(
                loader.render_to_string("503.html", request=request),
                status=HTTPStatus.SERVICE_UNAVAILABLE,
                headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
            )
        return None


def _write_line(
    request: HttpRequest, response: HttpResponse, *, route: str, seconds: float
) -> None:
    failed = response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
    slow = seconds >= SLOW_SECONDS and route not in settings.NINEFOLD_LONG_POLLS
    level = logging.INFO if failed or slow else logging.DEBUG
    if log.isEnabledFor(level):
        fields = {
            "method": request.method,
            "route": route,
            # Without its query, which may hold what somebody searched for.
            "path": request.path,
            "status": response.status_code,
            "duration_ms": round(seconds * 1000, 1),
            "user": _username(request),
        }
        log.log(level, "a request was answered", extra=fields)


def _username(request: HttpRequest) -> str:
    """Of whoever was recognised on the way; nobody is looked up for the line's sake."""
    user = getattr(request, "user", None)
    if isinstance(user, LazyObject):
        user = vars(request).get("_cached_user")
    return user.get_username() if user is not None and user.is_authenticated else ""


def route_of(request: HttpRequest) -> str:
    """The pattern of the request's address, such as ``/jobs/<uid>``: few values, however many jobs."""
    if request.resolver_match is not None:
        return _simplified(request.resolver_match.route)
    return STATIC if request.path.startswith(settings.STATIC_URL) else UNMATCHED


@lru_cache(maxsize=1024)
def _simplified(route: str) -> str:
    plain = _CONVERTED.sub(r"<\1>", _GROUP.sub(r"<\1>", route))
    return "/" + re.sub(r"\\Z|[\^$?]", "", plain).replace("\\", "").lstrip("/")


@requires_csrf_token
def server_error(request: HttpRequest) -> HttpResponse:
    """The page of a fault of ours. It bears the id under which the log has it, and touches nothing else."""
    page = loader.render_to_string("500.html", {"request_id": logs.request_id()})
    return HttpResponse(page, status=HTTPStatus.INTERNAL_SERVER_ERROR)
