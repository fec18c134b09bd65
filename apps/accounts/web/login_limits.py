"""Limits on failed log-ins: by user name and address together, and by address alone (django-axes)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from axes.attempts import get_cool_off_threshold
from axes.handlers.database import AxesDatabaseHandler
from axes.helpers import get_client_username, get_cool_off
from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from apps.accounts.web.addresses import client_address
from controlplane.web.rates import counted_address

TOO_MANY = 429


def limited_address(request: HttpRequest) -> str | None:
    """The client address under which failures are counted; of an IPv6 address, its /64 network."""
    return counted_address(client_address(request))


class LogInLimitHandler(AxesDatabaseHandler):  # type: ignore[misc]  # axes has no types
    """Locks out by name and address as axes does, and an address with too many failures in total."""

    def is_locked(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> bool:
        return bool(super().is_locked(request, credentials)) or _is_address_locked(request)


def _address_failures(request: HttpRequest) -> QuerySet[AccessAttempt]:
    """Failures from the address, whatever the user name, since the start of the cool-off period."""
    attempts: QuerySet[AccessAttempt] = AccessAttempt.objects.filter(
        ip_address=limited_address(request), attempt_time__gte=get_cool_off_threshold(request)
    )
    return attempts


def _is_address_locked(request: HttpRequest) -> bool:
    counted = _address_failures(request).aggregate(total=Sum("failures_since_start"))["total"] or 0
    return bool(counted >= settings.NINEFOLD_LOGIN_ADDRESS_FAILURES)


def locked_out(
    request: HttpRequest, response: HttpResponse, credentials: dict[str, Any] | None
) -> HttpResponse:
    """The page with status 429 that replaces the log-in page, and when to try again."""
    username = get_client_username(request, credentials) or ""
    by_address = _is_address_locked(request)
    attempts = AccessAttempt.objects.filter(ip_address=limited_address(request))
    if not by_address:
        attempts = attempts.filter(username=username)
    again_at = _unlocked_at(request, attempts)
    context = {"username": username, "by_address": by_address, "again_at": again_at}
    page = render(request, "accounts/locked.html", context, status=TOO_MANY)
    page["Retry-After"] = str(max(1, round((again_at - timezone.now()).total_seconds())))
    return page


def _unlocked_at(request: HttpRequest, attempts: QuerySet[AccessAttempt]) -> datetime:
    latest = attempts.order_by("-attempt_time").values_list("attempt_time", flat=True).first()
    cool_off = get_cool_off(request)
    if latest is None or cool_off is None:
        return timezone.now()
    again_at: datetime = latest + cool_off
    return again_at
