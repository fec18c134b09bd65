"""Periodic task of the pipeline controller."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.workflows import reconcilers


@shared_task
def reconcile_pipelines() -> int:
    return reconcilers.pipelines_reconcile(at=timezone.now())
