"""There to the sign-on provider and back."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.core import signing
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from apps.accounts import services
from apps.accounts.models import User
from apps.accounts.services import SignOnRefused
from apps.accounts.web.addresses import address_of
from apps.accounts.web.providers import ProviderFailed, arrival, departure
from apps.accounts.web.requests import SignedIn
from controlplane.domain.sign_on import Provider

BACKEND = "django.contrib.auth.backends.ModelBackend"
_LINK_SALT = "ninefold.sign-on.link"
_LINK_SECONDS = 3600


def _provider() -> Provider:
    provider: Provider | None = settings.NINEFOLD_OIDC
    if provider is None:
        raise Http404
    return provider


def link_token(user: User) -> str:
    """What the profile's link bears, so that no other page can make somebody link an account."""
    return signing.dumps([user.uid, user.get_session_auth_hash()], salt=_LINK_SALT)


@require_GET
@never_cache
def begin(request: HttpRequest) -> HttpResponse:
    """Off to the provider; ``?next=`` is where to go afterwards."""
    return _go(request, remember={"next": request.GET.get("next", "")})


@login_required
@require_GET
@never_cache
def begin_link(request: SignedIn, token: str) -> HttpResponse:
    """Off to the provider to link the account that one has there to the one that is logged in."""
    try:
        expected = signing.loads(token, salt=_LINK_SALT, max_age=_LINK_SECONDS)
    except signing.BadSignature:
        expected = None
    if expected != [request.user.uid, request.user.get_session_auth_hash()]:
        messages.error(request, _("That link is too old; use the one on this page."))
        return redirect("profile")
    return _go(request, remember={"link": request.user.uid})


def _go(request: HttpRequest, *, remember: dict[str, str]) -> HttpResponse:
    provider = _provider()
    callback = address_of(request, reverse("sign-on-callback"))
    try:
        address = departure(request, provider=provider, callback=callback, remember=remember)
    except ProviderFailed as failure:
        return _failed(request, str(failure), status=failure.status)
    return HttpResponseRedirect(address)


@require_GET
@never_cache
def callback(request: HttpRequest) -> HttpResponse:
    """Back from the provider."""
    provider = _provider()
    try:
        identity, remembered = arrival(request, provider=provider)
        if linked_uid := remembered.get("link"):
            user = request.user
            if not isinstance(user, User) or user.uid != linked_uid:
                raise SignOnRefused(_("you are logged in as somebody else by now; start again"))
            services.identity_link(
                user=user, identity=identity, provider=provider, at=timezone.now()
            )
            messages.success(
                request,
                _("Linked. You can log in by %(provider)s now.") % {"provider": provider.name},
            )
            return redirect("profile")
        user = services.sign_on(identity=identity, provider=provider, at=timezone.now())
    except ProviderFailed as failure:
        return _failed(request, str(failure), status=failure.status)
    except SignOnRefused as refusal:
        return _failed(request, str(refusal), status=403)
    request.signed_on_by = provider.name  # type: ignore[attr-defined] # for the log-in's receiver
    login(request, user, backend=BACKEND)
    return HttpResponseRedirect(_safe(request, remembered.get("next", "")))


def _safe(request: HttpRequest, address: str) -> str:
    """The address if it is one of ours, else home: a link from elsewhere must not lead away."""
    ours = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if ours else reverse("home")


def _failed(request: HttpRequest, message: str, *, status: int) -> HttpResponse:
    return render(request, "accounts/sign_on_failed.html", {"message": message}, status=status)


@login_required
@require_POST
def unlink(request: SignedIn, pk: int) -> HttpResponse:
    binding = get_object_or_404(request.user.identities.select_related("user"), pk=pk)
    try:
        services.identity_unlink(binding=binding, actor=request.user, provider=_provider())
    except SignOnRefused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, _("Unlinked. You log in by password from now on."))
    return redirect("profile")
