"""Settings of outbound calls from the environment: egress policy, mail server, model hubs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from config.settings.environment import env, read_comma_separated
from controlplane.domain.outbound.egress import EgressMisconfigured, EgressPolicy

_MAIL_SCHEMES = ("smtp", "smtps", "smtp+tls", "smtp+ssl")


def egress_policy() -> EgressPolicy:
    """What may be called: ``NINEFOLD_EGRESS_ALLOW``, ``_DENY``, ``_SCHEMES`` and ``_PORTS``.

    :raises ImproperlyConfigured: naming the entry that is wrong.
    """
    schemes = read_comma_separated("NINEFOLD_EGRESS_SCHEMES") or ["https"]
    try:
        return EgressPolicy.parse(
            allow=read_comma_separated("NINEFOLD_EGRESS_ALLOW"),
            deny=read_comma_separated("NINEFOLD_EGRESS_DENY"),
            schemes=schemes,
            ports=_allowed_egress_ports(schemes),
        )
    except EgressMisconfigured as error:
        raise ImproperlyConfigured(f"NINEFOLD_EGRESS_…: {error}") from None


def telemetry_egress_policy(egress: EgressPolicy) -> EgressPolicy:
    """Return the egress policy of metric sources.

    Exporters use plain HTTP on ports of their own in the company's network, so ``NINEFOLD_TELEMETRY_ALLOW`` lists
    networks and hosts for them alone. The deny-list applies as well.

    :raises ImproperlyConfigured: naming the entry that is wrong.
    """
    try:
        own = EgressPolicy.parse(allow=read_comma_separated("NINEFOLD_TELEMETRY_ALLOW"))
    except EgressMisconfigured as error:
        raise ImproperlyConfigured(f"NINEFOLD_TELEMETRY_ALLOW: {error}") from None
    return replace(
        own,
        schemes=frozenset({"http", "https"}),
        ports=frozenset(range(1, 65536)),
        denied_hosts=egress.denied_hosts,
        denied_networks=egress.denied_networks,
        allowed_by="NINEFOLD_TELEMETRY_ALLOW",
    )


def _allowed_egress_ports(schemes: list[str]) -> list[int]:
    default_ports = ["443", "8443", *(["80"] if "http" in schemes else [])]
    named = read_comma_separated("NINEFOLD_EGRESS_PORTS") or default_ports
    wrong = [entry for entry in named if not (entry.isdecimal() and 0 < int(entry) < 65536)]
    if wrong:
        raise ImproperlyConfigured(f"NINEFOLD_EGRESS_PORTS lists {wrong[0]!r}, which is no port")
    return [int(entry) for entry in named]


def egress_proxy() -> str:
    """Return ``http://host:port`` of the egress proxy; empty for none. Other proxy variables are ignored.

    :raises ImproperlyConfigured: if it is anything else.
    """
    proxy: str = env.str("NINEFOLD_EGRESS_PROXY", default="")
    if proxy and (urlsplit(proxy).scheme != "http" or not urlsplit(proxy).hostname):
        raise ImproperlyConfigured(
            "NINEFOLD_EGRESS_PROXY must look like http://proxy.example.com:3128"
        )
    return proxy


def public_url(otherwise: str) -> str:
    """Return ``NINEFOLD_PUBLIC_URL``, the URL of the product for users and in notifications.

    :raises ImproperlyConfigured: if it is not an http or https URL.
    """
    url: str = env.str("NINEFOLD_PUBLIC_URL", default="") or otherwise
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise ImproperlyConfigured(
            f"NINEFOLD_PUBLIC_URL must look like https://ninefold.example.com, got {url!r}"
        )
    return url.rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """The outgoing mail server. By default no e-mail is sent."""

    backend: str = "django.core.mail.backends.dummy.EmailBackend"
    sender: str = ""
    host: str = ""
    port: int = 25
    user: str = ""
    password: str = ""
    #: TLS is begun after the greeting, or from the first byte.
    starttls: bool = False
    tls: bool = False


def mail_server() -> MailServer:
    """Return the mail server of ``NINEFOLD_EMAIL_URL`` and ``NINEFOLD_EMAIL_FROM``; without the first, none.

    :raises ImproperlyConfigured: if one of them is wrong.
    """
    url: str = env.str("NINEFOLD_EMAIL_URL", default="")
    sender: str = env.str("NINEFOLD_EMAIL_FROM", default="")
    if not url:
        return MailServer()
    if urlsplit(url).scheme not in _MAIL_SCHEMES or not urlsplit(url).hostname:
        raise ImproperlyConfigured(
            "NINEFOLD_EMAIL_URL must look like smtp+tls://user:password@mail.example.com:587"
        )
    if "@" not in sender:
        raise ImproperlyConfigured(
            f"NINEFOLD_EMAIL_FROM must be the address that e-mail comes from, got {sender!r}"
        )
    server: dict[str, Any] = env.email_url_config(url)
    return MailServer(
        backend=server["EMAIL_BACKEND"],
        sender=sender,
        host=server["EMAIL_HOST"],
        port=server["EMAIL_PORT"] or 25,
        user=server["EMAIL_HOST_USER"] or "",
        password=server["EMAIL_HOST_PASSWORD"] or "",
        starttls=server.get("EMAIL_USE_TLS", False),
        tls=server.get("EMAIL_USE_SSL", False),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HubAccess:
    """How one hub is reached."""

    #: URL of a mirror; empty for the hub itself.
    address: str = ""
    #: Access token for restricted repositories.
    token: str = ""


def hub_access() -> Mapping[str, HubAccess]:
    """By hub: ``NINEFOLD_HUGGINGFACE_URL`` (else ``HF_ENDPOINT``) and ``_TOKEN``, ``NINEFOLD_MODELSCOPE_URL`` and
    ``_TOKEN``.

    :raises ImproperlyConfigured: if a URL is invalid.
    """
    return {
        "huggingface": HubAccess(
            address=_hub_url("NINEFOLD_HUGGINGFACE_URL") or _hub_url("HF_ENDPOINT"),
            token=env.str("NINEFOLD_HUGGINGFACE_TOKEN", default=""),
        ),
        "modelscope": HubAccess(
            address=_hub_url("NINEFOLD_MODELSCOPE_URL"),
            token=env.str("NINEFOLD_MODELSCOPE_TOKEN", default=""),
        ),
    }


def _hub_url(name: str) -> str:
    address: str = env.str(name, default="")
    parts = urlsplit(address)
    if address and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise ImproperlyConfigured(
            f"{name} must look like https://mirror.example.com, got {address!r}"
        )
    return address.rstrip("/")
