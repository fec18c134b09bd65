"""Pages of the gateway's keys."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.web.forms import expiry_of
from apps.accounts.web.requests import SignedIn
from apps.serving import selectors
from apps.serving.services import keys as services
from apps.serving.web.forms import KeyForm
from controlplane.domain.permissions import Permission
from controlplane.web.pages import keyset


@login_required
def keys(request: SignedIn) -> HttpResponse:
    """The keys that work, with what was called by each; ``?all=1`` shows those that ended too."""
    now = timezone.now()
    rows = selectors.keys_with_usage(request.user)
    if not request.GET.get("all"):
        rows = rows.filter(selectors.key_works(at=now))
    page = keyset(rows, before=request.GET.get("before", ""))
    return render(request, "serving/keys.html", {"page": page, "now": now})


@login_required
def key_new(request: SignedIn) -> HttpResponse:
    """The form; the key's text is in the answer to it and nowhere else."""
    bound = request.method == "POST"
    form = KeyForm(request.POST if bound else None, user=request.user)
    if not (bound and form.is_valid()):
        status = 422 if bound else 200
        return render(request, "serving/key_new.html", {"form": form}, status=status)
    values = form.cleaned_data
    accounts.require(request.user, Permission.MANAGE_KEYS, team=values["team"])
    now, lifetime = timezone.now(), expiry_of(values["expires"])
    key, text = services.key_create(
        actor=request.user,
        team=values["team"],
        name=values["name"],
        at=now,
        routes=values["routes"] or None,
        expires_at=now + lifetime if lifetime else None,
        requests_per_minute=values["requests_per_minute"],
        tokens_per_minute=values["tokens_per_minute"],
        concurrency=values["concurrency"],
    )
    return render(request, "serving/key_made.html", {"key": key, "text": text})


@login_required
@require_POST
def key_revoke(request: SignedIn, uid: str) -> HttpResponse:
    key = get_object_or_404(selectors.keys_visible(request.user), uid=uid)
    accounts.require(request.user, Permission.MANAGE_KEYS, team=key.team)
    services.key_revoke(key=key, actor=request.user, at=timezone.now())
    messages.success(request, _("The key %(name)s was revoked.") % {"name": key.name})
    return redirect("keys")
