"""The outbound HTTP client for user-supplied URLs."""

from __future__ import annotations

from django.conf import settings

from controlplane.ports import registry
from controlplane.ports.outbound import Outbound


def configured_outbound() -> Outbound:
    """Return the client with the egress policy of the settings."""
    return registry.outbound(settings.NINEFOLD_EGRESS, settings.NINEFOLD_EGRESS_PROXY)
