"""The profile: who one is, how one likes it, personal tokens, the linked sign-on."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts import selectors, services
from apps.accounts.models import PersonalToken
from apps.accounts.services.people import PROFILE_FIELDS
from apps.accounts.web.forms import ProfileForm, TokenForm, expiry_of
from apps.accounts.web.requests import SignedIn
from apps.accounts.web.sign_on import link_token
from apps.accounts.web.words import SCOPE_NAMES, role_names, scopes_explained
from controlplane.domain.permissions import Scope


@login_required
def profile(request: SignedIn) -> HttpResponse:
    """The profile; POST makes a token, whose text is shown in the answer and never again."""
    form = TokenForm(request.POST if request.method == "POST" else None, user=request.user)
    text = ""
    if form.is_bound and form.is_valid():
        lifetime = expiry_of(form.cleaned_data["expires"])
        try:
            _token, text = services.token_create(
                user=request.user,
                name=form.cleaned_data["name"],
                scopes=form.cleaned_data["scopes"],
                team=form.cleaned_data["team"],
                expires_at=timezone.now() + lifetime if lifetime else None,
            )
        except services.TokenRefused as refusal:
            field = {"expires_at": "expires"}.get(refusal.field, refusal.field)
            form.add_error(field, str(refusal))
        else:
            form = TokenForm(user=request.user)
    return _page(request, form=form, text=text)


def _page(request: SignedIn, **context: Any) -> HttpResponse:
    user = request.user
    tokens = selectors.tokens_of(user).filter(revoked_at=None)
    initial = {name: getattr(user, name) for name in PROFILE_FIELDS}
    return render(
        request,
        "accounts/profile.html",
        {
            "person": ProfileForm(initial=initial, auto_id="profile-%s"),
            "tokens": [_shown(token) for token in tokens],
            "teams": _teams(request),
            "scopes": scopes_explained(),
            "identities": list(user.identities.all()),
            "provider": settings.NINEFOLD_OIDC,
            "link": link_token(user) if settings.NINEFOLD_OIDC else "",
            "now": timezone.now(),
            **context,
        },
    )


def _shown(token: PersonalToken) -> dict[str, Any]:
    return {
        "row": token,
        "scopes": [SCOPE_NAMES[scope] for scope in Scope if scope in token.scope_set],
    }


def _teams(request: SignedIn) -> list[dict[str, Any]]:
    held: dict[Any, list[str]] = {}
    for row in request.user.memberships.select_related("team").order_by("team__name"):
        held.setdefault(row.team, []).append(row.role)
    return [{"team": team, "roles": role_names(roles)} for team, roles in held.items()]


@login_required
@require_POST
def change(request: SignedIn) -> HttpResponse:
    """Name, address, language and time zone."""
    person = ProfileForm(request.POST, auto_id="profile-%s")
    if person.is_valid():
        try:
            services.profile_change(user=request.user, values=person.cleaned_data)
        except services.PersonRefused as refusal:
            person.add_error(refusal.field or None, str(refusal))
        else:
            messages.success(request, _("Saved."))
            return redirect("profile")
    return _page(request, person=person, form=TokenForm(user=request.user), text="")


@login_required
@require_POST
def token_revoke(request: SignedIn, uid: str) -> HttpResponse:
    token = get_object_or_404(request.user.tokens, uid=uid)
    services.token_revoke(token=token, actor=request.user)
    messages.success(request, _("The token %(name)s was revoked.") % {"name": token.name})
    return redirect("profile")
