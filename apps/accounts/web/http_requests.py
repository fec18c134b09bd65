"""The request type of signed-in views, the client address behind proxies, and absolute URLs."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from django.conf import settings
from django.http import HttpRequest

from apps.accounts.models import User
from controlplane.web.pages import HtmxRequest


class AuthenticatedRequest(HtmxRequest):
    """What a view behind ``login_required`` gets; for type checkers only."""

    user: User


_Address = IPv4Address | IPv6Address


def client_address(request: HttpRequest) -> str | None:
    """Return the nearest address that is not a trusted proxy; None for a unix socket.

    ``X-Forwarded-For`` is read from its end, where trusted proxies wrote, and only while the writer is
    trusted: its beginning is controlled by the client.
    """
    trusted: Sequence[IPv4Network | IPv6Network] = settings.NINEFOLD_TRUSTED_PROXIES
    nearest = _parse_address(request.META.get("REMOTE_ADDR", ""))
    hops = request.headers.get("X-Forwarded-For", "").split(",")
    while nearest is not None and hops and any(nearest in network for network in trusted):
        further = _parse_address(hops.pop().strip())
        if further is None:
            break
        nearest = further
    return str(nearest) if nearest is not None else None


def is_from_trusted_proxy(request: HttpRequest) -> bool:
    """Whether the peer of the connection is listed in ``NINEFOLD_TRUSTED_PROXIES``."""
    trusted: Sequence[IPv4Network | IPv6Network] = settings.NINEFOLD_TRUSTED_PROXIES
    peer = _parse_address(request.META.get("REMOTE_ADDR", ""))
    return peer is not None and any(peer in network for network in trusted)


def absolute_url(request: HttpRequest, path: str) -> str:
    """Return the absolute URL of a path; https if cookies are, whatever the proxy forwards."""
    address = request.build_absolute_uri(path)
    if settings.SESSION_COOKIE_SECURE:
        address = address.replace("http://", "https://", 1)
    return address


def _parse_address(text: str) -> _Address | None:
    try:
        address = ip_address(text.strip("[]"))
    except ValueError:
        return None
    # One client, however the socket of this machine writes it.
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped if isinstance(mapped, IPv4Address) else address
