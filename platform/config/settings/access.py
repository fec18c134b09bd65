"""Access settings from the environment: proxies, HTTPS, single sign-on."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from config.settings.environment import env, read_comma_separated
from controlplane.domain.accounts.single_sign_on import SsoProvider, parse_groups

_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def read_networks(variable: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Addresses and networks of a comma-separated list.

    :raises ImproperlyConfigured: naming the one that is neither.
    """
    return tuple(_parse_network(variable, text) for text in read_comma_separated(variable))


def _parse_network(variable: str, text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise ImproperlyConfigured(
            f"{variable} lists {text!r}: {error}; write 10.0.0.7 or 10.0.0.0/24"
        ) from None


def read_bounded_integer(variable: str, *, default: int, least: int) -> int:
    """A whole number.

    :raises ImproperlyConfigured: if it is smaller than it may be.
    """
    value: int = env.int(variable, default=default)
    if value < least:
        raise ImproperlyConfigured(f"{variable} is {value}; it must be {least} or more")
    return value


def is_tls_terminated_by_proxy(proxies: tuple[IPv4Network | IPv6Network, ...]) -> bool:
    """``NINEFOLD_HTTPS``: whether browsers reach the web by HTTPS, through one of the trusted proxies.

    :raises ImproperlyConfigured: if it is on without ``NINEFOLD_TRUSTED_PROXIES``: no request would
        be known to be HTTPS.
    """
    https: bool = env.bool("NINEFOLD_HTTPS", default=False)
    if https and not proxies:
        raise ImproperlyConfigured(
            "NINEFOLD_HTTPS is on and NINEFOLD_TRUSTED_PROXIES is empty; list the addresses or networks "
            "of the proxies that terminate TLS and set X-Forwarded-Proto"
        )
    return https


def oidc_provider() -> SsoProvider | None:
    """The OpenID provider; None where ``NINEFOLD_OIDC_ISSUER`` names none.

    :raises ImproperlyConfigured: if what is said about it cannot work.
    """
    issuer: str = env.str("NINEFOLD_OIDC_ISSUER", default="").rstrip("/")
    if not issuer:
        return None
    parts = urlsplit(issuer)
    if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
        raise ImproperlyConfigured(
            f"NINEFOLD_OIDC_ISSUER must begin with https://, got {issuer!r}; plain http is for loopback only"
        )
    scopes: list[str] = env.str("NINEFOLD_OIDC_SCOPES", default="openid profile email").split()
    if "openid" not in scopes:
        raise ImproperlyConfigured(
            f"NINEFOLD_OIDC_SCOPES must contain openid, got {' '.join(scopes)!r}"
        )
    try:
        groups = parse_groups(env.str("NINEFOLD_OIDC_GROUPS", default="{}"))
    except ValueError as error:
        raise ImproperlyConfigured(f"NINEFOLD_OIDC_GROUPS: {error}") from None
    return SsoProvider(
        issuer=issuer,
        client_id=_required_variable("NINEFOLD_OIDC_CLIENT_ID"),
        client_secret=_required_variable("NINEFOLD_OIDC_CLIENT_SECRET"),
        name=env.str("NINEFOLD_OIDC_NAME", default="OpenID"),
        scopes=tuple(scopes),
        username_claim=env.str("NINEFOLD_OIDC_USERNAME_CLAIM", default="preferred_username"),
        groups_claim=env.str("NINEFOLD_OIDC_GROUPS_CLAIM", default="groups"),
        groups=groups,
        admin_group=env.str("NINEFOLD_OIDC_ADMIN_GROUP", default=""),
        operator_group=env.str("NINEFOLD_OIDC_OPERATOR_GROUP", default=""),
        required=env.bool("NINEFOLD_OIDC_REQUIRED", default=False),
    )


def _required_variable(variable: str) -> str:
    value: str = env.str(variable, default="")
    if not value:
        raise ImproperlyConfigured(f"set {variable}: NINEFOLD_OIDC_ISSUER is set and needs it")
    return value
