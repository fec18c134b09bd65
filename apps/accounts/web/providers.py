"""The sign-on provider over HTTP: Authlib does discovery, PKCE, state, nonce and the check of the ID token."""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.base_client.errors import MismatchingStateError
from authlib.integrations.django_client import OAuth
from django.http import HttpRequest
from django.utils.translation import gettext as _
from joserfc.errors import JoseError

from controlplane.domain.sign_on import ClaimsRefused, Identity, Provider, identity_of

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 10


class ProviderFailed(Exception):
    """The log-in by the provider did not come to an end; the message is for who tried it."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


@lru_cache(maxsize=4)
def _client(provider: Provider) -> Any:
    """Keeps what it discovered, so that not every log-in asks again."""
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
    # Passing it on to another provider would let that one speak in this one's name.
    issuer = _discovered(client, provider)
    if issuer != provider.issuer:
        log.error(
            "the sign-on provider calls itself by another name",
            extra={"configured": provider.issuer, "discovered": issuer},
        )
        raise ProviderFailed(
            _(
                "%(provider)s calls itself %(issuer)s; an administrator has to correct "
                "NINEFOLD_OIDC_ISSUER"
            )
            % {"provider": provider.name, "issuer": issuer},
            status=502,
        )
    return client


def _discovered(client: Any, provider: Provider) -> str:
    try:
        return str(client.load_server_metadata().get("issuer", "")).rstrip("/")
    except (requests.RequestException, ValueError) as error:
        raise _unreachable(provider, error) from None


def _unreachable(provider: Provider, error: Exception) -> ProviderFailed:
    log.warning("the sign-on provider does not answer", extra={"error": str(error)})
    message = _(
        "%(provider)s does not answer just now. Try again in a minute; if it stays away, tell an "
        "administrator, who can log in by password."
    )
    return ProviderFailed(message % {"provider": provider.name}, status=503)


def departure(
    request: HttpRequest, *, provider: Provider, callback: str, remember: dict[str, Any]
) -> str:
    """The address at the provider to go to. ``remember`` comes back with the person, from the session.

    :raises ProviderFailed: if the provider does not answer.
    """
    client = _client(provider)
    try:
        made = client.create_authorization_url(callback)
    except (requests.RequestException, ValueError) as error:
        raise _unreachable(provider, error) from None
    client.save_authorize_data(request, redirect_uri=callback, remember=remember, **made)
    return str(made["url"])


def arrival(request: HttpRequest, *, provider: Provider) -> tuple[Identity, dict[str, Any]]:
    """Who came back from the provider, and what was remembered. Works once for each departure.

    :raises ProviderFailed: if they did not come from a departure of this session, the provider refused
        them or does not answer, or what it says cannot be verified.
    """
    client = _client(provider)
    kept = client.framework.get_state_data(request.session, request.GET.get("state", "")) or {}
    try:
        token = client.authorize_access_token(
            request,
            claims_options={
                "iss": {"essential": True, "value": provider.issuer},
                "aud": {"essential": True, "value": provider.client_id},
            },
        )
        return identity_of(_claims(token), provider=provider), kept.get("remember", {})
    except MismatchingStateError:
        raise ProviderFailed(
            _("This log-in was used already, or is too old. Start again from the log-in page."),
            status=400,
        ) from None
    except requests.RequestException as error:
        raise _unreachable(provider, error) from None
    except (AuthlibBaseError, JoseError, ClaimsRefused, ValueError, KeyError, TypeError) as error:
        raise _refusal(provider, error) from None


def _claims(token: dict[str, Any]) -> dict[str, Any]:
    if "userinfo" not in token:
        raise ClaimsRefused("the provider sends no ID token")
    return dict(token["userinfo"])


def _refusal(provider: Provider, error: Exception) -> ProviderFailed:
    code = str(getattr(error, "error", ""))
    log.warning("a log-in by the sign-on provider failed", extra={"error": str(error)})
    if code == "access_denied":
        message = _("%(provider)s did not let you in. Try again, or choose another account there.")
        return ProviderFailed(message % {"provider": provider.name}, status=403)
    if isinstance(error, ClaimsRefused):
        message = _("%(provider)s does not say enough about you: %(error)s. Tell an administrator.")
        return ProviderFailed(message % {"provider": provider.name, "error": error}, status=502)
    message = _(
        "What %(provider)s says about you could not be verified, so you were not logged in. Start again; "
        "if it happens again, tell an administrator: the server's log has the reason."
    )
    return ProviderFailed(message % {"provider": provider.name}, status=502)
