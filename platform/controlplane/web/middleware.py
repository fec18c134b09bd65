"""Request ids, access log and request metrics; the content security policy of the admin; isolation headers.

The admin has a content security policy of its own: django-unfold uses Alpine, which evaluates expressions
and sets styles; no other page may do that. No page uses devices such as the camera.
"""

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

from controlplane.web import logs, request_metrics
from controlplane.web.password_hashing import RETRY_AFTER_SECONDS, PasswordHashingBusy

ADMIN = "/admin/"
ADMIN_POLICY = {
    "script-src": ["'self'", "'unsafe-eval'"],
    "style-src": ["'self'", "'unsafe-inline'"],
}
#: Features of the browser that nothing here uses, so that nothing that gets in can use them either.
UNUSED_FEATURES = ("camera", "display-capture", "geolocation", "microphone", "payment", "usb")
PERMISSIONS = ", ".join(f"{feature}=()" for feature in UNUSED_FEATURES)


class AdminContentSecurityPolicyMiddleware:
    """Relaxes the policy below ``/admin/`` only."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path.startswith(ADMIN):
            response._csp_replace = ADMIN_POLICY  # type: ignore[attr-defined]  # django-csp's
        return response


class CrossOriginIsolationMiddleware:
    """Sets headers that disable browser devices and cross-origin embedding."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Permissions-Policy", PERMISSIONS)
        response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        return response


log = logging.getLogger("controlplane.web.access")

HEADER = "X-Request-ID"
SLOW_SECONDS = 1.0
STATIC, UNMATCHED = "static", "unmatched"
_ACCEPTED_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: Parameters of ``path()`` and groups of regular expressions.
_CONVERTED = re.compile(r"<(?:\w+:)?(\w+)>")
_GROUP = re.compile(r"\(\?P<(\w+)>(?:[^()\[\]]|\[[^\]]*\]|\([^()]*\))*\)")


class RequestLoggingMiddleware:
    """Sets the request id, logs and counts the request. The outermost middleware.

    A valid id sent by the client is used, so that log lines of a proxy and ours can be correlated; the response
    always has the id.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        client_id = request.headers.get(HEADER, "")
        request_id = client_id if _ACCEPTED_ID.fullmatch(client_id) else secrets.token_hex(8)
        began = time.perf_counter()
        with logs.log_request_id(request_id):
            response = self.get_response(request)
            seconds = time.perf_counter() - began
            route = url_pattern_of_request(request)
            request_metrics.count_request(
                method=request.method or "",
                route=route,
                status=response.status_code,
                seconds=seconds,
            )
            _log_request(request, response, route=route, seconds=seconds)
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


def _log_request(
    request: HttpRequest, response: HttpResponse, *, route: str, seconds: float
) -> None:
    failed = response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
    slow = seconds >= SLOW_SECONDS and route not in settings.NINEFOLD_LONG_POLLS
    level = logging.INFO if failed or slow else logging.DEBUG
    if log.isEnabledFor(level):
        fields = {
            "method": request.method,
            "route": route,
            # Without the query string, which may contain search terms.
            "path": request.path,
            "status": response.status_code,
            "duration_ms": round(seconds * 1000, 1),
            "user": _authenticated_username(request),
        }
        log.log(level, "a request was answered", extra=fields)


def _authenticated_username(request: HttpRequest) -> str:
    """Return the name of the user if already authenticated; causes no query."""
    user = getattr(request, "user", None)
    if isinstance(user, LazyObject):
        user = vars(request).get("_cached_user")
    return user.get_username() if user is not None and user.is_authenticated else ""


def url_pattern_of_request(request: HttpRequest) -> str:
    """Return the URL pattern of the request, such as ``/jobs/<uid>``: bounded cardinality."""
    if request.resolver_match is not None:
        return _simplify_route(request.resolver_match.route)
    return STATIC if request.path.startswith(settings.STATIC_URL) else UNMATCHED


@lru_cache(maxsize=1024)
def _simplify_route(route: str) -> str:
    plain = _CONVERTED.sub(r"<\1>", _GROUP.sub(r"<\1>", route))
    return "/" + re.sub(r"\\Z|[\^$?]", "", plain).replace("\\", "").lstrip("/")


@requires_csrf_token
def server_error(request: HttpRequest) -> HttpResponse:
    """Return the 500 page with the request id; uses no database."""
    page = loader.render_to_string("500.html", {"request_id": logs.current_request_id()})
    return HttpResponse(page, status=HTTPStatus.INTERNAL_SERVER_ERROR)
