"""Limits on failed sign-ins by user name and address (django-axes), and audit entries of sign-ins."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from axes.attempts import get_cool_off_threshold
from axes.handlers.database import AxesDatabaseHandler
from axes.helpers import get_client_username, get_cool_off
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db.models import QuerySet, Sum
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from apps.accounts import services
from apps.accounts.models import User
from apps.accounts.web.http_requests import client_address
from controlplane.persistence.audit_context import current_audit_context
from controlplane.web.rate_limits import count_events_in_window, rate_limit_address

TOO_MANY = 429


def client_address_for_lockout(request: HttpRequest) -> str | None:
    """The client address under which failures are counted; of an IPv6 address, its /64 network."""
    return rate_limit_address(client_address(request))


class LoginLimitHandler(AxesDatabaseHandler):  # type: ignore[misc]  # axes has no types
    """Locks out by name and address as axes does, and an address with too many failures in total."""

    def is_locked(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> bool:
        return bool(super().is_locked(request, credentials)) or _is_address_locked(request)


def _failures_by_address(request: HttpRequest) -> QuerySet[AccessAttempt]:
    """Failures from the address, whatever the user name, since the start of the cool-off period."""
    attempts: QuerySet[AccessAttempt] = AccessAttempt.objects.filter(
        ip_address=client_address_for_lockout(request),
        attempt_time__gte=get_cool_off_threshold(request),
    )
    return attempts


def _is_address_locked(request: HttpRequest) -> bool:
    counted = (
        _failures_by_address(request).aggregate(total=Sum("failures_since_start"))["total"] or 0
    )
    return bool(counted >= settings.NINEFOLD_LOGIN_ADDRESS_FAILURES)


def lockout_response(
    request: HttpRequest, response: HttpResponse, credentials: dict[str, Any] | None
) -> HttpResponse:
    """Return the 429 page with the time of the next attempt."""
    username = get_client_username(request, credentials) or ""
    by_address = _is_address_locked(request)
    attempts = AccessAttempt.objects.filter(ip_address=client_address_for_lockout(request))
    if not by_address:
        attempts = attempts.filter(username=username)
    again_at = _lockout_end_time(request, attempts)
    context = {"username": username, "by_address": by_address, "again_at": again_at}
    page = render(request, "accounts/locked.html", context, status=TOO_MANY)
    page["Retry-After"] = str(max(1, round((again_at - timezone.now()).total_seconds())))
    return page


def _lockout_end_time(request: HttpRequest, attempts: QuerySet[AccessAttempt]) -> datetime:
    latest = attempts.order_by("-attempt_time").values_list("attempt_time", flat=True).first()
    cool_off = get_cool_off(request)
    if latest is None or cool_off is None:
        return timezone.now()
    again_at: datetime = latest + cool_off
    return again_at


#: Failed sign-ins per address that are recorded within the window: a flood must not fill the table.
_RECORDED = 10
_WINDOW_SECONDS = 600


@receiver(user_logged_in)
def audit_login(sender: Any, request: HttpRequest, user: User, **more: Any) -> None:
    services.record_audit_entry(
        actor=user,
        action="session.begin",
        uid=user.uid,
        name=user.username,
        # Set by the view that the provider leads back to.
        by=getattr(request, "signed_on_by", "password"),
    )


@receiver(user_logged_out)
def audit_logout(sender: Any, request: HttpRequest, user: User | None, **more: Any) -> None:
    if isinstance(user, User):
        services.record_audit_entry(
            actor=user, action="session.end", uid=user.uid, name=user.username
        )


@receiver(user_login_failed)
def audit_login_failure(
    sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **more: Any
) -> None:
    if request is None or getattr(request, "axes_locked_out", False):
        return
    address = rate_limit_address(current_audit_context().address)
    if count_events_in_window(f"failed-log-ins:{address}", seconds=_WINDOW_SECONDS) > _RECORDED:
        return
    # Users type passwords into the wrong field: an unknown user name is not recorded.
    user = User.objects.filter(username=str(credentials.get("username", ""))).first()
    services.record_audit_entry(
        actor=None,
        action="session.refuse",
        uid=user.uid if user else "",
        name=user.username if user else "",
    )
