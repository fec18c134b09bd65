"""News that make a scheduling cycle worth while."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.quotas import reconcilers
from controlplane.domain.scheduling.policies import Policy


@shared_task
def schedule(*, claim_uid: str) -> None:
    """A claim came or went: look again now rather than at the next beat."""
    del claim_uid  # the cycle is level-triggered: it looks at everything that waits
    reconcilers.cycle_run(policy=Policy(), at=timezone.now())
