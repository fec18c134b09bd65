"""What happens to every request around its view: where it comes from, how old its session is, for whom."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext as _

from apps.accounts.models import User
from apps.accounts.web.addresses import client_address, is_from_trusted_proxy
from controlplane.persistence.origins import Origin, coming_from
from controlplane.web.logs import request_id
from controlplane.web.pages import HtmxRequest

Next = Callable[[HttpRequest], HttpResponse]

_BEGAN, _ACTIVE = "began_at", "active_at"
#: How much of the idle time may pass before activity is written down; saves a write on each request.
_PRECISION = 20


class ProxyMiddleware:
    """Removes ``X-Forwarded-Proto`` where no trusted proxy sent it; stands before ``SecurityMiddleware``."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not is_from_trusted_proxy(request):
            request.META.pop("HTTP_X_FORWARDED_PROTO", None)
        return self.get_response(request)


class OriginMiddleware:
    """Lets services know where a change comes from."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        source = Origin(address=client_address(request), request_id=request_id())
        with coming_from(source):
            return self.get_response(request)


class SessionAgeMiddleware:
    """Ends sessions that are too old, or in which nobody has done anything for too long."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HtmxRequest) -> HttpResponse:
        if settings.SESSION_COOKIE_NAME in request.COOKIES and request.user.is_authenticated:
            self._look(request, at=timezone.now())
        return self.get_response(request)

    def _look(self, request: HtmxRequest, *, at: datetime) -> None:
        session = request.session
        idle: timedelta = settings.NINEFOLD_SESSION_IDLE
        # A session from before this was kept begins now.
        began = _instant(session.get(_BEGAN)) or at
        active = _instant(session.get(_ACTIVE)) or at
        if at - began > timedelta(seconds=settings.SESSION_COOKIE_AGE) or at - active > idle:
            logout(request)
            messages.info(request, _("You were logged out because your session had ended."))
            return
        if _BEGAN not in session:
            session[_BEGAN] = at.timestamp()
        if _ACTIVE not in session or (_by_hand(request) and at - active > idle / _PRECISION):
            session[_ACTIVE] = at.timestamp()


def _by_hand(request: HtmxRequest) -> bool:
    """Whether a person did this; a page that looks after itself also asks by htmx or for JSON."""
    if request.method not in ("GET", "HEAD"):
        return True
    return not request.htmx and "text/html" in request.headers.get("Accept", "text/html")


def _instant(stamp: object) -> datetime | None:
    return datetime.fromtimestamp(stamp, tz=UTC) if isinstance(stamp, float) else None


class PreferencesMiddleware:
    """Language and time zone as the person has chosen them."""

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
        with timezone.override(_zone(user.time_zone)):
            return self.get_response(request)


def _zone(name: str) -> ZoneInfo | None:
    """None where the name is none, or one that this machine does not know."""
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError):
        return None
