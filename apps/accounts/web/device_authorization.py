"""Sign-in of programs by a code (RFC 8628): the endpoints of the program, and the page where a user approves."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.services.device_authorizations import (
    CODE_LIFETIME,
    DeviceCodeUnavailable,
    DevicePollError,
    DevicePollRefused,
    device_authorization_create,
    device_authorization_decide,
    device_token_issue,
    format_user_code,
    pending_device_authorization,
)
from apps.accounts.web.http_requests import AuthenticatedRequest, absolute_url, client_address
from apps.accounts.web.role_labels import scope_descriptions
from controlplane.domain.common.permissions import Scope
from controlplane.web.rate_limits import count_events_in_window, rate_limit_address

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"
CLIENT_ID = "ninefold-cli"
#: New codes per address, and user codes that one user enters or decides, within ten minutes.
_CODES, _ENTERED_CODES = 20, 30
_WINDOW_SECONDS = 600
#: Wrong device codes per address within a minute.
_WRONG_DEVICE_CODES = 30
_MINUTE = 60
_TOO_MANY = 429
_HOST = re.compile(r"[^\w.@ -]")


# The program has no session and no cookie that another page could use.
@csrf_exempt
@require_POST
@never_cache
def create_device_code(request: HttpRequest) -> HttpResponse:
    """Answer the device authorization request of a program."""
    address = rate_limit_address(client_address(request))
    if count_events_in_window(f"device-codes:{address}", seconds=_WINDOW_SECONDS) > _CODES:
        return _refusal("slow_down", "too many codes were requested; try again in ten minutes",
                        status=_TOO_MANY, retry_after=_WINDOW_SECONDS)  # fmt: skip
    if request.POST.get("client_id") != CLIENT_ID:
        return _refusal("invalid_client", f"client_id must be {CLIENT_ID}")
    names = request.POST.get("scope", Scope.ALL.value).split()
    unknown = [name for name in names if name not in set(Scope)]
    if unknown or not names:
        message = f"scope must be some of {', '.join(Scope)}, separated by spaces"
        return _refusal("invalid_scope", message)
    host = _HOST.sub("", request.POST.get("host", ""))[:100].strip()
    created = device_authorization_create(
        scopes=frozenset(map(Scope, names)), host=host, at=timezone.now()
    )
    code = format_user_code(created.row.user_code)
    page = absolute_url(request, reverse("device"))
    return JsonResponse(
        {
            "device_code": created.device_code,
            "user_code": code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?{urlencode({'user_code': code})}",
            "expires_in": int(CODE_LIFETIME.total_seconds()),
            "interval": created.row.interval,
        }
    )


@csrf_exempt
@require_POST
@never_cache
def issue_token(request: HttpRequest) -> HttpResponse:
    """Exchange a device code for a personal token, after a user has approved it."""
    if request.POST.get("grant_type") != GRANT_TYPE:
        return _refusal("unsupported_grant_type", f"grant_type must be {GRANT_TYPE}")
    try:
        token, text = device_token_issue(
            device_code=request.POST.get("device_code", ""), at=timezone.now()
        )
    except DevicePollRefused as refused:
        if refused.error is DevicePollError.INVALID_GRANT and _guesses_too_often(request):
            return _refusal("slow_down", "too many wrong device codes; try again in a minute",
                            status=_TOO_MANY, retry_after=_MINUTE)  # fmt: skip
        return _refusal(
            refused.error.value, _DESCRIPTIONS[refused.error], interval=refused.interval
        )
    answer: dict[str, Any] = {
        "access_token": text,
        "token_type": "Bearer",
        "scope": " ".join(token.scopes),
    }
    if token.expires_at is not None:
        answer["expires_in"] = round((token.expires_at - timezone.now()).total_seconds())
    return JsonResponse(answer)


def _guesses_too_often(request: HttpRequest) -> bool:
    address = rate_limit_address(client_address(request))
    wrong = count_events_in_window(f"wrong-device-codes:{address}", seconds=_MINUTE)
    return wrong > _WRONG_DEVICE_CODES


_DESCRIPTIONS = {
    DevicePollError.AUTHORIZATION_PENDING: "nobody has approved the code yet",
    DevicePollError.SLOW_DOWN: "requests come faster than the interval; it is longer now",
    DevicePollError.ACCESS_DENIED: "the user denied the sign-in",
    DevicePollError.EXPIRED_TOKEN: "the code has expired; start again",
    DevicePollError.INVALID_GRANT: "the device code is unknown or was used",
}


def _refusal(
    error: str, description: str, *, status: int = 400, retry_after: int = 0, **more: int
) -> JsonResponse:
    """Return an error as RFC 6749 has it, section 5.2."""
    answer = JsonResponse({"error": error, "error_description": description, **more}, status=status)
    if retry_after:
        answer["Retry-After"] = str(retry_after)
    return answer


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def device_page(request: AuthenticatedRequest) -> HttpResponse:
    """Show what asks to sign in under a code; POST approves or denies it."""
    values = request.POST if request.method == "POST" else request.GET
    code = values.get("user_code", "").strip()
    if not code:
        return render(request, "accounts/device.html", {})
    entered = count_events_in_window(f"user-codes:{request.user.pk}", seconds=_WINDOW_SECONDS)
    if entered > _ENTERED_CODES:
        error = _("Too many codes were entered. Try again in ten minutes.")
        return render(request, "accounts/device.html", {"error": error}, status=_TOO_MANY)
    at = timezone.now()
    decision = request.POST.get("decision", "")
    try:
        if decision in {"approve", "deny"}:
            row = device_authorization_decide(
                user_code=code, approved=decision == "approve", user=request.user, at=at
            )
            return render(request, "accounts/device.html", {"decided": row, "decision": decision})
        row = pending_device_authorization(user_code=code, at=at)
    except DeviceCodeUnavailable:
        error = _(
            "The code %(code)s is unknown, expired or already used. Run “ninefold login” again."
        )
        context = {"error": error % {"code": code[:20]}}
        return render(request, "accounts/device.html", context, status=404)
    return render(
        request,
        "accounts/device.html",
        {
            "row": row,
            "code": format_user_code(row.user_code),
            "scopes": [one for one in scope_descriptions() if one.code in row.scopes],
        },
    )
