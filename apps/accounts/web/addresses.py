"""From where a request comes and what leads back to us, when proxies stand between."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from django.conf import settings
from django.http import HttpRequest

_Address = IPv4Address | IPv6Address


def client_address(request: HttpRequest) -> str | None:
    """The nearest address that is not one of our proxies; None where there is none (a unix socket).

    ``X-Forwarded-For`` is read from its end, where our own proxies wrote, and only for as long as
    whoever wrote is trusted: its beginning is whatever the client sent.
    """
    trusted: Sequence[IPv4Network | IPv6Network] = settings.NINEFOLD_TRUSTED_PROXIES
    nearest = _parsed(request.META.get("REMOTE_ADDR", ""))
    hops = request.headers.get("X-Forwarded-For", "").split(",")
    while nearest is not None and hops and any(nearest in network for network in trusted):
        further = _parsed(hops.pop().strip())
        if further is None:
            break
        nearest = further
    return str(nearest) if nearest is not None else None


def is_from_trusted_proxy(request: HttpRequest) -> bool:
    """Whether the peer of the connection is listed in ``NINEFOLD_TRUSTED_PROXIES``."""
    trusted: Sequence[IPv4Network | IPv6Network] = settings.NINEFOLD_TRUSTED_PROXIES
    peer = _parsed(request.META.get("REMOTE_ADDR", ""))
    return peer is not None and any(peer in network for network in trusted)


def address_of(request: HttpRequest, path: str) -> str:
    """The path as a whole address. By https wherever cookies are, whatever a proxy speaks to us."""
    address = request.build_absolute_uri(path)
    if settings.SESSION_COOKIE_SECURE:
        address = address.replace("http://", "https://", 1)
    return address


def _parsed(text: str) -> _Address | None:
    try:
        address = ip_address(text.strip("[]"))
    except ValueError:
        return None
    # One client, however the socket of this machine writes it.
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped if isinstance(mapped, IPv4Address) else address
