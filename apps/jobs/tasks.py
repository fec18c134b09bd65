"""Periodic tasks: runs of the controllers of jobs."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.jobs.reconcilers import attempts, cleanup


@shared_task
def reconcile_attempts() -> int:
    return attempts.attempts_reconcile(at=timezone.now())


@shared_task
def clean_up_launches() -> int:
    return cleanup.launches_clean_up(at=timezone.now())
