"""Turns of the scheduling loop."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.quotas import reconcilers
from controlplane.domain.scheduling.policies import Policy


@shared_task
def run_cycle() -> int:
    return reconcilers.cycle_run(policy=Policy(), at=timezone.now())
