"""What the environment says about calls from the product to the outside: web addresses and e-mail."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from config.settings.environment import env, words
from controlplane.domain.egress import EgressMisconfigured, EgressPolicy

_MAIL_SCHEMES = ("smtp", "smtps", "smtp+tls", "smtp+ssl")


def egress_policy() -> EgressPolicy:
    """What may be called: ``NINEFOLD_EGRESS_ALLOW``, ``_DENY``, ``_SCHEMES`` and ``_PORTS``.

    :raises ImproperlyConfigured: naming the entry that is wrong.
    """
    schemes = words("NINEFOLD_EGRESS_SCHEMES") or ["https"]
    try:
        return EgressPolicy.parse(
            allow=words("NINEFOLD_EGRESS_ALLOW"),
            deny=words("NINEFOLD_EGRESS_DENY"),
            schemes=schemes,
            ports=_ports(schemes),
        )
    except EgressMisconfigured as error:
        raise ImproperlyConfigured(f"NINEFOLD_EGRESS_…: {error}") from None


def telemetry_policy(egress: EgressPolicy) -> EgressPolicy:
    """Where figures of cards may be read: exporters speak plain HTTP on ports of their own, and in the company's
    network, so ``NINEFOLD_TELEMETRY_ALLOW`` names networks and hosts for them alone. What must not be called at
    all stays so.

    :raises ImproperlyConfigured: naming the entry that is wrong.
    """
    try:
        own = EgressPolicy.parse(allow=words("NINEFOLD_TELEMETRY_ALLOW"))
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


def _ports(schemes: list[str]) -> list[int]:
    usual = ["443", "8443", *(["80"] if "http" in schemes else [])]
    named = words("NINEFOLD_EGRESS_PORTS") or usual
    wrong = [word for word in named if not (word.isdecimal() and 0 < int(word) < 65536)]
    if wrong:
        raise ImproperlyConfigured(f"NINEFOLD_EGRESS_PORTS lists {wrong[0]!r}, which is no port")
    return [int(word) for word in named]


def egress_proxy() -> str:
    """``http://host:port`` of the proxy for such calls; empty for none. No other variable is looked at.

    :raises ImproperlyConfigured: if it is anything else.
    """
    proxy: str = env.str("NINEFOLD_EGRESS_PROXY", default="")
    if proxy and (urlsplit(proxy).scheme != "http" or not urlsplit(proxy).hostname):
        raise ImproperlyConfigured(
            "NINEFOLD_EGRESS_PROXY must look like http://proxy.example.com:3128"
        )
    return proxy


def public_url(otherwise: str) -> str:
    """``NINEFOLD_PUBLIC_URL``, under which people open the product: links in messages begin with it.

    :raises ImproperlyConfigured: if it is no address of the web.
    """
    url: str = env.str("NINEFOLD_PUBLIC_URL", default="") or otherwise
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise ImproperlyConfigured(
            f"NINEFOLD_PUBLIC_URL must look like https://ninefold.example.com, got {url!r}"
        )
    return url.rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """Who takes our e-mail. By default nobody does."""

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
    """What ``NINEFOLD_EMAIL_URL`` and ``NINEFOLD_EMAIL_FROM`` say; without the first no e-mail is sent.

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
