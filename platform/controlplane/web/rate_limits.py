"""Event counters per time window, for rate limits. Each process counts separately."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network

from django.core.cache import cache

#: One subscriber or host is given a whole IPv6 network of this prefix length, so it counts as one client.
_IPV6_PREFIX = 64


def count_events_in_window(key: str, *, seconds: int) -> int:
    """Count this call; return the calls with the key in the window that the first one opened."""
    cache.add(key, 0, timeout=seconds)
    try:
        return cache.incr(key)
    except ValueError:
        # The window ended between the two.
        cache.set(key, 1, timeout=seconds)
        return 1


def rate_limit_address(address: str | None) -> str | None:
    """Return the address to count a client by: an IPv4 address, or the /64 network of an IPv6 address."""
    if address is None or not isinstance(ip_address(address), IPv6Address):
        return address
    # A zone identifier (fe80::1%eth0) is not part of the network.
    network = ip_network((address.partition("%")[0], _IPV6_PREFIX), strict=False)
    return str(network.network_address)
