"""Change of one's e-mail address: password, a link to the new address, a notice to the old one."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import authenticate, update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.core import signing
from django.core.mail import send_mail
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from apps.accounts import services
from apps.accounts.models import User
from apps.accounts.web.addresses import address_of
from apps.accounts.web.requests import SignedIn
from apps.accounts.web.sessions import mail_is_configured
from controlplane.web.forms import PlainForm
from controlplane.web.rates import count_within

LINK_HOURS = 24
#: Links that one account can request within the window.
_LINKS = 5
_WINDOW_SECONDS = 3600


class EmailForm(PlainForm):
    email = forms.EmailField(label=gettext_lazy("New e-mail"))
    password = forms.CharField(
        label=gettext_lazy("Password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def change(request: SignedIn) -> HttpResponse:
    """The form; POST sends the link, and changes nothing yet."""
    usable = mail_is_configured() and request.user.has_usable_password()
    form = EmailForm(request.POST if request.method == "POST" and usable else None)
    if form.is_bound and form.is_valid() and _accepted(request, form):
        return redirect("email-change-sent")
    context = {
        "form": form,
        "mail": mail_is_configured(),
        "provider": settings.NINEFOLD_OIDC,
        "hours": LINK_HOURS,
    }
    return render(request, "accounts/email_change.html", context)


def _accepted(request: SignedIn, form: EmailForm) -> bool:
    """Whether a link is on its way; otherwise the form has the error."""
    user, email = request.user, form.cleaned_data["email"]
    # By the log-in's own path, so that wrong passwords count towards its limits.
    if (
        authenticate(request, username=user.username, password=form.cleaned_data["password"])
        is None
    ):
        form.add_error("password", _("The password is wrong."))
        return False
    try:
        services.email_check(user=user, email=email)
    except services.PersonRefused as refusal:
        form.add_error("email", str(refusal))
        return False
    if count_within(f"email-changes:{user.pk}", seconds=_WINDOW_SECONDS) > _LINKS:
        form.add_error(None, _("Too many links were requested. Try again in an hour."))
        return False
    link = address_of(request, reverse("email-change-confirm", args=[_token(user, email)]))
    context = {"person": user, "link": link, "hours": LINK_HOURS}
    if not _send(user, email, subject=_SUBJECT, template="email_change_mail.txt", context=context):
        form.add_error(None, _("The mail server did not accept the message. Nothing was changed."))
        return False
    return True


_SUBJECT = gettext_lazy("Confirm your new e-mail address at Ninefold")
_NOTICE_SUBJECT = gettext_lazy("Your e-mail address at Ninefold was changed")


def _send(user: User, to: str, *, subject: Any, template: str, context: dict[str, Any]) -> bool:
    """Whether the mail server accepted it. In the language of the account."""
    with translation.override(user.language or settings.LANGUAGE_CODE):
        text = render_to_string(f"accounts/{template}", context)
        title = str(subject)
    return bool(send_mail(title, text, settings.NINEFOLD_EMAIL_FROM, [to], fail_silently=True))


def _salt(user: User) -> str:
    """A change of password or e-mail and the end of all sessions invalidate every link from before."""
    return f"ninefold.email-change.{user.get_session_auth_hash()}"


def _token(user: User, email: str) -> str:
    return signing.dumps([user.uid, user.email, email], salt=_salt(user))


@login_required
@require_http_methods(["GET"])
def sent(request: SignedIn) -> HttpResponse:
    return render(request, "accounts/email_change_sent.html", {"hours": LINK_HOURS})


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def confirm(request: SignedIn, token: str) -> HttpResponse:
    """Where the link leads. Only POST changes the address: mail scanners open links."""
    user = request.user
    try:
        uid, old, email = signing.loads(token, salt=_salt(user), max_age=LINK_HOURS * 3600)
    except signing.BadSignature:
        uid = old = email = ""
    if (uid, old) != (user.uid, user.email):
        return render(request, "accounts/email_change_confirm.html", {"email": ""}, status=410)
    context: dict[str, Any] = {"email": email}
    if request.method == "POST":
        try:
            services.email_change(user=user, email=email)
        except services.PersonRefused as refusal:
            context["refusal"] = str(refusal)
            return render(request, "accounts/email_change_confirm.html", context, status=409)
        update_session_auth_hash(request, user)
        if old:
            notice = {"person": user, "email": email}
            _send(
                user,
                old,
                subject=_NOTICE_SUBJECT,
                template="email_change_notice.txt",
                context=notice,
            )
        messages.success(
            request, _("The e-mail was changed; other browsers have to sign in again.")
        )
        return redirect("profile")
    return render(request, "accounts/email_change_confirm.html", context)
