"""The outbound HTTP client for user-supplied URLs."""

from __future__ import annotations

from django.conf import settings

from controlplane.ports import adapter_registry
from controlplane.ports.outbound_http import OutboundHttpClient


def configured_outbound() -> OutboundHttpClient:
    """Return the client with the egress policy of the settings."""
    return adapter_registry.outbound_http_client(
        settings.NINEFOLD_EGRESS, settings.NINEFOLD_EGRESS_PROXY
    )
