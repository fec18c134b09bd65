"""Middleware: proxy headers, audit context, session age, expired sessions, language and time zone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from urllib.parse import urlencode, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseRedirectBase
from django.shortcuts import resolve_url
from django.utils import timezone, translation
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect

from apps.accounts.models import User
from apps.accounts.web.http_requests import client_address, is_from_trusted_proxy
from controlplane.persistence.audit_context import AuditContext, use_audit_context
from controlplane.web.logs import current_request_id
from controlplane.web.pages import HtmxRequest, ToastLevel, add_toast

Next = Callable[[HttpRequest], HttpResponse]

_BEGAN, _ACTIVE = "began_at", "active_at"
#: How much of the idle time may pass before activity is written down; saves a write on each request.
_PRECISION = 20


class TrustedProxyMiddleware:
    """Removes ``X-Forwarded-Proto`` where no trusted proxy sent it; must precede ``SecurityMiddleware``."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not is_from_trusted_proxy(request):
            request.META.pop("HTTP_X_FORWARDED_PROTO", None)
        return self.get_response(request)


class AuditContextMiddleware:
    """Sets the audit context of the request."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        source = AuditContext(address=client_address(request), request_id=current_request_id())
        with use_audit_context(source):
            return self.get_response(request)


class SessionAgeMiddleware:
    """Ends sessions past their maximum age or idle time."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HtmxRequest) -> HttpResponse:
        if settings.SESSION_COOKIE_NAME in request.COOKIES and request.user.is_authenticated:
            self._check_age(request, at=timezone.now())
        return self.get_response(request)

    def _check_age(self, request: HtmxRequest, *, at: datetime) -> None:
        session = request.session
        idle: timedelta = settings.NINEFOLD_SESSION_IDLE
        # A session without a timestamp starts now.
        began = _parse_timestamp(session.get(_BEGAN)) or at
        active = _parse_timestamp(session.get(_ACTIVE)) or at
        if at - began > timedelta(seconds=settings.SESSION_COOKIE_AGE) or at - active > idle:
            logout(request)
            messages.info(request, _("You were signed out because your session expired."))
            return
        if _BEGAN not in session:
            session[_BEGAN] = at.timestamp()
        if _ACTIVE not in session or (
            _is_user_activity(request) and at - active > idle / _PRECISION
        ):
            session[_ACTIVE] = at.timestamp()


def _is_user_activity(request: HtmxRequest) -> bool:
    """Return whether the request is user activity; pages also poll by htmx and for JSON."""
    if request.method not in ("GET", "HEAD"):
        return True
    return not request.htmx and "text/html" in request.headers.get("Accept", "text/html")


def _parse_timestamp(stamp: object) -> datetime | None:
    return datetime.fromtimestamp(stamp, tz=UTC) if isinstance(stamp, float) else None


class PreferencesMiddleware:
    """Activates the language and time zone of the user."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if settings.SESSION_COOKIE_NAME not in request.COOKIES:
            return self.get_response(request)
        user = request.user
        if not isinstance(user, User | SimpleLazyObject) or not user.is_authenticated:
            return self.get_response(request)
        if user.language:
            translation.activate(user.language)
            request.LANGUAGE_CODE = translation.get_language() or user.language
        with timezone.override(_find_time_zone(user.time_zone)):
            return self.get_response(request)


def _find_time_zone(name: str) -> ZoneInfo | None:
    """None where the name is none, or one that this machine does not know."""
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError):
        return None


class SessionExpiredMiddleware:
    """Replaces the redirect to the sign-in page for requests by scripts.

    A polling fragment redirects its page to sign-in and back. A form being filled in stays, with a toast, so that
    its values are not lost. Other scripts get 401 and a message as JSON.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HtmxRequest) -> HttpResponse:
        response = self.get_response(request)
        if not _is_login_redirect(response) or _is_navigation(request):
            return response
        if not request.htmx:
            message = _("You are signed out. Sign in again, then resend the message.")
            return JsonResponse({"error": {"message": message}}, status=HTTPStatus.UNAUTHORIZED)
        if request.method != "GET":
            message = _(
                "You are signed out. Sign in again in another tab; the input on this page is kept."
            )
            refused = HttpResponse(status=HTTPStatus.UNAUTHORIZED)
            return add_toast(refused, level=ToastLevel.ERROR, text=message)
        page = urlsplit(request.headers.get("HX-Current-URL", ""))
        back = f"{page.path or '/'}?{page.query}" if page.query else page.path or "/"
        login = resolve_url(settings.LOGIN_URL)
        return HttpResponseClientRedirect(f"{login}?{urlencode({'next': back})}")


def _is_login_redirect(response: HttpResponse) -> bool:
    if not isinstance(response, HttpResponseRedirectBase):
        return False
    return urlsplit(response.url).path == resolve_url(settings.LOGIN_URL)


def _is_navigation(request: HtmxRequest) -> bool:
    """Return whether this is a navigation, for which the redirect is followed as usual."""
    if request.htmx:
        return bool(request.htmx.boosted)
    # Clients without the header are no current browsers: they get the redirect.
    return request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
