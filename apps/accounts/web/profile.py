"""A user's own profile: name, language, time zone, e-mail, personal tokens and the linked OpenID account."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import authenticate, update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.core import signing
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts import selectors, services
from apps.accounts.models import PersonalToken, User
from apps.accounts.services.users import PROFILE_FIELDS
from apps.accounts.web.authentication import mail_is_configured, send_email
from apps.accounts.web.forms import ProfileForm, TokenForm, token_lifetime_from_choice
from apps.accounts.web.http_requests import AuthenticatedRequest, absolute_url
from apps.accounts.web.role_labels import SCOPE_LABELS, role_labels, scope_descriptions
from apps.accounts.web.single_sign_on import identity_link_token
from controlplane.domain.common.permissions import Scope
from controlplane.web.forms import StyledForm, submitted_data
from controlplane.web.pages import save_form
from controlplane.web.rate_limits import count_events_in_window


@login_required
def profile(request: AuthenticatedRequest) -> HttpResponse:
    """Show the profile; POST creates a token, whose text is shown once."""
    form = TokenForm(submitted_data(request), user=request.user)

    def save() -> str:
        values = dict(form.cleaned_data)
        lifetime = token_lifetime_from_choice(values.pop("expires"))
        expires_at = timezone.now() + lifetime if lifetime else None
        _token, text = services.token_create(user=request.user, expires_at=expires_at, **values)
        return text

    if text := save_form(form, save):
        form = TokenForm(user=request.user)
    return _profile_page(request, form=form, text=text or "")


def _profile_page(request: AuthenticatedRequest, **context: Any) -> HttpResponse:
    user = request.user
    tokens = selectors.personal_tokens_visible(user).filter(revoked_at=None)
    initial = {name: getattr(user, name) for name in PROFILE_FIELDS}
    return render(
        request,
        "accounts/profile.html",
        {
            "profile_form": ProfileForm(initial=initial, auto_id="profile-%s"),
            "tokens": [_token_row(token) for token in tokens],
            "teams": _team_rows(request),
            "scopes": scope_descriptions(),
            "identities": list(user.identities.all()),
            "provider": settings.NINEFOLD_OIDC,
            "link": identity_link_token(user) if settings.NINEFOLD_OIDC else "",
            "now": timezone.now(),
            **context,
        },
    )


def _token_row(token: PersonalToken) -> dict[str, Any]:
    return {
        "row": token,
        "scopes": [SCOPE_LABELS[scope] for scope in Scope if scope in token.scope_set],
    }


def _team_rows(request: AuthenticatedRequest) -> list[dict[str, Any]]:
    current: dict[Any, list[str]] = {}
    for row in request.user.memberships.select_related("team").order_by("team__name"):
        current.setdefault(row.team, []).append(row.role)
    return [{"team": team, "roles": role_labels(roles)} for team, roles in current.items()]


@login_required
@require_POST
def profile_change(request: AuthenticatedRequest) -> HttpResponse:
    """Change name, language and time zone."""
    profile_form = ProfileForm(request.POST, auto_id="profile-%s")

    def save() -> bool:
        services.profile_change(user=request.user, values=profile_form.cleaned_data)
        return True

    if save_form(profile_form, save):
        messages.success(request, _("Profile saved."))
        return redirect("profile")
    return _profile_page(
        request, profile_form=profile_form, form=TokenForm(user=request.user), text=""
    )


@login_required
@require_POST
def token_revoke(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    token = get_object_or_404(request.user.tokens, uid=uid)
    services.token_revoke(token=token, actor=request.user)
    messages.success(request, _("Personal token %(name)s was revoked.") % {"name": token.name})
    return redirect("profile")


LINK_HOURS = 24
#: Links that one account can request within the window.
_LINKS = 5
_WINDOW_SECONDS = 3600


class EmailForm(StyledForm):
    email = forms.EmailField(label=gettext_lazy("New e-mail"))
    password = forms.CharField(
        label=gettext_lazy("Password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def email_change(request: AuthenticatedRequest) -> HttpResponse:
    """The form; POST sends the link, and changes nothing yet."""
    usable = mail_is_configured() and request.user.has_usable_password()
    form = EmailForm(request.POST if request.method == "POST" and usable else None)
    if form.is_bound and form.is_valid() and _request_email_change(request, form):
        return redirect("email-change-sent")
    context = {
        "form": form,
        "mail": mail_is_configured(),
        "provider": settings.NINEFOLD_OIDC,
        "hours": LINK_HOURS,
    }
    return render(request, "accounts/email_change.html", context)


def _request_email_change(request: AuthenticatedRequest, form: EmailForm) -> bool:
    """Whether a link is on its way; otherwise the form has the error."""
    user, email = request.user, form.cleaned_data["email"]
    # With the sign-in backend, so that wrong passwords count towards its limits.
    if (
        authenticate(request, username=user.username, password=form.cleaned_data["password"])
        is None
    ):
        form.add_error("password", _("The password is wrong."))
        return False
    try:
        services.check_email_available(user=user, email=email)
    except services.UserChangeRefused as refusal:
        form.add_error("email", str(refusal))
        return False
    if count_events_in_window(f"email-changes:{user.pk}", seconds=_WINDOW_SECONDS) > _LINKS:
        form.add_error(None, _("Too many links were requested. Try again in an hour."))
        return False
    link = absolute_url(
        request, reverse("email-change-confirm", args=[_email_link_token(user, email)])
    )
    context = {"link": link, "hours": LINK_HOURS}
    if not send_email(
        user, to=email, subject=_SUBJECT, template="email_change_mail.txt", context=context
    ):
        form.add_error(None, _("The mail server did not accept the message. Nothing was changed."))
        return False
    return True


_SUBJECT = gettext_lazy("Confirm your new e-mail address at Ninefold")
_NOTICE_SUBJECT = gettext_lazy("Your e-mail address at Ninefold was changed")


def _email_link_salt(user: User) -> str:
    """A change of password or e-mail and the end of all sessions invalidate every link from before."""
    return f"ninefold.email-change.{user.get_session_auth_hash()}"


def _email_link_token(user: User, email: str) -> str:
    return signing.dumps([user.uid, user.email, email], salt=_email_link_salt(user))


@login_required
@require_http_methods(["GET"])
def email_change_sent(request: AuthenticatedRequest) -> HttpResponse:
    return render(request, "accounts/email_change_sent.html", {"hours": LINK_HOURS})


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def email_change_confirm(request: AuthenticatedRequest, token: str) -> HttpResponse:
    """Confirm the new e-mail. Only POST changes it: mail scanners open links."""
    user = request.user
    try:
        uid, old, email = signing.loads(
            token, salt=_email_link_salt(user), max_age=LINK_HOURS * 3600
        )
    except signing.BadSignature:
        uid = old = email = ""
    if (uid, old) != (user.uid, user.email):
        return render(request, "accounts/email_change_confirm.html", {"email": ""}, status=410)
    context: dict[str, Any] = {"email": email}
    if request.method == "POST":
        try:
            services.email_change(user=user, email=email)
        except services.UserChangeRefused as refusal:
            context["refusal"] = str(refusal)
            return render(request, "accounts/email_change_confirm.html", context, status=409)
        update_session_auth_hash(request, user)
        if old:
            send_email(
                user,
                to=old,
                subject=_NOTICE_SUBJECT,
                template="email_change_notice.txt",
                context={"email": email},
            )
        messages.success(
            request, _("The e-mail was changed; other browsers have to sign in again.")
        )
        return redirect("profile")
    return render(request, "accounts/email_change_confirm.html", context)
