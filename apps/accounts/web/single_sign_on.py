"""Single sign-on with an OpenID provider.

Authlib does discovery, PKCE, state, nonce and the verification of the ID token.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client.errors import MismatchingStateError
from authlib.integrations.django_client import OAuth
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
from joserfc.errors import JoseError

from apps.accounts import services
from apps.accounts.models import User
from apps.accounts.services import SignOnRefused
from apps.accounts.web.http_requests import AuthenticatedRequest, absolute_url
from controlplane.domain.accounts.single_sign_on import (
    SsoClaimsRefused,
    SsoIdentity,
    SsoProvider,
    identity_from_claims,
)

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 10


class SignOnProviderFailed(Exception):
    """The sign-in with the provider failed; the message is for the user."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


@lru_cache(maxsize=4)
def _provider_client(provider: SsoProvider) -> Any:
    """Return the client with cached discovery metadata."""
    client = OAuth().register(
        name="sign_on",
        client_id=provider.client_id,
        client_secret=provider.client_secret,
        server_metadata_url=f"{provider.issuer}/.well-known/openid-configuration",
        client_kwargs={
            "scope": " ".join(provider.scopes),
            "code_challenge_method": "S256",
            "default_timeout": TIMEOUT_SECONDS,
        },
    )
    # Accepting another issuer would let it impersonate this one.
    issuer = _discovered_issuer(client, provider)
    if issuer != provider.issuer:
        log.error(
            "the sign-on provider calls itself by another name",
            extra={"configured": provider.issuer, "discovered": issuer},
        )
        raise SignOnProviderFailed(
            _(
                "%(provider)s reports the issuer %(issuer)s, which differs from "
                "NINEFOLD_OIDC_ISSUER; an administrator has to correct the setting"
            )
            % {"provider": provider.name, "issuer": issuer},
            status=502,
        )
    return client


def _discovered_issuer(client: Any, provider: SsoProvider) -> str:
    try:
        return str(client.load_server_metadata().get("issuer", "")).rstrip("/")
    except (requests.RequestException, ValueError) as error:
        raise _provider_unreachable_error(provider, error) from None


def _provider_unreachable_error(provider: SsoProvider, error: Exception) -> SignOnProviderFailed:
    log.warning("the sign-on provider does not answer", extra={"error": str(error)})
    message = _(
        "%(provider)s does not respond. Try again in a minute. If it stays unavailable, "
        "tell an administrator, who can sign in with a password."
    )
    return SignOnProviderFailed(message % {"provider": provider.name}, status=503)


def authorization_url(
    request: HttpRequest, *, provider: SsoProvider, callback: str, remember: dict[str, Any]
) -> str:
    """Return the authorization URL. ``remember`` is stored in the session until the callback.

    :raises SignOnProviderFailed: if the provider does not answer.
    """
    client = _provider_client(provider)
    try:
        authorization = client.create_authorization_url(callback)
    except (requests.RequestException, ValueError) as error:
        raise _provider_unreachable_error(provider, error) from None
    client.save_authorize_data(request, redirect_uri=callback, remember=remember, **authorization)
    return str(authorization["url"])


def identity_from_callback(
    request: HttpRequest, *, provider: SsoProvider
) -> tuple[SsoIdentity, dict[str, Any]]:
    """Return the identity from the callback and the stored ``remember``. Valid once per authorization.

    :raises SignOnProviderFailed: if the state is not of this session, the provider refused or does not answer,
        or its response cannot be verified.
    """
    client = _provider_client(provider)
    state_data = (
        client.framework.get_state_data(request.session, request.GET.get("state", "")) or {}
    )
    try:
        token = client.authorize_access_token(
            request,
            claims_options={
                "iss": {"essential": True, "value": provider.issuer},
                "aud": {"essential": True, "value": provider.client_id},
            },
        )
        return identity_from_claims(_id_token_claims(token), provider=provider), state_data.get(
            "remember", {}
        )
    except MismatchingStateError:
        raise SignOnProviderFailed(
            _("This sign-in was already used or has expired. Start again from the sign-in page."),
            status=400,
        ) from None
    except requests.RequestException as error:
        raise _provider_unreachable_error(provider, error) from None
    except (
        AuthlibBaseError,
        JoseError,
        SsoClaimsRefused,
        ValueError,
        KeyError,
        TypeError,
    ) as error:
        raise _sign_on_error(provider, error) from None


def _id_token_claims(token: dict[str, Any]) -> dict[str, Any]:
    if "userinfo" not in token:
        raise SsoClaimsRefused("the provider sends no ID token")
    return dict(token["userinfo"])


def _sign_on_error(provider: SsoProvider, error: Exception) -> SignOnProviderFailed:
    code = str(getattr(error, "error", ""))
    log.warning("a log-in by the sign-on provider failed", extra={"error": str(error)})
    if code == "access_denied":
        message = _("%(provider)s denied access. Try again, or choose another account there.")
        return SignOnProviderFailed(message % {"provider": provider.name}, status=403)
    if isinstance(error, SsoClaimsRefused):
        message = _("The response of %(provider)s is incomplete: %(error)s. Tell an administrator.")
        return SignOnProviderFailed(
            message % {"provider": provider.name, "error": error}, status=502
        )
    message = _(
        "The response of %(provider)s could not be verified, so you are not signed in. "
        "Start again. If it happens again, tell an administrator: the server's log "
        "contains the reason."
    )
    return SignOnProviderFailed(message % {"provider": provider.name}, status=502)


BACKEND = "django.contrib.auth.backends.ModelBackend"
_LINK_SALT = "ninefold.sign-on.link"
_LINK_SECONDS = 3600


def _configured_provider() -> SsoProvider:
    provider: SsoProvider | None = settings.NINEFOLD_OIDC
    if provider is None:
        raise Http404
    return provider


def identity_link_token(user: User) -> str:
    """Return the signed token of the link on the profile, which prevents forged linking."""
    return signing.dumps([user.uid, user.get_session_auth_hash()], salt=_LINK_SALT)


@require_GET
@never_cache
def start_sign_on(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider; ``?next=`` is the page to open afterwards."""
    return _redirect_to_provider(request, remember={"next": request.GET.get("next", "")})


@login_required
@require_GET
@never_cache
def start_identity_link(request: AuthenticatedRequest, token: str) -> HttpResponse:
    """Redirect to the provider to link an identity to the signed-in user."""
    try:
        expected = signing.loads(token, salt=_LINK_SALT, max_age=_LINK_SECONDS)
    except signing.BadSignature:
        expected = None
    if expected != [request.user.uid, request.user.get_session_auth_hash()]:
        messages.error(request, _("The password link has expired; use the one on this page."))
        return redirect("profile")
    return _redirect_to_provider(request, remember={"link": request.user.uid})


def _redirect_to_provider(request: HttpRequest, *, remember: dict[str, str]) -> HttpResponse:
    provider = _configured_provider()
    callback = absolute_url(request, reverse("sign-on-callback"))
    try:
        address = authorization_url(
            request, provider=provider, callback=callback, remember=remember
        )
    except SignOnProviderFailed as failure:
        return _login_failed_page(request, str(failure), status=failure.status)
    return HttpResponseRedirect(address)


@require_GET
@never_cache
def sign_on_callback(request: HttpRequest) -> HttpResponse:
    """Handle the callback of the provider."""
    provider = _configured_provider()
    try:
        identity, remembered = identity_from_callback(request, provider=provider)
        if linked_uid := remembered.get("link"):
            user = request.user
            if not isinstance(user, User) or user.uid != linked_uid:
                raise SignOnRefused(_("you are signed in as another user now; start again"))
            services.identity_link(
                user=user, identity=identity, provider=provider, at=timezone.now()
            )
            messages.success(
                request,
                _("Single sign-on account linked. You can sign in with %(provider)s now.")
                % {"provider": provider.name},
            )
            return redirect("profile")
        user = services.user_sign_in(identity=identity, provider=provider, at=timezone.now())
    except SignOnProviderFailed as failure:
        return _login_failed_page(request, str(failure), status=failure.status)
    except SignOnRefused as refusal:
        return _login_failed_page(request, str(refusal), status=403)
    request.signed_on_by = provider.name  # type: ignore[attr-defined] # for the signal receiver
    login(request, user, backend=BACKEND)
    return HttpResponseRedirect(_safe_redirect(request, remembered.get("next", "")))


def _safe_redirect(request: HttpRequest, address: str) -> str:
    """Return the URL if it is local, else the home page: no open redirect."""
    ours = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return address if ours else reverse("home")


def _login_failed_page(request: HttpRequest, message: str, *, status: int) -> HttpResponse:
    return render(request, "accounts/sign_on_failed.html", {"message": message}, status=status)


@login_required
@require_POST
def unlink_identity(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    binding = get_object_or_404(request.user.identities.select_related("user"), pk=pk)
    try:
        services.identity_unlink(
            binding=binding, actor=request.user, provider=_configured_provider()
        )
    except SignOnRefused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(
            request, _("Single sign-on account unlinked. Sign in with your password from now on.")
        )
    return redirect("profile")
