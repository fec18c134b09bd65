"""Turns of the registry's loops."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.models import reconcilers


@shared_task
def import_models() -> None:
    reconcilers.models_import(at=timezone.now())
