"""Sign-in, sign-out and passwords."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth import views as auth
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import PasswordResetForm, SetPasswordForm
from django.core.mail import send_mail
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse_lazy
from django.utils import translation
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.views import i18n
from django.views.decorators.http import require_POST

from apps.accounts import services
from apps.accounts.models import User
from apps.accounts.web.forms import LoginForm
from apps.accounts.web.http_requests import AuthenticatedRequest
from controlplane.web.rate_limits import count_events_in_window

#: Password reset e-mails per account within the window, whoever requests them.
_RESETS = 3
_RESET_WINDOW_SECONDS = 3600


class PasswordLoginView(auth.LoginView):
    template_name = "accounts/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            **kwargs, provider=settings.NINEFOLD_OIDC, reset=mail_is_configured()
        )


def mail_is_configured() -> bool:
    """Whether a letter would leave this machine."""
    return bool(settings.NINEFOLD_EMAIL_FROM)


def send_email(
    user: User, *, to: str, subject: Promise, template: str, context: dict[str, Any]
) -> bool:
    """Whether the mail server accepted the message, which is in the language of the account."""
    with translation.override(user.language or settings.LANGUAGE_CODE):
        text = render_to_string(f"accounts/{template}", {"person": user, **context})
        title = str(subject)
    return bool(send_mail(title, text, settings.NINEFOLD_EMAIL_FROM, [to], fail_silently=True))


class PasswordChangeView(auth.PasswordChangeView):
    """Ends every other session of theirs: the hash that sessions are checked against changes."""

    template_name = "accounts/password.html"
    success_url = reverse_lazy("profile")

    def form_valid(self, form: Any) -> HttpResponse:
        response = super().form_valid(form)
        services.record_audit_entry(
            actor=form.user, action="password.change", uid=form.user.uid, name=form.user.username
        )
        messages.success(self.request, _("Password changed. Other browsers have to sign in again."))
        return response


class PasswordResetLinkForm(PasswordResetForm):
    """Excludes users who may not sign in by password, and rate-limits e-mails per account."""

    def get_users(self, email: str) -> Any:
        provider = settings.NINEFOLD_OIDC
        for user in super().get_users(email):
            by_password = not (provider and provider.required) or user.is_superuser
            requested = count_events_in_window(
                f"password-resets:{user.pk}", seconds=_RESET_WINDOW_SECONDS
            )
            if by_password and requested <= _RESETS:
                yield user

    def save(self, *args: Any, **kwargs: Any) -> None:
        if settings.SESSION_COOKIE_SECURE:
            # The proxy that terminates TLS forwards plain HTTP.
            kwargs["use_https"] = True
        super().save(*args, **kwargs)


class PasswordResetView(auth.PasswordResetView):
    template_name = "accounts/reset.html"
    email_template_name = "accounts/reset_mail.txt"
    subject_template_name = "accounts/reset_subject.txt"
    form_class = PasswordResetLinkForm
    success_url = reverse_lazy("password-reset-sent")

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not mail_is_configured():
            raise Http404
        return super().dispatch(request, *args, **kwargs)


class PasswordSetView(auth.PasswordResetConfirmView):
    """Where the link of an invitation or a reset leads."""

    template_name = "accounts/password_set.html"
    success_url = reverse_lazy("login")

    def form_valid(self, form: SetPasswordForm[Any]) -> HttpResponse:
        response = super().form_valid(form)
        user = form.user
        if isinstance(user, User):
            services.record_audit_entry(
                actor=user, action="password.set", uid=user.uid, name=user.username, by="link"
            )
        messages.success(self.request, _("Password set. You can sign in with it."))
        return response


@login_required
@require_POST
def log_out_other_sessions(request: AuthenticatedRequest) -> HttpResponse:
    """Every other browser; this one stays."""
    services.user_other_sessions_end(user=request.user)
    update_session_auth_hash(request, request.user)
    messages.success(request, _("All other browsers have to sign in again."))
    return redirect("profile")


@require_POST
def set_language(request: HttpRequest) -> HttpResponse:
    """Set the language of the session and of the user, whose setting has precedence."""
    language = request.POST.get("language", "")
    if isinstance(request.user, User) and language in dict(settings.LANGUAGES):
        services.profile_change(user=request.user, values={"language": language})
    return i18n.set_language(request)
