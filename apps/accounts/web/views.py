"""Logging in and out, the profile, personal tokens."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import views as auth
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse_lazy
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts import services
from apps.accounts.web.forms import TokenForm, expiry_of
from apps.accounts.web.requests import SignedIn


class LogIn(auth.LoginView):
    template_name = "accounts/login.html"
    redirect_authenticated_user = True


class PasswordChange(auth.PasswordChangeView):
    template_name = "accounts/password.html"
    success_url = reverse_lazy("profile")

    def form_valid(self, form: object) -> HttpResponse:
        messages.success(self.request, _("The password was changed."))
        return super().form_valid(form)  # type: ignore[arg-type]  # the form class is the view's own


@login_required
def profile(request: SignedIn) -> HttpResponse:
    """The profile; POST makes a token, whose text is shown in the answer and never again."""
    form = TokenForm(request.POST if request.method == "POST" else None)
    text = ""
    if form.is_bound and form.is_valid():
        lifetime = expiry_of(form.cleaned_data["expires"])
        now = timezone.now()
        _token, text = services.token_create(
            user=request.user,
            name=form.cleaned_data["name"],
            expires_at=now + lifetime if lifetime else None,
        )
        form = TokenForm()
    memberships = request.user.memberships.select_related("team").order_by("team__name", "role")
    context = {
        "form": form,
        "text": text,
        "tokens": list(request.user.tokens.filter(revoked_at=None)),
        "memberships": list(memberships),
        "now": timezone.now(),
    }
    return render(request, "accounts/profile.html", context)


@login_required
@require_POST
def token_revoke(request: SignedIn, uid: str) -> HttpResponse:
    token = get_object_or_404(request.user.tokens, uid=uid)
    services.token_revoke(token=token, actor=request.user)
    messages.success(request, _("The token %(name)s was revoked.") % {"name": token.name})
    return redirect("profile")
