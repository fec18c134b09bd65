"""How cycles of this installation are run."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings

from controlplane.domain.scheduling.policies import Policy

#: How long a cycle with very much to place may take: what it costs to look at all is spent once for more of it.
CYCLE = timedelta(seconds=1.5)


def policy_now() -> Policy:
    """The bounds and choices of a cycle, with the grace that the installation gives."""
    return Policy(grace=timedelta(seconds=settings.NINEFOLD_GRACE_SECONDS), cycle=CYCLE)
