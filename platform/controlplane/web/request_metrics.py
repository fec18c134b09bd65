"""Request metrics of the web server in the Prometheus text format, and who may read them.

A web process counts its own requests. Where several processes serve together, ``PROMETHEUS_MULTIPROC_DIR``
names the folder in which they add up; see ``docs/decisions/0018-product-metrics.md``.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram
from prometheus_client.exposition import generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_LATEST
#: Upper bounds in seconds: from an answer out of a cache to a large upload.
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
#: Other methods are counted as ``other``: label values must be bounded.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
#: Headers of proxies.
_FORWARDED = ("HTTP_FORWARDED", "HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP", "HTTP_VIA")

_own = CollectorRegistry()
REQUESTS = Counter(
    "ninefold_web_requests_total",
    "Requests answered.",
    labelnames=("method", "route", "status"),
    registry=_own,
)
REQUEST_SECONDS = Histogram(
    "ninefold_web_request_seconds",
    "From request to the first byte of its answer.",
    labelnames=("route",),
    buckets=SECONDS,
    registry=_own,
)


def count_request(*, method: str, route: str, status: int, seconds: float) -> None:
    """Count one request; ``route`` is the URL pattern, never the path."""
    REQUESTS.labels(method if method in _METHODS else "other", route, str(status)).inc()
    REQUEST_SECONDS.labels(route).observe(seconds)


def metrics_exposition(*others: Collector) -> bytes:
    """Return the request metrics and the metrics of ``others`` as text."""
    requests = _own
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        requests = CollectorRegistry()
        collector: Callable[[CollectorRegistry], object] = MultiProcessCollector
        collector(requests)
    measured = CollectorRegistry(auto_describe=False)
    for other in others:
        measured.register(other)
    return generate_latest(requests) + generate_latest(measured)


def may_read_metrics(request: HttpRequest) -> bool:
    """Return whether the request has the metrics token, or comes from this machine and no jobs run here.

    Jobs of the local cluster can reach loopback.
    """
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    right: str = settings.NINEFOLD_METRICS_TOKEN
    if right and scheme.lower() == "bearer":
        return hmac.compare_digest(token.strip().encode(), right.encode())
    return is_loopback(request) and not settings.NINEFOLD_LOCAL_CLUSTER


def is_loopback(request: HttpRequest) -> bool:
    """Return whether the request comes from this machine without a proxy."""
    if any(request.META.get(name) for name in _FORWARDED):
        return False
    try:
        address = ipaddress.ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
