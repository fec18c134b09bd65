"""How this installation calls addresses that people chose."""

from __future__ import annotations

from django.conf import settings

from controlplane.ports import registry
from controlplane.ports.outbound import Outbound


def outbound() -> Outbound:
    """Under the policy that the settings give."""
    return registry.outbound(settings.NINEFOLD_EGRESS, settings.NINEFOLD_EGRESS_PROXY)
