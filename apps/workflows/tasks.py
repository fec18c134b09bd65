"""Turns of the loop of pipelines."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.workflows.reconcilers import pipelines


@shared_task
def reconcile_pipelines() -> int:
    return pipelines.pipelines_reconcile(at=timezone.now())
