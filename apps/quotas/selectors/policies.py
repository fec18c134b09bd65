"""How cycles of this installation are run."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings

from controlplane.domain.scheduling.policies import Policy


def policy_now() -> Policy:
    """The bounds and choices of a cycle, with the grace that the installation gives."""
    return Policy(grace=timedelta(seconds=settings.NINEFOLD_GRACE_SECONDS))
